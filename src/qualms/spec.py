"""Plain data that names a run: what to train, on what, with which seed.

A run is identified by the hash of its `RunSpec`, so a run folder found on disk is
either exactly this run or another one. Only specs travel to other processes; parts are
looked up by name where they are needed.
"""

import hashlib
import itertools
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
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
class ItemRule:
    """How the training items of a run are chosen from predictions of earlier runs.

    Only the rule is part of a spec, so a run that trains on chosen items has its hash
    before the list of these items exists.
    """

    name: str
    runs: tuple[str, ...] = ()
    """Hashes of the runs whose predictions the rule reads."""
    split: str = "train"
    """The split whose predictions it reads."""
    options: Mapping[str, Any] = field(default_factory=dict)


SILENT = ("sinks", "validate", "workers", "progress")
"""Training options that change no number, and so do not count in a run's hash."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """One training with one seed, and the splits it predicts."""

    benchmark: str
    dataset: Part
    """The dataset that the run trains on."""
    network: Part
    method: Part
    seed: int
    training: Mapping[str, Any] = field(default_factory=dict)
    """Options of the loop: epochs, batch, optimiser, schedule, precision ..."""
    splits: tuple[str, ...] = ("val", "test")
    """Splits whose predictions are written; "NAME:SPLIT" is of a further dataset."""
    start: str | None = None
    """Hash of the run whose weights this one continues from."""
    items: ItemRule | None = None
    """How its training items are chosen, where it does not train on all of them."""
    datasets: Mapping[str, Part] = field(default_factory=dict)
    """Further datasets by name; the run predicts splits of them."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """A digest of the code of each part that is not the package's own, by its shelf and
    name, e.g. "methods/mine"."""
    version: int = 1
    """Version of the benchmark: numbers of different versions never mix."""

    def __post_init__(self) -> None:
        for name in self.datasets:
            if not name or ":" in name or "/" in name:
                raise ValueError(
                    "the name of a further dataset must be a word without ':' and '/',"
                    f" got {name!r}"
                )
        for split in self.splits:
            name, _ = parse_split(split)
            if name and name not in self.datasets:
                known = ", ".join(self.datasets) or "none"
                raise ValueError(
                    f"split {split!r} must be of one of the run's further datasets,"
                    f" which are {known}"
                )

    def to_json(self) -> str:
        """Canonical JSON: the same spec always gives the same text."""
        return _canonical(self._fields())

    @classmethod
    def from_json(cls, text: str) -> "RunSpec":
        """The spec that `to_json` wrote."""
        fields = json.loads(text)
        for name in ("dataset", "network", "method"):
            fields[name] = Part(**fields[name])
        fields["splits"] = tuple(fields["splits"])
        if fields.get("items") is not None:
            rule = fields["items"]
            fields["items"] = ItemRule(**{**rule, "runs": tuple(rule["runs"])})
        further = fields.get("datasets", {})
        fields["datasets"] = {name: Part(**part) for name, part in further.items()}
        return cls(**fields)

    @property
    def training_key(self) -> str:
        """The same for runs that one process may train at once.

        They differ in their seed, and in the rule by which an epoch is chosen.
        """
        shared = {k: v for k, v in self.training.items() if k != "select_by"}
        return replace(self, seed=0, training=shared).to_json()

    @property
    def hash(self) -> str:
        """Sixteen hexadecimal digits that identify the run.

        Training options that change no number, such as `sinks`, do not count.
        """
        fields = self._fields()
        kept = {n: v for n, v in self.training.items() if n not in SILENT}
        return digest(_canonical({**fields, "training": kept}))

    @property
    def parents(self) -> tuple[str, ...]:
        """Hashes of the runs that must be done before this one, each once."""
        start = (self.start,) if self.start is not None else ()
        chosen_by = self.items.runs if self.items is not None else ()
        return tuple(dict.fromkeys((*start, *chosen_by)))

    @property
    def parts(self) -> dict[str, Part]:
        """Every dataset that the run reads, by name; "" is the one it trains on."""
        return {"": self.dataset, **self.datasets}

    def _fields(self) -> dict[str, Any]:
        fields = asdict(self)
        # A spec that says nothing about them has the hash it had before they existed.
        for name in ("datasets", "sources"):
            if not fields[name]:
                del fields[name]
        return fields


def parse_split(split: str) -> tuple[str, str]:
    """The dataset of a run that a split belongs to, and the split's name there.

    >>> parse_split("test/shifted"), parse_split("birds:test")
    (('', 'test/shifted'), ('birds', 'test'))
    """
    name, _, own = split.rpartition(":")
    return name, own


def _canonical(fields: Mapping[str, Any]) -> str:
    return json.dumps(fields, sort_keys=True, separators=(",", ":"))


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
