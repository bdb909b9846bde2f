"""Runs on disk: found by the hash of their spec, read once, pooled as asked."""

import os
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import RLock

from qualms.benchmarks import Benchmark, Place, Preset, repeats_of, trained
from qualms.evaluate.protocols import AbsentError
from qualms.evaluate.results import Missing
from qualms.predictions import Header, Predictions, PredictionsError, pool, read
from qualms.runs import (
    RunCosts,
    mismatch,
    read_costs,
    split_stem,
    stored,
    was_finished,
)
from qualms.spec import RunSpec


@dataclass(frozen=True, slots=True)
class RunReader:
    """Reads the runs of one benchmark under `folder`, and keeps what it has read."""

    folder: Path
    missing: dict[str, Missing] = field(default_factory=dict)
    headers: dict[str, Header] = field(default_factory=dict)
    _seen: dict[str, RunSpec] = field(default_factory=dict)
    _read: dict[tuple[str, str], Predictions] = field(default_factory=dict)
    _pooled: dict[tuple[tuple[str, ...], str], Predictions] = field(
        default_factory=dict
    )
    _lock: RLock = field(default_factory=RLock)
    """Repeats are judged in several threads."""

    def present(self, spec: RunSpec) -> bool:
        """Whether the run's predictions can be read; if not it is listed."""
        if spec.hash in self.missing:
            return False
        for split in spec.splits:
            try:
                with self._lock:
                    self._one(spec, split)
            except (AbsentError, PredictionsError) as error:
                self.missing[spec.hash] = self._missing(spec, split, str(error))
                return False
        return True

    def unread(self, reasons: Collection[str]) -> tuple[Missing, ...]:
        """Runs that are missing, and those with maps that `reasons` name as damaged.

        Maps are read only when they are judged, so runs that are present may be among
        them. These keep their numbers of other splits.
        """
        found = dict(self.missing)
        for spec in self._seen.values():
            for split in spec.splits:
                inside = f"{split_stem(self.folder / spec.hash, split)}{os.sep}"
                why = next((reason for reason in reasons if inside in reason), "")
                if why:
                    found.setdefault(spec.hash, self._missing(spec, split, why))
        return tuple(found.values())

    def _missing(self, spec: RunSpec, split: str, reason: str) -> Missing:
        folder = self.folder / spec.hash
        path, remedy = stored(folder, split), ""
        if path is not None and was_finished(folder):
            remedy = (
                f"delete {path} and run the same command: it is made again from the"
                " checkpoint"
            )
        return Missing(
            hash=spec.hash,
            dataset=spec.dataset.name,
            method=spec.method.name,
            seed=spec.seed,
            reason=reason,
            remedy=remedy,
        )

    def pooled(self, specs: Sequence[RunSpec], split: str) -> Predictions:
        """The predictions of all `specs` on `split` as one."""
        key = tuple(spec.hash for spec in specs), split
        with self._lock:
            if key not in self._pooled:
                members = [self._one(spec, split) for spec in specs]
                # Intervals cannot be pooled, but one run needs no pooling.
                alone = len(members) == 1 and members[0].draws == 1
                self._pooled[key] = members[0] if alone else pool(members)
            return self._pooled[key]

    def costs(self, run: str) -> RunCosts:
        """Return the costs of the run of this hash, whose predictions were read."""
        return read_costs(self.folder / run, asdict(self.headers[run]))

    def forget(self) -> None:
        """Let go of the predictions read so far; what is missing stays known."""
        self._read.clear()
        self._pooled.clear()

    def _one(self, spec: RunSpec, split: str) -> Predictions:
        key = spec.hash, split
        if key not in self._read:
            predictions = read(_file(self.folder / spec.hash, split))
            wrong = mismatch(spec, split, asdict(predictions.header))
            if wrong:
                raise AbsentError(f"is not what it should be: {wrong}")
            predictions.require_target()
            self._read[key] = predictions
            self.headers[spec.hash] = predictions.header
            self._seen[spec.hash] = spec
        return self._read[key]


def complete_pools(
    benchmark: Benchmark, preset: Preset, place: Place, reader: RunReader
) -> list[tuple[RunSpec, ...]]:
    """The runs of each repeat that is complete; pools of the same runs count once.

    Raises:
        AbsentError: If no repeat is complete.
    """
    if not trained(preset, place):
        values = {n: preset.trained[n] for n in place.row.trained_by}
        only = "; ".join(
            f"{n} {', '.join(map(str, those))}" for n, those in values.items()
        )
        raise AbsentError(
            f"preset {preset.name} trains {place.row.method.name} for {only} only"
        )
    wanted = repeats_of(preset, place)
    specs = {
        seed: benchmark.spec(preset, place, seed)
        for seed in dict.fromkeys(seed for pool in wanted for seed in pool)
    }
    present = {seed for seed, spec in specs.items() if reader.present(spec)}
    complete = [pool for pool in wanted if present.issuperset(pool)]
    if not complete:
        lacking = next(spec for seed, spec in specs.items() if seed not in present)
        raise AbsentError(
            f"{len(specs) - len(present)} of {len(specs)} runs of "
            f"{lacking.method.name} are missing; {lacking.hash} "
            f"{reader.missing[lacking.hash].reason}"
        )
    return [tuple(specs[seed] for seed in pool) for pool in complete]


def _file(folder: Path, split: str) -> Path:
    if not folder.is_dir():
        raise AbsentError("was not run")
    path = stored(folder, split)
    if path is None:
        raise AbsentError(f"has no predictions of split {split!r} yet")
    return path
