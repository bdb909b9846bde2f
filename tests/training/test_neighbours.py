"""Neighbours found on the device equal those of the scores."""

import numpy as np
import pytest
import torch

from qualms.scores import nearest_neighbour, retrieval_hits
from qualms.training import _neighbours
from qualms.training._neighbours import find_nearest


def embeddings(kind):
    rng = np.random.default_rng(3)
    if kind == "plain":
        return rng.standard_normal((300, 24)).astype(np.float32)
    if kind == "copies":  # exact ties, also by scaled copies
        rows = rng.standard_normal((40, 6)).astype(np.float32)
        return np.concatenate([rows, rows[:25], 4 * rows[10:30], rows[:7]])
    if kind == "close":  # closer than float32 can tell
        centre = rng.standard_normal(50)
        return (centre + 1e-5 * rng.standard_normal((120, 50))).astype(np.float32)
    if kind == "lattice":  # as many ties as there can be without copies
        return rng.integers(-1, 2, (200, 4)).astype(np.float32)
    if kind == "collapsed":
        return np.ones((150, 5), np.float32)
    huge = rng.standard_normal((60, 8)).astype(np.float32)
    huge[:20] *= 1e30
    huge[20:40] *= 1e-30
    huge[50:55] = 0
    return huge


KINDS = ["plain", "copies", "close", "lattice", "collapsed", "extreme"]


@pytest.mark.parametrize(
    ("tile", "whole"), [(None, 256), (256, 256), (32, 32), (17, 16), (128, 16)]
)
@pytest.mark.parametrize("kind", KINDS)
def test_neighbours_are_those_of_the_scores(kind, tile, whole, monkeypatch):
    monkeypatch.setattr(_neighbours, "_MULTIPLE", whole)
    monkeypatch.setattr(_neighbours, "_CHUNK", whole // 2)
    monkeypatch.setattr(_neighbours, "_BLOCK", whole // 4)
    rows = embeddings(kind)
    target = np.random.default_rng(0).integers(0, 4, len(rows))
    neighbours = find_nearest(
        torch.from_numpy(rows), torch.from_numpy(target), tile=tile
    )
    np.testing.assert_array_equal(neighbours.nearest, nearest_neighbour(rows))
    np.testing.assert_allclose(
        neighbours.hits, retrieval_hits(rows, target), rtol=1e-12
    )


@pytest.mark.parametrize("kind", KINDS)
def test_many_close_neighbours_are_settled_alike(kind, monkeypatch):
    monkeypatch.setattr(_neighbours, "_FEW", 0)
    monkeypatch.setattr(_neighbours, "_ROUGH", {"cpu": 900})
    monkeypatch.setattr(_neighbours, "_PAIRS", {"cpu": 700})
    test_neighbours_are_those_of_the_scores(kind, 32, 32, monkeypatch)


def test_rounded_products_change_nothing(monkeypatch):
    """A product of ten bits, as on a GPU, decides only where it cannot err."""
    rows = embeddings("plain")
    target = np.random.default_rng(0).integers(0, 4, len(rows))
    exact = torch.mm

    def rough(one, other, out):
        half, kept = _neighbours._TF32
        cut = [
            part.contiguous().clone().view(torch.int32).add_(half).bitwise_and_(kept)
            for part in (one, other)
        ]
        return exact(*(part.view(torch.float32) for part in cut), out=out)

    def wide(embedding, target):
        units = plain(embedding, target)
        cut = units.padded.view(torch.int32).add_(0x1000).bitwise_and_(~0x1FFF)
        cut = cut.view(torch.float32)[: len(embedding)]
        exact_rows = _neighbours._unit(embedding)
        off = float((exact_rows - cut).norm(dim=1).max())
        return units._replace(margin=2 * (2 * off + off**2) + 1e-5)

    plain = _neighbours._units
    monkeypatch.setattr(_neighbours, "_units", wide)
    monkeypatch.setattr(torch, "mm", rough)
    neighbours = find_nearest(torch.from_numpy(rows), torch.from_numpy(target), tile=64)
    np.testing.assert_array_equal(neighbours.nearest, nearest_neighbour(rows))


def test_rows_that_fill_a_tile_up_are_no_neighbours():
    """All other items point away, so that a row of 0 would be nearer."""
    rows = torch.tensor([[1.0, 0.0], [-1.0, 0.1], [-1.0, -2.0]])
    neighbours = find_nearest(rows, torch.tensor([0, 1, 1]))
    assert neighbours.nearest.tolist() == [2, 2, 1]


def test_autocast_does_not_reach_the_search():
    rows = embeddings("plain")
    target = torch.zeros(len(rows))
    with torch.autocast("cpu", torch.bfloat16):
        neighbours = find_nearest(torch.from_numpy(rows), target)
    np.testing.assert_array_equal(neighbours.nearest, nearest_neighbour(rows))


def test_one_item_has_no_neighbour():
    with pytest.raises(ValueError, match="at least two items, got 1"):
        find_nearest(torch.ones(1, 3), torch.zeros(1))
