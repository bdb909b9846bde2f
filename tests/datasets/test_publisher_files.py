import pytest

from qualms.datasets import DatasetError
from qualms.datasets._publisher_files import (
    file_names,
    file_names_in_either,
    finite_number,
    locate,
    read_table,
    reading,
)


def touch(folder, *files):
    folder.mkdir(parents=True, exist_ok=True)
    for name in files:
        (folder / name).touch()


def test_a_folder_is_found_itself_or_in_its_parent(tmp_path):
    touch(tmp_path / "Set", "a", "b")
    for root in (tmp_path, tmp_path / "Set"):
        assert locate(root, "Set", holding=["a", "b"]) == tmp_path / "Set"


def test_what_is_missing_and_what_is_there_are_both_said(tmp_path):
    touch(tmp_path / "Set", "a")
    with pytest.raises(DatasetError, match=r"expected a and b in .* or in .*Set; .*"):
        locate(tmp_path, "Set", holding=["a", "b"])
    with pytest.raises(DatasetError, match=r"Set holds a$"):
        locate(tmp_path, "Set", holding=["a", "b"])


def test_a_missing_root_is_said(tmp_path):
    with pytest.raises(DatasetError, match=r"there is nothing at .*nowhere"):
        locate(tmp_path / "nowhere", "Set", holding=["a"])


def test_names_are_sorted_and_match_as_a_whole(tmp_path):
    touch(tmp_path, "b1.tif", "a2.tif", "a1.tif.part", ".a3.tif")
    assert file_names(tmp_path, r"\w+\.tif", like="a1.tif") == ("a2.tif", "b1.tif")


def test_an_empty_folder_is_said(tmp_path):
    with pytest.raises(DatasetError, match=r"files like a1\.tif in .* is empty"):
        file_names(tmp_path, r"\w+\.tif", like="a1.tif")


def test_long_listings_are_cut_short(tmp_path):
    touch(tmp_path, *(f"{i}.txt" for i in range(9)))
    with pytest.raises(DatasetError, match=r"0\.txt, .*4\.txt and 4 more"):
        file_names(tmp_path, r"\w+\.tif", like="a1.tif")


def test_a_name_in_one_of_two_folders_is_kept(tmp_path):
    touch(tmp_path / "x", "1.tif", "2.tif")
    touch(tmp_path / "y", "2.tif", "3.tif")
    both = file_names_in_either(
        tmp_path / "x", tmp_path / "y", r"\d\.tif", like="1.tif"
    )
    assert both == ("1.tif", "2.tif", "3.tif")
    with pytest.raises(DatasetError, match=r"expected files like 9.png in"):
        file_names_in_either(tmp_path / "x", tmp_path / "y", r"\d\.png", like="9.png")
    with pytest.raises(DatasetError, match=r"expected a folder .*z; .* holds x, y"):
        file_names_in_either(tmp_path / "x", tmp_path / "z", r"\d\.tif", like="1.tif")


@pytest.mark.parametrize("mark", [",", "\t"])
def test_a_table_may_have_commas_or_tabs(tmp_path, mark):
    path = tmp_path / "t"
    rows = [["name", "x"], ['"a"', "1"], ["b", "2"]]
    path.write_text("\ufeff" + "\n".join(mark.join(row) for row in rows))
    assert read_table(path, ["x", "name"]) == [
        ({"name": "a", "x": "1"}, 2),
        ({"name": "b", "x": "2"}, 3),
    ]


def test_rows_know_their_line_where_lines_are_blank(tmp_path):
    path = tmp_path / "t"
    path.write_bytes(b'name,x\r\n\r\na,1\r\n\r\n\r\nb,2\r\n"c\nd",3\r\ne,4')
    assert [(row.fields["name"], row.line) for row in read_table(path, ["x"])] == [
        ("a", 3),
        ("b", 6),
        ("c\nd", 8),
        ("e", 9),
    ]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"name\na\n", "must have the columns name, x; x not in name"),
        (b"", "not in an empty header"),
        (b"name,x\n", "has a header but no rows"),
        (b"name,x\na,1\nb\n", "line 3 of .* has too few fields"),
        (b"name,x\n\na,1\n\nb\n", "line 5 of .* has too few fields"),
        (b"name,x\n\na,1,2\n", "line 3 of .* too many fields, the header has 2"),
        (b"name,x\na,1,,2\n", "line 2 of .* has too many fields"),
        (b"name,x\n\xff\xfe,1\n", "cannot read .*t: .* save the table as CSV in UTF-8"),
        ("name,x\na,1\n".encode("utf-16"), "must be in UTF-8, got another encoding"),
        ("name,x\na,1\n".encode("utf-16-le"), "must be in UTF-8, got another enc"),
        ("name,x\nå,1\n".encode("latin-1"), "must be in UTF-8, got another encoding"),
    ],
)
def test_a_bad_table_is_refused(tmp_path, content, sentence):
    (tmp_path / "t").write_bytes(content)
    with pytest.raises(DatasetError, match=sentence):
        read_table(tmp_path / "t", ["name", "x"])


def test_a_missing_table_is_said(tmp_path):
    touch(tmp_path, "other.csv")
    with pytest.raises(DatasetError, match=r"a table at .*t; .* holds other\.csv"):
        read_table(tmp_path / "t", ["x"])


@pytest.mark.parametrize("text", ["", "one", "nan", "inf"])
def test_a_number_must_be_finite(text):
    with pytest.raises(
        DatasetError, match=r"x must be a finite number, got .* in row 3"
    ):
        finite_number({"x": text}, "x", where="row 3")


def test_whatever_a_decoder_raises_names_the_file(tmp_path):
    path = tmp_path / "f.bin"
    with (
        pytest.raises(DatasetError, match=r"cannot read .*f\.bin: EOFError"),
        reading(path),
    ):
        raise EOFError
    with pytest.raises(DatasetError, match=r"there is no file .*f\.bin"), reading(path):
        path.read_bytes()


@pytest.mark.parametrize("error", [MemoryError, ModuleNotFoundError])
def test_faults_of_the_machine_are_not_blamed_on_the_file(tmp_path, error):
    with pytest.raises(error), reading(tmp_path):
        raise error


def test_a_comma_at_the_end_of_a_line_is_no_field(tmp_path):
    (tmp_path / "t").write_bytes(b"name,x\na,1,\nb,2,,\n")
    rows = read_table(tmp_path / "t", ["name", "x"])
    assert [row.fields for row in rows] == [
        {"name": "a", "x": "1"},
        {"name": "b", "x": "2"},
    ]
