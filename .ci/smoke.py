"""Use an installed qualms as somebody would, in a folder of its own.

`python smoke.py [tables] [report]`: check, score, refer and new; then what the named
extras add. Only the standard library and NumPy, which qualms needs anyway, are used.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

QUALMS = [sys.executable, "-m", "qualms"]


def run(folder: Path, *words: str) -> str:
    """Return what a command prints; end with all of it where the command fails."""
    done = subprocess.run(
        [*QUALMS, *words], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"qualms {' '.join(words)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def write_predictions(path: Path, *, n: int = 400) -> float:
    """Write predictions of three classes and return their accuracy."""
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(3), n)
    target = np.array([rng.choice(3, p=row) for row in probs])
    header = {"format": 1, "task": "classification"}
    np.savez(path, header=json.dumps(header), probs=probs, target=target)
    return float((probs.argmax(1) == target).mean())


def core(folder: Path) -> None:
    """Try what needs the core dependencies only."""
    accuracy = write_predictions(folder / "mine.npz")
    run(folder, "check", "mine.npz")
    (scored,) = json.loads(run(folder, "score", "mine.npz", "--json"))["files"]
    (row,) = (row for row in scored["scores"] if row["score"] == "accuracy")
    assert abs(row["value"] - accuracy) < 1e-12, (row, accuracy)
    assert "error" not in run(folder, "refer", "mine.npz", "--budget", "0.2").lower()
    run(folder, "new", "method", "my_method")
    run(folder, "list", "methods")
    assert "# Which items" in run(folder, "docs", "refer"), "the wheel has no pages"


def tables(folder: Path) -> None:
    """Try a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {"prob_0": [0.9, 0.2, 0.6] * 20, "prob_1": [0.1, 0.8, 0.4] * 20}
    pq.write_table(
        pa.table({**columns, "target": [0, 1, 1] * 20}), folder / "t.parquet"
    )
    run(folder, "score", "t.parquet")


def report(folder: Path) -> None:
    """Try the site and a page."""
    run(folder, "report", "mine.npz", "--out", "site")
    assert "mine" in (folder / "site" / "index.html").read_text("utf-8")
    run(folder, "score", "mine.npz", "--html", "page.html")
    assert "mine" in (folder / "page.html").read_text("utf-8")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        core(Path(name))
        for extra in sys.argv[1:]:
            {"tables": tables, "report": report}[extra](Path(name))
    print("smoke test passed:", ", ".join(["core", *sys.argv[1:]]))
