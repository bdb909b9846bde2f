"""Benchmarks as folders: what is run, how it is judged, and how it is shown.

The folder is the registry: `qualms.shelf.find("benchmarks", "regression")()` is the
benchmark, a record of `qualms.study`. Its declaration loads neither torch nor plotting.
"""
