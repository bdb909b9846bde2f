"""Numbers, classes and names in text are the same for every reader, or refused."""

import os
import threading
import zipfile

import numpy as np
import pytest
from typer.testing import CliRunner

from qualms.cli import app
from qualms.predictions import PredictionsError, build, read, write
from qualms.predictions._text_table import LONGEST_LINE
from qualms.readers.table import table

NO_NUMBERS = ["1e-1_0", "1_0", "\u0660.\u0663", "\uff10.\uff13", "0,3", "0x1"]


def saved(tmp_path, text, name="t.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


@pytest.mark.parametrize("cell", NO_NUMBERS)
def test_digits_of_python_and_of_other_scripts_are_no_numbers(tmp_path, cell):
    ours = saved(tmp_path, f'target,prob\n0,"{cell}"\n1,0.5\n')
    with pytest.raises(PredictionsError, match="row 0 must be a number"):
        read(ours)
    of_sklearn = saved(tmp_path, f'y_true,y_prob\n0,"{cell}"\n1,0.5\n')
    with pytest.raises(PredictionsError, match="'y_prob' must be numbers"):
        read(of_sklearn)
    with pytest.raises(PredictionsError, match="column 'y_prob', row 0 must be a num"):
        read(of_sklearn, reader=table(target="y_true", prob="y_prob"))


def test_class_01_is_not_class_1(tmp_path):
    with pytest.raises(PredictionsError, match=r"it is '01'; a number of a class has"):
        read(saved(tmp_path, "target,prob_0,prob_1\n01,0.2,0.8\n0,0.5,0.5\n"))
    text = "y_true,y_prob_01,y_prob_1\n01,0.8,0.2\n1,0.3,0.7\n01,0.6,0.4\n"
    found = read(saved(tmp_path, text))
    assert found.header.classes == ("01", "1")
    assert found.arrays["target"].tolist() == [0, 1, 0]
    with pytest.raises(PredictionsError, match="row 0 is '01', which is none of the"):
        read(saved(tmp_path, text.replace("prob_01", "prob_0")))
    values = read(saved(tmp_path, "target,mean\n007,7.5\n012,11\n"))
    assert values.arrays["target"].tolist() == [7, 12]


@pytest.mark.parametrize("cell", ["inf", "-inf", "nan"])
def test_inf_is_no_class(tmp_path, cell):
    path = saved(tmp_path, f"y_true,y_prob\n0,0.3\n{cell},0.8\n")
    with pytest.raises(PredictionsError, match=f"row 1 has {cell} for a class, which"):
        read(path)
    with pytest.raises(PredictionsError, match=f"row 1 has {cell} for a class, which"):
        read(path, reader=table(target="y_true", prob="y_prob", positive="0"))


def test_whole_numbers_of_many_digits_stay_different_names(tmp_path):
    first, second = 2**53, 2**53 + 1
    path = saved(tmp_path, f"y,p,c\n0,0.1,{first}\n1,0.9,{second}\n")
    found = read(path, reader=table(target="y", prob="p", cluster="c"))
    assert found.arrays["cluster"].tolist() == [first, second]


def test_names_that_are_used_as_numbers_are_numbers(tmp_path):
    path = saved(tmp_path, f"y,m\n007,1\n012,{10**30}\n")
    found = read(path, reader=table(target="y", mean="m"))
    assert found.arrays["target"].tolist() == [7, 12]
    assert found.arrays["mean"].tolist() == [[1.0, 1e30]]


def test_clusters_without_a_name_are_no_cluster(tmp_path):
    """One hundred blank cells were one patient."""
    rows = "".join(f"{k % 2},0.{k},{'' if k > 4 else f'p{k}'}\n" for k in range(1, 9))
    said = "array 'cluster' must name the cluster of every item, row 4 is empty"
    with pytest.raises(PredictionsError, match=said):
        read(saved(tmp_path, "target,prob,cluster\n" + rows))
    named = saved(tmp_path, "y,p,c\n" + rows)
    with pytest.raises(PredictionsError, match=said):
        read(named, reader=table(target="y", prob="p", cluster="c"))
    with pytest.raises(PredictionsError, match=r"every item, row 1 is empty"):
        build({"target": [0, 1], "prob": [0.1, 0.9], "cluster": ["a", "  "]})


def test_a_nul_is_in_no_name(tmp_path):
    with pytest.raises(PredictionsError, match="it holds NUL bytes, which no text has"):
        read(saved(tmp_path, "target,prob,item\n0,0.1,a\0\n1,0.9,a\n"))
    arrays = {"target": [0, 1], "prob": [0.1, 0.9]}
    with pytest.raises(PredictionsError, match=r"'item', row 0 has a NUL in its text"):
        build({**arrays, "item": ["a\0", "a"]})
    with pytest.raises(PredictionsError, match=r"'item', row 1 has a NUL in its text"):
        build({**arrays, "item": np.array(["a", "a\0b"])})
    with pytest.raises(PredictionsError, match="'classes' must be a list of different"):
        build(arrays, header={"classes": ["a", "b\0"]})


@pytest.mark.parametrize("end", ["\r", "\r\n", "\n"])
def test_lines_may_end_as_on_any_computer(tmp_path, end):
    text = end.join(["target,prob", "0,0.1", "1,0.8", ""])
    assert read(saved(tmp_path, text)).n == 2
    only = end.join(["y_true,y_prob", "0,0.1", "1,0.8", ""])
    assert read(saved(tmp_path, only)).n == 2
    assert read(saved(tmp_path, only), reader=table(prob="y_prob")).n == 2


@pytest.mark.parametrize("names", ["target,prob", "y_true,y_prob"])
def test_a_line_without_an_end_is_refused(tmp_path, names):
    path = saved(tmp_path, f"{names}\n0,0.{'1' * (LONGEST_LINE + 100)}")
    with pytest.raises(PredictionsError, match=r"a line has more than 16 million char"):
        read(path)


@pytest.mark.parametrize("names", ["target,prob", "y_true,y_prob"])
def test_a_file_with_a_hole_is_refused_at_its_beginning(tmp_path, names):
    """Ten gigabytes of nothing took more than a minute."""
    path = saved(tmp_path, f"{names}\n0,0.1\n")
    with path.open("r+b") as file:
        file.truncate(10 * 2**30)
    with pytest.raises(PredictionsError, match="it holds NUL bytes, which no text has"):
        read(path)


def test_packed_tables_and_sheets_say_what_to_do(tmp_path):
    with zipfile.ZipFile(tmp_path / "t.zip", "w") as archive:
        archive.writestr("t.csv", "target,prob\n0,0.1\n")
    with pytest.raises(PredictionsError, match=r"it ends in '.zip'; unpack it first"):
        read(tmp_path / "t.zip")
    with pytest.raises(PredictionsError, match=r"it ends in '.zip'; unpack it first"):
        read(tmp_path / "t.zip", reader=table(prob="prob"))
    (tmp_path / "t.zip").rename(tmp_path / "t.csv")
    for reader in (None, table(prob="prob")):
        with pytest.raises(
            PredictionsError, match=r"begins like a zip file, as \.npz, "
        ):
            read(tmp_path / "t.csv", reader=reader)
    (tmp_path / "t.xlsx").write_bytes(b"")
    with pytest.raises(PredictionsError, match=r"save the sheet as \.csv"):
        read(tmp_path / "t.xlsx")
    (tmp_path / "t.csv").write_bytes("y,prob\né,0.1\n".encode("latin-1"))
    with pytest.raises(PredictionsError, match="; save it as UTF-8"):
        read(tmp_path / "t.csv", reader=table(prob="prob"))


def test_a_pipe_is_refused_at_once(tmp_path):
    path = tmp_path / "t.csv"
    os.mkfifo(path)
    said = "must be a file, got a pipe, a device or a folder; write what it holds to"
    for reader in (None, table(target="y", prob="p")):
        done = threading.Thread(target=lambda r=reader: _refused(path, r, said))
        done.daemon = True
        done.start()
        done.join(20)
        assert not done.is_alive()
    told = CliRunner().invoke(app, ["convert", "sklearn", str(path), "--out", "x.csv"])
    assert told.exit_code == 1
    with pytest.raises(PredictionsError, match="a pipe"):
        read("/dev/zero", reader=table(prob="p"))


def _refused(path, reader, said):
    with pytest.raises(PredictionsError, match=said):
        read(path, reader=reader)


def test_a_header_that_only_says_versions_is_a_header(tmp_path):
    path = write(tmp_path / "p.csv", {"target": [0, 1], "prob": [0.2, 0.9]})
    for text in ('{"versions": 3}', '{"versions": {"a": 3}}', '{"versions": []}'):
        path.with_name("p.csv.json").write_text(text)
        try:
            assert read(path).n == 2
        except PredictionsError as error:
            assert "has no header of this table" in str(error)  # noqa: PT017


def test_a_small_parquet_file_does_not_fill_the_memory(tmp_path, monkeypatch):
    """0.9 MB took 10.7 GB."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    monkeypatch.setattr("qualms.predictions._limits._SMALL", 2**20)
    names = ["y_true", *(f"y_prob_{k}" for k in range(9))]
    made = pa.table(dict.fromkeys(names, pa.array(np.zeros(2**17))))
    parquet.write_table(made, tmp_path / "t.parquet", compression="zstd")
    with pytest.raises(PredictionsError, match="which real predictions do not"):
        read(tmp_path / "t.parquet")


def test_a_target_without_items_is_refused(tmp_path):
    np.savez(tmp_path / "a.npz", y_true=np.array(1), y_prob=np.array([0.2, 0.8]))
    with pytest.raises(PredictionsError, match=r"must have shape \(N,\), got \(\)"):
        read(tmp_path / "a.npz")
    probs = np.array([[0.2, 0.8], [0.5, 0.5]])
    np.savez(tmp_path / "a.npz", y_true=np.array(1), y_prob=probs)
    with pytest.raises(PredictionsError, match=r"'target' must have shape \(N,\), got"):
        read(tmp_path / "a.npz")
