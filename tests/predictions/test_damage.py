"""Damage is never silent: a file is read as it was written, or refused."""

import json
import re
import zipfile

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from predictions import made
from qualms.predictions import PredictionsError, read, write

ARRAYS = {
    "target": np.array([0, 1, 2, 1]),
    "probs": np.random.default_rng(0).dirichlet(np.ones(3), 4),
    "item": list("abcd"),
    "shifted": [True, False, True, False],
    "group": [1, 2, 3, 4],
}
HEADER = {"dataset": "x", "seed": 3}


def told(predictions):
    """All that predictions say, for comparison."""
    held = {name: array.tolist() for name, array in predictions.arrays.items()}
    return held, predictions.header, predictions.notes


@pytest.mark.parametrize("ending", [".npz", ".safetensors", ".parquet"])
def test_a_flipped_bit_is_refused_or_changes_nothing(tmp_path, ending):
    path = write(tmp_path / f"p{ending}", ARRAYS, header=HEADER)
    whole, before, refused = path.read_bytes(), told(read(path)), 0
    places = range(0, len(whole), 11)
    for at in places:
        harmed = bytearray(whole)
        harmed[at] ^= 1 << at % 7
        path.write_bytes(bytes(harmed))
        try:
            predictions = read(path)
        except PredictionsError:
            refused += 1
        else:
            assert told(predictions) == before, at
    assert refused > len(places) / 5


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        (b"'<i8'", b"'<i4'"),
        (b"'<i8'", b"'<u2'"),
        (b"'<f8'", b"'<f4'"),
        (b"(4,)", b"(3,)"),
        (b"(1, 4, 3)", b"(1, 3, 4)"),
        (b"(1, 4, 3)", b"(1, 4, 2)"),
    ],
)
def test_a_changed_header_of_an_array_in_an_npz_is_refused(tmp_path, was, becomes):
    path = write(tmp_path / "p.npz", ARRAYS)
    path.write_bytes(path.read_bytes().replace(was, becomes, 1))
    with pytest.raises(PredictionsError):
        read(path)


def member(path, name, change):
    """Change the bytes of one array in an .npz, which then has the right checksum."""
    with zipfile.ZipFile(path) as archive:
        held = {info.filename: archive.read(info) for info in archive.infolist()}
    held[f"{name}.npy"] = change(held[f"{name}.npy"])
    with zipfile.ZipFile(path, "w") as archive:
        for file, data in held.items():
            archive.writestr(file, data)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data + b"leftover",
        lambda data: data[:-8],
        lambda data: data.replace(b"<i8", b"<i4"),
        lambda data: data.replace(b"(4,)", b"(2,)"),
    ],
)
def test_an_array_that_is_longer_or_shorter_than_declared_is_refused(tmp_path, change):
    path = tmp_path / "p.npz"
    np.savez(path, target=[0, 1, 1, 0], prob=[0.1, 0.2, 0.3, 0.4])
    member(path, "target", change)
    with pytest.raises(PredictionsError, match=r"array 'target' declares .*bytes are"):
        read(path)


def test_an_array_that_is_there_twice_is_refused(tmp_path):
    path = tmp_path / "p.npz"
    np.savez(path, target=[0, 1], prob=[0.1, 0.2])
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("target", archive.read("target.npy"))
    with pytest.raises(PredictionsError, match="array 'target' is there twice"):
        read(path)


def test_compressed_and_fortran_ordered_arrays_are_read(tmp_path):
    probs = np.asfortranarray(np.full((3, 5, 2), 0.5))
    np.savez_compressed(tmp_path / "p.npz", target=[0, 1, 0, 1, 0], probs=probs)
    assert read(tmp_path / "p.npz").arrays["probs"].tolist() == probs.tolist()


def test_a_tensor_that_was_exchanged_does_not_match_its_checksum(tmp_path):
    from safetensors import safe_open

    path = write(tmp_path / "p.safetensors", ARRAYS)
    with safe_open(path, framework="np") as found:
        metadata = found.metadata()
    tensors = load_file(path)
    tensors["target"] = tensors["target"][::-1].copy()
    save_file(tensors, path, metadata=metadata)
    with pytest.raises(PredictionsError, match="'target' does not match its checksum"):
        read(path)
    save_file(
        tensors, path, metadata={k: v for k, v in metadata.items() if k != "crc32"}
    )
    assert read(path).arrays["target"].tolist() == [1, 2, 1, 0]


def test_a_damaged_item_of_a_segmentation_is_refused(tmp_path):
    folder = write(tmp_path / "p", made.segmentation(), header={"ignore": 255})
    path = folder / "000001.safetensors"
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(PredictionsError, match="does not match its checksum"):
        list(read(folder).maps)


def test_links_in_a_segmentation_that_lead_nowhere_are_refused(tmp_path):
    folder = write(tmp_path / "p", made.segmentation(), header={"ignore": 255})
    path = folder / "000001.safetensors"
    path.unlink()
    path.symlink_to(path.name)
    with pytest.raises(PredictionsError, match="row 1 of 'items' in index"):
        read(folder)
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(PredictionsError, match="there is no such file"):
        read(tmp_path / "loop")


@pytest.mark.parametrize("ending", [".npz", ".safetensors", ".csv", ".parquet", ""])
def test_a_name_that_is_not_utf8_is_refused_before_any_work(tmp_path, ending):
    path = tmp_path / f"\udcff{ending}"
    arrays = ARRAYS if ending else made.segmentation()
    header = {} if ending else {"ignore": 255}
    with pytest.raises(
        PredictionsError, match=r"\\udcff.* must be text in UTF-8"
    ) as no:
        write(path, arrays, header=header)
    assert str(no.value).isprintable()
    written = write(tmp_path / f"p{ending}", arrays, header=header)
    written.rename(path)
    with pytest.raises(PredictionsError, match="must be text in UTF-8"):
        read(path)


@pytest.mark.parametrize(
    "cell", ["0_1", "1_000e-3", "\u0661", "\uff10.5", "0x1", "1e", "\u00bd"]
)
def test_what_only_python_takes_for_a_number_is_refused(tmp_path, cell):
    path = tmp_path / "p.csv"
    path.write_text(f"target,prob\n0,0.5\n1,{cell}\n", encoding="utf-8")
    with pytest.raises(
        PredictionsError, match=re.escape(f"must be a number, it is {cell!r}")
    ):
        read(path)


def test_text_that_a_spreadsheet_would_run_is_made_harmless(tmp_path):
    names = ["=1+1", "'=1", "@SUM(A1)", "+1-1", "-x", "-5", "'quoted", "a=b"]
    arrays = {"target": np.arange(8) % 2, "prob": np.linspace(0, 1, 8), "item": names}
    path = write(tmp_path / "p.csv", arrays)
    cells = [line.rpartition(",")[2] for line in path.read_text().splitlines()[1:]]
    assert [cell for cell in cells if cell[0] in "=@+-"] == ["-5"]
    assert read(path).arrays["item"].tolist() == names


def test_an_index_with_a_name_no_system_takes_is_refused(tmp_path):
    folder = write(tmp_path / "p", made.segmentation(), header={"ignore": 255})
    index = json.loads((folder / "index.json").read_text())
    index["items"][0]["file"] = "a\0.npz"
    (folder / "index.json").write_text(json.dumps(index))
    with pytest.raises(PredictionsError, match="row 0 of 'items'"):
        read(folder)
