"""The tests that `tests/POINTS.md` names are there."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAMED = re.compile(r"(tests/[\w/]+\.py)::(\w+)")


@cache
def names_in(path):
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}


def test_every_point_names_tests_that_exist():
    text = (ROOT / "tests" / "POINTS.md").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if re.match(r"\| [123]", line)]
    assert len(lines) > 60
    assert all(NAMED.search(line) for line in lines)
    missing = [
        f"{path}::{name}"
        for path, name in NAMED.findall(text)
        if not (ROOT / path).is_file() or name not in names_in(path)
    ]
    assert missing == []
