"""Runs are looked at before they are made; none that can be made is refused."""

from dataclasses import replace

import pytest
import torch

from qualms.shelf import find, names
from qualms.spec import Part, RunSpec, Task
from qualms.training import TrainingError, check_run
from training.made import dataset

TASKS = ("classification", "regression", "segmentation", "embedding")


def data(task):
    if task != "embedding":
        return dataset(kind=task)
    return replace(dataset(kind="classification"), task=Task(name=task, classes=2))


def spec(task, method="map", network=None, splits=("val", "test"), **training):
    unet = Part(name="unet", options={"space": 2, "width": 4, "levels": 1})
    plain = Part(name="resnet_small", options={"width": 4})
    return RunSpec(
        benchmark="bench",
        dataset=Part(name="made"),
        network=network or (unet if task == "segmentation" else plain),
        method=Part(name=method),
        seed=0,
        training={"epochs": 1, "batch": 8, **training},
        splits=splits,
    )


def served(task):
    return [n for n in names("methods") if task in find("methods", n)().tasks]


@pytest.mark.parametrize("task", TASKS)
def test_no_method_is_refused_on_its_task(task):
    before = torch.get_rng_state()
    for method in served(task):
        epochs = 1 if find("methods", method)().trains else 0
        check_run(spec(task, method, epochs=epochs), {"": data(task)})
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("task", "changes", "sentence"),
    [
        ("regression", {"batch": 200, "partial": False}, "partial=false leaves no"),
        ("regression", {"method": "mcinfonce"}, "is for embedding, and 'made' is"),
        ("regression", {"splits": ("val", "test/far")}, "test/far"),
        ("classification", {"select_by": "val_mae"}, "val_mae"),
        ("segmentation", {"patch": 13}, "far larger than the items.* has 6 x 6 pix"),
        (
            "classification",
            {"network": Part(name="resnet_small", options={"fold": 4})},
            "the network fails on items of 6 x 6 pixels and 3 channels",
        ),
    ],
)
def test_what_training_would_refuse_is_refused_before(task, changes, sentence):
    with pytest.raises((TrainingError, ValueError, LookupError), match=sentence):
        check_run(spec(task, **changes), {"": data(task)})


def test_a_patch_of_twice_the_sides_is_taken():
    check_run(spec("segmentation", patch=12), {"": data("segmentation")})


def test_a_method_without_its_split_is_refused():
    made = data("classification")
    bare = replace(made, splits={k: s for k, s in made.splits.items() if k != "val"})
    with pytest.raises(TrainingError, match="calibrated on the split 'val'"):
        check_run(spec("classification", "temperature", splits=("test",)), {"": bare})
