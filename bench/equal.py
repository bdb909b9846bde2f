"""Compare what this code prints with what a frozen revision prints, number by number.

    python bench/equal.py              # files, plans and checks
    python bench/equal.py --demos      # also results and findings of the four demos
    python bench/equal.py --freeze     # from now on, compare with the current commit

Both revisions get the same commands on the same files, so that the comparison holds on
every machine. What the frozen revision printed is kept in `build/equal`. Numbers are
equal to the last bit, or differ by rounding (1e-12 of their size), or are listed.
"""

import argparse
import csv
import io
import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import equal_files

ROOT = Path(__file__).resolve().parents[1]
FROZEN = ROOT / "bench" / "frozen"
"""File with the revision that is compared with."""
WORK = ROOT / "build" / "equal"
ROUNDING = 1e-12
"""Relative difference that another order of sums explains."""
LISTED = 40
"""Differences that are printed."""
DEMOS = (
    "retina/country --methods map,mc_dropout",
    "regression",
    "values --methods softmax,tta,ssn",
    "url --methods ce,elk,losspred,sngp",
)
PASSING = {"qualms", "seconds", "commit", "hardware", "created", "version"}
"""Keys of what may differ: versions, machines and times."""
LABELS = ("name", "score", "subset", "settings", "label", "threshold", "unit", "array")
"""Keys that name the rows of a list, wherever they stand."""

Values = dict[str, Any]
"""Values by their place in a document."""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--demos", action="store_true")
    arguments.add_argument("--freeze", action="store_true")
    asked = arguments.parse_args()
    if asked.freeze:
        FROZEN.write_text(git("rev-parse", "HEAD"), encoding="utf-8")
        return
    revision = FROZEN.read_text(encoding="utf-8").strip()
    tree = frozen_tree(revision)
    files = WORK / f"{revision[:12]}-files"
    if not files.is_dir():
        making = WORK / "making"
        shutil.rmtree(making, ignore_errors=True)
        run(tree, [equal_files.__file__, str(making)], ROOT).check_returncode()
        making.rename(files)
    kinds = ["files", *(["demos"] if asked.demos else [])]
    before, after = {}, {}
    for kind in kinds:
        before |= kept(revision, tree, kind, files)
        after |= printed(ROOT, kind, files, WORK / "now")
    sys.exit(1 if report(before, after) else 0)


def git(*words: str) -> str:
    command = ["git", "-C", str(ROOT), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def frozen_tree(revision: str) -> Path:
    """Check out the frozen revision, unless it is there."""
    tree = WORK / revision[:12]
    if not tree.is_dir():
        git("worktree", "prune")
        git("worktree", "add", "--detach", "--force", str(tree), revision)
    return tree


def kept(revision: str, tree: Path, kind: str, files: Path) -> Mapping[str, str]:
    """Return what the frozen revision prints; it is run only once."""
    path = WORK / f"{revision[:12]}-{kind}.json"
    if not path.is_file():
        said = printed(tree, kind, files, WORK / "then")
        path.write_text(json.dumps(said), encoding="utf-8")
    kept_before: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
    return kept_before


def printed(tree: Path, kind: str, files: Path, out: Path) -> dict[str, str]:
    """Return what the code of `tree` prints, by command or by file that it writes."""
    if kind == "files":
        return {
            line: output(tree, line, files)
            for line in (*equal_files.COMMANDS, *equal_files.FAILING)
        }
    shutil.rmtree(out, ignore_errors=True)
    for line in DEMOS:
        asked = f"run {line} --preset demo --brief --device cpu --out {out}/runs"
        print(output(tree, f"{asked} --data {WORK}/data", files)[-200:], flush=True)
    found = [*out.rglob("results.csv"), *out.rglob("findings.json")]
    return {
        str(path.relative_to(out)): path.read_text(encoding="utf-8") for path in found
    }


def output(tree: Path, line: str, folder: Path) -> str:
    """Return what a command prints, with its exit code if it fails."""
    done = run(tree, ["-m", "qualms", *line.split()], folder)
    said = done.stdout + (
        f"\nexit {done.returncode}\n{done.stderr}" * (done.returncode > 0)
    )
    return said.replace(str(folder), "").replace(str(tree), "")


def run(tree: Path, words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run Python with the code of `tree`, in a terminal of 80 columns."""
    return subprocess.run(
        [sys.executable, *words],
        check=False,
        capture_output=True,
        encoding="utf-8",
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(tree / "src"),
            "OMP_NUM_THREADS": "1",
            "COLUMNS": "80",
        },
    )


def report(before: Mapping[str, str], after: Mapping[str, str]) -> bool:
    """Print what differs; return whether anything does by more than rounding."""
    same = rounded = 0
    differences = []
    for name in dict.fromkeys((*before, *after)):
        then, now = values_of(before.get(name, "")), values_of(after.get(name, ""))
        for place in dict.fromkeys((*then, *now)):
            old, new = then.get(place), now.get(place)
            if old == new:
                same += 1
            elif is_rounding(old, new):
                rounded += 1
            else:
                differences.append(f"{name}\n    {place}: {old!r:.90} -> {new!r:.90}")
    print(
        f"{len(after)} documents: {same:,} values equal to the last bit, "
        f"{rounded:,} by rounding, {len(differences):,} not"
    )
    for line in differences[:LISTED]:
        print(f"  {line}")
    if len(differences) > LISTED:
        print(f"  and {len(differences) - LISTED:,} more")
    return bool(differences)


def is_rounding(old: Any, new: Any) -> bool:
    numbers = isinstance(old, float) and isinstance(new, float)
    return numbers and math.isclose(old, new, rel_tol=ROUNDING, abs_tol=ROUNDING)


def values_of(text: str) -> Values:
    """Return the values of JSON, of CSV, or the lines of another text."""
    if text.startswith(("{", "[")):
        document, end = json.JSONDecoder().raw_decode(text)
        return {**dict(leaves(document)), "after it": text[end:].strip()}
    if text.partition("\n")[0].count(",") > 3:
        return dict(table_values(text))
    return {f"line {number}": line for number, line in enumerate(text.splitlines())}


def leaves(node: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Yield numbers and words by their place; rows of lists by their labels."""
    if isinstance(node, dict):
        for key, child in node.items():
            if key not in PASSING:
                yield from leaves(child, f"{place}/{key}")
    elif isinstance(node, list):
        seen: dict[str, int] = {}
        for number, child in enumerate(node):
            label = labels_of(child) or str(number)
            seen[label] = seen.get(label, 0) + 1
            yield from leaves(child, f"{place}[{label}#{seen[label]}]")
    elif isinstance(node, int) and not isinstance(node, bool):
        yield place, float(node)
    else:
        yield place, node


def labels_of(node: Any) -> str:
    if not isinstance(node, dict):
        return ""
    return " ".join(json.dumps(node[key]) for key in LABELS if key in node)


def table_values(text: str) -> Iterator[tuple[str, Any]]:
    """Yield the cells of a table of results, by the labels of their row."""
    numbers = {"value", "low", "high", "mean", "std", "spread"}
    seen: dict[str, int] = {}
    for row in csv.DictReader(io.StringIO(text)):
        label = " ".join(v for k, v in row.items() if v and k not in numbers | PASSING)
        seen[label] = seen.get(label, 0) + 1
        for key in numbers & set(row):
            cell = row[key]
            place = f"{label}#{seen[label]} {key}"
            try:
                yield place, float(cell)
            except ValueError:
                yield place, cell


if __name__ == "__main__":
    main()
