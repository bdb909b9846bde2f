"""Judging a benchmark: from the predictions of its runs to every number of its tables.

Only predictions files are read, so that anyone can reproduce the numbers from them. A
run without predictions is listed, and its results stay empty; a repeat counts as soon
as all runs of its pool have predictions.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TypeVar

from qualms.evaluate._judge_variants import judged_variants
from qualms.evaluate._variant import JudgedVariant, total_seconds
from qualms.evaluate.benchmark_results import BenchmarkResults, Check, Missing
from qualms.evaluate.entry import ScoreOptions
from qualms.evaluate.estimates import needs_left_out
from qualms.evaluate.protocol import protocol_of
from qualms.inference import few_seeds, seed_spread
from qualms.labels import Labelled
from qualms.processes import RemoteCrew
from qualms.results import ResultsTable
from qualms.study import Line, RunPlan

T = TypeVar("T")


def judge_plan(
    plan: RunPlan,
    out: Path,
    *,
    options: ScoreOptions | None = None,
    cells: Path | None = None,
    remote: Callable[[], RemoteCrew] | None = None,
) -> BenchmarkResults:
    """Judge every line of a plan, from the run folders in out/<benchmark>.

    Intervals are over items and repeats together (`evaluate.estimates`).

    Args:
        plan: The part of a benchmark that is judged.
        out: Folder of runs.
        options: Level of the intervals, and number and seed of replicates.
        cells: Folder of judged variants. Variants with the same predictions, options
            and code are read from there; no number depends on it.
        remote: Connects to other machines that judge, if any variant is new. Their
            numbers have the same bits as those of this machine.
    """
    options = options or ScoreOptions()
    variants = list(judged_variants(plan, out, options, cells=cells, remote=remote))
    facts = {name: each for v in variants for name, each in v.facts.items()}
    results = BenchmarkResults(
        plan=plan,
        table=ResultsTable.of(_each(v.results for v in variants)),
        curves=Labelled.of(_each(v.curves for v in variants)),
        histograms=Labelled.of(_each(v.histograms for v in variants)),
        scatters=Labelled.of(_each(v.scatters for v in variants)),
        slices=Labelled.of(_each(v.slices for v in variants)),
        pairs=tuple(_each(v.pairs for v in variants)),
        uncertainties=tuple(_each(v.uncertainties for v in variants)),
        missing=_missing(variants),
        hardware=tuple(sorted({run.hardware for run in facts.values()} - {""})),
        seconds=total_seconds(facts[name].training for name in _trained(plan, facts)),
        costs={place: cost for v in variants for place, cost in v.costs.items()},
        run_scores={
            run: scores for v in reversed(variants) for run, scores in v.scores.items()
        },
        notes=(
            *_each(v.damaged for v in variants),
            *_warnings(variants),
            *_notes(plan, options),
        ),
        level=options.level,
        resamples=options.resamples,
        seed=options.seed,
    )
    return replace(results, checks=checks_of(results))


def checks_of(results: BenchmarkResults) -> tuple[Check, ...]:
    """Decide by the results whether the benchmark's expected effects hold."""
    expectations = results.benchmark.expectations.get(results.preset.name, ())
    checks = (Check.of(expectation, results) for expectation in expectations)
    return tuple(check for check in checks if check.values)


def _each(parts: Iterable[Iterable[T]]) -> list[T]:
    return list(chain.from_iterable(parts))


def _missing(variants: Sequence[JudgedVariant]) -> tuple[Missing, ...]:
    """Return the missing runs without repeats; those with unreadable maps come last."""
    missing = {name: run for v in variants for name, run in v.missing.items()}
    for variant in variants:
        for name, run in variant.unread.items():
            missing.setdefault(name, run)
    return tuple(missing.values())


def _warnings(variants: Sequence[JudgedVariant]) -> Iterator[str]:
    """Yield every warning with the lines that it is about."""
    warned: dict[str, dict[str, None]] = {}
    for variant in variants:
        for warning, lines in variant.warned.items():
            warned.setdefault(warning, {}).update(lines)
    for warning, lines in warned.items():
        yield f"{warning}: {', '.join(lines)}"


def _trained(plan: RunPlan, facts: Collection[str]) -> set[str]:
    """Return the hashes of runs that were trained, not runs with borrowed weights.

    Runs that differ only in the choice of the epoch share a training; one is returned.
    """
    present = [spec for spec in plan.runs if spec.hash in facts]
    trained = [spec for spec in present if spec.training.get("epochs") != 0]
    return {*{(spec.training_key, spec.seed): spec.hash for spec in trained}.values()}


def _notes(plan: RunPlan, options: ScoreOptions) -> Iterator[str]:
    """Yield notes for readers of the tables, the most important first."""
    yield from _pool_notes(plan)
    yield _interval_note(plan, options.level)
    yield from protocol_of(plan.benchmark).notes(plan, options)
    for variant in plan.variants:
        if text := plan.selection_text(variant):
            yield f"{variant.name}: {text}"


def _interval_note(plan: RunPlan, level: float) -> str:
    """Return a note on the sources of variation in intervals, and rows without them."""
    kinds = {_kind(line) for line in plan.lines if line.pools}
    items = "other items (whole clusters, such as patients, where they are known)"
    parts = []
    if "seeds" in kinds:
        parts.append(f"{items} and other seeds, which are taken to vary about normally")
    if "one run" in kinds:
        alone = "of rows of one run other items alone" if parts else items
        parts.append(f"{alone}, not other seeds")
    text = f"{level:.0%} intervals cover {'; '.join(parts)}" if parts else ""
    if "few" in kinds:
        few = (
            "rows of 2 runs have no interval and no winner, since 2 do not show how "
            "far others may lie: their numbers are of these runs"
        )
        text = f"{text}; {few}" if text else few
    return text or f"{level:.0%} intervals cover {items}"


def _kind(line: Line) -> str:
    """Return "one run", "few" if the spread of runs is unknown, else "seeds"."""
    runs = [tuple(spec.hash for spec in pool) for pool in line.pools]
    if len(runs) == len(runs[0]) == 1:
        return "one run"
    several = len(runs) > 1 and not few_seeds(seed_spread(range(len(runs)), runs))
    return "seeds" if several or needs_left_out(runs) else "few"


def _pool_notes(plan: RunPlan) -> Iterator[str]:
    pools, seeds = plan.ensembles, plan.seeds
    if sum(map(len, pools)) > len(seeds) and len(pools) > 1:
        yield (
            f"the {len(pools)} pools are drawn from {len(seeds)} runs: they "
            "share some, and spread less than separate ensembles would; intervals "
            "allow for that"
        )
    elif len(pools) == 1 and len(pools[0]) > 2:
        yield (
            f"the {len(seeds)} runs form one pool: what other runs would change is "
            "estimated by leaving out one at a time"
        )
