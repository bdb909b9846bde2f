"""The demo's files have the scores that they were made to have."""

import runpy
import shlex
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
