"""Every fault leaves the sentence that was said, for the table of `make faults`."""

import json
import os
from pathlib import Path

import pytest
from bench.faults import FAULTS

from faults import drill, grid


@pytest.fixture
def report():
    """Add the sentence of a fault to the table of `make faults`."""

    def add(fault, sentence):
        assert fault in FAULTS
        assert sentence
        if "QUALMS_FAULTS" in os.environ:
            with Path(os.environ["QUALMS_FAULTS"]).open("a") as file:
                file.write(json.dumps([fault, sentence]) + "\n")

    return add


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory, cache):
    """The same runs without any fault."""
    out = tmp_path_factory.mktemp("undisturbed")
    runs = [drill.spec(seed) for seed in range(3)]
    assert set(drill.train(out, runs, cache).status.values()) == {"done"}
    return {run.hash: drill.predictions(out, run) for run in runs}


@pytest.fixture(scope="session")
def whole_grid(tmp_path_factory):
    """The runs of the grid without any fault, and their prepared data."""
    cache, out = tmp_path_factory.mktemp("grid"), tmp_path_factory.mktemp("whole")
    launcher = grid.start(out, cache)
    _, errors = launcher.communicate()
    assert launcher.returncode == 0, errors
    return grid.WholeGrid(cache, grid.files(out))
