"""Code from outside: it takes no name of the package, and its errors name it."""

import ast
import importlib
import sys
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

import qualms
from qualms import shelf
from qualms.cli import app, main
from qualms.evaluate.protocol import protocol_of
from qualms.launch._worker import _sentence as failure_text
from qualms.report.benchmark import presentation_of
from qualms.shelf import PartError, find
from qualms.wording import error_words, plain_line

SCORE = """
from qualms.scores import as_score

@as_score(label="Mine", better="lower")
def {name}(probs, target):
    {body}
"""
RED = "\x1b[31mred\x1b[0m\x1b]0;title\x07 alert\x1b[2J"


@pytest.fixture
def arrays():
    rng = np.random.default_rng(0)
    prob = rng.random(60)
    return {"prob": prob, "target": (rng.random(60) < prob).astype(int)}


@pytest.fixture
def outside(tmp_path, monkeypatch):
    """Bring code from outside: a file that is included, or an installed package."""
    monkeypatch.setenv("QUALMS_INCLUDE", "")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    points = []
    monkeypatch.setattr(
        shelf, "entry_points", lambda group: [p for p in points if p.group == group]
    )

    def bring(text, file, *, installed=()):
        (tmp_path / f"{file}.py").write_text(text)
        importlib.invalidate_caches()
        shelf._installed.cache_clear()
        for where, name in installed:
            points.append(EntryPoint(name, f"{file}:{name}", f"qualms.{where}"))
        return tmp_path / f"{file}.py"

    yield bring
    for file in tmp_path.glob("*.py"):
        sys.modules.pop(file.stem, None)
    shelf._installed.cache_clear()
    shelf._included.cache_clear()


@pytest.mark.parametrize("name", ["ece", "accuracy", "brier"])
def test_a_score_of_ones_own_cannot_be_called_as_one_of_the_package(
    outside, arrays, name
):
    before = qualms.score(arrays)
    file = outside(SCORE.format(name=name, body="return 0.5"), f"of_mine_{name}")
    with pytest.raises(ValueError, match=f"scores has '{name}' from qualms itself"):
        shelf.include([file])
    assert qualms.score(arrays).row(name).value == before.row(name).value != 0.5


def test_an_entry_point_cannot_take_the_place_of_a_method(outside, capsys):
    text = "from qualms.methods import Method\ndef map() -> Method:\n    return None\n"
    outside(text, "taker", installed=[("methods", "map")])
    from qualms.methods.map import map as ours

    assert find("methods", "map") is ours
    told = CliRunner().invoke(app, ["list", "methods"])
    assert "brings 'map' to methods, which have it from qualms itself" in told.stderr
    assert told.exit_code == 0


def test_an_entry_point_called_ece_is_left_out_with_a_note(outside, arrays):
    before = qualms.score(arrays).row("ece").value
    outside(
        SCORE.format(name="ece", body="return 0.5"),
        "of_theirs",
        installed=[("scores", "ece")],
    )
    results = qualms.score(arrays)
    assert results.row("ece").value == before
    assert any("brings 'ece' to scores" in note for note in results.notes)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import nowhere_at_all", "ModuleNotFoundError: No module named 'nowhere_at_"),
        ("raise KeyError('x')", "cannot be loaded: KeyError 'x'; repair or remove it"),
        ("import sys; sys.exit(3)", "cannot be loaded: SystemExit: 3"),
        ("mine = 3", "must be a function, got int"),
        ("def mine(probs): return 1", "is not declared by @as_score; it is left out"),
        (
            SCORE.format(name="mine", body="raise KeyError('x')"),
            "score 'mine': KeyError 'x'; it is left out",
        ),
        (
            SCORE.format(name="mine", body="return None"),
            "score 'mine' must return a number, got NoneType; it is left out",
        ),
    ],
)
def test_a_broken_entry_point_does_not_stop_the_other_scores(
    outside, arrays, text, said
):
    outside(text, "broken_part", installed=[("scores", "mine")])
    results = qualms.score(arrays)
    assert results.row("ece").value > 0
    assert any(said in note for note in results.notes), results.notes
    assert "mine" not in {row.score for row in results.rows}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise KeyError('x')", "score 'mine': KeyError 'x'"),
        ("raise RuntimeError", "score 'mine': RuntimeError"),
        ("return 1 / 0", "score 'mine': ZeroDivisionError: division by zero"),
        (f"raise TypeError({RED!r})", "score 'mine': TypeError: red alert"),
        ("raise ValueError('a' * 10**5)", "score 'mine': ValueError: aaaa"),
        ("assert False", "score 'mine': AssertionError"),
        ("return None", "score 'mine' must return a number, got NoneType"),
        ("return '0.5'", "score 'mine' must return a number, got str"),
        ("return [0.5]", "score 'mine' must return a number, got list"),
        ("return probs", r"score 'mine' must return a number, got ndarray of shape"),
        ("return 1j", "score 'mine' must return a number, got complex"),
        ("import sys; sys.exit('bye')", "score 'mine': SystemExit: bye"),
        ("raise BaseException('x')", "score 'mine': BaseException: x"),
    ],
)
def test_a_score_of_ones_own_that_fails_is_named(outside, arrays, body, said, tmp_path):
    np.savez(tmp_path / "p.npz", **arrays)
    file = outside(SCORE.format(name="mine", body=body), "failing")
    words = ["score", str(tmp_path / "p.npz"), "--include", str(file)]
    told = CliRunner().invoke(app, words)
    assert isinstance(told.exception, PartError)
    assert str(told.exception).startswith(said.replace("\\", ""))
    assert len(str(told.exception)) < 400
    assert "\x1b" not in str(told.exception)


def test_an_influence_that_fails_is_named(outside, arrays):
    text = """
from qualms.scores import as_score
def each(probs, target):
    raise KeyError("x")
@as_score(label="Mine", better="lower", items=each)
def mine(probs, target):
    return 0.5
"""
    shelf.include([outside(text, "influence_fails")])
    with pytest.raises(PartError, match="score 'mine': KeyError 'x'"):
        qualms.score(arrays)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("return None", "method 'mine' must return a Method, got NoneType"),
        ("return 3", "method 'mine' must return a Method, got int"),
        ("raise KeyError('x')", "method 'mine': KeyError 'x'"),
        ("raise SystemExit(3)", "method 'mine': SystemExit: 3"),
        (f"raise RuntimeError({RED!r})", "method 'mine': RuntimeError: red alert"),
        ("raise ValueError('rate must be 1')", "method 'mine': rate must be 1"),
    ],
)
def test_a_factory_that_fails_or_returns_nothing_is_named(outside, body, said):
    text = f"from qualms.methods import Method\ndef mine() -> Method:\n    {body}\n"
    shelf.include([outside(text, "factory")])
    with pytest.raises(ValueError, match=said):
        find("methods", "mine")()
    told = CliRunner().invoke(
        app, ["run", "regression/cells", "--methods", "mine", "--dry-run"]
    )
    assert told.exit_code
    assert isinstance(told.exception, ValueError | LookupError | SystemExit), said


@pytest.mark.parametrize("shelf_name", ["datasets", "networks", "benchmarks"])
def test_factories_of_every_shelf_are_named(outside, shelf_name):
    returned = {"datasets": "qualms.datasets:Recipe", "benchmarks": "qualms.study:"}
    module, _, kind = returned.get(shelf_name, "torch.nn:Module").partition(":")
    kind = kind or "Benchmark"
    text = f"from {module} import {kind}\ndef mine() -> {kind}:\n    return None\n"
    shelf.include([outside(text, f"none_{shelf_name}")])
    with pytest.raises(PartError, match=f"{shelf_name[:-1]} 'mine' must return a "):
        find(shelf_name, "mine")()


HOOKS = """
from qualms.methods import Method
def loss(kind):
    if kind == "value":
        raise ValueError("the loss must be a number\\nand more")
    raise {"key": KeyError("x"), "type": TypeError("\\x1b[31mred")}[kind]
def mine() -> Method:
    return Method()
"""


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("key", "method 'mine': KeyError 'x' (hooks.py, line 6)"),
        ("type", "method 'mine': TypeError: red (hooks.py, line 6)"),
        ("value", "method 'mine': the loss must be a number (hooks.py, line 5)"),
    ],
)
def test_an_error_inside_a_part_names_it_and_its_line(
    outside, kind, said, capsys, monkeypatch
):
    shelf.include([outside(HOOKS, "hooks")])
    hooks = importlib.import_module("hooks")
    monkeypatch.setattr("qualms.cli.app", lambda **_: hooks.loss(kind))
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    assert capsys.readouterr().err == f"qualms: {said}\n"
    with pytest.raises(Exception) as raised:  # noqa: PT011 - of any class
        hooks.loss(kind)
    assert failure_text(raised.value) == said


def test_a_file_with_several_parts_is_named_itself(outside):
    text = HOOKS + "def other() -> Method:\n    return Method()\n"
    shelf.include([outside(text, "hooks")])
    with pytest.raises(KeyError) as raised:
        importlib.import_module("hooks").loss("key")
    assert shelf.outside_error(raised.value) == (
        "a part in hooks.py: KeyError 'x' (hooks.py, line 6)"
    )


def test_errors_of_the_package_itself_are_not_those_of_parts(outside, monkeypatch):
    shelf.include([outside(HOOKS, "hooks")])
    with pytest.raises(LookupError) as raised:
        find("methods", "nothing")
    assert shelf.outside_error(raised.value) == ""
    monkeypatch.setattr("qualms.cli.app", lambda **_: {}.attribute)
    with pytest.raises(AttributeError):  # a fault of qualms keeps its traceback
        main()


@pytest.mark.parametrize("kind", ["protocol", "presentation"])
def test_a_protocol_or_presentation_that_is_none_is_refused(kind):
    benchmark = find("benchmarks", "regression")()
    broken = replace(benchmark, **{kind: lambda: None})
    asked = {
        "protocol": lambda: protocol_of(broken),
        "presentation": lambda: presentation_of(SimpleNamespace(benchmark=broken)),
    }
    said = f"the {kind} of regression must be a {kind.title()}, got NoneType; correct"
    with pytest.raises(ValueError, match=said):
        asked[kind]()


def test_a_path_in_the_environment_that_is_not_there_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("QUALMS_INCLUDE", str(tmp_path / "parts.py"))
    with pytest.raises(ValueError, match="QUALMS_INCLUDE names: there is no"):
        find("methods", "map")


def test_what_foreign_code_says_is_one_plain_line():
    class OddError(Exception):
        def __str__(self):
            raise RuntimeError

    assert error_words(OddError()) == "OddError"
    assert error_words(KeyError("x")) == "KeyError 'x'"
    assert plain_line(RED) == "red alert"
    assert plain_line("one\ntwo\x07") == "one"
    assert len(plain_line("a" * 10**6)) == 200


@pytest.mark.parametrize(
    "shelf_name", ["methods", "datasets", "networks", "benchmarks", "scores"]
)
@pytest.mark.parametrize(
    "fault", ["raise SystemError('boom')", "import sys; sys.exit(2)"]
)
def test_a_broken_entry_point_does_not_stop_a_list(outside, shelf_name, fault):
    before = CliRunner().invoke(app, ["list", shelf_name])
    assert before.exit_code == 0
    outside(fault, "broken_part", installed=[(shelf_name, "mine")])
    told = CliRunner().invoke(app, ["list", shelf_name])
    assert told.exit_code == 0
    assert told.stdout == before.stdout
    assert "brings 'mine', which cannot be loaded: System" in told.stderr


def test_a_broken_benchmark_of_a_package_does_not_stop_the_others(outside, tmp_path):
    outside("raise KeyError('x')", "broken_part", installed=[("benchmarks", "mine")])
    words = ["run", "--methods", "map", "--dry-run", "--data", str(tmp_path)]
    told = CliRunner().invoke(app, words)
    assert told.exit_code == 0, told.output
    assert "note: the installed package" in told.stdout
    assert "cannot be loaded: KeyError 'x'; repair or remove it" in " ".join(
        told.stdout.split()
    )
    named = CliRunner().invoke(app, ["run", "mine", "--dry-run"])
    assert isinstance(named.exception, PartError)


def test_a_broken_method_of_a_package_does_not_stop_a_prediction(outside):
    import torch

    outside("raise KeyError('x')", "broken_part", installed=[("methods", "mine")])
    with pytest.raises(ValueError, match=r"trained with method 'swag'.* these can: "):
        qualms.predict(
            torch.nn.Linear(2, 2),
            [torch.zeros(3, 2)],
            task="classification",
            method="swag",
        )


UNPICKLERS = {"pickle", "_pickle", "marshal", "shelve", "joblib", "dill", "cloudpickle"}
FOLDER = Path(qualms.__file__).parent


def unpicklers_in(tree):
    """What a module takes from unpicklers, and calls that would unpickle."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ({a.name for a in node.names} & UNPICKLERS)
        elif isinstance(node, ast.ImportFrom) and node.module in UNPICKLERS:
            yield from (f"{node.module}.{a.name}" for a in node.names)
        elif isinstance(node, ast.keyword):
            value = getattr(node.value, "value", None)
            if (node.arg, value) in (("allow_pickle", True), ("weights_only", False)):
                yield node.arg
        elif isinstance(node, ast.Attribute) and node.attr == "read_pickle":
            yield node.attr


def test_no_file_is_unpickled():
    """One module packs what processes send; others know the class of an error."""
    found = {
        path.relative_to(FOLDER).as_posix(): what
        for path in FOLDER.rglob("*.py")
        if (what := set(unpicklers_in(ast.parse(path.read_text("utf-8")))))
    }
    assert found.pop("processes/_crew.py") == {"pickle"}
    assert set().union(*found.values()) == {"pickle.UnpicklingError"}


def test_torch_loads_weights_alone():
    calls = [
        node
        for path in FOLDER.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "torch.load"
    ]
    assert len(calls) == 2
    assert all("weights_only=True" in ast.unparse(call) for call in calls)
