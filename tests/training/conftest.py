"""Fixtures for training: tiny parts instead of those on the shelves."""

import pytest

from training import made


@pytest.fixture
def shelf(monkeypatch):
    """Put methods on the shelf by name; `plain` and `dropout` are always there."""

    def put(**changed):
        made.put_on_shelf(monkeypatch, **changed)

    put()
    return put
