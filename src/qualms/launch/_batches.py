"""Which runs train at once in one process: those that differ only in their seed."""

from collections.abc import Sequence
from dataclasses import replace

from qualms.spec import RunSpec

Batch = tuple[RunSpec, ...]


def batches(specs: Sequence[RunSpec], *, together: int, workers: int) -> list[Batch]:
    """`specs` in groups of up to `together`, in the order of each group's first run.

    Groups are smaller where there are too few runs to give every worker one.
    """
    if together < 1:
        raise ValueError(f"together must be at least 1, got {together}")
    size = min(together, -(-len(specs) // workers))
    alike: dict[str, list[RunSpec]] = {}
    for spec in specs:
        alike.setdefault(replace(spec, seed=0).to_json(), []).append(spec)
    return [
        tuple(group[start : start + size])
        for group in alike.values()
        for start in range(0, len(group), size)
    ]
