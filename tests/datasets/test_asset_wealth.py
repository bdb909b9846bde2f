import numpy as np
import pytest
import torch

from qualms.datasets import DatasetError, prepare
from qualms.datasets import asset_wealth as module
from qualms.datasets.asset_wealth import asset_wealth

COUNTRIES = ["kenya", "angola", "benin", "nigeria", "mali", "zambia"] * 3


def picture(i):
    return np.random.default_rng(i).normal(size=(8, 224, 224)).astype(np.float32)


@pytest.fixture
def root(tmp_path, monkeypatch):
    """18 villages, 9 of them at home; WILDS would hold out 2,000 of these."""
    monkeypatch.setattr(module, "HELD_OUT", 4)
    images = tmp_path / "raw" / "poverty_v1.1" / "images"
    images.mkdir(parents=True)
    lines = ["country,year,wealthpooled,lat,urban"]
    for i, country in enumerate(COUNTRIES):
        lines.append(f"{country},2012,{i / 8 - 1},0.5,{i % 2 == 0}")
        np.savez(images / f"landsat_poverty_img_{i}.npz", x=picture(i))
    (images.parent / "dhs_metadata.csv").write_text("\n".join(lines) + "\n")
    return tmp_path / "raw"


def test_the_paper_s_numbers_are_asserted(root):
    assert asset_wealth(root).counts == {"train": 9_797, "val": 1_000, "test": 3_963}


def test_splits_follow_the_countries_and_wilds_own_seed(root):
    parts = {"train": [], "val": [], "test": []}
    for unit in asset_wealth(root / "poverty_v1.1").units:
        parts[unit.split].append(int(unit.key.rsplit("_", 1)[1]))
    home = np.flatnonzero(np.isin(COUNTRIES, ["kenya", "nigeria", "zambia"]))
    # how WILDS draws its held-out villages: seed ord("A") + 541433
    np.random.default_rng(65 + 541433).shuffle(home)
    assert parts["val"] == sorted(home[:2])
    assert parts["train"] == sorted(home[4:])
    assert [COUNTRIES[i] for i in parts["test"]] == ["angola", "mali"] * 3


def test_items_are_shrunk_without_antialias(root, tmp_path):
    prepared = prepare(
        asset_wealth(root), tmp_path / "c", workers=1, check_counts=False
    )
    assert prepared.skipped == ()
    split = prepared.dataset.splits["test"]
    assert split.image.shape == (6, 64, 64, 8)
    assert split.image.dtype == np.float32
    for row, i in enumerate([1, 4, 7, 10, 13, 16]):
        assert split.item[row] == f"landsat_poverty_img_{i}"
        assert split.target[row] == np.float32(i / 8 - 1)
        assert split.extra["cluster"][row] == COUNTRIES[i]
        assert split.extra["group"][row] == ("urban" if i % 2 == 0 else "rural")
        small = torch.nn.functional.interpolate(
            torch.from_numpy(picture(i))[None], (64, 64), mode="bilinear"
        )[0]
        np.testing.assert_allclose(
            split.image[row], small.permute(1, 2, 0).numpy(), rtol=0, atol=2e-6
        )
    assert prepared.dataset.shifts == {"test": "other countries"}


def test_unreadable_images_are_named(root, tmp_path):
    images = root / "poverty_v1.1" / "images"
    good = (images / "landsat_poverty_img_1.npz").read_bytes()
    (images / "landsat_poverty_img_1.npz").write_bytes(good[: len(good) // 2])
    (images / "landsat_poverty_img_4.npz").unlink()
    np.savez(images / "landsat_poverty_img_7.npz", y=picture(7))
    np.savez(images / "landsat_poverty_img_10.npz", x=picture(7)[:7])
    (images / "landsat_poverty_img_13.npz").write_bytes(b"")
    prepared = prepare(
        asset_wealth(root), tmp_path / "c", workers=1, check_counts=False
    )
    reason = {one.key.rsplit("_", 1)[1]: one.reason for one in prepared.skipped}
    assert set(reason) == {"1", "4", "7", "10", "13"}
    assert "cannot read" in reason["1"]
    assert "landsat_poverty_img_1.npz" in reason["1"]
    assert "there is no file" in reason["4"]
    assert "x is not a file" in reason["7"]
    assert "must have the shape (8, 224, 224), got (7, 224, 224)" in reason["10"]
    assert prepared.counts["test"] == 1


def test_too_few_items_are_refused(root, tmp_path):
    with pytest.raises(DatasetError, match="9797"):
        prepare(asset_wealth(root), tmp_path / "c", workers=1)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("wealthpooled", "wealth", r"must have the columns .* wealthpooled not in"),
        ("True", "maybe", r"urban must be True or False, got 'maybe' in line"),
        ("0.125,", "rich,", r"wealthpooled must be a finite number, got '.*rich' in"),
    ],
)
def test_a_wrong_table_is_said(root, old, new, sentence):
    path = root / "poverty_v1.1" / "dhs_metadata.csv"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(DatasetError, match=sentence):
        asset_wealth(root)


def test_a_wrong_place_is_said(tmp_path):
    with pytest.raises(DatasetError, match=r"expected dhs_metadata\.csv and images in"):
        asset_wealth(tmp_path)
