"""Runs on disk: found by the hash of their spec, read once, and pooled."""

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import RLock

from qualms.evaluate.benchmark_results import Missing
from qualms.evaluate.protocol import AbsentError
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
from qualms.study import Line, Preset


@dataclass(frozen=True, slots=True)
class RunReader:
    """Reader of the runs of one benchmark below `folder`, with a cache."""

    folder: Path
    missing: dict[str, Missing] = field(default_factory=dict)
    headers: dict[str, Header] = field(default_factory=dict)
    _read: dict[tuple[str, str], Predictions] = field(default_factory=dict)
    _pooled: dict[tuple[tuple[str, ...], str], Predictions] = field(
        default_factory=dict
    )
    _lock: RLock = field(default_factory=RLock)
    """Lock for repeats that are judged in several threads."""

    def present(self, spec: RunSpec) -> bool:
        """Return whether the run's predictions can be read; note the run if not."""
        if spec.hash in self.missing:
            return False
        for split in spec.splits:
            try:
                with self._lock:
                    self._member(spec, split)
            except (AbsentError, PredictionsError) as error:
                self.missing[spec.hash] = self._missing(spec, split, str(error))
                return False
        return True

    def unread(
        self, runs: Iterable[RunSpec], reasons: Collection[str]
    ) -> Iterator[tuple[str, Missing]]:
        """Yield the hash and record of each of `runs` whose maps `reasons` mention.

        Maps are read only when they are judged, so runs that are present may turn out
        to be damaged. Their numbers of other splits stay valid.
        """
        reasons = [reason for reason in reasons if reason]
        for spec in runs if reasons else ():
            for split in spec.splits if spec.hash in self.headers else ():
                inside = f"{split_stem(self.folder / spec.hash, split)}{os.sep}"
                why = next((reason for reason in reasons if inside in reason), "")
                if why:
                    yield spec.hash, self._missing(spec, split, why)
                    break

    def pooled(self, specs: Sequence[RunSpec], split: str) -> Predictions:
        """Return the pooled predictions of all `specs` on `split`."""
        key = tuple(spec.hash for spec in specs), split
        with self._lock:
            if key not in self._pooled:
                members = [self._member(spec, split) for spec in specs]
                # Intervals cannot be pooled, but a single run needs no pooling.
                alone = len(members) == 1 and members[0].draws == 1
                self._pooled[key] = members[0] if alone else pool(members)
            return self._pooled[key]

    def costs(self, run: str) -> RunCosts:
        """Return the costs of the run with this hash, whose predictions were read."""
        return read_costs(self.folder / run, self.headers[run].as_mapping())

    def forget(self) -> None:
        """Release the predictions read so far; the list of missing runs stays."""
        self._read.clear()
        self._pooled.clear()

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

    def _member(self, spec: RunSpec, split: str) -> Predictions:
        key = spec.hash, split
        if key not in self._read:
            predictions = read(_file(self.folder / spec.hash, split))
            wrong = mismatch(spec, split, predictions.header.as_mapping())
            if wrong:
                raise AbsentError(f"is not what it should be: {wrong}")
            predictions.require_target()
            self._read[key] = predictions
            self.headers[spec.hash] = predictions.header
        return self._read[key]


def complete_pools(
    line: Line, preset: Preset, reader: RunReader
) -> list[tuple[RunSpec, ...]]:
    """Return the runs of each repeat that is complete.

    Raises:
        AbsentError: If no repeat is complete.
    """
    if not line.pools:
        trained = "; ".join(
            f"{name} {', '.join(map(str, preset.trained[name]))}"
            for name in line.row.trained_by
        )
        raise AbsentError(
            f"preset {preset.name} trains {line.row.method.name} for {trained} only"
        )
    runs = line.runs
    present = {run.hash for run in runs if reader.present(run)}
    complete = [p for p in line.pools if present.issuperset(run.hash for run in p)]
    if not complete:
        first = next(run for run in runs if run.hash not in present)
        raise AbsentError(
            f"{len(runs) - len(present)} of {len(runs)} runs of "
            f"{first.method.name} are missing; {first.hash} "
            f"{reader.missing[first.hash].reason}"
        )
    return complete


def _file(folder: Path, split: str) -> Path:
    if not folder.is_dir():
        raise AbsentError("was not run")
    path = stored(folder, split)
    if path is None:
        raise AbsentError(f"has no predictions of split {split!r} yet")
    return path
