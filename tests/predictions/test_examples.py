"""The few-line writers run as they stand, and what they write is read."""

import runpy
from pathlib import Path

import pytest

from qualms.predictions import read

EXAMPLES = Path(__file__).parents[2] / "examples"
WRITERS = {
    "pytorch": ("torch", "classification", 10),
    "jax": ("jax", "classification", 1),
    "tensorflow": ("tensorflow", "regression", 1),
    "sklearn": ("sklearn", "classification", 20),
}


@pytest.mark.parametrize("name", WRITERS)
def test_the_writer_writes_predictions(tmp_path, monkeypatch, name):
    framework, task, draws = WRITERS[name]
    pytest.importorskip(framework)
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / f"write_{name}.py"))
    predictions = read(tmp_path / f"{name}.safetensors")
    assert (predictions.task, predictions.draws) == (task, draws)
    assert predictions.notes == ()


@pytest.mark.parametrize("name", WRITERS)
def test_the_writer_is_short(name):
    assert len((EXAMPLES / f"write_{name}.py").read_text().splitlines()) < 40
