"""Plain data that names a run: what to train, on what, with which seed.

The hash of its `RunSpec` identifies a run, so a run folder on disk holds either exactly
this run or another one. Only specs travel to other processes, which look up the parts
by name.
"""

import hashlib
import itertools
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from qualms.shelf import names


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """The kind of prediction, and the numbers that shape a network's head."""

    name: str
    classes: int | None = None
    """Number of classes; None for regression and embeddings without a classifier."""
    ignore: int | None = None
    """The label of pixels that no score counts (segmentation)."""
    space: int = 2
    """Spatial axes of an input: 2 for images, 3 for volumes."""

    def __post_init__(self) -> None:
        if self.name not in (known := names("tasks")):
            raise ValueError(
                f"task must be one of {', '.join(known)}, got {self.name!r}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The name of a part on a shelf, and the options of its function."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemRule:
    """A rule that chooses training items by the predictions of earlier runs.

    A spec holds the rule instead of the chosen items, so that a run has its hash before
    these items are known.
    """

    name: str
    runs: tuple[str, ...] = ()
    """Hashes of the runs whose predictions the rule reads."""
    split: str = "train"
    """The split whose predictions the rule reads."""
    options: Mapping[str, Any] = field(default_factory=dict)


CORRUPTIONS = "corruptions"
"""The shelf of corruptions."""
SILENT = ("sinks", "validate", "workers", "progress")
"""Training options that change no number and are not part of a run's hash."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """One training with one seed, and the splits that it predicts."""

    benchmark: str
    dataset: Part
    """The dataset of the training items."""
    network: Part
    method: Part
    seed: int
    training: Mapping[str, Any] = field(default_factory=dict)
    """Options of the loop: epochs, batch, optimiser, schedule, precision ..."""
    splits: tuple[str, ...] = ("val", "test")
    """Splits to predict; "NAME:SPLIT" is a split of the further dataset NAME."""
    start: str | None = None
    """Hash of the run whose weights this run starts from."""
    items: ItemRule | None = None
    """The rule that chooses the training items; None to train on all of them."""
    datasets: Mapping[str, Part] = field(default_factory=dict)
    """Further datasets by name, splits of which the run predicts."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Digests of the code of parts from outside the package, by shelf and name, e.g.
    "methods/mine"."""
    version: int = 1
    """Version of the benchmark; numbers of different versions are never mixed."""
    _hash: str = field(default="", init=False, repr=False, compare=False)
    """The hash after its first use: thousands of runs are looked up by it."""

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
                datasets = ", ".join(self.datasets) or "none"
                raise ValueError(
                    f"split {split!r} must be of one of the run's further datasets,"
                    f" which are {datasets}"
                )

    def to_json(self) -> str:
        """Return the spec as canonical JSON: equal specs give equal texts."""
        return _canonical(self._fields())

    @classmethod
    def from_json(cls, text: str) -> "RunSpec":
        """Return the spec that `to_json` wrote."""
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
        """A text that is equal for runs that one process may train together.

        Such runs may differ in their seed and in the rule that chooses the epoch.
        """
        shared = {k: v for k, v in self.training.items() if k != "select_by"}
        return _canonical({**self._fields(), "seed": 0, "training": shared})

    @property
    def hash(self) -> str:
        """Sixteen hexadecimal digits that identify the run.

        Training options that change no number, such as `sinks`, are left out. So are
        corrupted splits: a trained run predicts them too when they are asked for later.
        """
        if not self._hash:
            fields = self._of_training()._fields()
            training = {n: v for n, v in self.training.items() if n not in SILENT}
            name = digest(_canonical({**fields, "training": training}))
            object.__setattr__(self, "_hash", name)
        return self._hash

    @property
    def parents(self) -> tuple[str, ...]:
        """Hashes of the runs that must be done before this run, without repeats."""
        start = (self.start,) if self.start is not None else ()
        chosen_by = self.items.runs if self.items is not None else ()
        return tuple(dict.fromkeys((*start, *chosen_by)))

    @property
    def parts(self) -> dict[str, Part]:
        """All datasets of the run by name; "" is the dataset that it trains on."""
        return {"": self.dataset, **self.datasets}

    def _of_training(self) -> "RunSpec":
        """Return the spec without its corrupted splits and the code of corruptions."""
        splits = tuple(s for s in self.splits if parse_corrupted(s) is None)
        if splits == self.splits:
            return self
        sources = {
            name: source
            for name, source in self.sources.items()
            if not name.startswith(f"{CORRUPTIONS}/")
        }
        return replace(self, splits=splits, sources=sources)

    def _fields(self) -> dict[str, Any]:
        # By hand: `asdict` copies every option, which counts for thousands of runs.
        fields: dict[str, Any] = {
            "benchmark": self.benchmark,
            "dataset": _part_fields(self.dataset),
            "network": _part_fields(self.network),
            "method": _part_fields(self.method),
            "seed": self.seed,
            "training": self.training,
            "splits": self.splits,
            "start": self.start,
            "items": None if self.items is None else asdict(self.items),
            "datasets": {
                name: _part_fields(part) for name, part in self.datasets.items()
            },
            "sources": self.sources,
            "version": self.version,
        }
        # Specs without them keep the hash that they had before these fields existed.
        for name in ("datasets", "sources"):
            if not fields[name]:
                del fields[name]
        return fields


class CorruptedSplit(NamedTuple):
    """A split whose items are corrupted when they are read."""

    of: str
    """Name of the stored, uncorrupted split."""
    corruption: str
    severity: int

    @property
    def name(self) -> str:
        """The name of the split in specs.

        >>> CorruptedSplit("test", "fog", 3).name
        'test+fog-3'
        """
        return f"{self.of}+{self.corruption}-{self.severity}"


def parse_corrupted(split: str) -> CorruptedSplit | None:
    """Return the parts of the name of a corrupted split; None for any other split.

    >>> parse_corrupted("test+fog-3")
    CorruptedSplit(of='test', corruption='fog', severity=3)
    """
    of, plus, how = split.partition("+")
    corruption, _, severity = how.rpartition("-")
    return CorruptedSplit(of, corruption, int(severity)) if plus else None


def parse_split(split: str) -> tuple[str, str]:
    """Split "NAME:SPLIT" into the name of a further dataset and a split of it.

    The name is "" for splits of the dataset that the run trains on.

    >>> parse_split("test/shifted"), parse_split("birds:test")
    (('', 'test/shifted'), ('birds', 'test'))
    """
    dataset, _, name = split.rpartition(":")
    return dataset, name


def _part_fields(part: Part) -> dict[str, Any]:
    return {"name": part.name, "options": part.options}


def _canonical(fields: Mapping[str, Any]) -> str:
    return json.dumps(fields, sort_keys=True, separators=(",", ":"))


def digest(text: str) -> str:
    """Return sixteen hexadecimal digits of the SHA-256 of `text`."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def grid(**axes: Iterable[Any]) -> list[dict[str, Any]]:
    """Return every combination of the values of `axes`, the last axis fastest.

    >>> grid(method=("map", "swag"), seed=range(2))[1]
    {'method': 'map', 'seed': 1}
    """
    values = (tuple(axis) for axis in axes.values())
    return [
        dict(zip(axes, choice, strict=True)) for choice in itertools.product(*values)
    ]


def pools(n: int, size: int, repeats: int, seed: int) -> list[tuple[int, ...]]:
    """Draw `repeats` pools of `size` distinct runs out of `n`, as sorted indices.

    A pool is repeated only after every possible pool was drawn. Benchmarks whose paper
    states its pools list them instead.

    >>> pools(6, 3, 2, seed=0) == pools(6, 3, 2, seed=0)
    True
    """
    _check_pools(n, size, repeats)
    rng = np.random.default_rng(seed)
    drawn: list[tuple[int, ...]] = []
    possible = _combinations(n, size)
    while len(drawn) < repeats:
        pool = tuple(sorted(int(i) for i in rng.permutation(n)[:size]))
        if drawn.count(pool) <= len(drawn) // possible:
            drawn.append(pool)
    return drawn


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
