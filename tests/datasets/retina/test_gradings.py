"""RETINA's splits from label files alone: every count, and every refusal."""

from functools import cache

import numpy as np
import pytest

from datasets.fake_eyes import (
    APTOS,
    EYEPACS,
    aptos_rows,
    eyepacs_rows,
    write_aptos,
    write_eyepacs,
)
from qualms.datasets import DatasetError, rebalanced_rows, retina_splits
from qualms.datasets._retina.protocol import largest, retina_grades, totals
from qualms.datasets._retina.splits import aptos_splits

SPLITS = ["train", "val", "val/shifted", "test", "test/shifted"]


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    """Label files of the real sizes, in shuffled order."""
    root = tmp_path_factory.mktemp("full")
    train, rest = eyepacs_rows(EYEPACS)
    write_eyepacs(root / "eyepacs", train, rest)
    write_aptos(root / "aptos", aptos_rows(APTOS))
    return root


@pytest.fixture(scope="module")
def made(full):
    """The splits of each shift and onset, from files of the real sizes."""
    return cache(lambda shift, onset: retina_splits(full, shift=shift, onset=onset))


def lines_of(root, name):
    (path,) = root.rglob(name)
    return path, path.read_text().splitlines()


@pytest.fixture
def small(tmp_path):
    """Two of each grade everywhere, laid flat in one folder."""
    train, rest = eyepacs_rows(dict.fromkeys(EYEPACS, (2,) * 5))
    write_eyepacs(tmp_path, train, rest)
    write_aptos(tmp_path, aptos_rows({"test": (4,) * 5, "val": (1,) * 5}))
    return tmp_path


def changed(root, name, change):
    path, lines = lines_of(root, name)
    path.write_text("\n".join(change(lines)) + "\n")
    return root


def grades(labels):
    return {
        s: tuple(np.bincount(x.extra["group"], minlength=5)) for s, x in labels.items()
    }


@pytest.mark.parametrize(
    ("shift", "onset", "sizes"),
    [
        ("country", "moderate", (35_126, 10_906, 733, 42_670, 2_929)),
        ("country", "mild", (35_126, 10_906, 733, 42_670, 2_929)),
        ("severity", "moderate", (33_545, 10_429, 477, 40_727, 3_524)),
        ("severity", "mild", (28_253, 8_850, 2_056, 34_445, 15_098)),
    ],
)
def test_every_split_has_the_paper_s_number_of_items(made, shift, onset, sizes):
    result = made(shift, onset)
    assert list(result) == SPLITS
    assert tuple(len(result[split]) for split in SPLITS) == sizes
    assert tuple(totals(retina_grades(shift, onset)).values()) == sizes


def test_country_shift_has_the_paper_s_number_of_every_grade(made):
    assert grades(made("country", "moderate")) == {
        "train": (25810, 2443, 5292, 873, 708),
        "val": (8130, 720, 1579, 237, 240),
        "val/shifted": (387, 61, 185, 35, 65),
        "test": (31403, 3042, 6282, 977, 966),
        "test/shifted": (1418, 309, 814, 158, 230),
    }


def test_severity_shift_moves_the_grades_above_the_onset(made):
    assert grades(made("severity", "moderate")) == {
        "train": (25810, 2443, 5292, 0, 0),
        "val": (8130, 720, 1579, 0, 0),
        "val/shifted": (0, 0, 0, 237, 240),
        "test": (31403, 3042, 6282, 0, 0),
        "test/shifted": (0, 0, 0, 873 + 977, 708 + 966),
    }
    assert grades(made("severity", "mild")) == {
        "train": (25810, 2443, 0, 0, 0),
        "val": (8130, 720, 0, 0, 0),
        "val/shifted": (0, 0, 1579, 237, 240),
        "test": (31403, 3042, 0, 0, 0),
        "test/shifted": (0, 0, 5292 + 6282, 873 + 977, 708 + 966),
    }


@pytest.mark.parametrize(
    ("onset", "shares"),
    [("moderate", {"train": 0.1957, "val": 0.1885, "test": 0.1928}), ("mild", {})],
)
def test_a_photograph_is_referable_from_the_onset_on(made, onset, shares):
    result = made("country", onset)
    lowest = {"moderate": 2, "mild": 1}[onset]
    for split, labels in result.items():
        np.testing.assert_array_equal(labels.target, labels.extra["group"] >= lowest)
        assert labels.extra["shifted"].all() == split.endswith("/shifted")
        assert labels.extra["shifted"].any() == split.endswith("/shifted")
    for split, share in shares.items():
        assert result[split].target.mean() == pytest.approx(share, abs=5e-5)
    if onset == "moderate":
        assert result["test/shifted"].target.mean() == pytest.approx(0.410, abs=5e-4)
        assert result["val/shifted"].target.mean() == pytest.approx(0.389, abs=5e-4)
        severe = made("severity", "moderate")
        assert severe["test/shifted"].target.all()


def test_items_are_unique_and_eyes_of_a_patient_share_a_cluster(made):
    for shift in ("country", "severity"):
        result = made(shift, "moderate")
        items = np.concatenate([labels.item for labels in result.values()])
        assert len(np.unique(items)) == len(items)
        train = result["train"]
        patients = [name.split("_")[0] for name in train.item]
        assert train.extra["cluster"].tolist() == patients
        assert len(set(patients)) < len(patients)


def test_the_order_of_eyepacs_rows_does_not_matter(full, made, tmp_path):
    before = made("country", "moderate")
    for name in ("trainLabels.csv", "retinopathy_solution.csv"):
        _, (head, *rows) = lines_of(full, name)
        (tmp_path / name).write_text("\n".join([head, *reversed(rows)]))
    (tmp_path / "train.csv").write_text(lines_of(full, "train.csv")[0].read_text())
    after = retina_splits(tmp_path)
    for split in SPLITS:
        np.testing.assert_array_equal(before[split].item, after[split].item)
        np.testing.assert_array_equal(before[split].target, after[split].target)


def test_aptos_is_divided_by_the_order_of_its_rows(full, made):
    _, (_, *rows) = lines_of(full, "train.csv")
    names = [row.split(",")[0] for row in rows]
    result = made("country", "moderate")
    assert result["test/shifted"].item.tolist() == names[:2929]
    assert result["val/shifted"].item.tolist() == names[2929:]
    alone = aptos_splits(full)
    both = np.concatenate([one.extra["group"] for one in alone.values()])
    assert np.bincount(both).tolist() == [1805, 370, 999, 193, 295]
    assert both.size == 3662
    assert np.mean(both >= 2) == pytest.approx(0.406, abs=5e-4)
    assert alone["test"].item.tolist() == names[:2929]
    assert not alone["test"].extra["shifted"].any()


def test_a_shuffled_aptos_is_told_by_its_counts(full, tmp_path):
    for name in ("trainLabels.csv", "retinopathy_solution.csv"):
        (tmp_path / name).write_text(lines_of(full, name)[0].read_text())
    _, (head, *rows) = lines_of(full, "train.csv")
    (tmp_path / "train.csv").write_text("\n".join([head, *sorted(rows)]))
    with pytest.raises(DatasetError, match=r"val/shifted grade \d \d+ instead of"):
        retina_splits(tmp_path)
    retina_splits(tmp_path, shift="severity")


def test_a_missing_row_is_told_with_its_split_and_grade(full, tmp_path):
    for name in ("trainLabels.csv", "retinopathy_solution.csv"):
        (tmp_path / name).write_text(lines_of(full, name)[0].read_text())

    def without(lines):
        row = next(line for line in lines if line.endswith(",3,Private"))
        return [line for line in lines if line != row]

    changed(tmp_path, "retinopathy_solution.csv", without)
    with pytest.raises(DatasetError) as caught:
        retina_splits(tmp_path, shift="severity")
    message = str(caught.value)
    assert "test/shifted 3523 instead of 3524" in message
    assert "test/shifted grade 3 1849 instead of 1850" in message
    assert "train" not in message
    assert "check_counts=False" in message
    result = retina_splits(tmp_path, shift="severity", check_counts=False)
    assert len(result["test/shifted"]) == 3523


def test_a_grade_that_moved_is_told_even_where_the_total_is_right(full, tmp_path):
    for name in ("trainLabels.csv", "retinopathy_solution.csv"):
        (tmp_path / name).write_text(lines_of(full, name)[0].read_text())

    def regraded(lines):
        at = next(i for i, line in enumerate(lines) if line.endswith(",1"))
        return [*lines[:at], lines[at][:-1] + "0", *lines[at + 1 :]]

    changed(tmp_path, "trainLabels.csv", regraded)
    with pytest.raises(DatasetError) as caught:
        retina_splits(tmp_path, shift="severity")
    assert (
        "train grade 0 25811 instead of 25810; train grade 1 2442 instead of 2443"
        in str(caught.value)
    )


def test_small_files_are_refused_unless_counts_are_not_checked(small):
    with pytest.raises(DatasetError, match="train 10 instead of 35126; val 10 inst"):
        retina_splits(small)
    result = retina_splits(small, check_counts=False)
    assert [len(result[split]) for split in SPLITS] == [10, 10, 5, 10, 20]


@pytest.mark.parametrize("grade", ["5", "-1", "two", "", "1.0"])
@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("trainLabels.csv", "level"),
        ("retinopathy_solution.csv", "level"),
        ("train.csv", "diagnosis"),
    ],
)
def test_an_unknown_grade_is_refused_with_its_line(small, name, column, grade):
    def worse(lines):
        fields = lines[3].split(",")
        fields[1] = grade
        return [*lines[:3], ",".join(fields), *lines[4:]]

    changed(small, name, worse)
    message = (
        f"{column} must be a grade from 0 to 4, got '{grade}' in line 4 of .*{name}"
    )
    with pytest.raises(DatasetError, match=message):
        retina_splits(small, check_counts=False)


@pytest.mark.parametrize(
    "name", ["trainLabels.csv", "retinopathy_solution.csv", "train.csv"]
)
def test_a_photograph_with_two_rows_is_refused(small, name):
    changed(small, name, lambda lines: [*lines, lines[2]])
    with pytest.raises(
        DatasetError, match=r"has one row, got .* in lines 3 and \d+ of"
    ):
        retina_splits(small, check_counts=False)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("9_left,7,Public", "got '7' in line 6 of"),
        ("9_top,0,Public", "got '9_top' in line 6 of"),
        ("9_left,0,Neither", "got 'Neither' for 9_left in line 6 of"),
        ("9_left,0,Public,x,y", "line 6 of .* has too many fields"),
        ("9_left", "line 6 of .* has too few fields"),
    ],
)
def test_blank_lines_count_where_a_line_is_named(small, row, message):
    changed(
        small,
        "retinopathy_solution.csv",
        lambda x: [*x[:2], "", "", x[2], row, *x[3:]],
    )
    with pytest.raises(DatasetError, match=message):
        retina_splits(small, check_counts=False)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x: [*x[:2], "", x[2], "", x[1]], "in lines 2 and 6 of .*train.csv"),
        (lambda x: [*x[:2], "", ",0", *x[2:]], "line 4 of .*train.csv names no phot"),
    ],
)
def test_blank_lines_count_in_the_file_of_aptos(small, change, message):
    changed(small, "train.csv", change)
    with pytest.raises(DatasetError, match=message):
        retina_splits(small, check_counts=False)


def test_blank_lines_change_no_label(small):
    before = retina_splits(small, check_counts=False)
    for name in ("trainLabels.csv", "retinopathy_solution.csv", "train.csv"):
        changed(small, name, lambda x: [line for row in x for line in (row, "")])
    after = retina_splits(str(small), check_counts=False)
    for split in SPLITS:
        np.testing.assert_array_equal(before[split].item, after[split].item)
        np.testing.assert_array_equal(before[split].target, after[split].target)


def test_a_photograph_in_both_files_is_refused(small):
    _, lines = lines_of(small, "trainLabels.csv")
    changed(small, "retinopathy_solution.csv", lambda x: [*x, f"{lines[1]},Public"])
    name = lines[1].split(",")[0]
    with pytest.raises(DatasetError, match=f"in both trainLabels.csv and .* {name};"):
        retina_splits(small, check_counts=False)


@pytest.mark.parametrize("usage", ["", "public", "Both"])
def test_an_unknown_usage_is_refused(small, usage):
    changed(small, "retinopathy_solution.csv", lambda x: [*x, f"9_left,0,{usage}"])
    message = f"Usage must be Public or Private, got '{usage}' for 9_left in"
    with pytest.raises(DatasetError, match=message):
        retina_splits(small, check_counts=False)


@pytest.mark.parametrize(
    "name", ["12_middle", "left_12", "12_left.jpeg", "", "١٢_left"]
)
def test_a_name_that_is_no_eye_is_refused(small, name):
    changed(small, "trainLabels.csv", lambda x: [*x, f"{name},0"])
    with pytest.raises(DatasetError, match=f"<patient>_right, got '{name}' in line 12"):
        retina_splits(small, check_counts=False)


def test_a_row_of_aptos_without_a_name_is_refused(small):
    changed(small, "train.csv", lambda x: [*x, ",0"])
    with pytest.raises(DatasetError, match=r"line 27 of .*train.csv names no photo"):
        retina_splits(small, check_counts=False)


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("trainLabels.csv", "level"),
        ("retinopathy_solution.csv", "Usage"),
        ("train.csv", "id_code"),
    ],
)
def test_a_missing_column_is_named(small, name, column):
    changed(small, name, lambda x: [x[0].replace(column, "other"), *x[1:]])
    with pytest.raises(DatasetError, match=f"{column} not in .*other"):
        retina_splits(small, check_counts=False)


@pytest.mark.parametrize("name", ["trainLabels.csv", "retinopathy_solution.csv"])
def test_a_missing_file_is_named_with_the_folders_that_are_looked_in(small, name):
    (small / name).unlink()
    message = (
        f"expected .*{name}.* or in its folder eyepacs or diabetic-retinopathy-det"
    )
    with pytest.raises(DatasetError, match=message):
        retina_splits(small)


def test_aptos_is_needed_for_the_country_shift_only(small):
    (small / "train.csv").unlink()
    retina_splits(small, shift="severity", check_counts=False)
    message = (
        r"expected train\.csv in .* aptos or aptos2019-blindness-detection; .* holds"
    )
    with pytest.raises(DatasetError, match=message):
        retina_splits(small, shift="country", check_counts=False)


def test_unknown_choices_are_refused(small):
    with pytest.raises(ValueError, match="shift must be one of country, severity"):
        retina_splits(small, shift="weather")
    with pytest.raises(ValueError, match="onset must be one of mild, moderate"):
        retina_splits(small, onset="severe")


def test_rebalanced_rows_have_the_grades_of_eyepacs(made):
    grade = made("country", "moderate")["test/shifted"].extra["group"]
    rows = rebalanced_rows(grade)
    assert np.bincount(grade[rows]).tolist() == [7359, 712, 1472, 228, 226]
    assert len(rows) == 9_997
    # with replacement: 7,359 of 1,418 photographs
    np.testing.assert_array_equal(rows, rebalanced_rows(grade, seed=0))
    assert (rows != rebalanced_rows(grade, seed=1)).any()
    drawn = np.bincount(rows, minlength=len(grade))[grade == 0]
    assert drawn.mean() == pytest.approx(7359 / 1418)
    assert drawn.var() == pytest.approx(drawn.mean(), rel=0.2)  # as Poisson's is


def test_rebalancing_needs_every_grade():
    with pytest.raises(ValueError, match="got no item of grade 3"):
        rebalanced_rows(np.array([0, 1, 2, 4]))


def test_rebalanced_rows_may_have_other_shares_and_another_size():
    grade = np.random.default_rng(0).integers(0, 3, 500)
    rows = rebalanced_rows(grade, shares={2: 0.5, 0: 0.25, 1: 0.25}, size=90)
    assert np.bincount(grade[rows]).tolist() == [22, 22, 45]
    assert (np.diff(grade[rows]) >= 0).all()
    again = rebalanced_rows(grade, shares={0: 1, 1: 1, 2: 2}, size=90)
    np.testing.assert_array_equal(rows, again)
    few = rebalanced_rows(grade, shares={0: 1, 2: 0, 7: 0}, size=10)
    assert grade[few].tolist() == [0] * 10


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shares": {0: -1, 1: 2}}, "shares must be finite weights of at least 0"),
        ({"shares": {0: 0, 1: 0}}, "not all 0, got"),
        ({"shares": {}}, "not all 0, got"),
        ({"shares": {0: np.nan}}, "shares must be finite"),
        ({"size": 0}, "size must be at least 1, got 0"),
        ({"size": 9.5}, "size must be a whole number, got 9.5"),
        ({"seed": "a"}, "seed must be a whole number, got 'a'"),
    ],
)
def test_shares_that_cannot_be_drawn_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        rebalanced_rows(np.arange(5), **options)


def test_the_largest_of_each_split_is_known():
    assert largest() == {
        "train": 35_126,
        "val": 10_906,
        "val/shifted": 2_056,
        "test": 42_670,
        "test/shifted": 15_098,
    }
