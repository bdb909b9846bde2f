"""What `qualms run` does with the runs of benchmarks: plan, make, and sum up."""

import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import typer
from rich.console import Console

from qualms.benchmarks import selection_text
from qualms.cli._judged import show_judged
from qualms.cli._progress import data_name, duration, name, view
from qualms.launch import (
    Choice,
    Needed,
    Outcome,
    check_installed,
    default_workers,
    key,
    lacking,
    needed,
    prepared,
    run_all,
    without,
)
from qualms.runs import check_writable
from qualms.spec import RunSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where runs are made: folders, processes and device."""

    out: Path
    data: Path
    workers: int | None = None
    device: str = "auto"
    together: int | None = None


def seeds_of(text: str) -> tuple[int, ...]:
    """Seeds from a text such as 0-4 or 0,2,7.

    >>> seeds_of("0-2,7")
    (0, 1, 2, 7)
    """
    seeds: list[int] = []
    for part in filter(None, text.replace(" ", "").split(",")):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise ValueError(f"seeds must read like 0-4 or 0,2,7, got {text!r}")
        seeds += range(int(first), int(last or first) + 1)
    if text and not seeds:
        raise ValueError(f"seeds must name at least one, got {text!r}")
    return tuple(seeds)


def methods_of(text: str) -> tuple[str, ...]:
    """Methods from a text such as map,gaussian.

    >>> methods_of("map, gaussian")
    ('map', 'gaussian')
    """
    methods = tuple(filter(None, (part.strip() for part in text.split(","))))
    if text and not methods:
        raise ValueError(f"methods must name at least one, got {text!r}")
    return methods


def carry_out(
    choices: Sequence[Choice], place: Place, *, named: bool, judge: bool
) -> int:
    """Make the runs of `choices` and judge them; the exit code of the command.

    Real datasets that are not prepared are left out unless they were asked for by name.
    """
    started = time.monotonic()
    try:
        if not named:
            choices = [_prepared_only(choice, place) for choice in choices]
        outcomes = _make(choices, place)
        failed = [outcome for outcome in outcomes if outcome.status == "failed"]
        try:
            _sum_up(outcomes, time.monotonic() - started)
            for choice in choices if judge else ():
                show_judged(choice, place.out)
        finally:
            _list_failed(failed)  # last, so that nobody has to scroll for it
    except KeyboardInterrupt:
        typer.echo("interrupted; finished work is kept, run again to go on", err=True)
        return 130
    return 1 if failed else 0


def show_plan(choices: Sequence[Choice], place: Place) -> None:
    """Print the runs that lack a result, and the data they need."""
    for choice in choices:
        runs = choice.runs
        left = lacking(runs, place.out)
        typer.echo(
            f"{choice.benchmark.name}, preset {choice.preset.name}: {len(left)} of"
            f" {len(runs)} runs lack a result in {place.out}"
        )
        for variant in choice.preset.variants:
            chosen = selection_text(choice.benchmark, choice.preset, variant)
            if chosen:
                typer.echo(f"  {variant.name}: {chosen}")
        for row in _columns(left):
            typer.echo(f"  {row}")
        for need in needed([spec.dataset for spec in left], place.data):
            typer.echo(f"data: {data_name(need.part)}: {_state(need)}")


def _prepared_only(choice: Choice, place: Place) -> Choice:
    """`choice` without variants that lack runs and the data to train them on."""
    parts = [spec.dataset for spec in lacking(choice.runs, place.out)]
    needs = needed(parts, place.data)
    absent = {key(need.part): need for need in needs if need.folder is None}
    if absent.keys() >= {key(variant.dataset) for variant in choice.preset.variants}:
        return choice  # the launcher says what to do
    for need in absent.values():
        typer.echo(f"left out: {data_name(need.part)}: {_state(need)}")
    return without(choice, absent)


def _make(choices: Sequence[Choice], place: Place) -> list[Outcome]:
    """Make the runs that lack a result, showing how they go."""
    specs = [spec for choice in choices for spec in choice.runs]
    left = lacking(specs, place.out)
    workers = place.workers or 1
    if left:  # what is wrong is said before time is spent on data
        check_installed()
        check_writable(place.out)
        usual = default_workers(place.device)
        workers = place.workers or usual
    outcomes = []
    with view(len({spec.hash for spec in specs}), Console()) as seen:
        prepared([spec.dataset for spec in left], place.data, progress=seen.data)
        found = run_all(
            specs,
            out=place.out,
            data=place.data,
            workers=workers,
            device=place.device,
            together=place.together,
            watch=seen,
        )
        with closing(found):
            for outcome in found:
                seen.ended(outcome)
                outcomes.append(outcome)
    return outcomes


def _sum_up(outcomes: Sequence[Outcome], seconds: float) -> None:
    count = Counter(outcome.status for outcome in outcomes)
    told = ", ".join(f"{n} {status}" for status, n in sorted(count.items()))
    typer.echo(f"{len(outcomes)} runs: {told or 'none'}; {duration(seconds)}")
    if count["busy"]:
        typer.echo("busy runs are being made by another process; run again to see them")


def _list_failed(failed: Sequence[Outcome]) -> None:
    for outcome in failed:
        typer.echo(f"failed: {name(outcome.spec)} ({outcome.spec.hash})", err=True)
        typer.echo(f"  {outcome.error}", err=True)
        typer.echo(f"  log: {outcome.log}", err=True)


def _columns(specs: Sequence[RunSpec]) -> list[str]:
    rows = [
        (spec.hash, data_name(spec.dataset), spec.method.name, f"seed {spec.seed}")
        for spec in specs
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    ]


def _state(need: Needed) -> str:
    if need.items is not None:
        items = ", ".join(f"{split} {n:,}" for split, n in need.items.items())
        return f"ready ({items})"
    if need.folder is None:
        return f"not prepared; run `{need.command}` first"
    return f"will be simulated, or now by `{need.command}`"
