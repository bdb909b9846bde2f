"""Of results that share a cell, the first counts."""

import numpy as np
import pytest

from qualms.results import ResultsTable, result

ROWS, SCORES = ("a", "b", "c", "d"), ("x", "y")


def table(value):
    labels = ({"row": row, "score": score} for row in ROWS for score in SCORES)
    return ResultsTable.of(result(each, (value,)) for each in labels)


def test_a_pivot_shows_the_first_of_several_results():
    both = table(1.0) + table(2.0)
    for columns in (("score",), ()):
        assert np.all(both.pivot(("row",), columns).values == 1.0)
    assert np.all((table(1.0) + table(1.0)).pivot(("row",), ("score",)).cells < 8)


def test_a_join_finds_the_first_of_several_published_numbers():
    joined = table(1.0).join(table(3.0) + table(4.0))
    assert joined.number(5).value == pytest.approx(3.0)
    assert joined.rows.tolist() == list(range(8))
