"""The benchmark of a user's own data: what it chooses for them."""

from dataclasses import replace

import numpy as np
import pytest

import qualms
from plans import part_of
from qualms import predictions, scores
from qualms.benchmarks.own import own
from qualms.evaluate.benchmark import judge_plan
from qualms.report.benchmark import presentation_of
from qualms.spec import Part, Task
from qualms.study import GivenData

GIVEN = GivenData(
    name="pets",
    dataset=Part(name="folder", options={"contents": "f" * 16}),
    task=Task(name="classification", classes=3),
    shape=(28, 28, 1),
    sizes={"train": 1_000, "val": 100, "test": 100},
)


def preset(**changes):
    given = replace(GIVEN, **changes)
    return own(given=given).presets[given.name]


def test_it_trains_each_method_once_per_seed_and_lends_what_is_fitted_later():
    benchmark = own(given=GIVEN)
    runs = benchmark.plan("pets").runs
    trained = [spec.method.name for spec in runs if spec.training["epochs"]]
    assert sorted(trained) == ["map"] * 3 + ["mc_dropout"] * 3
    assert len(runs) == 12
    assert all(spec.splits == ("val", "test") for spec in runs)


def test_shifted_items_are_predicted_where_there_are_some():
    sizes = {**GIVEN.sizes, "test/shifted": 50}
    (variant,) = preset(sizes=sizes, shift="at night").variants
    assert variant.splits == ("val", "test", "test/shifted")
    assert variant.shift == "at night"


def test_corruptions_are_variants_that_share_their_runs():
    fogs = (("fog", 1), ("fog", 5))
    plan = own(given=replace(GIVEN, corruptions=fogs)).plan("pets")
    stored, mild, severe = plan.variants
    assert (mild.name, severe.name) == ("pets_fog_1", "pets_fog_5")
    assert dict(severe.labels) == {"corruption": "fog", "severity": 5}
    assert severe.splits == ("val", "test", "test+fog-5")
    assert severe.shifted == "test+fog-5"
    assert stored.listed
    assert not severe.listed
    plain = own(given=GIVEN).plan("pets").runs
    assert [spec.hash for spec in plan.runs] == [spec.hash for spec in plain]
    for spec in plan.runs:
        assert spec.splits == ("val", "test", "test+fog-1", "test+fog-5")
    line = plan.lines_of(severe)[0]
    assert line.runs[0].splits == ("val", "test", "test+fog-5")


def test_one_seed_has_no_ensemble_and_many_classes_no_laplace():
    assert "deep_ensemble" not in preset(seeds=(4,)).rows
    many = Task(name="classification", classes=200)
    assert "laplace" not in preset(task=many).rows
    assert "laplace" in preset(task=replace(many, classes=100)).rows
    assert "laplace" not in preset(task=replace(many, classes=100), gpu=True).rows


@pytest.mark.parametrize("items", [8, 200, 50_000])
def test_training_takes_about_as_many_steps_for_any_number_of_items(items):
    sizes = {**GIVEN.sizes, "train": items}
    training = preset(sizes=sizes).training
    assert 2 <= training["batch"] <= max(2, items // 4)
    steps = training["epochs"] * items / training["batch"]
    assert 300 <= steps <= 2_500 or training["epochs"] in (3, 200)


@pytest.mark.parametrize("items", [5, 9, 25, 65, 193])
def test_no_batch_has_a_single_item(items):
    training = preset(sizes={**GIVEN.sizes, "train": items}).training
    assert items % training["batch"] != 1 or training["partial"] is False


def test_large_images_take_fewer_steps_on_a_cpu_alone():
    large = {"shape": (256, 256, 3)}
    assert preset(**large).training["epochs"] < preset().training["epochs"]
    on_gpu = preset(gpu=True).training, preset(**large, gpu=True).training
    assert on_gpu[0]["epochs"] == on_gpu[1]["epochs"]


def test_networks_suit_the_images_and_the_machine():
    assert preset().network == Part(name="resnet_small", options={"fold": 2})
    assert preset(shape=(27, 28, 1)).network.options == {"fold": 1}
    large = preset(shape=(128, 128, 3), gpu=True).network
    assert large.name == "timm:resnet18"
    stated = Part(name="timm:convnext_tiny")
    assert preset(network=stated).network == stated
    masks = Task(name="segmentation", classes=2, space=3)
    volumes = preset(task=masks, shape=(24, 24, 24, 1)).network
    assert volumes.options == {"space": 3, "width": 8, "levels": 2}


def test_images_of_more_than_8_bit_are_normalised_one_by_one():
    assert preset().training["normalise"] == "network"
    assert preset(deep=True).training["normalise"] == "item"
    numbers = preset(task=Task(name="regression")).training
    assert numbers["scale_targets"]


def test_the_aurc_of_masks_is_that_of_scoring_their_file(tmp_path):
    """It is called by the aggregation of maps that both use."""
    given = replace(
        GIVEN,
        name="discs",
        task=Task(name="segmentation", classes=2, space=2),
        shape=(16, 16, 1),
        seeds=(0,),
    )
    benchmark = own(given=given)
    plan = part_of(benchmark.plan("discs"), rows=("map",))
    (run,) = plan.runs
    folder = tmp_path / "own" / run.hash / "predictions"
    folder.mkdir(parents=True)
    for split in run.splits:
        write_discs(folder / split, header_of(run, split))
    results = judge_plan(plan, tmp_path)
    summary = presentation_of(results).tables(results)[0]
    labels = [column.label for column in summary.columns]
    shown = summary.lines[0].cells[labels.index("AURC by patches ↓")]
    row = qualms.score(folder / "test")["aurc"]
    assert row.settings == {"measure": "predictive", "aggregation": "patch"}
    assert shown.mean == pytest.approx(row.value)


def header_of(run, split):
    return {
        "task": "segmentation",
        "dataset": run.dataset.name,
        "split": split,
        "method": run.method.name,
        "seed": run.seed,
        "hardware": "an invented machine",
    }


def write_discs(folder, header):
    rng = np.random.default_rng(len(header["split"]))
    with predictions.SegmentationWriter(folder, header=header) as writer:
        for number in range(12):
            inside = np.hypot(*np.mgrid[-8:8, -8:8]) < rng.uniform(3, 7)
            near = np.hypot(*np.mgrid[-8:8, -8:8]) / 9 + rng.normal(0, 0.05, (16, 16))
            prob = np.clip(1 - near, 0.01, 0.99)
            maps = scores.sufficient_statistics(np.stack([1 - prob, prob])[None])
            writer.add(
                f"disc {number}",
                predictions.Maps(**maps._asdict(), raters=inside[None].astype("u1")),
            )
