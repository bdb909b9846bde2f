"""The shape of the code base, kept by tests."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import qualms

SRC = Path(qualms.__file__).parent
MODULES = sorted(SRC.rglob("*.py"))
BANNED = {"utils", "util", "helpers", "common", "misc", "base", "tools"}


def functions(path):
    tree = ast.parse(path.read_text())
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]


def body_lines(function):
    body = function.body
    if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:] or body
    return body[-1].end_lineno - body[0].lineno + 1


def test_there_is_no_drawer_for_helpers():
    assert [p for p in MODULES if p.stem.strip("_") in BANNED] == []


def test_no_module_is_longer_than_400_lines():
    long = [p for p in MODULES if len(p.read_text().splitlines()) > 400]
    assert long == []


def test_no_function_body_is_longer_than_40_lines():
    long = [
        f"{path.relative_to(SRC)}:{f.name} {body_lines(f)}"
        for path in MODULES
        for f in functions(path)
        if body_lines(f) > 40
    ]
    assert long == []


def test_our_classes_inherit_at_most_once():
    allowed = {"NamedTuple", "Protocol", "ValueError", "RuntimeError", "Exception"}
    allowed |= {"OSError", "Sequence", "Module", "Optimizer"}
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                names = {ast.unparse(base).split("[")[0] for base in node.bases}
                assert {n.split(".")[-1] for n in names} <= allowed, path


@pytest.mark.parametrize("module", ["qualms", "qualms.scores", "qualms.predictions"])
def test_importing_loads_no_training_stack(module):
    code = (
        f"import {module}, sys; "
        "heavy = {'torch', 'sklearn', 'matplotlib', 'plotly', 'pyarrow', 'pandas'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert out.stdout.strip() == "[]"
