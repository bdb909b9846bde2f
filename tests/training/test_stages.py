"""Two stages and further datasets, through the launcher, with parts of the shelves."""

import json

import pytest

from qualms import predictions
from qualms.launch.local import run_all
from qualms.spec import ItemRule, Part, RunSpec

SIZES = {"sizes": {"train": 64, "val": 24, "test": 24}}


def spec(method, splits=("test",), draws=None, **stated):
    options = {} if draws is None else {"draws": draws}
    training = {"epochs": 1, **stated.pop("training", {})}
    return RunSpec(
        benchmark="stages",
        dataset=Part(name="cells", options=SIZES),
        network=Part(name="resnet_small"),
        method=Part(name=method, options=options),
        seed=0,
        training=training,
        splits=splits,
        **stated,
    )


@pytest.mark.slow
def test_later_stages_wait_for_what_they_are_made_from(tmp_path):
    splits, further = (
        ("val", "chairs:test"),
        {"chairs": Part(name="chairs", options=SIZES)},
    )
    first = spec("mc_dropout", splits, draws=3, datasets=further)
    options = {"share": 0.5, "keep": ["train"], "measure": "MI"}
    rule = ItemRule(
        name="most_uncertain", runs=(first.hash,), split="val", options=options
    )
    queried = spec("map", items=rule)
    probe = spec("map", start=queried.hash, training={"features": "cached"})
    asked = [probe, queried, first]
    place = {"out": tmp_path / "out", "data": tmp_path / "data", "device": "cpu"}
    outcomes = list(run_all(asked, **place))
    assert [o.error for o in outcomes] == ["", "", ""]
    assert [o.spec.hash for o in outcomes] == [first.hash, queried.hash, probe.hash]
    folder = tmp_path / "out" / "stages"
    listed = json.loads((folder / queried.hash / "items.json").read_text())["items"]
    assert listed["train"] == "all"
    assert len(listed["val"]) == 12
    chairs = predictions.read(
        folder / first.hash / "predictions" / "chairs@test.safetensors"
    )
    assert (chairs.header.dataset, chairs.header.split) == ("chairs", "test")
    assert [o.status for o in run_all(asked, **place)] == ["skipped"] * 3
