"""Segmentation: a class for each pixel or voxel."""

TRAITS = frozenset({"pixels", "classes", "probabilities"})
