"""The README is followed from the top, as by somebody who has just cloned it."""

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from test_docs import fenced

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_every_command_of_the_readme_works_in_order(tmp_path):
    """In a copy with an environment of its own; it takes a quarter of an hour."""
    left_out = shutil.ignore_patterns(".*", "demo", "runs", "cache", "__pycache__")
    shutil.copytree(ROOT, tmp_path / "qualms", ignore=left_out)
    lines = ["set -e"]
    for language, text in fenced(ROOT / "README.md"):
        if language == "sh":
            kept = [line for line in text.splitlines() if "make test" not in line]
            lines += [f"echo {shlex.quote(line)}\n{line}" for line in kept]
        elif language == "python":
            lines += ["python - <<'END'", text, "END"]
    foreign = ("PYTHONPATH", "VIRTUAL_ENV", "OMP_NUM_THREADS")
    bare = {name: value for name, value in os.environ.items() if name not in foreign}
    done = subprocess.run(
        ["bash", "-c", "\n".join(lines)],
        cwd=tmp_path / "qualms",
        env={**bare, "QUALMS_CACHE": str(tmp_path / "cache")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    for page in (
        "demo/site",
        *(f"runs/{n}/demo" for n in ("retina", "regression", "values", "url")),
    ):
        assert (tmp_path / "qualms" / page / "index.html").exists()
