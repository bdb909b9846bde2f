"""Items counted together: the same tie groups, carrying the same."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from qualms.scores.resampling import ranked_cells


def everyone(n):
    return np.ones(n, dtype=bool)


@given(
    items=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2)), min_size=1),
    joined=st.sets(st.integers(0, 2)),
)
def test_cells_keep_the_order_and_what_their_items_carry(items, joined):
    rank, carried = np.array(items).T
    alike = np.isin(carried, list(joined))
    cells = ranked_cells(rank * 1.0, carried * 1.0, alike=alike)
    assert (cells.carried[0][cells.cell] == carried).all()
    assert np.unique(cells.cell).tolist() == list(range(len(cells)))
    order = np.lexsort([rank, cells.cell])
    assert (np.diff(rank[order]) >= 0).all()
    group = np.cumsum(np.append(0, cells.last[:-1]))[cells.cell]
    for value in np.unique(rank):
        assert len(set(group[rank == value])) == 1
    for value in np.unique(group):
        inside = group == value
        if len(set(rank[inside])) > 1:
            assert len(set(carried[inside])) == 1
            assert alike[inside].all()


def test_neighbours_that_carry_the_same_are_one_cell():
    rank, risk = np.arange(6.0), np.array([0.0, 0.0, 1.0, 1.0, 1.0, 0.0])
    cells = ranked_cells(rank, risk, alike=everyone(6))
    assert cells.cell.tolist() == [0, 0, 1, 1, 1, 2]
    assert cells.carried[0].tolist() == [0.0, 1.0, 0.0]
    assert cells.last.all()
    apart = ranked_cells(rank, risk, alike=risk == 0.0)
    assert apart.cell.tolist() == [0, 0, 1, 2, 3, 4]


def test_a_group_that_carries_two_things_is_two_cells_of_one_group():
    rank, risk = np.array([1.0, 1.0, 1.0, 0.0]), np.array([1.0, 0.0, 1.0, 0.0])
    cells = ranked_cells(rank, risk, alike=everyone(4))
    assert cells.cell.tolist() == [2, 1, 2, 0]
    assert cells.last.tolist() == [True, False, True]


def test_the_same_arrays_have_the_same_cells():
    rank, risk = np.array([2.0, 1.0]), np.array([0.0, 1.0])
    cells = ranked_cells(rank, risk, alike=everyone(2))
    assert ranked_cells(rank.copy(), risk.copy(), alike=everyone(2)) is cells
    assert ranked_cells(rank, 1 - risk, alike=everyone(2)) is not cells
