"""Make the same runs by one launcher, by three, and on two nodes that lose things.

    python bench/clusters.py            needs the extra scale (Ray); some minutes

Four ways to make the same grid, each in a folder of its own, compared to the last bit:

- one launcher;
- three launchers on one folder, as three tasks of a Slurm array are;
- three launchers, one of which is killed in mid-epoch and started again (`--requeue`);
- a Ray cluster of two nodes. The process of a run is killed in mid-epoch, and then the
  node that another one is trained on.

Everything listens on this machine only as far as Ray allows: nodes of Ray listen on all
interfaces, and ask for a token that is made for this test.
"""

import argparse
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from qualms.predictions import read

BENCHMARK = "regression/cells"
SIZES = '{"train": 128, "val": 32, "test": 32}'
GRID = ["--methods", "map,gaussian", "--seeds", "0-1", "-o", "epochs=8"]
GRID += ["-o", "network.width=2", "-o", f"dataset.sizes={SIZES}"]
LONGEST = 1200.0
"""Seconds after which something is wrong."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", type=Path, help="Folder for all runs.")
    parser.add_argument("--without-ray", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        root = (options.keep or Path(temporary)).resolve()
        root.mkdir(parents=True, exist_ok=True)
        ways: dict[str, Callable[[Path, Path], str]] = {
            "one launcher": one_launcher,
            "three launchers": three_launchers,
            "three, one killed and started again": requeued,
        }
        if not options.without_ray:
            ways["two nodes of Ray, a process and a node killed"] = two_nodes
        files: dict[str, dict[str, Path]] = {}
        for number, (name, make) in enumerate(ways.items()):
            started = time.monotonic()
            remark = make(root / f"way{number}", root / "data")
            files[name] = predictions_in(root / f"way{number}")
            print(f"{name}: {len(files[name])} files in", end=" ")
            print(f"{time.monotonic() - started:.0f} s; {remark}", flush=True)
        first, *others = files.values()
        arrays = sum(compare(first, other) for other in others)
        print(f"{arrays} arrays are equal to the last bit, and so are the files")


def one_launcher(out: Path, data: Path) -> str:
    finish(launch(out, data, workers=2))
    return "two processes"


def three_launchers(out: Path, data: Path) -> str:
    launchers = [launch(out, data, workers=1) for _ in range(3)]
    for launcher in launchers:
        finish(launcher)
    return "one process each"


def requeued(out: Path, data: Path) -> str:
    launchers = [launch(out, data, workers=1) for _ in range(3)]
    wait_for_epoch(out, 2)
    launchers[0].kill()
    launchers[0].wait()
    launchers[0] = launch(out, data, workers=1)
    for launcher in launchers:
        finish(launcher)
    return "the first was killed after an epoch, and started again"


def two_nodes(out: Path, data: Path) -> str:
    with ray_cluster(out.parent / "ray") as cluster:
        launcher = launch(
            out,
            data,
            workers=2,
            more=["--launcher", "ray", "--address", cluster.address],
            environment=cluster.environment,
        )
        victim = training_process(out, launcher)
        os.kill(victim, signal.SIGKILL)
        wait_for_epoch(out, 8)
        cluster.lose(cluster.node_of(training_process(out, launcher)))
        output = finish(launcher)
    killed = output.count("was killed by SIGKILL")
    lost = output.count("was lost with its node")
    if not killed or not lost:
        sys.exit(f"a process and a node must have been lost:\n{output}")
    return f"{killed} lost by a killed process, {lost} by a killed node"


def launch(
    out: Path,
    data: Path,
    *,
    workers: int,
    more: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> "subprocess.Popen[str]":
    """Start `qualms run` on the grid."""
    words = ["run", BENCHMARK, *GRID, "--no-judge", "--device", "cpu"]
    places = ["--out", str(out), "--data", str(data), "--workers", str(workers)]
    return subprocess.Popen(
        [sys.executable, "-m", "qualms", *words, *places, *more],
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(launcher: "subprocess.Popen[str]") -> str:
    """Wait for a launcher; return what it printed."""
    output, _ = launcher.communicate(timeout=LONGEST)
    if launcher.returncode:
        sys.exit(f"a launcher ended with code {launcher.returncode}:\n{output}")
    return output


def epochs_in(out: Path) -> int:
    """Return how many epochs all runs have finished."""
    logs = out.glob("*/*/log.jsonl")
    return sum(log.read_text("utf-8").count("\n") for log in logs)


def wait_for_epoch(out: Path, epochs: int) -> None:
    deadline = time.monotonic() + LONGEST
    while epochs_in(out) < epochs:
        if time.monotonic() > deadline:
            sys.exit(f"no run in {out} goes on")
        time.sleep(0.05)


def training_process(out: Path, launcher: "subprocess.Popen[str]") -> int:
    """Wait until a run is in mid-training; return the process that has its lock."""
    deadline = time.monotonic() + LONGEST
    while time.monotonic() < deadline and launcher.poll() is None:
        for pid in training_processes(out):
            return pid
        time.sleep(0.02)
    sys.exit(f"no process trains in {out}")


def training_processes(out: Path) -> Iterator[int]:
    """Yield the processes with the locks of runs that have finished an epoch."""
    for log in out.glob("*/*/log.jsonl"):
        if not (log.parent / "done.json").exists():
            yield from holders(log.parent / "lock")


def holders(path: Path) -> Iterator[int]:
    """Yield the processes that have locked a file."""
    inode = path.stat().st_ino
    for line in Path("/proc/locks").read_text().splitlines():
        words = line.split()
        if "FLOCK" in words and words[-3].rpartition(":")[2] == str(inode):
            yield int(words[-4])


@dataclass
class RayCluster:
    """A cluster on this machine: a head without cores, and nodes with one each."""

    folder: Path
    address: str
    environment: dict[str, str]
    """Of its nodes and of drivers."""
    nodes: list["subprocess.Popen[bytes]"] = field(default_factory=list)
    """The head, and the other nodes; each leads a session of its own."""

    def start(self, *words: str, within: Sequence[str] = ()) -> None:
        """Start a node by the command `within`, and wait until it has joined."""
        ray = str(Path(sys.executable).with_name("ray"))
        store = ["--object-store-memory", str(80 * 2**20), "--block"]
        log = self.folder / f"node{len(self.nodes)}.log"
        with log.open("wb") as file:
            process = subprocess.Popen(
                [*within, ray, "start", *words, *store],
                env=self.environment,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.nodes.append(process)
        wait_until_up(log, process)

    def add_node(self, *within: str) -> None:
        """Start a node with a core."""
        self.start("--address", self.address, "--num-cpus", "1", within=within)

    def node_of(self, pid: int) -> "subprocess.Popen[bytes]":
        """Return the node that a process belongs to."""
        return next(node for node in self.nodes if pid in session(node.pid))

    def lose(self, node: "subprocess.Popen[bytes]") -> None:
        """Kill a node with all its processes."""
        end_group(node)
        self.nodes.remove(node)


@contextmanager
def ray_cluster(folder: Path, *, nodes: int = 2) -> Iterator[RayCluster]:
    """Start a head and nodes; end them by their sessions."""
    folder.mkdir(parents=True, exist_ok=True)
    token = folder / "token"
    token.touch(mode=0o600)
    token.write_text(secrets.token_hex(32))
    environment = {
        **os.environ,
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(token),
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    cluster = RayCluster(folder, f"{own_address()}:{port}", environment)
    try:
        head = ["--head", "--port", port, "--num-cpus", "0"]
        cluster.start(*head, "--include-dashboard", "false")
        for _ in range(nodes):
            cluster.add_node()
        yield cluster
    finally:
        for node in reversed(cluster.nodes):
            end_group(node)


def own_address() -> str:
    """Return the address by which nodes on this machine know each other."""
    import ray

    return str(ray.util.get_node_ip_address())


def wait_until_up(log: Path, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + LONGEST
    while b"Ray runtime started" not in log.read_bytes():
        if process.poll() is not None or time.monotonic() > deadline:
            sys.exit(f"a node of Ray did not start:\n{log.read_text()}")
        time.sleep(0.2)


def end_group(process: "subprocess.Popen[bytes]") -> None:
    """End a node with all processes of its session."""
    for pid in session(process.pid):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()


def session(leader: int) -> list[int]:
    """Return all processes of the session that `leader` began."""
    members = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(words[3]) == leader:
            members.append(int(stat.parent.name))
    return members


def predictions_in(out: Path) -> dict[str, Path]:
    """Return the predictions of all runs, by run and split."""
    return {
        str(file.relative_to(out)): file
        for file in sorted(out.glob("*/*/predictions/*"))
        if file.is_file()
    }


def compare(ours: Mapping[str, Path], theirs: Mapping[str, Path]) -> int:
    """Raise unless all files and arrays are equal; return the number of arrays."""
    if ours.keys() != theirs.keys() or not ours:
        sys.exit(f"other runs were made: {sorted(ours)}, {sorted(theirs)}")
    count = 0
    for name, path in ours.items():
        first, second = read(path).arrays, read(theirs[name]).arrays
        for array in first.keys() | second.keys():
            np.testing.assert_array_equal(first[array], second[array], strict=True)
            count += 1
        if path.read_bytes() != theirs[name].read_bytes():
            sys.exit(f"{name}: the arrays are equal, and the files are not")
    return count


if __name__ == "__main__":
    main()
