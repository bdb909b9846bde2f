import numpy as np
import pytest
import torch

import qualms
from qualms import predictions
from qualms.training import TrainingError, run_alone
from training import made


def predicted(folder, split="test"):
    return predictions.read(folder / f"predictions/{split}.safetensors")


def test_chunks_of_any_size_give_the_same_numbers(shelf, tmp_path):
    run_alone(made.spec(predict_batch=7), made.dataset(), tmp_path / "a")
    run_alone(made.spec(predict_batch=100), made.dataset(), tmp_path / "b")
    one, other = (predicted(tmp_path / name).arrays for name in "ab")
    np.testing.assert_allclose(one["mean"], other["mean"], rtol=1e-5)
    np.testing.assert_allclose(one["select/far"], other["select/far"], rtol=1e-5)


def test_predictions_carry_what_the_split_says_about_its_items(shelf, tmp_path):
    dataset = made.dataset()
    run_alone(made.spec(), dataset, tmp_path)
    found, split = predicted(tmp_path).arrays, dataset.splits["test"]
    assert found["item"].tolist() == split.item.tolist()
    np.testing.assert_array_equal(found["target"], split.target)
    for name in ("group", "cluster", "shifted"):
        assert found[name].tolist() == split.extra[name].tolist()
    assert "shifted" not in predicted(tmp_path, "val").arrays


def test_the_header_says_what_made_the_predictions(shelf, tmp_path):
    def interval(network, x, task):
        mean = network(x)[:, 0]
        return {"lower": mean - 1, "upper": mean + 1}

    shelf(interval={"predict": interval, "select": {}, "header": {"alpha": 0.2}})
    spec = made.spec(5, method="interval")
    run_alone(spec, made.dataset(), tmp_path)
    header = predicted(tmp_path).header
    assert header.benchmark == "bench"
    assert header.dataset == "made"
    assert header.split == "test"
    assert header.method == "interval"
    assert header.seed == 5
    assert header.alpha == 0.2
    assert header.task == "regression"
    assert header.fingerprint == "f" * 16
    assert header.version == qualms.__version__
    assert header.hardware
    assert header.seconds is None  # it differs between equal runs
    assert header.options["run"] == spec.hash
    assert header.options["dataset"] == {"size": 50}
    assert header.options["training"]["epochs"] == 3
    run_alone(made.spec(), made.dataset(), tmp_path / "plain")
    assert predicted(tmp_path / "plain").header.select == {"far": "mean"}


def test_draws_come_first_and_differ(shelf, tmp_path):
    run_alone(made.spec(method="dropout"), made.dataset(), tmp_path)
    outputs = predicted(tmp_path)
    assert outputs.arrays["mean"].shape == (3, 30)
    assert outputs.draws == 3
    assert (outputs.arrays["mean"].std(0) > 0).all()


def test_a_subset_is_predicted_by_its_own_name(shelf, tmp_path):
    from dataclasses import replace

    from qualms.datasets import Subset

    dataset = made.dataset()
    middle = Subset(of="test", within=((4.5, 5.5),))
    dataset = replace(dataset, subsets={"test/v1": middle})
    run_alone(made.spec(splits=("test", "test/v1")), dataset, tmp_path)
    part = predictions.read(tmp_path / "predictions/test~v1.safetensors")
    whole = predicted(tmp_path)
    rows = dataset.rows("test/v1")
    assert 0 < len(rows) < 30
    assert part.header.split == "test/v1"
    np.testing.assert_allclose(
        part.arrays["mean"], whole.arrays["mean"][:, rows], rtol=1e-5
    )


def test_too_little_memory_predicts_fewer_at_a_time(shelf, tmp_path):
    def hungry(network, x, task):
        if len(x) > 8:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return made.predict(network, x, task)

    shelf(hungry={"predict": hungry})
    callbacks = made.CallbackLog()
    spec = made.spec(method="hungry", predict_batch=20, splits=("test",))
    run_alone(spec, made.dataset(), tmp_path / "a", callbacks=callbacks)
    assert callbacks.messages == [
        "the device is out of memory; predicting 10 at a time",
        "the device is out of memory; predicting 5 at a time",
    ]
    run_alone(made.spec(splits=("test",)), made.dataset(), tmp_path / "b")
    one, other = (predicted(tmp_path / name).arrays["mean"] for name in "ab")
    np.testing.assert_allclose(one, other, rtol=1e-5)


def test_segmentation_writes_a_folder_of_maps(shelf, tmp_path):
    def loss(network, batch, moment):
        return torch.nn.functional.cross_entropy(network(batch.x), batch.target.long())

    def predict(network, x, task):
        probs = network(x).softmax(1)
        entropy = -(probs * probs.log()).sum(1)
        labels = probs.argmax(1).to(torch.uint8)
        return {
            "mean_probs": probs,
            "expected_entropy": entropy,
            "draw_labels": labels[None],
        }

    shelf(
        network=lambda channels: made.Tiny(channels, outputs=2, maps=True),
        maps={"loss": loss, "predict": predict, "select": {}},
    )
    dataset = made.dataset(kind="segmentation")
    run_alone(made.spec(method="maps", augment=("flips",)), dataset, tmp_path)
    found = predictions.read(tmp_path / "predictions/test")
    assert found.task == "segmentation"
    assert found.n == 30
    assert found.maps[3].mean_probs.shape == (2, made.SIDE, made.SIDE)
    expected = dataset.splits["test"].target[3]
    np.testing.assert_array_equal(found.maps[3].raters, expected)
    assert found.arrays["shifted"].tolist() == [i % 2 == 0 for i in range(30)]


def test_uncertainties_of_a_methods_own_are_written(shelf, tmp_path):
    def loss(network, batch, moment):
        return torch.nn.functional.cross_entropy(network(batch.x), batch.target.long())

    def predict(network, x, task):
        probs = network(x).softmax(1)
        return {
            "mean_probs": probs,
            "expected_entropy": torch.special.entr(probs).sum(1),
            "draw_labels": probs.argmax(1).to(torch.uint8)[None],
            "uncertainty/margin": 1 - (probs[:, 0] - probs[:, 1]).abs(),
            "uncertainty/whole": probs.amin(1).mean((1, 2)),
        }

    shelf(
        network=lambda channels: made.Tiny(channels, outputs=2, maps=True),
        maps={"loss": loss, "predict": predict, "select": {}},
    )
    dataset = made.dataset(kind="segmentation")
    run_alone(made.spec(method="maps"), dataset, tmp_path)
    found = predictions.read(tmp_path / "predictions/test")
    assert found.own_maps == ("margin",)
    maps = found.maps[3]
    margin = 1 - abs(maps.mean_probs[0] - maps.mean_probs[1])
    np.testing.assert_allclose(maps.uncertainty["margin"], margin, atol=1e-6)
    whole = [m.mean_probs.min(0).mean() for m in found.maps]
    np.testing.assert_allclose(found.arrays["uncertainty/whole"], whole, atol=1e-6)


def test_an_array_of_maps_that_would_be_lost_is_refused(shelf, tmp_path):
    def predict(network, x, task):
        probs = network(x).softmax(1)
        return {
            "mean_probs": probs,
            "expected_entropy": torch.special.entr(probs).sum(1),
            "draw_labels": probs.argmax(1).to(torch.uint8)[None],
            "select/mine": probs[:, 0],
        }

    shelf(
        network=lambda channels: made.Tiny(channels, outputs=2, maps=True),
        odd={
            "loss": lambda network, batch, _moment: network(batch.x).mean(),
            "predict": predict,
            "select": {},
        },
    )
    told = "an array 'select/mine', which segmentation predictions do not have"
    with pytest.raises(TrainingError, match=told):
        run_alone(made.spec(method="odd"), made.dataset(kind="segmentation"), tmp_path)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"mean": lambda m: m / 0}, "predictions must be finite, 30 numbers of 'mean'"),
        (
            {"mean": lambda m: m, "logits": lambda m: m},
            "an array 'logits', which regression predictions do",
        ),
        ({"logits": lambda m: m}, "must return 'mean' or 'lower' for regression, got"),
        ({"mean": lambda m: m[None, None]}, r"'mean' with shape \(1, 1, 30\)"),
    ],
)
def test_predictions_that_no_file_would_take_are_refused(shelf, tmp_path, given, told):
    def predict(network, x, task):
        mean = network(x)[:, 0]
        return {name: change(mean) for name, change in given.items()}

    shelf(odd={"predict": predict, "select": {}})
    with pytest.raises(TrainingError, match=told):
        run_alone(made.spec(method="odd", splits=("test",)), made.dataset(), tmp_path)


@pytest.mark.parametrize(
    ("given", "got"),
    [(lambda probs: {"probs": probs}, "'probs'"), (lambda probs: probs, "a Tensor")],
)
def test_a_method_that_returns_no_maps_is_told_which_are_needed(
    shelf, tmp_path, given, got
):
    def predict(network, x, task):
        return given(network(x).softmax(1))

    shelf(
        network=lambda channels: made.Tiny(channels, outputs=2, maps=True),
        odd={
            "loss": lambda network, batch, _moment: network(batch.x).mean(),
            "predict": predict,
            "select": {},
        },
    )
    told = (
        "must return 'mean_probs', 'expected_entropy' and 'draw_labels' for"
        f" segmentation, got {got}; use summarise"
    )
    with pytest.raises(TrainingError, match=told):
        run_alone(made.spec(method="odd"), made.dataset(kind="segmentation"), tmp_path)
