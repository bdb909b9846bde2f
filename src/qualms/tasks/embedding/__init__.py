"""Embedding: a vector for each item, whose neighbours are of its class."""

TRAITS = frozenset({"items", "classes", "vectors"})
