import os
import shutil
from concurrent.futures import ThreadPoolExecutor

import cv2
import numpy as np
import pytest
import torch
from PIL import Image
from torch.nn.functional import interpolate

from qualms.datasets import (
    Card,
    DatasetError,
    Divide,
    Encoded,
    Labels,
    LoadedItems,
    Recipe,
    Shown,
    Split,
    Subset,
    Unit,
    _encoded,
    open_dataset,
    prepare,
    verify_dataset,
)
from qualms.datasets._encoded import jpeg
from qualms.spec import Task
from qualms.training import _splits

CARD = Card(
    title="Fake", licence="none", citation="none", url="none", obtain="Make it up."
)
CPU = torch.device("cpu")


def picture(number, height=40, width=54):
    """A smooth picture in RGB, so that JPEG keeps its colours."""
    y, x = np.mgrid[:height, :width]
    colours = [4 * x, 5 * y, np.full_like(x, 10 * number)]
    return np.stack(colours, axis=-1).astype(np.uint8)


def encoded(pictures, side, quality=95, **options):
    files = [jpeg(one[..., ::-1].copy(), quality=quality) for one in pictures]
    ends = np.cumsum([0, *map(len, files)])
    return Encoded(
        data=np.frombuffer(b"".join(files), np.uint8),
        span=np.stack([ends[:-1], ends[1:]], axis=1),
        side=side,
        **options,
    )


@pytest.fixture
def images():
    return encoded([picture(n) for n in range(7)], 32)


def test_it_looks_like_an_array(images):
    full = np.asarray(images)
    assert images.shape == full.shape == (7, 32, 32, 3)
    assert images.dtype == full.dtype == np.uint8
    assert images.nbytes == full.nbytes
    assert images.ndim == full.ndim
    assert len(images) == 7
    assert np.array(images, dtype=np.float32).dtype == np.float32
    with pytest.raises(ValueError, match="only as a copy"):
        np.asarray(images, copy=False)


@pytest.mark.parametrize(
    "key",
    [
        3,
        -1,
        np.int64(2),
        slice(1, 5, 2),
        slice(None),
        [4, 0, 4],
        np.array([6, 1]),
        np.arange(7) % 2 == 0,
        ...,
        (2, 5),
        (slice(0, 3), 5, slice(None), 1),
        (slice(None), 0, 0, 0),
        (..., 2),
        ([0, 1], [2, 3]),
        ([4, 0, 4], slice(None), [2, 3, 5]),
        (np.array([[6, -1], [1, 1]]), ..., 0),
        (np.arange(7) % 2 == 0, None, 5),
        (2, slice(None), [0, 1]),
        ([], 3),
        np.array([[6, 1], [0, 0]]),
        np.arange(7 * 32).reshape(7, 32) % 9 == 0,
        True,
        np.array([], dtype=int),
    ],
    ids=str,
)
def test_indexing_gives_what_numpy_gives(images, key):
    np.testing.assert_array_equal(images[key], np.asarray(images)[key])


@pytest.mark.parametrize(
    ("key", "decoded"),
    [
        (([4, 0, 4], [1, 2, 3]), 2),
        ((np.array([6, 1]), slice(None), 3), 2),
        ((np.arange(7) < 3, 0), 3),
        ((5, slice(None), [0, 1]), 1),
        ((slice(2, 4), 1), 2),
        ([4, 0], 2),
    ],
    ids=str,
)
def test_only_the_rows_of_a_key_are_decoded(images, key, decoded, monkeypatch):
    expected, seen = np.asarray(images)[key], []
    plain = _encoded._decode
    monkeypatch.setattr(
        _encoded, "_decode", lambda *given: seen.append(1) or plain(*given)
    )
    np.testing.assert_array_equal(images[key], expected)
    assert len(seen) == decoded


def test_rows_that_are_not_there_are_refused(images):
    for key in (7, [0, 7], ([-8], 1), ([0.5], 1)):
        with pytest.raises(IndexError):
            images[key]


def test_rows_are_taken_and_kept_encoded(images):
    full = np.asarray(images)
    rows = np.array([5, 5, 2])
    np.testing.assert_array_equal(images.take(rows, axis=0), full[rows])
    some = images.only(rows)
    assert isinstance(some, Encoded)
    assert some.data is images.data
    np.testing.assert_array_equal(some, full[rows])
    with pytest.raises(IndexError):
        images.take([7])
    with pytest.raises(ValueError, match="along axis 0, got axis 1"):
        images.take([0], axis=1)


def test_colours_are_red_green_blue_and_pixels_those_of_pillow(tmp_path):
    """The same JPEG, decoded by Pillow."""
    original = picture(9, 32, 32)
    images = encoded([original], 32)
    (tmp_path / "one.jpg").write_bytes(images.data.tobytes())
    with Image.open(tmp_path / "one.jpg") as reference:
        np.testing.assert_array_equal(images[0], np.asarray(reference.convert("RGB")))
    np.testing.assert_allclose(images[0].astype(int), original, atol=12)


@pytest.mark.parametrize("side", [16, 32, 512])
@pytest.mark.parametrize("shape", [(40, 54), (540, 540), (31, 97)])
def test_resizing_is_pytorch_s_bilinear_without_antialiasing(side, shape):
    rng = np.random.default_rng(0)
    small = rng.integers(0, 256, (9, 9, 3), dtype=np.uint8)
    original = cv2.resize(small, shape[::-1], interpolation=cv2.INTER_CUBIC)
    images = encoded([original], side)
    decoded = cv2.imdecode(images.data, cv2.IMREAD_COLOR)[..., ::-1].copy()
    tensor = torch.from_numpy(decoded).permute(2, 0, 1)[None].double()
    reference = interpolate(
        tensor, (side, side), mode="bilinear", align_corners=False, antialias=False
    )
    exact = reference[0].permute(1, 2, 0).numpy()
    # rounding alone costs half a grey level, OpenCV's fixed point a little more
    assert np.abs(images[0] - exact).max() < 1


@pytest.mark.parametrize("threads", [1, 2, 5, None])
def test_the_number_of_threads_changes_no_bit(threads):
    pictures = [picture(n, 30 + n, 50 - n) for n in range(23)]
    one = np.asarray(encoded(pictures, 24, threads=1))
    np.testing.assert_array_equal(encoded(pictures, 24, threads=threads), one)


def test_several_readers_at_once_get_the_same(images):
    full = np.asarray(images)
    with ThreadPoolExecutor(4) as pool:
        result = list(pool.map(lambda n: images.take([n % 7, 0]), range(40)))
    for n, one in enumerate(result):
        np.testing.assert_array_equal(one, full[[n % 7, 0]])


@pytest.mark.parametrize("damage", [b"", b"not a picture"])
def test_damaged_bytes_are_told(images, damage):
    stored = np.frombuffer(damage, np.uint8)
    broken = Encoded(data=stored, span=np.array([[0, len(stored)]] * 2), side=32)
    with pytest.raises(ValueError, match=f"{len(damage)} bytes cannot be decoded"):
        broken.take([0, 1])


def test_training_sees_the_same_decoded_once_or_in_every_epoch(images):
    target = np.arange(7) % 2
    item = np.array([str(n) for n in range(7)])
    plain = Split(image=np.asarray(images), target=target, item=item)
    split = Split(image=images, target=target, item=item)
    rows = torch.tensor([3, 0, 6, 6, 1])
    expected = list(_splits.load_split(plain, CPU, fits=True).batches(rows, 2))
    for fits in (True, False):
        result = list(_splits.load_split(split, CPU, fits=fits).batches(rows, 2))
        for mine, theirs in zip(result, expected, strict=True):
            assert torch.equal(mine.image, theirs.image)
            assert torch.equal(mine.target, theirs.target)


def test_what_fits_is_judged_by_decoded_bytes(images, monkeypatch):
    target, item = np.zeros(7, int), np.array([str(n) for n in range(7)])
    split = Split(image=images, target=target, item=item)
    room = images.nbytes / _splits._SHARE
    assert images.data.nbytes < images.nbytes / 2
    monkeypatch.setattr(_splits, "_free_bytes", lambda _: room - 1)
    assert _splits.load_split(split, CPU).resident is None
    monkeypatch.setattr(_splits, "_free_bytes", lambda _: room + 1)
    assert _splits.load_split(split, CPU).resident is not None


def load(unit):
    """Pictures of different sizes; unit 2 holds two, unit 5 none, unit 4 is bad."""
    number = int(unit.key)
    if number == 4:
        raise ValueError("there is nothing to see")
    several = {2: 2, 5: 0}.get(number, 1)
    files = tuple(
        jpeg(picture(number, 30 + number + k, 41)[..., ::-1].copy(), quality=90)
        for k in range(several)
    )
    return LoadedItems(
        image=files,
        target=np.full(several, number),
        item=tuple(f"{number}/{k}" for k in range(several)),
    )


def album_of(count=8, **changes):
    fields = {
        "name": "album",
        "options": {},
        "card": CARD,
        "task": Task(name="embedding"),
        "units": tuple(Unit(key=str(n), split="all") for n in range(count)),
        "load": load,
        "side": 20,
    }
    return Recipe(**(fields | changes))


def labels_of(items, grades):
    return Labels(
        item=np.array(items),
        target=np.array(grades) // 2,
        extra={"group": np.array(grades)},
    )


def shown_of(album, side=16, **changes):
    parts = {
        "train": labels_of(["6/0", "0/0", "2/1"], [0, 3, 2]),
        "test": labels_of(["4/0", "3/0"], [1, 0]),
    }
    fields = {
        "name": "shown",
        "options": {"size": side},
        "card": CARD,
        "task": Task(name="classification", classes=2),
        "shown": {s: Shown(album=album, labels=one) for s, one in parts.items()},
        "side": side,
    }
    return Recipe(**(fields | changes))


def test_encoded_units_are_kept_in_a_row_and_found_again(tmp_path):
    done = prepare(album_of(), tmp_path / "cache", workers=1)
    split = done.dataset.splits["all"]
    assert done.counts == {"all": 7}
    assert [key for key, _ in done.skipped] == ["4"]
    assert isinstance(split.image, Encoded)
    assert isinstance(split.image.data, np.memmap)
    assert split.image.shape == (7, 20, 20, 3)
    for row, item in enumerate(split.item.tolist()):
        number, k = map(int, item.split("/"))
        original = picture(number, 30 + number + k, 41)
        expected = cv2.resize(original, (20, 20), interpolation=cv2.INTER_LINEAR)
        np.testing.assert_allclose(split.image[row].astype(int), expected, atol=25)
        assert abs(split.image[row, 5, 5, 2] - 10.0 * number) < 5


def test_divided_parts_and_subsets_of_encoded_pictures_work_too(tmp_path):
    recipe = album_of(
        divide={"all": Divide(into=("train", "val"), first=0.6, seed=1)},
        subsets={"val/low": Subset(of="val", within=((0, 2),))},
    )
    dataset = prepare(recipe, tmp_path / "cache", workers=1).dataset
    for name in ("train", "val", "val/low"):
        split = dataset.split(name)
        assert isinstance(split.image, Encoded)
        assert len(split) > 0
        for row, item in enumerate(split.item.tolist()):
            blue = split.image[row, 5, 5, 2]
            assert abs(blue - 10.0 * int(item.split("/")[0])) < 5
    assert dataset.split("val/low").target.max() <= 2


def test_a_dataset_shows_pictures_of_an_album_without_copying_them(tmp_path):
    album = album_of()
    done = prepare(shown_of(album), tmp_path / "shown", workers=1, check_counts=False)
    assert done.counts == {"train": 3, "test": 1}
    assert [key for key, _ in done.skipped] == []
    train = done.dataset.splits["train"]
    assert train.item.tolist() == ["6/0", "0/0", "2/1"]
    assert train.target.tolist() == [0, 1, 1]
    assert train.extra["group"].tolist() == [0, 3, 2]
    assert train.image.shape == (3, 16, 16, 3)
    blue = train.image[:, 5, 5, 2].astype(int)
    np.testing.assert_allclose(blue, [60, 0, 20], atol=5)
    sizes = [p.stat().st_size for p in (tmp_path / "shown").rglob("*.npy")]
    assert max(sizes) < 1000
    verify_dataset(tmp_path / "shown")
    again = open_dataset(tmp_path / "shown")
    assert again.fingerprint == done.dataset.fingerprint


def test_other_splits_and_sizes_load_only_what_could_not_be_read(tmp_path):
    calls = []
    album = album_of(load=lambda unit: calls.append(unit.key) or load(unit))
    one = prepare(shown_of(album), tmp_path / "one", workers=1)
    assert len(calls) == 8
    two = prepare(shown_of(album, side=9), tmp_path / "two", workers=1)
    assert calls[8:] == ["4"]
    assert two.dataset.splits["train"].image.shape == (3, 9, 9, 3)
    assert one.dataset.fingerprint != two.dataset.fingerprint
    same = prepare(shown_of(album), tmp_path / "one", workers=1)
    assert same.dataset.fingerprint == one.dataset.fingerprint


def test_labels_that_change_are_published_again(tmp_path):
    album = album_of()
    first = prepare(shown_of(album), tmp_path / "shown", workers=1)
    other = {"train": Shown(album=album, labels=labels_of(["6/0", "0/0"], [4, 3]))}
    done = prepare(shown_of(album, shown=other), tmp_path / "shown", workers=1)
    assert done.counts == {"train": 2}
    assert done.dataset.splits["train"].target.tolist() == [2, 1]
    assert done.dataset.fingerprint != first.dataset.fingerprint
    assert len(list((tmp_path / "shown").glob("arrays-*"))) == 1


def test_counts_of_grades_are_checked_before_anything_is_loaded(tmp_path):
    calls = []
    album = album_of(load=lambda unit: calls.append(unit.key) or load(unit))
    recipe = shown_of(album, counts={"train": 3}, grades={"train": (1, 0, 0, 2)})
    with pytest.raises(DatasetError) as caught:
        prepare(recipe, tmp_path / "shown", workers=1)
    message = "train grade 2 1 instead of 0; train grade 3 1 instead of 2"
    assert f"shown must have the paper's numbers of items, got {message}." in str(
        caught.value
    )
    assert calls == []
    prepare(recipe, tmp_path / "shown", workers=1, check_counts=False)
    with pytest.raises(DatasetError, match="train grade 3 1 instead of 2"):
        prepare(recipe, tmp_path / "shown", workers=1)


def test_a_picture_that_is_missing_is_named_and_mended_later(tmp_path):
    counts = {"train": 3, "test": 2}
    album = album_of(counts={"all": 8})
    parts = shown_of(album).shown
    test = Shown(album=album, labels=labels_of(["4", "3/0"], [1, 0]))
    recipe = shown_of(album, counts=counts, shown=parts | {"test": test})
    with pytest.raises(DatasetError, match=r"1 unit could not be loaded: 4 \(there"):
        prepare(recipe, tmp_path / "shown", workers=1)
    done = prepare(recipe, tmp_path / "shown", workers=1, check_counts=False)
    assert done.counts == {"train": 3, "test": 1}
    assert done.skipped == (("4", "there is nothing to see"),)

    def repaired(unit):
        if unit.key != "4":
            return load(unit)
        one = load(Unit(key="7", split="all"))
        return LoadedItems(image=one.image, target=one.target, item=("4",))

    better = album_of(counts={"all": 8}, load=repaired)
    parts = {s: Shown(album=better, labels=x.labels) for s, x in recipe.shown.items()}
    recipe = shown_of(better, counts=counts, shown=parts)
    done = prepare(recipe, tmp_path / "shown", workers=1)
    assert done.counts == counts
    assert done.skipped == ()
    assert done.dataset.splits["test"].item.tolist() == ["4", "3/0"]


def test_a_split_without_any_picture_is_refused(tmp_path):
    album = album_of()
    none = {"test": Shown(album=album, labels=labels_of(["4"], [1]))}
    with pytest.raises(DatasetError, match=r"no items for test\. 1 unit .* 4 \("):
        prepare(shown_of(album, shown=none), tmp_path / "shown", workers=1)


def test_an_album_that_is_gone_or_changed_is_told(tmp_path):
    prepare(shown_of(album_of()), tmp_path / "shown", workers=1)
    (stored,) = tmp_path.glob("album-*/arrays-*/all.encoded.npy")
    damaged = bytearray(stored.read_bytes())
    damaged[-1] ^= 1
    stored.write_bytes(damaged)
    open_dataset(tmp_path / "shown")
    with pytest.raises(DatasetError) as caught:
        verify_dataset(tmp_path / "shown")
    message = str(caught.value)
    assert message.startswith(f"{stored} changed after the dataset was prepared")
    assert message.endswith(f"delete {stored.parents[1]} and prepare the dataset again")
    stored.unlink()
    with pytest.raises(DatasetError, match=r"album-.*encoded.npy changed after"):
        open_dataset(tmp_path / "shown")


def mended(unit):
    """As `load`, with unit 4 as good as unit 7."""
    if unit.key != "4":
        return load(unit)
    one = load(Unit(key="7", split="all"))
    return LoadedItems(image=one.image, target=one.target, item=("4/0",))


def test_a_dataset_of_an_album_made_anew_needs_only_to_be_prepared_again(tmp_path):
    first = shown_of(album_of(counts={"all": 8}))
    prepare(first, tmp_path / "one", workers=1, check_counts=False)
    better = shown_of(album_of(counts={"all": 8}, load=mended))
    prepare(better, tmp_path / "two", workers=1)
    with pytest.raises(DatasetError, match="changed after the dataset was") as it:
        open_dataset(tmp_path / "one")
    assert "prepare it again as well, nothing has to be deleted" in str(it.value)
    assert "delete /" not in str(it.value)
    done = prepare(better, tmp_path / "one", workers=1)
    assert "4/0" in done.dataset.splits["test"].item
    verify_dataset(tmp_path / "one")


@pytest.mark.parametrize("remade", [True, False])
def test_a_dataset_of_an_album_that_was_deleted_is_only_prepared_again(
    tmp_path, remade
):
    recipe = shown_of(album_of())
    prepare(recipe, tmp_path / "one", workers=1)
    (place,) = tmp_path.glob("album-*")
    shutil.rmtree(place)
    if remade:
        prepare(recipe, tmp_path / "two", workers=1)
    with pytest.raises(DatasetError, match="nothing has to be deleted"):
        open_dataset(tmp_path / "one")
    prepare(recipe, tmp_path / "one", workers=1)
    verify_dataset(tmp_path / "one")


def test_a_dataset_whose_album_is_damaged_is_to_be_deleted(tmp_path):
    prepare(shown_of(album_of()), tmp_path / "one", workers=1)
    (stored,) = tmp_path.glob("album-*/arrays-*/all.encoded.npy")
    stored.write_bytes(stored.read_bytes()[:-1])
    with pytest.raises(DatasetError, match=r"; delete \S+/album-\w+ and prepare the"):
        open_dataset(tmp_path / "one")


def test_progress_counts_the_units_of_all_albums(tmp_path):
    first, second = album_of(3), album_of(2, name="other")
    shown = {
        "train": Shown(album=first, labels=labels_of(["0/0"], [0])),
        "test": Shown(album=second, labels=labels_of(["1/0"], [0])),
    }
    calls = []
    prepare(
        shown_of(first, shown=shown),
        tmp_path / "shown",
        workers=1,
        progress=lambda *numbers: calls.append(numbers),
    )
    assert calls == [(n, 5) for n in (1, 2, 3, 4, 5)]


def test_a_folder_of_another_dataset_is_left_alone(tmp_path):
    prepare(shown_of(album_of()), tmp_path / "shown", workers=1)
    with pytest.raises(DatasetError, match="holds another dataset"):
        prepare(shown_of(album_of(), side=9), tmp_path / "shown", workers=1)


@pytest.mark.parametrize(("side", "load_one"), [(None, load), (8, "plain")])
def test_a_side_is_stated_exactly_where_pictures_are_encoded(tmp_path, side, load_one):
    def plain(unit):
        image = np.zeros((1, 4, 4, 3), np.uint8)
        return LoadedItems(image=image, target=np.zeros(1), item=(unit.key,))

    recipe = album_of(2, side=side, load=plain if load_one == "plain" else load_one)
    with pytest.raises(ValueError, match=f"must state a side .* got {side}"):
        prepare(recipe, tmp_path / "cache", workers=1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_process_can_decode(images):
    np.asarray(images)  # so that the threads of this process exist
    child = os.fork()
    if child == 0:
        good = images.take([0, 1, 2]).shape == (3, 32, 32, 3)
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
