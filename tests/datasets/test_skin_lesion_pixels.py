import numpy as np
import pytest
from PIL import Image

from qualms.datasets import DatasetError, prepare
from qualms.datasets.skin_lesion_pixels import skin_lesion_pixels

MASKS = "HAM10000_segmentations_lesion_tschandl"
COLUMNS = "lesion_id,image_id,dx,dx_type,age,sex,localization,dataset"
SOURCES = ["rosendahl", "vidir_molemax", "vidir_modern", "vidir_legacy", "rosendahl"]


def marked(i):
    """Mask with the first 50 * i columns of 600 marked."""
    mask = np.zeros((450, 600), np.uint8)
    mask[:, : 50 * i] = 255
    return mask


def write(folder, n=20, mark=","):
    (folder / MASKS).mkdir(parents=True)
    lines = [COLUMNS]
    for i in reversed(range(n)):
        name = f"ISIC_{i:07d}"
        source = SOURCES[i % 5]
        lines.append(f"HAM_{i // 2},{name},nv,histo,80.0,male,scalp,{source}")
        image = np.full((450, 600, 3), (10 * i, 100, 200), np.uint8)
        Image.fromarray(image).save(folder / f"{name}.jpg", quality=95)
        Image.fromarray(marked(i % 5)).save(folder / MASKS / f"{name}_segmentation.png")
    text = "\n".join(lines).replace(",", mark)
    (folder / "HAM10000_metadata").write_text(text + "\n")
    return folder


@pytest.fixture
def root(tmp_path):
    return write(tmp_path / "raw" / "ham10000")


def made(root, tmp_path):
    recipe = skin_lesion_pixels(root)
    return prepare(recipe, tmp_path / "cache", workers=1, check_counts=False)


def test_the_australian_photos_are_test_and_the_rest_is_divided(root, tmp_path):
    result = made(root.parent, tmp_path)
    assert result.skipped == ()
    # int(0.85 * 12) of the photos from Austria
    assert result.counts == {"train": 10, "val": 2, "test": 8}
    splits = result.dataset.splits
    numbers = {k: {int(x[5:]) for x in s.item} for k, s in splits.items()}
    assert {i % 5 for i in numbers["test"]} == {0, 4}
    assert {i % 5 for i in numbers["train"] | numbers["val"]} == {1, 2, 3}
    assert not numbers["train"] & numbers["val"]


def test_pixels_are_counted_after_shrinking_and_none_is_kept(root, tmp_path):
    for split in made(root, tmp_path).dataset.splits.values():
        for row, item in enumerate(split.item):
            i = int(item[5:])
            # column x is read at floor(x * 9.375)
            columns = sum(int(x * 9.375) < 50 * (i % 5) for x in range(64))
            assert split.target[row] == 64 * columns
            assert split.extra["cluster"][row] == f"HAM_{i // 2}"
            assert split.extra["group"][row] == "nv"
            middle = split.image[row, 32, 32].astype(int)
            np.testing.assert_allclose(middle, [10 * i, 100, 200], atol=3)
        assert split.image.shape[1:] == (64, 64, 3)


def test_the_paper_s_numbers_are_asserted(root, tmp_path):
    recipe = skin_lesion_pixels(root)
    assert recipe.counts == {"train": 6_592, "val": 1_164, "test": 2_259}
    assert int(recipe.divide["trainval"].first * 7_756) == 6_592
    with pytest.raises(DatasetError, match="6592"):
        prepare(recipe, tmp_path / "cache", workers=1)


def test_tabs_and_part_folders_are_read_too(root, tmp_path):
    other = write(tmp_path / "other", mark="\t")
    (other / "HAM10000_metadata").rename(other / "HAM10000_metadata.tab")
    for i, path in enumerate(sorted(other.glob("*.jpg"))):
        part = other / f"HAM10000_images_part_{1 + i % 2}"
        part.mkdir(exist_ok=True)
        path.rename(part / path.name)
    result = made(other, tmp_path)
    assert result.skipped == ()
    expected = skin_lesion_pixels(root).units
    assert skin_lesion_pixels(other).units == expected


def test_unreadable_files_are_named(root, tmp_path):
    path = root / "ISIC_0000000.jpg"
    path.write_bytes(path.read_bytes()[:900])
    (root / "ISIC_0000001.jpg").unlink()
    (root / MASKS / "ISIC_0000002_segmentation.png").unlink()
    (root / MASKS / "ISIC_0000003_segmentation.png").write_bytes(b"x")
    reason = {one.key: one.reason for one in made(root, tmp_path).skipped}
    assert set(reason) == {f"ISIC_000000{i}" for i in range(4)}
    assert "cannot read" in reason["ISIC_0000000"]
    assert "ISIC_0000001.jpg" in reason["ISIC_0000001"]
    assert "ISIC_0000002_segmentation.png" in reason["ISIC_0000002"]
    assert "cannot read" in reason["ISIC_0000003"]


def test_metadata_without_the_source_is_refused(root):
    path = root / "HAM10000_metadata"
    path.write_text(path.read_text().replace(",dataset", ",source"))
    with pytest.raises(DatasetError, match="dataset not in lesion_id"):
        skin_lesion_pixels(root)
    path.unlink()
    with pytest.raises(DatasetError, match=r"expected HAM10000_metadata in .* holds"):
        skin_lesion_pixels(root)


def test_a_wrong_place_is_said(tmp_path):
    with pytest.raises(DatasetError, match=f"expected {MASKS} in .* is empty"):
        skin_lesion_pixels(tmp_path)
