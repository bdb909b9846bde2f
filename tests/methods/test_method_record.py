"""The record `Method`, as somebody who writes one meets it."""

from dataclasses import fields

from qualms.methods import Method


def test_help_explains_every_field():
    explained = Method.__doc__ or ""
    assert [
        field.name for field in fields(Method) if f"{field.name}: " not in explained
    ] == []
