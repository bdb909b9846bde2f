import numpy as np
import pytest
import torch

from qualms.networks import Colours
from qualms.training import TrainingError, _splits
from qualms.training._feed import make_feed
from qualms.training._inputs import make_inputs
from qualms.training.options import training
from training import made

CPU = torch.device("cpu")


def epoch(items, stride=8):
    """Return everything that the steps of two epochs see."""
    found, source = [], make_feed(items, rows=len(items), stride=stride)
    for number in range(2):
        order = torch.randperm(len(items), generator=torch.manual_seed(number))
        source.begin(order)
        for step, rows in enumerate(order.split(stride)):
            source.advance()
            raw = source.take(torch.tensor([step]), 0, len(rows))
            found.append((raw.image.clone(), raw.target.clone()))
    return found


@pytest.mark.parametrize("threads", [1, 3])
def test_reading_ahead_gives_what_lies_on_the_device(threads):
    split = made.split(29)
    resident = _splits.load_split(split, CPU, fits=True)
    read = _splits.load_split(split, CPU, fits=False)
    read = _splits.LoadedSplit(
        split=read.split, device=CPU, resident=None, threads=threads
    )
    for mine, theirs in zip(epoch(read), epoch(resident), strict=True):
        assert torch.equal(mine[0], theirs[0])
        assert torch.equal(mine[1], theirs[1])


@pytest.mark.parametrize("fits", [True, False])
def test_a_mapped_file_is_copied_and_never_written_to(tmp_path, fits):
    split = made.split(9)
    arrays = {"image": split.image, "target": split.target, "item": split.item}
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
    mapped = made.Split(
        **{n: np.load(tmp_path / f"{n}.npy", mmap_mode="r") for n in arrays}
    )
    found = epoch(_splits.load_split(mapped, CPU, fits=fits))
    for mine, theirs in zip(found, epoch(_splits.load_split(split, CPU)), strict=True):
        assert torch.equal(mine[0], theirs[0])
        mine[0].zero_()
    np.testing.assert_array_equal(np.load(tmp_path / "image.npy"), split.image)


def test_a_step_takes_its_items_in_the_order_of_the_epoch():
    split = made.split(10)
    order = torch.tensor([3, 1, 4, 0, 5, 9, 2, 6])
    source = make_feed(_splits.load_split(split, CPU, fits=True), rows=8, stride=4)
    source.begin(order)
    raw = source.take(torch.tensor([1]), 1, 2)
    assert raw.target.tolist() == split.target[[9, 2]].tolist()


def test_a_split_that_does_not_fit_is_read(monkeypatch):
    split = made.split(10)
    monkeypatch.setattr(_splits, "_free_bytes", lambda _: 1000.0)
    assert _splits.load_split(split, CPU).resident is None
    monkeypatch.setattr(_splits, "_free_bytes", lambda _: 1e6)
    assert _splits.load_split(split, CPU).resident is not None


@pytest.mark.parametrize("fits", [True, False])
def test_batches_come_in_order_with_the_last_one_smaller(fits):
    split = made.split(10)
    items = _splits.load_split(split, CPU, fits=fits)
    found = list(items.batches(torch.arange(10), 4))
    assert [len(raw.target) for raw in found] == [4, 4, 2]
    assert torch.cat([raw.target for raw in found]).tolist() == split.target.tolist()


def test_classes_are_wide_and_label_maps_stay_bytes():
    classes = _splits.load_split(made.split(4, kind="classification"), CPU).resident
    maps = _splits.load_split(made.split(4, kind="segmentation"), CPU).resident
    assert classes.target.dtype == torch.int64
    assert maps.target.dtype == torch.uint8


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("last", [False, True])
def test_bytes_become_normalised_colours(channels, last):
    split = made.split(5, channels=channels)
    items = _splits.load_split(split, CPU)
    inputs = make_inputs(items, training({"channels_last": last}))
    x = inputs.plain(items.resident).x
    mean, std = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    expected = (split.image / 255 - mean) / std
    np.testing.assert_allclose(x, expected.transpose(0, 3, 1, 2), rtol=1e-4, atol=1e-6)
    layout = torch.channels_last if last else torch.contiguous_format
    assert x.is_contiguous(memory_format=layout)
    assert inputs.channels == 3


def test_images_are_normalised_by_the_colours_of_a_network():
    items = _splits.load_split(made.split(5, channels=3), CPU)
    half = Colours((0.5, 0.25, 0.5), (0.5, 0.5, 0.1))
    for raw in (
        items.resident,
        items.resident._replace(image=items.resident.image / 255),
    ):
        x = make_inputs(items, training({}), colours=half).plain(raw).x
        byte = items.resident.image.movedim(-1, 1) / 255
        wanted = (byte - torch.tensor(half.mean).view(3, 1, 1)) / torch.tensor(
            half.std
        ).view(3, 1, 1)
        torch.testing.assert_close(x, wanted, rtol=1e-5, atol=1e-5)


def test_without_normalisation_bytes_are_scaled_and_channels_kept():
    split = made.split(5, channels=8)
    items = _splits.load_split(split, CPU)
    inputs = make_inputs(items, training({"normalise": "none"}))
    expected = split.image.transpose(0, 3, 1, 2) / 255
    np.testing.assert_allclose(inputs.plain(items.resident).x, expected, rtol=1e-6)
    assert inputs.channels == 8


def test_numbers_that_are_not_bytes_stay_as_they_are():
    split = made.split(3, channels=2)
    split = made.Split(
        image=split.image.astype(np.float32), target=split.target, item=split.item
    )
    items = _splits.load_split(split, CPU)
    x = make_inputs(items, training({"normalise": "none"})).plain(items.resident).x
    np.testing.assert_array_equal(x, split.image.transpose(0, 3, 1, 2))


def test_colours_of_eight_channels_are_refused():
    items = _splits.load_split(made.split(5, channels=8), CPU)
    with pytest.raises(TrainingError, match="1 or 3 channels, these have 8"):
        make_inputs(items, training({}))


def test_augmentation_changes_training_and_nothing_else():
    items = _splits.load_split(made.split(6), CPU)
    inputs = make_inputs(items, training({"augment": ("hflip", "noise")}))
    plain = inputs.plain(items.resident).x
    assert torch.equal(plain, make_inputs(items, training({})).plain(items.resident).x)
    changed = inputs.train(items.resident, 1)
    assert not torch.allclose(changed.x, plain)
    assert torch.equal(changed.target, items.resident.target)


def test_views_follow_one_another_and_differ():
    items = _splits.load_split(made.split(6), CPU)
    inputs = make_inputs(items, training({"augment": ("noise",)}))
    batch = inputs.train(items.resident, 2)
    plain = inputs.plain(items.resident).x
    first, second = batch.x.split(6)
    assert batch.target.shape == (6,)
    assert not torch.equal(first, second)
    for view in (first, second):
        assert (view - plain).abs().max() < 0.1 * 6 / 0.224


@pytest.mark.parametrize("last", [False, True])
def test_items_are_standardised_each_by_itself(last):
    rng = np.random.default_rng(0)
    image = rng.gamma(2.0, 300.0, (5, 6, 7, 8, 2)).astype(np.float32)
    image[1] = 3.0  # nothing to see
    split = made.Split(
        image=image,
        target=np.zeros((5, 1, 6, 7, 8), np.uint8),
        item=np.array(list("abcde")),
    )
    items = _splits.load_split(split, CPU)
    options = training(
        {"normalise": "item", "channels_last": last, "augment": ("flips", "noise")}
    )
    inputs = make_inputs(items, options)
    (raw,) = items.batches(torch.arange(5), 5)
    wide = image.astype(np.float64)
    mean, std = wide.mean((1, 2, 3), keepdims=True), wide.std((1, 2, 3), keepdims=True)
    expected = ((wide - mean) / (std + 1e-8)).transpose(0, 4, 1, 2, 3)
    np.testing.assert_allclose(inputs.plain(raw).x, expected, atol=2e-5)
    assert inputs.channels == 2
    # The noise comes on top of what is standardised.
    noisy = inputs.train(raw, 1).x
    assert 0 < noisy[1].std() < 0.12
    assert noisy[0].std() == pytest.approx(1, abs=0.01)
