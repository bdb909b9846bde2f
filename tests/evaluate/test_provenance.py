"""Predictions in the folder of a run are judged only if they are of that run."""

from dataclasses import replace

import numpy as np
import pytest

from qualms.evaluate._reading import RunReader
from qualms.predictions import Header, write
from qualms.runs import split_stem
from qualms.spec import Part, RunSpec

SPEC = RunSpec(
    benchmark="toy",
    dataset=Part(name="cells"),
    network=Part(name="none"),
    method=Part(name="map"),
    seed=3,
)
HEADER = Header(
    task="regression",
    benchmark="toy",
    dataset="cells",
    method="map",
    seed=3,
    options={"run": SPEC.hash},
)


@pytest.fixture
def reader(tmp_path):
    for split in SPEC.splits:
        put(tmp_path, split, replace(HEADER, split=split))
    return RunReader(tmp_path)


def put(folder, split, header):
    path = split_stem(folder / SPEC.hash, split).with_suffix(".npz")
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, {"target": np.arange(3.0), "mean": np.ones((1, 3))}, header=header)


def test_predictions_of_the_run_are_read(reader):
    assert reader.present(SPEC)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"split": "val"}, "split 'val', and not of 'test'"),
        ({"method": "swag"}, "method 'swag', and not of 'map'"),
        ({"seed": 4}, "seed 4, and not of 3"),
        ({"options": {"run": "0" * 16}}, "run '0000000000000000', and not of"),
    ],
)
def test_other_predictions_in_their_place_are_not_judged(reader, changed, said):
    put(reader.folder, "test", replace(HEADER, **{"split": "test", **changed}))
    assert not reader.present(SPEC)
    assert said in reader.missing[SPEC.hash].reason


def test_predictions_that_say_nothing_about_themselves_are_judged(reader):
    put(reader.folder, "test", Header(task="regression"))
    assert reader.present(SPEC)
