"""Regression: one number for each item."""

TRAITS = frozenset({"items", "values"})
