"""Every fault leaves a row: what happens, the sentence, and the lost work."""

import json
import os
from pathlib import Path

import pytest

from faults import drill

_COLUMNS = ("fault", "happens", "sentence", "lost")


@pytest.fixture
def report():
    """Add a row to the table of `make faults`; a path in a sentence is shortened."""

    def add(fault, *, happens, sentence, lost):
        assert sentence
        if "QUALMS_FAULTS" in os.environ:
            row = dict(zip(_COLUMNS, (fault, happens, sentence, lost), strict=True))
            with Path(os.environ["QUALMS_FAULTS"]).open("a") as file:
                file.write(json.dumps(row) + "\n")

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
