"""Count the files of the package that a command passes.

A file is passed if one of its functions runs, in any process of the command. Loading
a module does not count, nor do the functions that run while a module is loaded.

    python bench/walk.py score examples/files/classification.csv
    python bench/walk.py --list run retina --preset demo --out /tmp/retina
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

SRC = Path(__file__).parents[1] / "src"
RECORDER = """
import atexit, os, sys, threading

root, files = os.environ["QUALMS_WALK_SRC"] + os.sep, set()

def note(frame, event, argument):
    name = frame.f_code.co_filename
    if event == "call" and name.startswith(root) and name not in files:
        if not is_loading(frame):
            files.add(name)

def is_loading(frame):
    while frame is not None:
        code = frame.f_code
        if code.co_name == "<module>" and code.co_filename.startswith(root):
            return not code.co_filename.endswith("__main__.py")
        frame = frame.f_back
    return False

def write():
    sys.setprofile(None)
    path = os.path.join(os.environ["QUALMS_WALK_OUT"], str(os.getpid()))
    with open(path, "w") as out:
        out.write("\\n".join(files))

sys.setprofile(note)
threading.setprofile(note)
atexit.register(write)
leave = os._exit
def write_and_leave(status):
    write()
    leave(status)
os._exit = write_and_leave
"""


def main(arguments: list[str]) -> None:
    """Run the command, then print its number of files, and their names with --list."""
    listed = arguments[:1] == ["--list"]
    command = arguments[listed:]
    names = passed_files(command)
    print(f"{len(names)} files of {SRC.name}: qualms {' '.join(command)}")
    if listed:
        print("\n".join(names))


def passed_files(command: list[str]) -> list[str]:
    """List the files of the package in which a function runs."""
    with tempfile.TemporaryDirectory() as folder:
        hook, out = Path(folder) / "hook", Path(folder) / "out"
        hook.mkdir()
        out.mkdir()
        (hook / "sitecustomize.py").write_text(RECORDER, "utf-8")
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([str(hook), str(SRC)]),
            "QUALMS_WALK_SRC": str(SRC / "qualms"),
            "QUALMS_WALK_OUT": str(out),
        }
        subprocess.run(
            [sys.executable, "-m", "qualms", *command],
            env=environment,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        names = {name for path in out.iterdir() for name in path.read_text().split()}
    return sorted(str(Path(name).relative_to(SRC)) for name in names)


if __name__ == "__main__":
    main(sys.argv[1:])
