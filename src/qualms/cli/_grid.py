"""`qualms run`: plan the runs of benchmarks, make them, and judge them."""

import os
import re
import shlex
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import typer
from rich.console import Console

from qualms.benchmarks import selection_text
from qualms.cli._bar import counting_bar
from qualms.cli._progress import data_name, duration, name, view
from qualms.launch import (
    Choice,
    Needed,
    RunOutcome,
    Wish,
    check_data,
    check_installed,
    data_key,
    default_workers,
    given_text,
    lacking,
    needed,
    parts_of,
    run_all,
    with_data,
    without,
)
from qualms.runs import check_writable, run_folder, why_failed
from qualms.shelf import find
from qualms.spec import RunSpec, digest
from qualms.wording import plural

LONGEST = 60
"""Most characters of a part in the name of its folder."""
MANY = 6
"""Versions of a dataset that lack, of which the first speaks for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workshop:
    """Where runs are made: folders, processes and device."""

    out: Path
    data: Path
    workers: int | None = None
    device: str = "auto"
    together: int | None = None


def parse_seeds(text: str) -> tuple[int, ...]:
    """Seeds from a text such as 0-4 or 0,2,7.

    >>> parse_seeds("0-2,7")
    (0, 1, 2, 7)
    """
    seeds: list[int] = []
    for part in filter(None, text.replace(" ", "").split(",")):
        first, dash, last = part.partition("-")
        last = last if dash else first
        numbers = re.fullmatch("[0-9]+", first) and re.fullmatch("[0-9]+", last)
        if not numbers or int(first) > int(last):
            raise ValueError(f"seeds must read like 0-4 or 0,2,7, got {text!r}")
        seeds += range(int(first), int(last) + 1)
    if text and not seeds:
        raise ValueError(f"seeds must name at least one, got {text!r}")
    return tuple(seeds)


def parse_names(text: str) -> tuple[str, ...]:
    """Methods from a text such as map,gaussian.

    >>> parse_names("map, gaussian")
    ('map', 'gaussian')
    """
    methods = tuple(filter(None, (part.strip() for part in text.split(","))))
    if text and not methods:
        raise ValueError(f"methods must name at least one, got {text!r}")
    return methods


def bring_data(benchmark: str, wish: Wish, source: Path, shop: Workshop) -> Wish:
    """`wish` with the data in `source`, which are prepared first."""
    check_data(find("benchmarks", benchmark.partition("/")[0]), given=True)
    with counting_bar(source.name) as advance:
        brought = with_data(
            wish,
            source,
            data=shop.data,
            device=shop.device,
            workers=shop.workers,
            progress=advance,
        )
    assert brought.given is not None
    typer.echo(given_text(brought.given))
    return brought


def make_and_judge(
    choices: Sequence[Choice], shop: Workshop, *, named: bool, judge: bool
) -> int:
    """Make the runs of `choices` and judge them; gives the exit code of the command.

    Real datasets that are not prepared are left out unless they were asked for by name.
    """
    started = time.monotonic()
    try:
        if not named:
            choices = [_prepared_only(choice, shop) for choice in choices]
        outcomes = _make(choices, shop)
        failed = [outcome for outcome in outcomes if outcome.status == "failed"]
        try:
            _sum_up(outcomes, time.monotonic() - started)
            unread = _judge(choices, outcomes, shop) if judge else False
        finally:
            _list_failed(failed)  # last, so that nobody has to scroll for it
    except KeyboardInterrupt:
        typer.echo("interrupted; finished work is kept, run again to go on", err=True)
        return 130
    return 1 if failed or unread else 0


def _judge(
    choices: Sequence[Choice], outcomes: Sequence[RunOutcome], shop: Workshop
) -> bool:
    """Show the tables of what has results; gives whether some cannot be read."""
    status = {outcome.spec.hash: outcome.status for outcome in outcomes}
    unread = False
    for choice in choices:
        found = {status.get(spec.hash) for spec in choice.runs}
        if "failed" in found and found.isdisjoint(("done", "skipped")):
            why = "every run failed" if len(found) == 1 else "no run has a result"
            typer.echo(f"{choice.benchmark.name}: nothing was judged, since {why}")
            continue
        missing = show_judged(choice, shop.out, shop.data)
        unread |= any(status.get(run) in ("done", "skipped") for run in missing)
    return unread


def show_plan(choices: Sequence[Choice], shop: Workshop) -> None:
    """Print the runs that lack a result, and the data they need."""
    for choice in choices:
        runs = choice.runs
        left = lacking(runs, shop.out)
        typer.echo(
            f"{choice.benchmark.name}, preset {choice.preset.name}: {len(left)} of"
            f" {len(runs)} runs lack a result in {shop.out}"
        )
        for variant in choice.preset.variants:
            chosen = selection_text(choice.benchmark, choice.preset, variant)
            if chosen:
                typer.echo(f"  {variant.name}: {chosen}")
        for row in _columns(left, shop.out):
            typer.echo(f"  {row}")
        for need in needed(parts_of(left), shop.data):
            typer.echo(f"data: {_data_line(need)}")


def _prepared_only(choice: Choice, shop: Workshop) -> Choice:
    """`choice` without variants whose runs cannot be made for lack of data."""
    needs = needed(parts_of(lacking(choice.runs, shop.out)), shop.data)
    absent = {data_key(need.part): need for need in needs if need.folder is None}
    left = without(choice, absent)
    if not left.preset.variants:
        return choice  # nothing would be left; the launcher says what to prepare
    for line in _absent_lines(absent.values()):
        typer.echo(f"left out: {line}")
    return left


def _make(choices: Sequence[Choice], shop: Workshop) -> list[RunOutcome]:
    """Make the runs that have no result, and show their progress."""
    specs = [spec for choice in choices for spec in choice.runs]
    left = lacking(specs, shop.out)
    workers = shop.workers or 1
    if left:  # report mistakes before time is spent on data
        check_installed()
        check_writable(shop.out)
        usual = default_workers(shop.device)
        workers = shop.workers or usual
    outcomes = []
    with view(len({spec.hash for spec in specs}), Console()) as seen:
        found = run_all(
            specs,
            out=shop.out,
            data=shop.data,
            workers=workers,
            device=shop.device,
            together=shop.together,
            watch=seen,
            progress=seen.data,
        )
        with closing(found):
            for outcome in found:
                seen.ended(outcome)
                outcomes.append(outcome)
    return outcomes


def _sum_up(outcomes: Sequence[RunOutcome], seconds: float) -> None:
    count = Counter(outcome.status for outcome in outcomes)
    told = ", ".join(f"{n} {status}" for status, n in sorted(count.items()))
    runs = plural(len(outcomes), "run")
    typer.echo(f"{len(outcomes)} {runs}: {told or 'none'}; {duration(seconds)}")
    if count["busy"]:
        typer.echo("busy runs are being made by another process; run again to see them")


def _list_failed(failed: Sequence[RunOutcome]) -> None:
    for outcome in failed:
        typer.echo(f"failed: {name(outcome.spec)} ({outcome.spec.hash})", err=True)
        typer.echo(f"  {outcome.error}", err=True)
        typer.echo(f"  log: {outcome.log}", err=True)


def _columns(specs: Sequence[RunSpec], out: Path) -> list[str]:
    """A line for each run, which also says why its last attempt failed."""
    rows = [
        (spec.hash, data_name(spec.dataset), spec.method.name, f"seed {spec.seed}")
        for spec in specs
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    )
    errors = (why_failed(run_folder(out, spec)) for spec in specs)
    return [
        f"{line}  failed before: {error}" if error else line
        for line, error in zip(lines, errors, strict=True)
    ]


def _absent_lines(needs: Iterable[Needed]) -> Iterator[str]:
    """What is to be said of datasets that lack; many versions of one are said once."""
    versions: dict[str, list[Needed]] = {}
    for need in needs:
        versions.setdefault(need.part.name, []).append(need)
    for dataset, those in versions.items():
        if len(those) < MANY:
            yield from map(_data_line, those)
        else:
            more = f"{len(those) - 1} more of {dataset}, which --dry-run lists"
            yield f"{_data_line(those[0])}, and likewise for {more}"


def _data_line(need: Needed) -> str:
    name = data_name(need.part)
    if need.items is not None:
        items = ", ".join(f"{split} {n:,}" for split, n in need.items.items())
        return f"{name}: ready ({items})"
    if need.folder is None:
        return f"{name}: not prepared; {need.remedy} first"
    return f"{name}: will be made, or now by `{need.command}`"


def show_judged(choice: Choice, out: Path, data: Path) -> list[str]:
    """Print the tables of `choice` and its effects; write tables and figures.

    Returns:
        The hashes of the runs whose predictions are missing or cannot be read.
    """
    from qualms.evaluate.benchmark import judge
    from qualms.report.benchmark import print_benchmark, write_all

    # Where there is no window to widen, tables must not be cut off.
    known = sys.stdout.isatty() or "COLUMNS" in os.environ
    console = Console(width=None if known else 160)
    whole = out / choice.benchmark.name / choice.preset.name
    folder = whole / _part_name(choice.part) if choice.part else whole
    with console.status("judging"):
        results = judge(choice.benchmark, choice.preset, out)
    command = shlex.join(["qualms", *sys.argv[1:]])
    try:  # before printing, since a closed pipe would end the command
        with console.status("drawing"):
            written = write_all(results, folder, command=command, data=data)
    except OSError as error:
        raise OSError(
            f"cannot write tables to {folder}: {error.strerror or error}; free space"
            " there or make it writable, and run again: what is done is kept"
        ) from error
    finally:
        print_benchmark(results, console=console)
    if choice.dropped:
        rows = ", ".join(choice.dropped)
        typer.echo(f"left out, as they pool more runs than there are seeds: {rows}")
    for note in written.notes:
        typer.echo(f"note: {note}")
    if choice.part:
        typer.echo(
            f"these results are not of the whole preset {choice.preset.name}, but of:"
            f" {choice.part}; they have a folder of their own, and those of the whole"
            f" preset stay in {whole}"
        )
    typer.echo(
        f"wrote {written.results}, {len(written.tables)}"
        f" {plural(len(written.tables), 'file')} in {folder / 'tables'}"
        f" and {len(written.figures)} in {folder / 'figures'}; {written.page} shows all"
    )
    return [run.hash for run in results.missing]


def _part_name(part: str) -> str:
    """The name of the folder for results of a part of a preset.

    >>> _part_name("cells, map, seeds 0-1")
    'part-cells,map,seeds_0-1'
    """
    plain = part.replace(", ", ",").replace(" ", "_")
    if re.fullmatch(r"[\w.,=+-]+", plain, re.ASCII) and len(plain) <= LONGEST:
        return f"part-{plain}"
    safe = re.sub(r"[^\w.,=+-]+", "_", plain, flags=re.ASCII)
    return f"part-{safe[:LONGEST]}-{digest(part)[:8]}"
