"""Training on patches and predicting through windows, from items to predictions."""

import dataclasses
import json

import numpy as np
import pytest
import torch
from torch import nn

from qualms import predictions
from qualms.datasets import Card, Dataset, Split, ragged
from qualms.methods import Moment, Windows, plain_head
from qualms.methods._method import Method
from qualms.networks.unet import unet
from qualms.spec import Part, RunSpec, Task
from qualms.training import TrainingError, _splits, run_alone
from qualms.training._feed import make_feed
from qualms.training._inputs import make_inputs, patch_inputs
from qualms.training._join_splits import join_splits
from qualms.training._patches import Cutter, PatchRule
from qualms.training._validate import validation_loss
from qualms.training.entry import run_together
from qualms.training.options import training
from qualms.training.predict import Predictor
from training import made

CPU = torch.device("cpu")
CARD = Card(title="made", licence="", citation="", url="", obtain="")
SHAPES = [(9, 12), (5, 7), (14, 6), (8, 8)]
TASK = Task(name="segmentation", classes=3, ignore=255)


def varied(shapes=SHAPES, seed=0, raters=(1, 2, 3, 2), dtype=np.uint8):
    """Return noisy images: a bright square is of class 1, a dark pixel of class 2."""
    rng = np.random.default_rng(seed)
    images, maps = [], []
    for shape, count in zip(shapes, raters, strict=False):
        label = np.zeros(shape, np.uint8)
        corner = [int(rng.integers(n - 3)) for n in shape]
        label[tuple(slice(a, a + 3) for a in corner)] = 1
        label[tuple(n - 1 for n in shape)] = 2
        image = 90 + 100 * (label == 1) - 80 * (label == 2) + rng.integers(0, 30, shape)
        images.append(image[..., None].astype(dtype))
        maps.append(np.stack([label] * count))
    item = np.array([f"{seed}-{i}" for i in range(len(images))])
    return Split(image=stored(images), target=stored(maps), item=item)


def stored(arrays):
    flat = np.concatenate([array.ravel() for array in arrays])
    return ragged(flat, np.array([array.shape for array in arrays]))


def dataset(**options):
    return Dataset(
        name="made",
        options={},
        card=CARD,
        task=TASK,
        splits={name: varied(seed=i, **options) for i, name in enumerate(NAMES)},
        shifts={},
        fingerprint="f" * 16,
    )


NAMES = ("train", "val", "test")


def spec(seed=0, method="map", options=None, **chosen):
    return RunSpec(
        benchmark="bench",
        dataset=Part(name="made"),
        network=Part(name="unet", options={"space": 2, "width": 2, "levels": 1}),
        method=Part(name=method, options=options or {}),
        seed=seed,
        training={"epochs": 2, "batch": 3, "patch": 6, "normalise": "item", **chosen},
        splits=("test",),
    )


def cutter(split, **options):
    return Cutter(split, PatchRule(**{"sides": (6, 6), "ignore": 255, **options}))


def test_random_patches_are_parts_of_their_items_and_seeded():
    split = varied([(20, 17)], raters=(1,))
    cuts = cutter(split).draw([0] * 50, (3, 1))
    assert cuts.image.shape == (50, 6, 6, 1)
    assert cuts.target.shape == (50, 1, 6, 6)
    image, label = split.image[0], split.target[0][0]
    places = set()
    for patch, labels in zip(cuts.image, cuts.target[:, 0], strict=True):
        (place,) = (
            (a, b)
            for a in range(15)
            for b in range(12)
            if np.array_equal(image[a : a + 6, b : b + 6], patch)
        )
        assert np.array_equal(
            labels, label[place[0] : place[0] + 6, place[1] : place[1] + 6]
        )
        places.add(place)
    assert len(places) > 30
    again, other = (cutter(split).draw([0] * 50, (3, k)) for k in (1, 2))
    assert np.array_equal(again.image, cuts.image)
    assert not np.array_equal(other.image, cuts.image)


def test_patches_of_the_foreground_have_each_class_equally_often():
    """Nine pixels of class 1 and one of class 2; each is the centre of its patch."""
    label = np.zeros((1, 40, 40), np.uint8)
    label[0, 10:13, 20:23] = 1
    label[0, 30, 9] = 2
    label[0, 0] = 255
    split = Split(
        image=np.zeros((1, 40, 40, 1), np.uint8),
        target=label[None],
        item=np.array(["a"]),
    )
    cuts = cutter(split, sides=(5, 7), foreground=1.0).draw([0] * 600, (0,))
    centre = cuts.target[:, 0, 2, 3]
    share = np.bincount(centre, minlength=3) / 600
    assert share[0] == 0
    assert share[2] == pytest.approx(0.5, abs=0.07)
    some = cutter(split, sides=(5, 7), foreground=0.25).draw([0] * 600, (0,))
    assert np.mean(some.target[:, 0, 2, 3] > 0) == pytest.approx(0.25, abs=0.06)


def test_tiles_show_every_pixel_once_and_never_more():
    split = varied()
    cut = cutter(split)
    for row in range(len(split)):
        tiles = list(cut.tiles(row))
        found = cut.cut(tiles, np.zeros(len(tiles)))
        seen = found.target[found.target != 255]
        want = split.target[row][0]
        assert len(seen) == want.size
        assert np.array_equal(np.bincount(seen), np.bincount(want.ravel()))


def test_the_rim_of_a_small_item_is_repeated_and_not_labelled():
    split = varied([(4, 9)], raters=(1,))
    cuts = cutter(split).draw([0], (0,))
    image = cuts.image[0, ..., 0]
    assert np.array_equal(image[0], image[1])
    assert np.array_equal(image[5], image[4])
    assert (cuts.target[0, 0, [0, 5]] == 255).all()
    assert (cuts.target[0, 0, 1:5] != 255).all()
    kept = cutter(split, ignore=None).draw([0], (0,))
    assert (kept.target != 255).all()


def test_an_item_is_standardised_as_a_whole_before_it_is_cut():
    split = varied([(30, 20)], raters=(1,))
    whole = split.image[0].astype(np.float64)
    cuts = cutter(split, standardise=True).draw([0] * 5, (1,))
    plain = cutter(split).draw([0] * 5, (1,))
    wanted = (plain.image - whole.mean()) / whole.std()
    np.testing.assert_allclose(cuts.image, wanted, rtol=1e-5, atol=1e-6)


def test_each_rater_of_an_item_is_drawn_equally_often_and_fixed_in_passes():
    maps = np.arange(3, dtype=np.uint8)[None, :, None, None]
    split = Split(
        image=np.zeros((1, 9, 9, 1), np.uint8),
        target=np.broadcast_to(maps, (1, 3, 9, 9)),
        item=np.array(["a"]),
    )
    cuts = cutter(split).draw([0] * 600, (2,)).target[:, 0, 0, 0]
    assert np.bincount(cuts).min() > 150
    items = _splits.load_split(split, CPU, patch=PatchRule(sides=(6, 6), ignore=255))
    passes = [torch.cat([raw.target for raw in items.batches(torch.arange(1), 2)])]
    passes += [torch.cat([raw.target for raw in items.batches(torch.arange(1), 3)])]
    assert torch.equal(*passes)
    assert len(passes[0][passes[0] != 255].unique()) == 1


class Pixelwise(nn.Module):
    features = 4

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(1, 4, 1), nn.ReLU())

    def forward(self, x):
        return self.layers(x)


def predictor(network, options, items, **changed):
    inputs = make_inputs(items, options, ignore=TASK.ignore)
    fields = {"batch": 4, "message": print, "method": Method(), "task": TASK}
    return Predictor(network=network, inputs=inputs, **{**fields, **changed})


def test_the_loss_on_patches_is_the_mean_over_all_pixels():
    torch.manual_seed(0)
    network = plain_head(Pixelwise(), TASK).eval()
    options = training({"normalise": "item", "patch": 4})
    split = varied([(8, 12), (8, 4)], raters=(1, 1))
    rule = PatchRule(sides=(4, 4), ignore=255, standardise=True)
    items = _splits.load_split(split, CPU, patch=rule)
    moment = Moment(epoch=0, epochs=1, items=2, batch=2, progress=torch.ones(()))
    whole = predictor(network, options, items)
    seen = dataclasses.replace(
        whole, inputs=patch_inputs(whole.inputs, items, options, ignore=255), batch=1
    )
    losses, pixels = 0.0, 0
    for row in range(2):
        image = torch.from_numpy(split.image[row].astype(np.float32)).movedim(-1, 0)
        x = (image - image.mean()) / image.std(correction=0)
        target = torch.from_numpy(split.target[row].astype(np.int64))
        with torch.no_grad():
            loss = nn.functional.cross_entropy(network(x[None]), target)
        losses, pixels = losses + float(loss) * target.numel(), pixels + target.numel()
    assert validation_loss(seen, items, moment) == pytest.approx(losses / pixels, 1e-5)


@pytest.mark.parametrize("normalise", ["item", "imagenet"])
def test_a_window_that_covers_the_items_predicts_them_as_they_are(normalise):
    torch.manual_seed(0)
    options = training({"normalise": normalise})
    alike = varied([(8, 8)] * 3, raters=(1, 1, 1))
    dense = Split(
        image=alike.image.take([0, 1, 2]),
        target=alike.target.take([0, 1, 2]),
        item=alike.item,
    )
    items = _splits.load_split(dense, CPU)
    channels = 1 if normalise == "item" else 3
    backbone = unet(channels=channels, space=2, width=2, levels=2)
    plain = predictor(plain_head(backbone, TASK), options, items, batch=1)
    rule = PatchRule(sides=(8, 8), ignore=255, standardise=normalise == "item")
    large = _splits.load_split(alike, CPU, patch=rule)
    windowed = dataclasses.replace(plain, windows=Windows(sides=(8, 8)))
    for mine, theirs in zip(plain.chunks(items), windowed.chunks(large), strict=True):
        for name, part in mine.items():
            assert torch.equal(part, theirs[name])


@pytest.mark.parametrize("method", ["map", "mc_dropout"])
def test_a_run_on_items_of_any_shape_predicts_each_in_its_own(tmp_path, method):
    whole = dataset()
    chosen = {"augment": ("flips", "noise"), "select_by": "val_loss"}
    options = {"draws": 3} if method == "mc_dropout" else {}
    run_alone(
        spec(method=method, options=options, **chosen), whole, tmp_path, device="cpu"
    )
    found = predictions.read(tmp_path / "predictions" / "test")
    assert found.header.ignore == 255
    assert found.draws == (3 if method == "mc_dropout" else 1)
    for row, maps in enumerate(found.maps):
        assert maps.mean_probs.shape == (3, *SHAPES[row])
        assert np.array_equal(maps.raters, whole.splits["test"].target[row])
        entropy = -(maps.mean_probs * np.log(maps.mean_probs)).sum(0)
        assert (maps.expected_entropy <= entropy + 1e-5).all()
        assert (maps.expected_entropy < entropy - 1e-7).any() == (found.draws > 1)


class StoppedError(Exception):
    pass


class Stopping:
    """Callbacks that stop a run after an epoch."""

    def epoch(self, _, done, *__):
        if done == 2:
            raise StoppedError

    def message(self, _, text):
        raise AssertionError(text)


def bits(folder):
    state = torch.load(folder / "checkpoint.pt", weights_only=True)["network"]
    found = {name: part.numpy().tobytes() for name, part in state.items()}
    for path in sorted((folder / "predictions" / "test").glob("*.safetensors")):
        found[path.name] = path.read_bytes()
    return found


def test_a_run_that_was_stopped_goes_on_exactly_and_so_do_runs_together(tmp_path):
    whole, chosen = dataset(), {"epochs": 4, "augment": ("flips",), "epoch_passes": 2}
    specs = [spec(seed, "mc_dropout", {"draws": 2}, **chosen) for seed in (0, 1)]
    folders = [tmp_path / name for name in ("whole", "other", "again")]
    run_together(specs, whole, folders[:2], device="cpu")
    with pytest.raises(StoppedError):
        run_alone(specs[0], whole, folders[2], device="cpu", callbacks=Stopping())
    run_alone(specs[0], whole, folders[2], device="cpu")
    assert bits(folders[0]) == bits(folders[2])
    assert bits(folders[0]) != bits(folders[1])


def test_epochs_have_other_patches_of_the_same_items(tmp_path):
    items = _splits.load_split(varied([(30, 30)]), CPU, patch=PatchRule(sides=(6, 6)))
    feed = make_feed(items, rows=1, stride=1)
    found = []
    for epoch in (0, 1, 0):
        torch.manual_seed(epoch)
        feed.begin(torch.zeros(1, dtype=torch.int64))
        feed.advance()
        found.append(feed.take(torch.zeros(1), 0, 1).image.clone())
    assert torch.equal(found[0], found[2])
    assert not torch.equal(found[0], found[1])


def test_joined_splits_of_any_shape_keep_their_items():
    parts = [varied(), varied([(20, 6)], seed=7, raters=(1,))]
    both = join_splits(("train", "pool"), parts)
    assert len(both) == 5
    assert np.array_equal(both.image[4], parts[1].image[0])
    assert np.array_equal(both.target[2], parts[0].target[2])


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ({"patch": 0}, "differ in their sides.*-o patch=64"),
        ({"patch": [6, 6, 6]}, r"patch must be one side or 2.*got \[6, 6, 6\]"),
        ({"features": "cached"}, "leave one of the two out"),
        ({"overlap": 1.0}, "'overlap' must be a number, 0 to 0.9"),
        ({"patch": [0, 6]}, "'patch' must be a whole number from 0 on, or a list"),
        ({"patch": -3}, "or a list of one from 1 on for each axis, got -3"),
        ({"blend": "round"}, "'blend' must be one of nearest, gaussian, flat"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path, chosen, said):
    with pytest.raises((TrainingError, ValueError), match=said):
        run_alone(spec(**chosen), dataset(), tmp_path, device="cpu")


def alike(seed):
    found = varied([(8, 8)] * 4, seed=seed, raters=(1,) * 4)
    rows = range(4)
    return Split(
        image=found.image.take(rows), target=found.target.take(rows), item=found.item
    )


def test_items_of_any_shape_are_predicted_whole_after_training_on_whole_ones(tmp_path):
    whole = dataclasses.replace(
        dataset(), splits={**dataset().splits, "train": alike(0), "val": alike(1)}
    )
    run_alone(spec(patch=0, epochs=1), whole, tmp_path, device="cpu")
    found = predictions.read(tmp_path / "predictions" / "test")
    assert [maps.expected_entropy.shape for maps in found.maps] == SHAPES


def test_a_temperature_is_fitted_on_patches_of_items_of_any_shape(tmp_path):
    whole = dataclasses.replace(
        dataset(), splits={**dataset().splits, "train": alike(0)}
    )
    with pytest.raises(TrainingError, match="images of 'val' differ in their sides"):
        run_alone(spec(0, "temperature", patch=0), whole, tmp_path / "a", device="cpu")
    run_alone(spec(0, "temperature", epochs=1), whole, tmp_path / "b", device="cpu")
    state = torch.load(tmp_path / "b" / "checkpoint.pt", weights_only=True)
    assert state["network"]["fitted.temperature"] > 0


def test_patches_are_for_segmentation(tmp_path):
    split = Split(
        image=np.zeros((4, 6, 6, 1), np.uint8),
        target=np.arange(4) % 2,
        item=np.array(list("abcd")),
    )
    task = Task(name="classification", classes=2)
    other = dataclasses.replace(
        dataset(), task=task, splits=dict.fromkeys(NAMES, split)
    )
    with pytest.raises(TrainingError, match=r"for segmentation, and '.*' is classif"):
        run_alone(spec(), other, tmp_path, device="cpu")


def test_a_kl_term_is_divided_by_all_pixels_not_by_one_patch_of_each_item(tmp_path):
    split = varied([(30, 12), (6, 6)])
    assert cutter(split).size([0, 1]) == 11
    assert cutter(split).size([1]) == 1


def test_the_header_states_how_items_were_cut(tmp_path):
    run_alone(spec(epochs=1), dataset(), tmp_path, device="cpu")
    index = json.loads((tmp_path / "predictions" / "test" / "index.json").read_text())
    assert index["header"]["options"]["training"]["patch"] == 6


def test_where_memory_is_short_windows_pass_one_by_one_and_images_stay_away():
    """The device lacks memory three times: for 4 windows, for 2, for the image."""
    torch.manual_seed(0)
    network = plain_head(unet(channels=1, space=2, width=2, levels=1), TASK).eval()
    items = _splits.load_split(varied(), CPU, patch=PatchRule(sides=(4, 4), ignore=255))
    asked, said = [], []
    through = Windows(sides=(4, 4), together=4)
    whole = predictor(
        network, training({"normalise": "item"}), items, message=said.append
    )
    plain = list(dataclasses.replace(whole, windows=through).chunks(items))

    def short(network, x, task):
        asked.append((network.windows.together, network.windows.device))
        if len(asked) <= 3:
            raise torch.OutOfMemoryError
        return Method().predict(network, x, task)

    method = Method(predict=short)
    again = dataclasses.replace(whole, windows=through, method=method).chunks(items)
    for mine, theirs in zip(again, plain, strict=True):
        torch.testing.assert_close(mine["mean_probs"], theirs["mean_probs"])
    assert asked[:4] == [(4, None), (2, None), (1, None), (1, CPU)]
    assert said == ["the device is out of memory; keeping whole images on the host"]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
@pytest.mark.parametrize("method", ["map", "mc_dropout"])
def test_recorded_steps_on_patches_are_the_eager_ones(tmp_path, method):
    callbacks, chosen = made.CallbackLog(), {"deterministic": True, "epochs": 6}
    for capture in (False, True):
        one = spec(method=method, capture=capture, **chosen)
        place = tmp_path / str(capture)
        run_alone(one, dataset(), place, device="cuda", callbacks=callbacks)
    assert callbacks.messages == []
    eager, recorded = (
        torch.load(tmp_path / name / "checkpoint.pt", weights_only=True)["network"]
        for name in ("False", "True")
    )
    for name, part in eager.items():
        torch.testing.assert_close(part, recorded[name], rtol=1e-4, atol=1e-5)
    found = predictions.read(tmp_path / "True" / "predictions" / "test")
    assert [maps.mean_probs.shape[1:] for maps in found.maps] == SHAPES
