"""The shape of the code base, kept by tests."""

import ast
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import qualms

ROOT = Path(__file__).parents[1]
SRC = Path(qualms.__file__).parent
MODULES = sorted(SRC.rglob("*.py"))
BANNED = {"utils", "util", "helpers", "common", "misc", "base", "tools"}
SHELVES = (
    *("cli", "benchmarks", "datasets", "methods", "networks", "readers"),
    "evaluate.tasks",
    "report.site.pages",
)


def name_of(path):
    """The name of a module below `qualms`, e.g. 'scores.ranking'."""
    parts = path.relative_to(SRC).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


TREES = {name_of(path): ast.parse(path.read_text("utf-8")) for path in MODULES}


def imported(tree):
    """What a module imports of the package, without the leading 'qualms.'."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
            "qualms"
        ):
            module = node.module.removeprefix("qualms").removeprefix(".")
            yield module
            yield from (f"{module}.{alias.name}".strip(".") for alias in node.names)
        elif isinstance(node, ast.Import):
            found = (alias.name for alias in node.names)
            yield from (n[len("qualms.") :] for n in found if n.startswith("qualms."))


def test_there_is_no_drawer_for_helpers():
    assert [p for p in MODULES if p.stem.strip("_") in BANNED] == []


def test_a_class_name_means_one_thing():
    found = defaultdict(list)
    for module, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                found[node.name.lstrip("_")].append(module)
    assert {name: where for name, where in found.items() if len(where) > 1} == {}


def is_shelf_part(module, name):
    """Whether `name` is the part that a shelf has under the name of its file."""
    shelf, _, file = module.rpartition(".")
    return name == file and any(
        shelf == each or shelf.startswith(f"{each}.") for each in SHELVES
    )


def test_a_public_function_name_means_one_thing():
    """Apart from parts of shelves, and released variants beside the plain score."""
    found = defaultdict(list)
    for module, tree in TREES.items():
        if module.startswith("scores.as_published"):
            continue
        for node in tree.body:
            public = isinstance(node, ast.FunctionDef) and node.name[0] != "_"
            if public and not is_shelf_part(module, node.name):
                found[node.name].append(module)
    assert {name: where for name, where in found.items() if len(where) > 1} == {}


def test_private_modules_are_imported_inside_their_package_only():
    reached = []
    for module, tree in TREES.items():
        for target in imported(tree):
            if target not in TREES:
                continue  # a name in a module
            parts = target.split(".")
            for at, part in enumerate(parts):
                inside = ".".join(parts[:at])
                if part.startswith("_") and not f"{module}.".startswith(f"{inside}."):
                    reached.append(f"{module} imports {target}")
    assert reached == []


def test_uncertainty_is_not_called_doubt():
    for path in MODULES:
        assert not re.search(r"\bdoubts?\b", path.read_text("utf-8")), path


def test_our_classes_inherit_at_most_once():
    allowed = {"NamedTuple", "Protocol", "ValueError", "RuntimeError", "Exception"}
    allowed |= {"OSError", "Sequence", "Module", "Optimizer", "Generic"}
    allowed |= {"ThreadingHTTPServer", "BaseHTTPRequestHandler"}
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                names = {ast.unparse(base).split("[")[0] for base in node.bases}
                assert {n.split(".")[-1] for n in names} <= allowed, path


@pytest.mark.parametrize("module", ["qualms", "qualms.scores", "qualms.predictions"])
def test_importing_loads_no_training_stack(module):
    code = (
        f"import {module}, sys; "
        "heavy = {'torch', 'sklearn', 'matplotlib', 'pyarrow', 'pandas'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert out.stdout.strip() == "[]"


def test_the_constraints_pin_every_requirement():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = [*project["dependencies"]]
    for extra in project["optional-dependencies"].values():
        wanted += extra
    pinned = dict(
        line.split("==") for line in (ROOT / "constraints.txt").read_text().split()
    )
    for text in wanted:
        needed = Requirement(text)
        if needed.name != project["name"]:  # an extra may name others of the project
            assert pinned.get(needed.name, "none") in needed.specifier, text
