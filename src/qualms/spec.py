"""Plain data that names a run: what to train, on what, with which seed.

A run is identified by the hash of its `RunSpec`, so a run folder found on disk is
either exactly this run or another one. Only specs travel to other processes; parts are
looked up by name where they are needed.
"""

import hashlib
import itertools
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

TaskName = Literal["classification", "regression", "segmentation", "embedding"]
TASKS: tuple[TaskName, ...] = (
    "classification",
    "regression",
    "segmentation",
    "embedding",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What is predicted: its kind, and the numbers that shape a network's head."""

    name: TaskName
    classes: int | None = None
    """Number of classes; None for regression and embeddings without a classifier."""
    ignore: int | None = None
    """The label of pixels that count nowhere (segmentation)."""
    space: int = 2
    """Spatial axes of an input: 2 for images, 3 for volumes."""

    def __post_init__(self) -> None:
        if self.name not in TASKS:
            raise ValueError(
                f"task must be one of {', '.join(TASKS)}, got {self.name!r}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a shelf by name, with the options its function is called with."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """One training with one seed, and the splits it predicts."""

    benchmark: str
    dataset: Part
    network: Part
    method: Part
    seed: int
    training: Mapping[str, Any] = field(default_factory=dict)
    """Options of the loop: epochs, batch, optimiser, schedule, precision ..."""
    splits: tuple[str, ...] = ("val", "test")
    """Splits whose predictions are written."""
    start: str | None = None
    """Hash of the run whose weights this one continues from."""
    items: str | None = None
    """Hash of the list of training items, where it is not the whole split."""
    version: int = 1
    """Version of the benchmark: numbers of different versions never mix."""

    def to_json(self) -> str:
        """Canonical JSON: the same spec always gives the same text."""
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> "RunSpec":
        """The spec that `to_json` wrote."""
        fields = json.loads(text)
        for name in ("dataset", "network", "method"):
            fields[name] = Part(**fields[name])
        fields["splits"] = tuple(fields["splits"])
        return cls(**fields)

    @property
    def hash(self) -> str:
        """Sixteen hexadecimal digits that identify the run."""
        return digest(self.to_json())


def digest(text: str) -> str:
    """Sixteen hexadecimal digits of the SHA-256 of `text`."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def grid(**axes: Iterable[Any]) -> list[dict[str, Any]]:
    """Every combination of the values of `axes`, the last axis fastest.

    >>> grid(method=("map", "swag"), seed=range(2))[1]
    {'method': 'map', 'seed': 1}
    """
    values = (tuple(axis) for axis in axes.values())
    return [
        dict(zip(axes, choice, strict=True)) for choice in itertools.product(*values)
    ]


def pools(n: int, size: int, repeats: int, seed: int) -> list[tuple[int, ...]]:
    """Which of `n` runs form each pool: `repeats` sorted draws of `size` distinct runs.

    Pools differ from one another as long as that many different ones exist. For the
    index lists a paper did not fix; where it did, the benchmark states them.

    >>> pools(6, 3, 2, seed=0) == pools(6, 3, 2, seed=0)
    True
    """
    _check_pools(n, size, repeats)
    rng = np.random.default_rng(seed)
    chosen: list[tuple[int, ...]] = []
    possible = _combinations(n, size)
    while len(chosen) < repeats:
        pool = tuple(sorted(int(i) for i in rng.permutation(n)[:size]))
        round_of_repeats = len(chosen) // possible
        if chosen.count(pool) <= round_of_repeats:
            chosen.append(pool)
    return chosen


def _check_pools(n: int, size: int, repeats: int) -> None:
    if not 1 <= size <= n:
        raise ValueError(f"a pool's size must lie in 1..{n} for {n} runs, got {size}")
    if repeats < 1:
        raise ValueError(f"repeats must be at least 1, got {repeats}")


def _combinations(n: int, size: int) -> int:
    count = 1
    for i in range(size):
        count = count * (n - i) // (i + 1)
    return count
