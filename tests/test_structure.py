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
    *("cli", "benchmarks", "corruptions", "datasets", "methods", "networks", "readers"),
    "tasks",
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


ENGINES = (
    *("predictions", "evaluate", "referral", "report", "methods", "training"),
    "trained",
)
TASKS = {"classification", "regression", "segmentation", "embedding", "multilabel"}
ALIKE = {
    "evaluate._repeated": "embedding",
    "methods._uncertain": "embedding",
    "methods._untrained": "embedding",
    "methods.frozen": "embedding",
    "predictions._reader": "embedding",
    "predictions.schema": "embedding",
    "evaluate.neighbours": "embedding",
    "report.site.query_gallery": "embedding",
    "training.selection": "embedding",
    "training._validate": "embedding",
    "report.site.file_scores": "regression",
    "trained._pictures": "classification",
}
"""Arrays, a family of scores, and a default that are called as a task is."""


def test_engines_hold_no_name_of_a_task():
    named = {
        (module, node.value)
        for module, tree in TREES.items()
        for node in ast.walk(tree)
        if module.split(".")[0] in ENGINES
        and isinstance(node, ast.Constant)
        and node.value in TASKS
    }
    assert named - set(ALIKE.items()) == set()
    compared = re.compile(r"task(\.name)? (==|!=|in|not in) [({\[]?[\"']")
    assert [
        p
        for p in MODULES
        if name_of(p).split(".")[0] in ENGINES and compared.search(p.read_text("utf-8"))
    ] == []


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
    allowed |= {"OSError", "Sequence", "Mapping", "RawIOBase", "Module", "Optimizer"}
    allowed |= {"ThreadingHTTPServer", "BaseHTTPRequestHandler", "Unpickler", "Generic"}
    allowed |= {"TyperCommand"}
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


def test_the_lock_pins_every_requirement_by_hash():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = [*project["dependencies"]]
    for extra in project["optional-dependencies"].values():
        wanted += extra
    lock = (ROOT / "requirements.lock").read_text("utf-8")
    entries = re.split(r"^(?=[\w.-]+==)", lock, flags=re.M)[1:]
    assert all("--hash=sha256:" in entry for entry in entries)
    pinned = dict(re.match(r"([\w.-]+)==([\w.]+)", entry).groups() for entry in entries)
    left_out = {"torch", "torchvision"}  # each platform has a build of its own
    assert not left_out & pinned.keys()
    assert not [name for name in pinned if name.startswith(("nvidia", "cuda"))]
    assert "://" not in lock
    for text in wanted:
        needed = Requirement(text)
        if needed.name not in {project["name"], *left_out}:
            assert pinned.get(needed.name, "none") in needed.specifier, text


def test_the_container_file_copies_what_it_installs():
    lines = (ROOT / "Containerfile").read_text("utf-8").splitlines()
    (copied,) = (line for line in lines if line.startswith("COPY pyproject.toml"))
    assert all((ROOT / name).is_file() for name in copied.split()[1:-1])
    (extras,) = (line for line in lines if line.startswith("ARG EXTRAS="))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    known = set(project["optional-dependencies"])
    developers = {"dev", "browser", "docs"}
    listed = extras.removeprefix("ARG EXTRAS=").split(",")
    assert set(listed) == known - developers
    uv = re.search(r"UV_VERSION := (\S+)", (ROOT / "Makefile").read_text("utf-8"))[1]
    assert any(f"uv=={uv}" in line for line in lines)


def messages_of(module):
    """The strings of a module that are not docstrings, and the help of commands."""
    tree = ast.parse(module.read_text("utf-8"))
    in_docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and (id(node) not in in_docs or module.parent.name == "cli"):
            yield node.value


def test_messages_name_pages_that_an_installed_package_has():
    from qualms.documentation import documentation

    texts = [(m, text) for m in MODULES for text in messages_of(m)]
    assert not [(m, text) for m, text in texts if re.search(r"docs/\w+\.md", text)]
    named = {
        name for _, text in texts for name in re.findall(r"`qualms docs\s+(\w+)`", text)
    }
    assert len(named) >= 6
    assert named <= documentation().keys()
