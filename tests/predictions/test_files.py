"""Files that are not what they should be: absent, cut short, foreign, hostile."""

import io
import json
import pickle
import re
import sys
import zipfile
from datetime import datetime, timedelta
from decimal import Decimal

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from safetensors.torch import save_file as save_torch

from predictions import made
from qualms.predictions import PredictionsError, read, write

SMALL = {"target": np.array([0, 1]), "prob": np.array([0.25, 0.5])}


def refused(path, sentence):
    with pytest.raises(PredictionsError, match=re.escape(sentence)) as error:
        read(path)
    assert str(error.value).startswith(f"{path}: ")
    assert "\n" not in str(error.value)


def test_a_missing_file_is_answered_with_the_closest(tmp_path):
    write(tmp_path / "predictions.npz", SMALL)
    refused(
        tmp_path / "prediction.npz",
        "there is no such file. Did you mean 'predictions.npz'? Check the path",
    )
    refused(tmp_path / "no" / "folder.csv", "there is no such file. Check the path")


@pytest.mark.parametrize("ending", [".pt", ".npy", ".pkl", ".json", ".csv.gz", ""])
def test_other_endings_are_refused(tmp_path, ending):
    path = tmp_path / f"p{ending}"
    path.write_bytes(b"anything")
    refused(path, "must end in .safetensors, .npz, .csv, .parquet or be a folder")
    if ending:
        with pytest.raises(PredictionsError, match=r"it ends in .*; choose one of the"):
            write(path, SMALL)


@pytest.mark.parametrize("ending", [".safetensors", ".npz", ".parquet", ".csv"])
def test_a_file_cut_short_is_refused(tmp_path, ending):
    path = write(tmp_path / f"p{ending}", made.classification(draws=1))
    whole = path.read_bytes()
    for size in (0, 1, 7, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        if ending == ".csv" and size == len(whole) - 1:
            continue
        with pytest.raises(PredictionsError):
            read(path)
    if ending != ".csv":
        path.write_bytes(b"")
        refused(path, f"is not a readable {ending} file")


@pytest.mark.parametrize("ending", [".safetensors", ".npz", ".parquet"])
@pytest.mark.parametrize("other", [".safetensors", ".npz", ".parquet"])
def test_a_file_under_the_wrong_name_is_recognised(tmp_path, ending, other):
    if ending == other:
        return
    made_as = write(tmp_path / f"p{other}", SMALL)
    path = made_as.rename(tmp_path / f"q{ending}")
    with pytest.raises(PredictionsError, match="it begins like") as error:
        read(path)
    assert other in str(error.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n",
            "it begins like a pointer that Git LFS left: run git lfs pull",
        ),
        (b"<!DOCTYPE html>", "it begins like a web page or XML; it may be cut short"),
        (b"", "it is empty; it may be cut short or carry the wrong name: write it"),
    ],
)
def test_what_stands_in_place_of_a_file_is_named(tmp_path, content, said):
    path = tmp_path / "p.npz"
    path.write_bytes(content)
    with pytest.raises(PredictionsError, match=re.escape(said)) as error:
        read(path)
    assert str(error.value).endswith(("git lfs pull", "write it again"))


def test_what_torch_saved_is_named(tmp_path):
    path = tmp_path / "p.npz"
    torch.save({"target": torch.zeros(2)}, path)
    refused(path, "was written by torch.save, and Python objects are never loaded")


def test_arrays_without_names_are_named_by_what_to_write(tmp_path):
    path = tmp_path / "p.npz"
    np.savez(path, np.array([0, 1]), np.array([0.1, 0.9]))
    refused(path, "Name the arrays: np.savez(path, target=target, probs=probs).")


def test_an_index_that_pandas_wrote_is_noted(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text(",target,prob\n0,0,0.5\n1,1,0.5\n")
    assert read(path).notes[0].startswith("a column without a name is not part of cl")


def test_the_task_of_a_header_that_the_arrays_contradict_is_told(tmp_path):
    path = tmp_path / "p.npz"
    np.savez(path, **SMALL, header=json.dumps({"task": "regression"}))
    refused(path, "these are arrays of classification: state that task, or none")


def test_a_pickle_is_never_loaded(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (pytest.fail, ("the pickle was run",))

    path = tmp_path / "p.npz"
    path.write_bytes(pickle.dumps(Bomb()))
    refused(path, "it begins like a Python pickle, which is never loaded")


def test_objects_in_an_npz_are_never_loaded(tmp_path):
    path = tmp_path / "p.npz"
    np.savez(path, target=np.array([0, None]), prob=[0.1, 0.2])
    refused(path, "array 'target' holds Python objects, which are never loaded")


def test_objects_nobody_asked_for_are_left_unread(tmp_path):
    path = tmp_path / "p.npz"
    np.savez(path, target=[0, 1], prob=[0.1, 0.2], other=np.array([{}]))
    assert "'other'" in read(path).notes[0]


def test_an_npy_file_is_no_npz(tmp_path):
    path = tmp_path / "p.npz"
    with path.open("wb") as file:
        np.save(file, np.zeros(3))
    refused(path, "it begins like an .npy file: save several arrays by name")


def npy_header(shape):
    held = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        held, {"descr": "<f8", "fortran_order": False, "shape": shape}
    )
    return held.getvalue()


@pytest.mark.parametrize("shape", [(2**40,), (2**62,), (2**31, 2**31, 2**31), (-1,)])
def test_a_huge_declared_shape_is_refused(tmp_path, shape):
    path = tmp_path / "p.npz"
    np.savez(path, prob=[0.1, 0.2])
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("target.npy", npy_header(shape))
    with pytest.raises(PredictionsError):
        read(path)


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr("os.sysconf", lambda _: 100)  # pages of 100 bytes, 100 of them
    path = tmp_path / "p.npz"
    np.savez_compressed(path, target=np.zeros(10_000), prob=np.zeros(10_000))
    assert path.stat().st_size < 2_000
    refused(path, "unpacks to 0 GiB, more than this machine's memory")


def test_a_parquet_bomb_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    path = write(tmp_path / "p.parquet", SMALL)
    monkeypatch.setattr("os.sysconf", lambda _: 3)
    refused(path, "more than this machine's memory")


def test_out_of_memory_is_a_sentence(tmp_path, monkeypatch):
    def full(*_, **__):
        raise MemoryError

    path = write(tmp_path / "p.npz", SMALL)
    monkeypatch.setattr("numpy.lib.format.read_array", full)
    refused(path, "needs more memory than there is")


def test_a_file_that_may_not_be_read_is_a_sentence(tmp_path, monkeypatch):
    def locked(*_, **__):
        raise PermissionError(13, "Permission denied")

    path = write(tmp_path / "p.npz", SMALL)
    monkeypatch.setattr("os.open", locked)
    refused(path, "the system says 'Permission denied'; check the path")


def test_safetensors_of_pytorch_users_are_read(tmp_path):
    path = tmp_path / "p.safetensors"
    held = {
        "target": torch.tensor([0, 1]),
        "prob": torch.tensor([0.25, 0.5], dtype=torch.bfloat16),
        "weights": torch.zeros(3, dtype=torch.bfloat16),
    }
    save_torch(held, path, metadata={"item": json.dumps(["a", "b"])})
    predictions = read(path)
    assert predictions.arrays["probs"][0, :, 1].tolist() == [0.25, 0.5]
    assert predictions.arrays["item"].tolist() == ["a", "b"]


@pytest.mark.parametrize("text", ["a", "[1]", '{"a": 1}', '["a", null]'])
def test_text_in_safetensors_must_be_a_list(tmp_path, text):
    path = tmp_path / "p.safetensors"
    save_file(SMALL, path, metadata={"item": text})
    refused(path, "the metadata's 'item' must be a JSON list of text")


def test_what_does_not_fit_float32_is_refused(tmp_path):
    arrays = {"target": [1.0, 1e300], "mean": [1.0, 2.0]}
    with pytest.raises(PredictionsError, match=r"does not fit into float32.*1e\+300"):
        write(tmp_path / "p.safetensors", arrays)
    assert read(write(tmp_path / "p.npz", arrays)).arrays["target"][1] == 1e300


CSV = [
    ("", "is empty; there must be a line with the names of the columns"),
    ("target,prob\n", "has no rows below the line with the names"),
    ("target;prob\n0;0.5\n", "columns must be separated by commas"),
    ("target\tprob\n0\t0.5\n", "columns must be separated by commas"),
    ("target,prob\n0,0.5\n1\n", "row 1 has 1 cell, the first line names 2 columns"),
    ("target,prob,prob\n0,0.5,1\n", "column 'prob' is there twice"),
    (
        "target,prob\n0,0.5\n1,abc\n",
        "column 'prob', row 1 must be a number, it is 'abc'; correct the cell or leave "
        "the row out",
    ),
    ("target,prob\n0,\n", "column 'prob', row 0 must be a number, it is empty"),
    ("target,prob\n0,nan\n", "array 'prob' must be finite, row 0 is nan"),
    (
        "target,prob,shifted\n0,0.5,maybe\n",
        "column 'shifted', row 0 must be true or false (1 or 0), it is 'maybe'",
    ),
    (
        "target,prob_0,prob_2\n0,0.5,0.5\n",
        "column 'prob_1' is missing, though there is 'prob_2'",
    ),
    (
        "target,probs,prob_0\n0,0.5,0.5\n",
        "columns 'probs' and 'prob_0' say the same thing twice",
    ),
    (
        "target,mean_0,mean_1\n0,0.5,0.5\n",
        "column 'mean_0': a table holds one draw of 'mean'; write several",
    ),
    ("target,prob_0\n0,1\n", "must have at least two classes on its last axis"),
    ("target,lower,upper\n0,1,2\n", "state it in a file 'p.csv.json' beside it (JSON)"),
    ('target,prob\n0,"0.5\n', "is not a readable .csv file (unexpected end of data)"),
    (b"target,prob\n0,\xff\n", "is not a readable .csv file ('utf-8' codec"),
    ("x" * 200_000, "is not a readable .csv file (field larger than"),
    # As other programs and other countries write tables.
    ("0,0.5\n1,0.7\n", "as 'target,prob' does, it is '0,0.5'; write their names there"),
    ("sep=,\ntarget,prob\n", "the first line must name the columns, as 'target,prob'"),
    ("# of mine\ntarget,prob\n0,1\n", "name the columns, as 'target,prob' does, it is"),
    ('target,prob\n0,"0,5"\n', "it is '0,5'; numbers have a decimal point and no com"),
    ('target,mean\n"1,234.5",1\n', "'1,234.5'; numbers have a decimal point and no"),
    ("target,prob\n0,25%\n", "it is '25%'; write a share, such as 0.25 for 25%"),
    ("target,prob\ncat,0.5\n", "it is 'cat'; number the classes from 0"),
    ("target,prob\nFalse,0.5\n", "it is 'False'; write 0"),
    ("target,prob\n0,1\ntarget,prob\n", "name of the column: leave the row out"),
    ("target,prob\ntrue,0.5\n", "it is 'true'; write 1"),
    ("target,prob\n0,abc\n", "it is 'abc'; correct the cell or leave the row out"),
    ("target,probs\n0,0.5\n", "'probs' must be several columns of one number each, p"),
    ("target,p0,p1\n0,0.5,0.5\n", "'p0' is called 'prob_0' here"),
    ("target,proba_1\n0,0.5\n", "'proba_1' is called 'prob_1' here"),
    ("target,prob\n0,1\n".encode("utf-16"), "like text in UTF-16: save it as UTF-8"),
]


@pytest.mark.parametrize(("text", "sentence"), CSV, ids=[s[:40] for _, s in CSV])
def test_a_mistake_in_a_table_names_row_and_column(tmp_path, text, sentence):
    path = tmp_path / "p.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    refused(path, sentence)


def test_a_sidecar_that_is_no_json_is_named(tmp_path):
    path = write(tmp_path / "p.csv", SMALL)
    (tmp_path / "p.csv.json").write_text("alpha: 0.1")
    refused(path, "beside it must be a JSON object, got 'alpha: 0.1' (Expecting value")


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_table_holds_one_draw_and_no_pictures(tmp_path, ending):
    path = tmp_path / f"p{ending}"
    with pytest.raises(PredictionsError, match="array 'probs' has 3 draws, a table"):
        write(path, made.classification())
    shown = np.zeros((made.N, 2, 2, 3), np.uint8)
    with pytest.raises(PredictionsError, match=r"'thumbnail' of shape .* does not"):
        write(path, made.classification(draws=1) | {"thumbnail": shown})
    assert list(tmp_path.iterdir()) == []


def test_a_parquet_file_from_elsewhere_is_read(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "p.parquet"
    table = pa.table(
        {
            "target": pa.array([0, 1], pa.int8()),
            "prob": pa.array([0.25, 0.5], pa.float32()),
            "group": pa.array(["a", "b"]).dictionary_encode(),
            "shifted": pa.array([True, False]),
            "uncertainty/v.2": pa.array([1, 2]),
            "nested": pa.array([[1], [2]]),
        }
    )
    parquet.write_table(table, path)
    predictions = read(path)
    assert predictions.arrays["group"].tolist() == ["a", "b"]
    assert predictions.arrays["shifted"].tolist() == [True, False]
    assert predictions.named("uncertainty")["v.2"].tolist() == [1, 2]
    assert "'nested'" in predictions.notes[0]


@pytest.mark.parametrize(
    ("column", "sentence"),
    [
        ([0.5, None], "column 'prob', row 1 is empty (null)"),
        (
            [[0.5], [0.5]],
            "column 'prob' must be numbers, true and false, or text, got list<",
        ),
        (
            [datetime(2026, 1, 1)] * 2,
            "column 'prob' must be numbers, true and false, or text, got timestamp[",
        ),
        (
            [timedelta(1)] * 2,
            "column 'prob' must be numbers, true and false, or text, got duration[",
        ),
        (
            [Decimal("0.5")] * 2,
            "column 'prob' must be numbers, true and false, or text, got decimal",
        ),
        ([b"a", b"b"], "column 'prob' must be numbers, true and false, or text, got b"),
        (["a", "b"], "array 'prob' must be numbers, got text such as"),
    ],
)
def test_a_mistake_in_a_parquet_column_is_named(tmp_path, column, sentence):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "p.parquet"
    parquet.write_table(pa.table({"target": [0, 1], "prob": column}), path)
    refused(path, sentence)


def test_without_pyarrow_the_remedy_is_said(tmp_path, monkeypatch):
    path = write(tmp_path / "p.parquet", SMALL)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    refused(path, ".parquet files need pyarrow: pip install 'qualms-bench[tables]'")
    with pytest.raises(PredictionsError, match="pip install"):
        write(path, SMALL)


def test_writing_into_no_folder_is_refused(tmp_path):
    with pytest.raises(PredictionsError, match=r"there is no folder .*; create it"):
        write(tmp_path / "no" / "p.npz", SMALL)


def test_writing_onto_a_folder_is_refused(tmp_path):
    (tmp_path / "p.npz").mkdir()
    with pytest.raises(PredictionsError, match="the system says"):
        write(tmp_path / "p.npz", SMALL)
    assert [path.name for path in tmp_path.iterdir()] == ["p.npz"]
