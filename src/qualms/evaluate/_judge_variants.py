"""Judging the variants of a plan in several processes, with a cache of judged ones.

A variant whose predictions, options and code are those of an earlier call is read from
the folder of judged cells (`evaluate._cells`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path

from qualms.evaluate._cells import (
    CellFolder,
    outside_digest,
    package_digest,
    text_digest,
)
from qualms.evaluate._contents import RunContents
from qualms.evaluate._reading import RunReader
from qualms.evaluate._variant import JudgedVariant, Judging, judge_variant
from qualms.evaluate.entry import ScoreOptions
from qualms.evaluate.protocol import protocol_of
from qualms.evaluate.segmented import measuring
from qualms.processes import LocalCrew, LostProcessError, RemoteCrew, Workforce
from qualms.shelf import traits
from qualms.spec import Part
from qualms.study import Benchmark, RunPlan, Variant

WORTHWHILE = 200
"""Fewest runs to judge for which processes are started, which takes seconds."""
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Variables that are set to one, because there is a process for every core."""


def judged_variants(
    plan: RunPlan,
    out: Path,
    options: ScoreOptions,
    *,
    cells: Path | None,
    remote: Callable[[], RemoteCrew] | None = None,
) -> Iterator[JudgedVariant]:
    """Yield every variant of a plan, judged, in the order of the plan.

    `judge_plan` explains the arguments.
    """
    runs = out / plan.benchmark.name
    stored = None if cells is None else _StoredVariants.of(plan, runs, options, cells)
    digests = {} if stored is None else stored.digests()
    known = {} if stored is None else stored.known(digests)
    # Variants with shared runs are neighbours in the list; one process judges them.
    new = [variant for variant in plan.variants if variant.name not in known]
    # Those with shifted items of their own would fill the memory of one.
    groups = [list(group) for _, group in groupby(new, key=_shared_items)]
    parts = [replace(plan, variants=tuple(group)) for group in groups]
    ready = _judged(parts, runs, options, remote)
    judged: dict[str, JudgedVariant] = {}
    for variant in plan.variants:
        while variant.name not in known and variant.name not in judged:
            judged |= next(ready)
        if variant.name in known:
            yield known.pop(variant.name)
        else:
            cell = judged.pop(variant.name)
            if stored is not None:
                stored.keep(variant, cell, digests[variant.name])
            yield cell
    if stored is not None:
        stored.end()


def _shared_items(variant: Variant) -> tuple[Part, str]:
    return variant.dataset, variant.shifted


Group = dict[str, JudgedVariant]
"""Judged variants by their names."""


def _judged(
    parts: Sequence[RunPlan],
    runs: Path,
    options: ScoreOptions,
    remote: Callable[[], RemoteCrew] | None,
) -> Iterator[Group]:
    """Judge parts of a plan in order, in several processes if that is faster."""
    crew = _crew_for(parts, options, remote)
    if crew is None:
        with measuring(options) as shared:
            for part in parts:
                yield _judge_part(part, runs=runs, options=shared)
        return
    alone = replace(options, workers=1, workforce=None, progress=None)
    job = partial(_judge_part, runs=runs, options=alone)
    lean = [_lean(part) for part in parts]
    with Workforce(
        min(crew.workers, len(parts)),
        environment=dict.fromkeys(THREADS, "1"),
        make_crew=crew.make,
    ) as workforce:
        try:
            yield from workforce.each(job, lean)
        except LostProcessError as error:
            raise LostProcessError(
                f"{error} while it judged; run again: what was judged is kept"
            ) from error


def _crew_for(
    parts: Sequence[RunPlan],
    options: ScoreOptions,
    remote: Callable[[], RemoteCrew] | None,
) -> RemoteCrew | None:
    """Return the processes that judge parts of a plan; None if this process should."""
    if len(parts) < 2 or not _is_portable(parts[0].benchmark):
        return None
    if remote is not None:
        return remote()
    # Segmented items are already measured by several processes.
    many = sum(len(part.runs) for part in parts) >= WORTHWHILE
    if options.workers < 2 or not many or "pixels" in traits(parts[0].benchmark.task):
        return None
    return RemoteCrew(options.workers, partial(LocalCrew, script=False))


def _is_portable(benchmark: Benchmark) -> bool:
    """Return whether other processes can surely import the benchmark's protocol."""
    protocol = benchmark.protocol
    loads = protocol.func if isinstance(protocol, partial) else protocol
    return loads is None or loads.__module__.startswith("qualms.")


def _judge_part(part: RunPlan, *, runs: Path, options: ScoreOptions) -> Group:
    """Judge all variants of a part of a plan, which have one dataset."""
    reader = RunReader(runs)
    judging = Judging(part, protocol_of(part.benchmark), reader, options)
    return {variant.name: judge_variant(judging, variant) for variant in part.variants}


def _lean(part: RunPlan) -> RunPlan:
    """Return the plan without functions that judging does not use or pickle."""
    benchmark = replace(part.benchmark, expectations={}, findings=(), presentation=None)
    return replace(part, benchmark=benchmark)


@dataclass(frozen=True, slots=True, kw_only=True)
class _StoredVariants:
    """The judged variants of a plan in a folder of cells."""

    plan: RunPlan
    cells: CellFolder
    contents: RunContents
    common: str
    """A digest of the inputs that all variants share: options, code and libraries."""

    @classmethod
    def of(
        cls, plan: RunPlan, runs: Path, options: ScoreOptions, folder: Path
    ) -> "_StoredVariants":
        chosen = replace(options, workers=1, workforce=None, progress=None)
        preset = plan.preset.name, plan.preset.trained
        benchmark = plan.benchmark.name, plan.benchmark.version, plan.benchmark.task
        about = f"{chosen} {preset} {benchmark} {runs}"
        cells = CellFolder(folder)
        return cls(
            plan=plan,
            cells=cells,
            contents=RunContents(runs, cells.cache),
            common=text_digest(package_digest(), outside_digest(), about),
        )

    def digests(self) -> dict[str, str]:
        """Return a digest of all inputs of each variant."""
        return {variant.name: self._digest(variant) for variant in self.plan.variants}

    def known(self, digests: Mapping[str, str]) -> dict[str, JudgedVariant]:
        """Return the stored variants whose inputs have not changed."""
        judged = {}
        for variant in self.plan.variants:
            cell = self.cells.get(self._name(variant), digests[variant.name])
            if cell is not None:
                judged[variant.name] = cell
        return judged

    def keep(self, variant: Variant, cell: JudgedVariant, digest: str) -> None:
        """Store a variant, unless its predictions changed while it was judged."""
        self.contents.look_again()
        if digest == self._digest(variant):
            self.cells.put(self._name(variant), digest, cell)

    def end(self) -> None:
        """Store the digests of files, and remove cells beyond the limit."""
        self.contents.save()
        self.cells.cache.prune()

    def _name(self, variant: Variant) -> str:
        plan = self.plan
        return text_digest(variant.name, plan.preset_text, plan.part)

    def _digest(self, variant: Variant) -> str:
        """Return a digest of all inputs of a variant."""
        texts = [self.common, repr(variant)]
        for line in self.plan.lines_of(variant):
            pools = [[run.hash for run in pool] for pool in line.pools]
            texts.append(f"{line.row} {line.at} {line.labels} {pools}")
            texts += (self.contents.of(run.hash) for run in line.runs)
        return text_digest(*texts)
