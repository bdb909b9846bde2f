"""Fixtures for training: tiny parts instead of those on the shelves."""

from types import SimpleNamespace

import pytest

from training import made


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Do not search all objects of a large test process for garbage."""
    monkeypatch.setattr("qualms.training.entry.gc", SimpleNamespace(collect=int))


@pytest.fixture
def shelf(monkeypatch):
    """Put methods on the shelf by name; `plain` and `dropout` are always there."""

    def put(**changed):
        made.put_on_shelf(monkeypatch, **changed)

    put()
    return put
