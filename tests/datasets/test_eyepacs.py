import inspect
import pickle

import cv2
import numpy as np
import pytest

from datasets.fake_eyes import (
    EYEPACS,
    aptos_rows,
    eyepacs_rows,
    write_aptos,
    write_eyepacs,
    write_photographs,
)
from qualms.datasets import (
    DatasetError,
    Encoded,
    cache_folder,
    open_dataset,
    prepare,
    verify_dataset,
)
from qualms.datasets._albums import albums_of
from qualms.datasets._retina.contrast import enhance
from qualms.datasets.eyepacs import CARD, eyepacs
from qualms.launch import recipe_of
from qualms.spec import Part, Task

TRAIN, REST = eyepacs_rows(dict.fromkeys(EYEPACS, (2, 1, 1, 1, 1)))
ABROAD = aptos_rows({"test": (4, 1, 1, 1, 1), "val": (1, 0, 1, 0, 0)})


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("raw")
    write_eyepacs(root / "eyepacs", TRAIN, REST)
    write_aptos(root / "aptos", ABROAD)
    write_photographs(root, TRAIN, REST, ABROAD)
    return root


@pytest.fixture(scope="module")
def cache(root, tmp_path_factory):
    """Both shifts, prepared."""
    place = tmp_path_factory.mktemp("cache")
    for shift in ("country", "severity"):
        recipe = eyepacs(root, shift=shift, size=48)
        prepare(recipe, cache_folder(place, recipe), workers=1, check_counts=False)
    return place


def opened(cache, root, **options):
    return open_dataset(cache_folder(cache, eyepacs(root, size=48, **options)))


def test_both_shifts_have_the_same_splits_and_extras(cache, root):
    sizes = {}
    for shift in ("country", "severity"):
        dataset = opened(cache, root, shift=shift)
        sizes[shift] = [len(split) for split in dataset.splits.values()]
        assert list(dataset.splits) == [
            "train",
            "val",
            "val/shifted",
            "test",
            "test/shifted",
        ]
        assert dataset.task == Task(name="classification", classes=2)
        assert set(dataset.shifts) == {"val/shifted", "test/shifted"}
        for name, split in dataset.splits.items():
            assert set(split.extra) == {"group", "cluster", "shifted"}
            assert split.image.shape == (len(split), 48, 48, 3)
            np.testing.assert_array_equal(split.target, split.extra["group"] >= 2)
            assert set(split.extra["shifted"]) == {name.endswith("/shifted")}
    assert sizes["country"] == [6, 6, 2, 6, 8]
    assert sizes["severity"] == [4, 4, 2, 4, 4]


def test_every_photograph_is_the_enhanced_one_under_its_name(cache, root):
    grades = {name: grade for name, grade, *_ in (*TRAIN, *REST, *ABROAD)}
    files = {path.stem: path for path in root.rglob("*") if path.suffix != ".csv"}
    for shift in ("country", "severity"):
        for split in opened(cache, root, shift=shift).splits.values():
            for row, item in enumerate(split.item.tolist()):
                assert split.extra["group"][row] == grades[item]
                picture = enhance(cv2.imread(str(files[item])))
                quality = [cv2.IMWRITE_JPEG_QUALITY, 72]
                kept = cv2.imdecode(cv2.imencode(".jpg", picture, quality)[1], 1)
                expected = cv2.resize(kept, (48, 48))[..., ::-1]
                np.testing.assert_array_equal(split.image[row], expected)


def test_photographs_are_kept_once_for_both_shifts(cache, root):
    albums = sorted(path.name.rsplit("-", 1)[0] for path in cache.glob("*_photo*"))
    assert albums == ["aptos_photographs", "eyepacs_photographs"]
    country, severity = (
        opened(cache, root, shift=shift).splits["train"].image
        for shift in ("country", "severity")
    )
    assert isinstance(country, Encoded)
    assert country.data.filename.resolve() == severity.data.filename.resolve()
    other = eyepacs(root, shift="severity", onset="mild", size=32)
    read = []
    prepare(
        other,
        cache_folder(cache, other),
        workers=1,
        check_counts=False,
        progress=lambda *n: read.append(n),
    )
    assert read == []


def test_severity_needs_no_file_of_aptos(root):
    home, away = albums_of(eyepacs(root))
    result = albums_of(eyepacs(root))
    assert [len(result[home].units), len(result[away].units)] == [18, 10]
    assert list(albums_of(eyepacs(root, shift="severity"))) == [home]


def test_other_blurs_have_their_own_photographs(root):
    digests = {tuple(albums_of(eyepacs(root, blur=b))) for b in (3, 5, 10, 20, 30)}
    assert len(digests) == 5
    assert eyepacs(root, blur=5).options["blur"] == 5


def test_the_paper_s_numbers_are_asserted_before_anything_is_read(root, tmp_path):
    with pytest.raises(DatasetError) as caught:
        prepare(eyepacs(root), tmp_path / "cache", workers=1)
    message = str(caught.value)
    assert "train 6 instead of 35126" in message
    assert "test/shifted grade 4 1 instead of 230" in message
    assert "--no-check-counts" in message
    assert list(tmp_path.iterdir()) == []


def test_other_processes_can_load_the_photographs(root):
    (album,) = albums_of(eyepacs(root, shift="severity")).values()
    load = pickle.loads(pickle.dumps(album.load))
    unit = album.units[0]
    assert load(unit).image == album.load(unit).image


@pytest.fixture
def copied(root, tmp_path):
    place = tmp_path / "copied"
    for path in root.rglob("*"):
        if path.is_file():
            copy = place / path.relative_to(root)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
    return place


@pytest.fixture
def broken(copied):
    """A copy whose first photographs are cut, empty, missing, text and a PNG cut."""
    place = copied
    train = [place / "eyepacs" / "train" / f"{name}.jpeg" for name, *_ in TRAIN]
    train[0].write_bytes(train[0].read_bytes()[:-300])
    train[1].write_bytes(b"")
    train[2].unlink()
    (place / "eyepacs" / "test" / f"{REST[0][0]}.jpeg").write_text("no picture")
    away = place / "aptos" / "train_images" / f"{ABROAD[0][0]}.png"
    away.write_bytes(away.read_bytes()[:-2000])
    return place


def test_unreadable_photographs_are_named_and_counted(broken, tmp_path):
    recipe = eyepacs(broken, size=16)
    folder = cache_folder(tmp_path, recipe)
    done = prepare(recipe, folder, workers=1, check_counts=False)
    reason = {one.key: one.reason for one in done.skipped}
    bad = [*(name for name, *_ in TRAIN[:3]), REST[0][0], ABROAD[0][0]]
    assert set(reason) == set(bad)
    assert "truncated" in reason[bad[0]]
    assert "there is no file" in reason[bad[2]]
    assert all(f"{name}." in reason[name] for name in bad)
    assert sum(done.counts.values()) == 28 - 5
    assert done.counts["train"] == 3


def vast_jpeg(path):
    """A photograph that says it has 65500 x 65500 pixels, and ends at once."""
    data = path.read_bytes()
    size = data.index(b"\xff\xc0") + 5
    scan = data.index(b"\xff\xda")
    side = (65_500).to_bytes(2, "big")
    path.write_bytes(data[:size] + 2 * side + data[size + 4 : scan + 14] + b"\xff\xd9")


def test_odd_photographs_are_named_and_counted(copied, tmp_path):
    vast = copied / "eyepacs" / "train" / f"{TRAIN[0][0]}.jpeg"
    vast_jpeg(vast)
    thin = copied / "aptos" / "train_images" / f"{ABROAD[0][0]}.png"
    cv2.imwrite(str(thin), np.full((1, 4000, 3), 200, np.uint8))
    recipe = eyepacs(copied, size=16)
    folder = cache_folder(tmp_path, recipe)
    done = prepare(recipe, folder, workers=1, check_counts=False)
    reason = {one.key: one.reason for one in done.skipped}
    assert set(reason) == {vast.stem, thin.stem}
    assert reason[vast.stem].startswith(f"cannot read {vast}: ")
    assert reason[thin.stem].startswith(f"cannot read {thin}: a photograph must be at")
    assert sum(done.counts.values()) == 28 - 2


def test_a_mended_photograph_is_the_only_one_read_again(broken, root, tmp_path):
    recipe = eyepacs(broken, size=16)
    folder = cache_folder(tmp_path, recipe)
    before = prepare(recipe, folder, workers=1, check_counts=False)
    name = f"eyepacs/train/{TRAIN[0][0]}.jpeg"
    (broken / name).write_bytes((root / name).read_bytes())
    read = []
    after = prepare(
        recipe,
        folder,
        workers=1,
        check_counts=False,
        progress=lambda *numbers: read.append(numbers),
    )
    assert after.counts["train"] == before.counts["train"] + 1
    assert TRAIN[0][0] in after.dataset.splits["train"].item
    # of both albums: four that were bad, then the one of APTOS that still is
    assert len(read) == 5
    verify_dataset(folder)


@pytest.mark.parametrize(
    ("home", "away"),
    [
        (".", "."),
        ("eyepacs", "aptos"),
        ("diabetic-retinopathy-detection", "aptos2019-blindness-detection"),
        (".", "aptos"),
    ],
)
def test_the_layouts_of_the_documentation_are_found(root, tmp_path, home, away):
    for source, place in (("eyepacs", home), ("aptos", away)):
        for path in (root / source).rglob("*"):
            if path.is_file():
                copy = tmp_path / place / path.relative_to(root / source)
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.symlink_to(path)
    mine, theirs = eyepacs(tmp_path), eyepacs(root)
    assert list(albums_of(mine)) == list(albums_of(theirs))
    for here, there in zip(
        albums_of(mine).values(), albums_of(theirs).values(), strict=True
    ):
        assert here.units == there.units
        result = here.load(here.units[0])
        assert result.image == there.load(there.units[0]).image


def test_wrong_choices_are_refused(root):
    with pytest.raises(ValueError, match="blur must be one of 3, 5, 10, 20, 30, got 7"):
        eyepacs(root, blur=7)
    with pytest.raises(ValueError, match=r"blur must be a whole number, got 30\.0"):
        eyepacs(root, blur=30.0)
    with pytest.raises(ValueError, match="size must be a whole number, got '64'"):
        eyepacs(root, size="64")
    with pytest.raises(ValueError, match="size must be at least 1, got 0"):
        eyepacs(root, size=0)
    with pytest.raises(ValueError, match="shift must be one of"):
        eyepacs(root, shift="age")


def test_the_folder_may_be_text(root):
    for shift in ("country", "severity"):
        mine, theirs = eyepacs(str(root), shift=shift), eyepacs(root, shift=shift)
        assert list(albums_of(mine)) == list(albums_of(theirs))
        for album in albums_of(mine).values():
            assert album.load(album.units[0]).item == (album.units[0].key,)


def test_an_empty_folder_is_told_what_belongs_there(tmp_path):
    with pytest.raises(DatasetError, match=r"expected trainLabels\.csv .* is empty"):
        eyepacs(tmp_path)


def test_the_launcher_makes_it_from_a_folder(root):
    part = Part(name="eyepacs", options={"shift": "severity", "size": 64})
    recipe = recipe_of(part, root)
    assert recipe.options == eyepacs(root, shift="severity", size=64).options
    with pytest.raises(ValueError, match="aptos2019-blindness-detection"):
        recipe_of(part)


def test_options_are_those_of_the_function_and_the_paper_s(root):
    options = inspect.signature(eyepacs).parameters
    assert {name: option.default for name, option in options.items()} == {
        "root": inspect.Parameter.empty,
        "shift": "country",
        "onset": "moderate",
        "blur": 30,
        "size": 512,
    }
    assert set(eyepacs(root).options) == set(options) - {"root"}
    assert "retinopathy_solution.csv" in CARD.obtain
