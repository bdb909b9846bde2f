"""Active learning on label maps through the launcher, killed between its stages."""

import json
from dataclasses import replace
from functools import partial

import numpy as np

from launch.fakes import train_until_killed
from qualms.launch import Engine, prepare_datasets, run_all
from qualms.predictions import read
from qualms.spec import ItemRule, Part, RunSpec

SIZES = {"train": 12, "val": 4, "pool": 8, "test": 4}
STREETS = Part(name="street_sim", options={"height": 32, "width": 32, "sizes": SIZES})
TRAINING = {
    **{"epochs": 3, "batch": 4, "optimiser": "sgd", "nesterov": False, "lr": 1e-2},
    "augment": ["hflip", "rotate", "zoom", "byte_noise"],
}


def spec(method, options, splits, **stated):
    return RunSpec(
        benchmark="toy",
        dataset=STREETS,
        network=Part(name="unet", options={"space": 2, "width": 2, "levels": 1}),
        method=Part(name=method, options=options),
        seed=0,
        training=TRAINING,
        splits=splits,
        **stated,
    )


def stages():
    """A first training, one on queried items, and one that lends its weights."""
    first = spec("mc_dropout", {"draws": 2, "rate": 0.5}, ("val", "pool"))
    options = {"share": 0.5, "keep": ["train"], "measure": "MI"}
    rule = ItemRule(
        name="most_uncertain",
        runs=(first.hash,),
        split="pool",
        options={**options, "aggregation": "threshold"},
    )
    queried = spec("map", {}, ("test",), items=rule)
    lent = replace(
        queried,
        method=Part(name="tta"),
        training={**TRAINING, "epochs": 0},
        start=queried.hash,
    )
    return first, queried, lent


def test_queried_items_are_trained_on_with_the_same_bits_after_a_kill(tmp_path):
    specs = stages()
    queried = specs[1]
    data = tmp_path / "cache"
    prepare_datasets([STREETS], data, workers=1)

    def launch(out, **options):
        place = {"out": tmp_path / out, "data": data, "device": "cpu", "workers": 1}
        found = {o.spec.hash: o for o in run_all(specs, **place, **options)}
        return [found[spec.hash] for spec in specs]

    whole = launch("whole")
    assert [outcome.error for outcome in whole] == ["", "", ""]
    killing = partial(train_until_killed, queried, 1)
    broken = launch("killed", work=killing, engine=Engine(retries=0))
    assert [outcome.status for outcome in broken] == ["done", "failed", "failed"]
    listed = (broken[1].folder / "items.json").read_bytes()
    mended = launch("killed")
    assert [outcome.status for outcome in mended] == ["skipped", "done", "done"]
    assert (mended[1].folder / "items.json").read_bytes() == listed
    items = json.loads(listed)["items"]
    assert items["train"] == "all"
    assert len(items["pool"]) == 4
    for one, other, draws in zip(whole[1:], mended[1:], (1, 4), strict=True):
        ours, theirs = (read(o.folder / "predictions/test") for o in (one, other))
        assert (ours.n, ours.draws, ours.maps[0].raters.shape[0]) == (4, draws, 5)
        for mine, its in zip(ours.maps, theirs.maps, strict=True):
            np.testing.assert_array_equal(mine.mean_probs, its.mean_probs)
            np.testing.assert_array_equal(mine.draw_labels, its.draw_labels)
    cost = [json.loads((o.folder / "done.json").read_text())["seconds"] for o in mended]
    assert cost[2] > cost[1]
