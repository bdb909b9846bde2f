"""Counts: a whole number of events for each item, as Poisson's law has it."""

TRAITS = frozenset({"items", "counts"})
