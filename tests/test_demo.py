"""The demo's files have the scores that they were made to have."""

import runpy
import shlex
import subprocess
import sys
import webbrowser
from itertools import pairwise
from pathlib import Path

import pytest

from qualms import score
from qualms.evaluate import ScoreOptions
from qualms.launch import RunRequest, plans_of

EXAMPLES = Path(__file__).parents[1] / "examples"
FILES = runpy.run_path(str(EXAMPLES / "known_files.py"))


@pytest.mark.parametrize(
    "task", ["classification", "regression", "segmentation", "embedding"]
)
def test_a_known_file_is_scored_as_it_was_made(task, tmp_path):
    arguments, name, subset, value = FILES[task](tmp_path)
    results = score(Path(arguments[0]), options=ScoreOptions(resamples=0))
    assert results.task == task
    assert results.row(name, subset=subset).value == pytest.approx(value, abs=1e-9)


def test_the_demo_of_values_has_all_scenarios_and_trains_one_seed(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    chosen = runpy.run_path(str(EXAMPLES / "demo.py"))["BENCHMARKS"]
    (words,) = (shlex.split(text) for text in chosen if text.startswith("values"))
    request = RunRequest(preset="demo", methods=tuple(words[2].split(",")))
    (plan,) = plans_of(words[0], request)
    names = [variant.name for variant in plan.variants]
    assert names == ["toy_1", "toy_2", "toy_3a", "toy_3b"]
    trainings = [run for run in plan.runs if run.training["epochs"]]
    # Each takes a quarter of a minute; an ensemble would take four more of each kind.
    assert len(trainings) == 3 * 2
    assert {run.seed for run in trainings} == {0}


@pytest.fixture
def demo(monkeypatch):
    """The names of the demo, whose commands are noted and not run."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    names = runpy.run_path(str(EXAMPLES / "demo.py"))
    commands = []

    def run(command, **_):
        commands.append(command[3:])
        return subprocess.CompletedProcess(command, 0, stdout="a table\n")

    monkeypatch.setattr(subprocess, "run", run)
    return names | {"commands": commands}


@pytest.mark.parametrize("display", ["", ":0"])
def test_the_demo_prints_headings_and_ends_with_the_site(
    demo, display, tmp_path, monkeypatch, capsys
):
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setenv("DISPLAY", display)
    demo["main"](tmp_path)
    lines = capsys.readouterr().out.splitlines()
    headings = [above for above, line in pairwise(lines) if set(line) == {"─"}]
    assert [heading[:3] for heading in headings] == [f"{n}/6" for n in range(1, 7)]
    assert max(map(len, headings)) <= 80
    assert lines[-1] == (tmp_path / "site" / "index.html").as_uri()
    assert opened == ([lines[-1]] if display else [])
    names = [command[0] for command in demo["commands"]]
    # What takes seconds comes first; the site shows runs and files of every task.
    assert names == ["score"] * 4 + ["run"] * 4 + ["report"]
    assert all("--brief" in c for c in demo["commands"] if c[0] == "run")
    report = demo["commands"][-1]
    assert str(tmp_path / "runs") in report
    assert sum(str(tmp_path / "files") in word for word in report) == 5


@pytest.mark.parametrize("count", [0, 1, 24, 25, 60])
def test_the_first_tables_of_an_output_fit_a_screen(demo, count):
    lines = ["" if number % 7 == 6 else f"line {number}" for number in range(count)]
    shown = demo["first_tables"](lines)
    assert len(shown) <= 24
    assert shown[:-1] == lines[: len(shown) - 1]
    if count <= 24:
        assert shown == lines
    else:
        assert lines[len(shown) - 1] == ""  # a table is not cut
    unbroken = demo["first_tables"]([f"line {number}" for number in range(count)])
    assert len(unbroken) == min(count, 24)


def test_a_command_is_printed_within_the_width_of_a_terminal(demo):
    typed = demo["typed"]
    assert typed(["qualms", "list"]) == ["$ qualms list"]
    words = ["qualms", "score", *(f"folder/file_{n}.npz" for n in range(9)), "a b"]
    lines = typed(words)
    assert len(lines) > 1
    assert max(map(len, lines)) <= 80
    assert all(line.endswith(" \\") for line in lines[:-1])
    joined = "\n".join(lines).removeprefix("$ ").replace("\\\n", "")
    assert shlex.split(joined) == words
    assert "x" * 200 in "".join(typed(["qualms", "check", "x" * 200]))
