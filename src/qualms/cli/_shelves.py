"""What `qualms list` shows of each shelf: columns and rows of text."""

import inspect
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from rich.markup import escape

from qualms.launch import (
    MEMBERS,
    POOLED,
    card_of,
    check_installed,
    default_method,
    option_texts,
    options_of,
)
from qualms.shelf import find, names, outside_parts, plural

MANY = 2
"""Variants that differ in a number alone are named one by one if there are no more."""


class Listing(NamedTuple):
    """A table as text."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def methods() -> Listing:
    """Every method with its options, and the pools of methods."""
    check_installed()
    columns, parts = _parts("methods")
    rows = [
        (name, f"{what} {lent}".strip(), options)
        for name, what, options in parts
        for lent in (_lent(name),)
    ]
    deep = "Runs of map with several seeds, pooled: as many as the benchmark pools, or"
    rows += [("deep_ensemble", f"{deep} {MEMBERS}.", "")]
    pooled = f"The same of any method, e.g. mc_dropout{POOLED}."
    return Listing(columns, [*sorted(rows), (f"METHOD{POOLED}", pooled, "")])


def _lent(method: str) -> str:
    """Whose runs a method takes, in words; '' for one that is trained itself."""
    try:
        lender = default_method(method).trained_as
    except ValueError:  # it cannot be a guest, and is listed all the same
        return ""
    return f"Takes the runs of {lender}." if lender else ""


def networks() -> Listing:
    """Every network of ours with its options; timm has the rest."""
    check_installed()
    listing = _parts("networks")
    more = "weights=random, pool=own, and as timm has them"
    other = ("timm:NAME", "Any network of timm by its name.", more)
    return Listing(listing.columns, [*listing.rows, other])


def datasets() -> Listing:
    """Every dataset with its options and licence."""
    rows = []
    for name, first, options in _parts("datasets").rows:
        card = card_of(name)
        kind = "simulated" if card.simulated else "real"
        rows.append((name, first, options, kind, escape(card.licence)))
    return Listing(("name", "what", "options", "kind", "licence"), rows)


def _series(variants: Iterable[str]) -> list[str]:
    """Names in order; those that differ in a last number alone are one entry.

    >>> _series(["toy_1", "fold_0", "fold_1", "fold_2"])
    ['toy_1', 'fold_0 to 2']
    """
    numbered: dict[str, list[str]] = {}
    for name in variants:
        stem, _, number = name.rpartition("_")
        numbered.setdefault(f"{stem}_" if number.isdecimal() else name, []).append(name)
    found = []
    for stem, those in numbered.items():
        ends = [int(name.removeprefix(stem) or 0) for name in those]
        run = ends == [*range(ends[0], ends[0] + len(ends))]
        several = len(those) > MANY and run
        found += [f"{those[0]} to {ends[-1]}"] if several else those
    return found


def benchmarks() -> Listing:
    """Every benchmark with the variants of its presets."""
    rows = []
    for name in names("benchmarks"):
        benchmark = find("benchmarks", name)()
        for preset in benchmark.presets.values():
            variants, further = (
                ", ".join(_series(variant.name for variant in those))
                for those in (preset.variants, preset.further)
            )
            runs = len(benchmark.plan(preset.name).runs)
            size = f"{runs} {plural(runs, 'run')}"
            title = escape(benchmark.title)
            part = outside_parts("benchmarks").get(name)
            title += "" if part is None else f" (from {escape(part.where)})"
            rows.append((name, title, preset.name, size, variants, further))
    columns = ("name", "what", "preset", "size", "variants", "only if named")
    return Listing(columns, rows)


def configs() -> Listing:
    """Every named set of options, for `qualms run --config`."""
    rows = []
    for name in names("benchmarks"):
        for config, about in find("benchmarks", name)().configs.items():
            options = escape(" ".join(option_texts(about.options)))
            rows.append((config, name, about.method, options, escape(about.note)))
    return Listing(("name", "benchmark", "method", "options", "note"), rows)


def scores() -> Listing:
    """Every score with its label, direction and range."""
    from qualms import scores as shelf

    own = {name: vars(shelf)[name] for name in shelf.__all__}
    rows = []
    for name, function in (
        own | {n: find("scores", n) for n in names("scores")}
    ).items():
        try:
            about = shelf.about(function)
        except LookupError:  # a record or a curve, not a score
            continue
        limits = f"{_limit(about.low)} to {_limit(about.high)}"
        what = _what("scores", name, function)
        rows.append((name, what, about.label, about.better, limits))
    return Listing(("name", "what", "label", "better", "range"), rows)


TABLES: Mapping[str, Callable[[], Listing]] = {
    "methods": methods,
    "datasets": datasets,
    "benchmarks": benchmarks,
    "configs": configs,
    "networks": networks,
    "scores": scores,
}


def _parts(shelf: str) -> Listing:
    rows = []
    for name in names(shelf):
        function = find(shelf, name)
        options = [
            option
            if value.default is inspect.Parameter.empty
            else f"{option}={_default(value.default)}"
            for option, value in options_of(function, shelf=shelf).items()
        ]
        what = _what(shelf, name, function)
        rows.append((name, what, escape(", ".join(options))))
    return Listing(("name", "what", "options"), rows)


def _what(shelf: str, name: str, function: Callable[..., Any]) -> str:
    """The first sentence about a part, and where it lives if not in the package."""
    part = outside_parts(shelf).get(name)
    said = _first(function)
    return said if part is None else f"{said} (from {escape(part.where)})".strip()


def _first(function: Callable[..., Any]) -> str:
    return escape((inspect.getdoc(function) or "").partition("\n")[0])


def _default(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _limit(value: float) -> str:
    return f"{value:g}" if math.isfinite(value) else ("inf" if value > 0 else "-inf")
