"""Classification: one class of several for each item."""

TRAITS = frozenset({"items", "classes", "probabilities"})
