"""The demo's files have the scores that they were made to have."""

import runpy
from pathlib import Path

import pytest

from qualms import score
from qualms.evaluate import ScoreOptions

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
