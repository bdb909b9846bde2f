"""Label maps of several raters in training."""

import dataclasses

import numpy as np
import pytest
import torch

from qualms.datasets import Split
from qualms.training import TrainingError, _splits, run_alone
from qualms.training._feed import make_feed
from qualms.training._join_splits import join_splits
from qualms.training._raters import NO_SWAPS, RaterDraw, Swaps
from training import made

CPU = torch.device("cpu")
SWAPS = Swaps({1: 19, 0: 23}, 1 / 3)


def rated(count, raters, seed=0, side=2):
    """Return maps whose labels show their rater and item: 10 * rater + item."""
    rater = np.arange(raters)[None, :, None, None] * 10
    item = np.arange(count)[:, None, None, None] % 10
    target = np.broadcast_to(rater + item, (count, raters, side, side))
    return Split(
        image=np.zeros((count, side, side, 1), np.uint8),
        target=target.astype(np.uint8),
        item=np.array([f"{seed}-{i}" for i in range(count)]),
    )


def steps(items, epochs, stride=4):
    """Return the first label of each item's map in each epoch, (epochs, N)."""
    feed, found = make_feed(items, rows=len(items), stride=stride), []
    for epoch in range(epochs):
        torch.manual_seed(epoch)
        order = torch.arange(len(items))
        feed.begin(order)
        for step, rows in enumerate(order.split(stride)):
            feed.advance()
            raw = feed.take(torch.tensor([step]), 0, len(rows))
            assert raw.target.shape == (len(rows), *items.split.target.shape[2:])
            found.append(raw.target[:, 0, 0].clone())
    return torch.cat(found).view(epochs, -1)


def test_a_step_takes_one_rater_per_item_and_load_all_equally_often():
    items = _splits.load_split(rated(10, 3), CPU)
    found = steps(items, 600)
    assert torch.equal(found % 10, torch.arange(10).expand(600, 10))
    share = torch.stack([(found // 10 == rater).float().mean() for rater in range(3)])
    assert share.sub(1 / 3).abs().max() < 0.03
    alike = (found[:, :-1] // 10 == found[:, 1:] // 10).float().mean()
    assert abs(alike - 1 / 3) < 0.03  # neighbours in a batch are independent


def test_read_and_resident_maps_are_drawn_alike():
    split = rated(11, 5)
    read = _splits.load_split(split, CPU, fits=False, swaps=SWAPS)
    there = _splits.load_split(split, CPU, fits=True, swaps=SWAPS)
    assert torch.equal(steps(read, 3), steps(there, 3))
    rows = torch.tensor([7, 2, 5])
    for mine, theirs in zip(read.batches(rows, 2), there.batches(rows, 2), strict=True):
        assert torch.equal(mine.target, theirs.target)


def test_without_a_step_the_rater_is_fixed_by_the_name_of_the_item():
    split = rated(300, 3)
    items = _splits.load_split(split, CPU)
    (first,) = items.batches(torch.arange(300), 300)
    rows = torch.arange(299, -1, -1)
    torch.manual_seed(5)
    again = torch.cat([raw.target for raw in items.batches(rows, 7)])
    assert torch.equal(first.target, again.flip(0))
    counts = np.bincount(first.target[:, 0, 0] // 10, minlength=3)
    assert counts.min() > 75


def test_classes_swap_in_the_whole_map_each_with_its_share():
    maps = torch.tensor([[0, 1], [2, 1]], dtype=torch.uint8).expand(2000, 1, 2, 2)
    draw = RaterDraw(SWAPS, CPU)
    torch.manual_seed(0)
    taken = draw.take(maps.contiguous(), torch.arange(2000), draw.fresh(2000))
    assert torch.equal(taken[:, 0, 1], taken[:, 1, 1])
    assert (taken[:, 1, 0] == 2).all()
    one, nought = taken[:, 0, 1] == 19, taken[:, 0, 0] == 23
    assert set(taken[:, 0, 1].tolist()) == {1, 19}
    assert abs(one.float().mean() - 1 / 3) < 0.03
    assert abs(nought.float().mean() - 1 / 3) < 0.03
    assert abs((one & nought).float().mean() - 1 / 9) < 0.03


def test_stored_second_labels_are_drawn_anew():
    stored = torch.tensor([19, 23, 255], dtype=torch.uint8).view(1, 1, 1, 3)
    draw = RaterDraw(SWAPS, CPU)
    never = draw.take(stored, torch.tensor([0]), torch.full((1, 3), 0.9))
    assert never.flatten().tolist() == [1, 0, 255]
    always = draw.take(stored, torch.tensor([0]), torch.zeros(1, 3))
    assert always.flatten().tolist() == [19, 23, 255]


def test_labels_that_swap_must_be_unambiguous():
    with pytest.raises(TrainingError, match="must be different labels from 0 to 255"):
        RaterDraw(Swaps({1: 2, 2: 3}, 0.5), CPU)


def test_label_maps_without_raters_are_refused():
    split = rated(4, 1)
    flat = dataclasses.replace(split, target=split.target[:, 0])
    with pytest.raises(TrainingError, match="one rater is an axis of length 1"):
        _splits.load_split(flat, CPU)


def test_joined_splits_may_have_different_numbers_of_raters():
    one, three, two = rated(4, 1, 0), rated(4, 3, 1), rated(2, 2, 2)
    whole = join_splits(["a", "b", "c"], [one, three, two])
    assert whole.target.shape == (10, 6, 2, 2)
    found = steps(_splits.load_split(whole, CPU), 400)
    assert (found[:, :4] < 10).all()
    for rater in range(3):
        assert abs((found[:, 4:8] // 10 == rater).float().mean() - 1 / 3) < 0.05
    assert abs((found[:, 8:] // 10 == 1).float().mean() - 1 / 2) < 0.05


def with_raters(swaps=NO_SWAPS):
    """Return a tiny dataset whose raters use different thresholds."""
    dataset = made.dataset(kind="segmentation")
    splits = {}
    for name, split in dataset.splits.items():
        maps = [(split.image[..., 0] > level) for level in (60, 127, 200)]
        target = np.stack(maps, 1).astype(np.uint8)
        splits[name] = dataclasses.replace(split, target=target)
    task = dataclasses.replace(dataset.task, classes=4)
    return dataclasses.replace(
        dataset,
        task=task,
        splits=splits,
        swaps=swaps.classes,
        swap_share=swaps.share,
    )


class Stops(made.CallbackLog):
    def epoch(self, *_):
        raise KeyboardInterrupt


@pytest.mark.parametrize("swaps", [NO_SWAPS, Swaps({0: 2, 1: 3}, 1 / 3)])
def test_a_run_that_is_stopped_goes_on_with_the_same_raters(shelf, tmp_path, swaps):
    calls = []

    def loss(network, batch, moment):
        if network.training:
            calls.append(batch.target.clone())
        return network(batch.x).square().mean()

    def predict(network, x, task):
        probs = x.new_full((len(x), 4, made.SIDE, made.SIDE), 0.25)
        return {
            "mean_probs": probs,
            "expected_entropy": probs[:, 0],
            "draw_labels": probs[None, :, 0].to(torch.uint8),
        }

    shelf(plain={"loss": loss, "predict": predict, "select": {}})
    dataset, spec = with_raters(swaps), made.spec(augment=["flips"], batch=16)
    run_alone(spec, dataset, tmp_path / "whole", device="cpu")
    whole = [*calls]
    calls.clear()
    with pytest.raises(KeyboardInterrupt):
        run_alone(spec, dataset, tmp_path / "parts", device="cpu", callbacks=Stops())
    run_alone(spec, dataset, tmp_path / "parts", device="cpu")
    assert len(calls) == len(whole) == 3 * 4
    assert all(torch.equal(a, b) for a, b in zip(calls, whole, strict=True))
    labels = torch.cat([part.flatten() for part in whole]).unique().tolist()
    assert labels == ([0, 1, 2, 3] if swaps.classes else [0, 1])


def test_large_label_maps_are_looked_at_a_few_at_a_time(shelf, tmp_path, monkeypatch):
    monkeypatch.setattr("qualms.training._run._PIXELS", 3 * made.SIDE**2)
    calls = []

    def predict(network, x, task):
        calls.append(len(x))
        probs = x.new_full((len(x), 4, made.SIDE, made.SIDE), 0.25)
        labels = probs[None, :, 0].to(torch.uint8)
        return {
            "mean_probs": probs,
            "expected_entropy": probs[:, 0],
            "draw_labels": labels,
        }

    def loss(network, batch, moment):
        return network(batch.x).square().mean()

    shelf(plain={"loss": loss, "predict": predict, "select": {}})
    spec = made.spec(splits=("test",), epochs=1)
    run_alone(spec, with_raters(), tmp_path, device="cpu")
    assert calls == [3] * 10


def test_predictions_are_compared_with_draws_of_plain_labels():
    draw = RaterDraw(Swaps({1: 19, 0: 23}, 0.5), CPU)
    plain = np.array([[[0, 1], [2, 255]]], np.uint8)
    found = np.stack([draw.references(plain, f"item {i}") for i in range(200)])
    assert found.shape == (200, 5, 2, 2)
    assert (found[..., 1, :] == [2, 255]).all()
    for (row, column), labels in {(0, 0): [0, 23], (0, 1): [1, 19]}.items():
        assert np.unique(found[..., row, column]).tolist() == labels
        assert np.mean(found[..., row, column] == labels[1]) == pytest.approx(
            0.5, abs=0.05
        )
    again = draw.references(plain, "item 3")
    np.testing.assert_array_equal(again, found[3])
    # The first is the one that the loss on `val` sees.
    seen = draw.take(
        torch.from_numpy(plain)[None], torch.tensor([0]), draw.fixed(["item 3"])
    )
    np.testing.assert_array_equal(seen[0], found[3, 0])


def test_stored_raters_are_kept():
    stored = np.random.default_rng(0).integers(0, 24, (5, 2, 2)).astype(np.uint8)
    draw = RaterDraw(SWAPS, CPU)
    np.testing.assert_array_equal(draw.references(stored, "a"), stored)
    one = RaterDraw(NO_SWAPS, CPU)
    np.testing.assert_array_equal(one.references(stored[:1], "a"), stored[:1])
