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


def test_the_demo_of_values_shows_raters_who_disagree_and_unseen_shapes(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    chosen = runpy.run_path(str(EXAMPLES / "demo.py"))["BENCHMARKS"]
    (words,) = (shlex.split(text) for text in chosen if text.startswith("values"))
    request = RunRequest(preset="demo", methods=tuple(words[2].split(",")))
    (plan,) = plans_of(words[0], request)
    assert [variant.name for variant in plan.variants] == ["toy_1", "toy_2"]
    assert {row.name for row in plan.rows} == {
        "softmax",
        "ttd",
        "ensemble",
        "tta",
        "ssn",
    }
    assert len([run for run in plan.runs if run.training["epochs"]]) == 14
