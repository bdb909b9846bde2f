"""Listings of the shelves for `qualms list`: columns and rows of text.

The package's own methods and networks are read from their source, without importing
them, so that they can be listed where torch is not installed.
"""

import ast
import inspect
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from rich.markup import escape

from qualms.launch import (
    MEMBERS,
    POOLED,
    card_of,
    default_method,
    option_texts,
    options_of,
)
from qualms.shelf import find, names, outside_parts
from qualms.study import Benchmark
from qualms.wording import plural

_FROM_SOURCE = ("methods", "networks")
IMAGES = {2: "pictures", 3: "volumes"}
MANY = 2
"""Most variants that are named one by one where they differ in a number alone."""


Row = tuple[str, ...]


class Listing(NamedTuple):
    """A table as text."""

    columns: tuple[str, ...]
    rows: Sequence[Row]
    broken: tuple[str, ...] = ()
    """Sentences on parts from outside that are left out because they fail."""


def methods() -> Listing:
    """List every method with its options, and the pools of methods."""
    columns, rows, broken = _parts("methods")
    deep = "Runs of map with several seeds, pooled: as many as the benchmark pools, or"
    rows = [*rows, ("deep_ensemble", f"{deep} {MEMBERS}.", "")]
    pooled = f"The same of any method, e.g. mc_dropout{POOLED}."
    return Listing(columns, [*sorted(rows), (f"METHOD{POOLED}", pooled, "")], broken)


def networks() -> Listing:
    """List every network of ours with its options; timm has the rest."""
    listing = _parts("networks")
    more = "weights=random, pool=own, and as timm has them"
    other = ("timm:NAME", "Any network of timm by its name.", more)
    return listing._replace(rows=[*listing.rows, other])


def datasets() -> Listing:
    """List every dataset with its options and licence."""
    columns = ("name", "what", "options", "kind", "licence")
    return _listing("datasets", columns, lambda name: [_dataset(name)])


def _dataset(name: str) -> Row:
    card = card_of(name)
    kind = "simulated" if card.simulated else "real"
    return (*_part("datasets", name), kind, escape(card.licence))


def _series(variants: Iterable[str]) -> list[str]:
    """Return names in order; those that differ in a last number alone are one entry.

    >>> _series(["toy_1", "fold_0", "fold_1", "fold_2"])
    ['toy_1', 'fold_0 to 2']
    """
    numbered: dict[str, list[str]] = {}
    for name in variants:
        stem, _, number = name.rpartition("_")
        numbered.setdefault(f"{stem}_" if number.isdecimal() else name, []).append(name)
    entries = []
    for stem, group in numbered.items():
        ends = [int(name.removeprefix(stem) or 0) for name in group]
        is_range = ends == [*range(ends[0], ends[0] + len(ends))]
        several = len(group) > MANY and is_range
        entries += [f"{group[0]} to {ends[-1]}"] if several else group
    return entries


def benchmarks() -> Listing:
    """List every benchmark with the number of runs of each preset."""
    columns = ("name", "what", "demo/small/paper")
    return _listing("benchmarks", columns, _benchmark)


def _benchmark(name: str) -> Iterator[Row]:
    benchmark = find("benchmarks", name)()
    runs = (str(_size(benchmark, preset)) for preset in benchmark.presets)
    yield (name, _title(name, benchmark), f"{'/'.join(runs)} runs")


def variants() -> Listing:
    """List the variants of every preset of every benchmark."""
    columns = ("name", "preset", "size", "variants", "only if named")
    return _listing("benchmarks", columns, _presets)


def _presets(name: str) -> Iterator[Row]:
    benchmark = find("benchmarks", name)()
    for preset in benchmark.presets.values():
        variants, further = (
            ", ".join(_series(variant.name for variant in group))
            for group in (preset.variants, preset.further)
        )
        runs = _size(benchmark, preset.name)
        yield (name, preset.name, f"{runs} {plural(runs, 'run')}", variants, further)


def _size(benchmark: Benchmark, preset: str) -> int:
    return len(benchmark.plan(preset).runs)


def _title(name: str, benchmark: Benchmark) -> str:
    part = outside_parts("benchmarks").get(name)
    where = "" if part is None else f" (from {escape(part.where)})"
    return escape(benchmark.title) + where


def configs() -> Listing:
    """List every named set of options, for `qualms run --config`."""
    columns = ("name", "benchmark", "method", "options", "note")
    return _listing("benchmarks", columns, _configs)


def _configs(name: str) -> Iterator[Row]:
    for config, about in find("benchmarks", name)().configs.items():
        options = escape(" ".join(option_texts(about.options)))
        yield (config, name, about.method, options, escape(about.note))


def scores() -> Listing:
    """List every score with its label, direction and range."""
    from qualms import scores as shelf

    columns = ("name", "what", "label", "better", "range")
    outside = _listing("scores", columns, lambda n: _score(n, find("scores", n)))
    builtin = (row for name in shelf.__all__ for row in _score(name, vars(shelf)[name]))
    return outside._replace(rows=[*builtin, *outside.rows])


def _score(name: str, function: Any) -> Iterator[Row]:
    from qualms import scores as shelf

    try:
        about = shelf.about(function)
    except LookupError:  # a record or a curve, not a score
        return
    limits = f"{_limit(about.low)} to {_limit(about.high)}"
    yield (name, _what("scores", name, function), about.label, about.better, limits)


def readers() -> Listing:
    """List every layout of other programs that can be read."""
    return _parts("readers")


def corruptions() -> Listing:
    """List every corruption with its families and the images it is for."""
    columns = ("name", "what", "families", "images")
    return _listing("corruptions", columns, lambda name: [_corruption(name)])


def _corruption(name: str) -> Row:
    function = find("corruptions", name)
    part = function()
    images = ", ".join(IMAGES[axes] for axes in part.space)
    what = _what("corruptions", name, function)
    return (name, what, ", ".join(part.families), images)


TABLES: Mapping[str, Callable[[], Listing]] = {
    "methods": methods,
    "datasets": datasets,
    "benchmarks": benchmarks,
    "variants": variants,
    "configs": configs,
    "networks": networks,
    "scores": scores,
    "readers": readers,
    "corruptions": corruptions,
}


def shelves() -> Listing:
    """List what can be listed."""
    rows = []
    for name, listing in TABLES.items():
        what = (inspect.getdoc(listing) or "").removeprefix("List ").rstrip(".")
        rows.append((name, what))
    return Listing(("qualms list", "what it shows"), rows)


def _parts(shelf: str) -> Listing:
    columns = ("name", "what", "options")
    return _listing(shelf, columns, lambda name: [_part(shelf, name)])


def _listing(
    shelf: str, columns: tuple[str, ...], rows_of: Callable[[str], Iterable[Row]]
) -> Listing:
    """List all parts of a shelf; those from outside that fail are left out and told."""
    outside, rows, broken = outside_parts(shelf), list[Row](), []
    for name in names(shelf):
        try:
            rows += rows_of(name)
        except (ValueError, LookupError) as error:
            if name not in outside:
                raise
            broken.append(str(error))
    return Listing(columns, rows, tuple(broken))


def _part(shelf: str, name: str) -> Row:
    readable = shelf in _FROM_SOURCE and name not in outside_parts(shelf)
    part = _from_source(shelf, name) if readable else _imported(shelf, name)
    options = [
        option if value is inspect.Parameter.empty else f"{option}={_default(value)}"
        for option, value in part.defaults.items()
    ]
    runs = f"Takes the runs of {part.trained_as}." if part.trained_as else ""
    return (name, f"{part.what} {runs}".strip(), escape(", ".join(options)))


class _PartText(NamedTuple):
    """The text of a part in a listing."""

    what: str
    defaults: Mapping[str, Any]
    """Default of each option; `Parameter.empty` where there is none."""
    trained_as: str = ""
    """Method whose runs this one takes; '' for a part with runs of its own."""


def _imported(shelf: str, name: str) -> _PartText:
    function = find(shelf, name)
    options = options_of(function, shelf=shelf)
    defaults = {option: value.default for option, value in options.items()}
    try:
        lender = default_method(name).trained_as if shelf == "methods" else ""
    except ValueError:  # it has no default method, and is listed all the same
        lender = ""
    return _PartText(_what(shelf, name, function), defaults, lender)


def _from_source(shelf: str, name: str) -> _PartText:
    """Read a part of the package from its file.

    Arguments without a default, such as `channels`, are passed by the program.
    """
    tree = ast.parse(_source_file(shelf, name).read_text("utf-8"))
    (function,) = (
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name == name
    )
    options = zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
    defaults = {option.arg: _literal(value) for option, value in options if value}
    lenders = [
        keyword.value.value
        for keyword in ast.walk(function)
        if isinstance(keyword, ast.keyword) and keyword.arg == "trained_as"
        if isinstance(keyword.value, ast.Constant)
    ]
    what = escape((ast.get_docstring(function) or "").partition("\n")[0])
    return _PartText(what, defaults, str(*lenders))


def _source_file(shelf: str, name: str) -> Path:
    package = find_spec(f"qualms.{shelf}")
    assert package is not None
    assert package.submodule_search_locations is not None
    folder = Path(package.submodule_search_locations[0])
    file = folder / f"{name}.py"
    return file if file.exists() else folder / name / "__init__.py"


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return ast.unparse(node)


def _what(shelf: str, name: str, function: Callable[..., Any]) -> str:
    """Return the first sentence about a part, and its file if that is outside."""
    part = outside_parts(shelf).get(name)
    text = _first(function)
    return text if part is None else f"{text} (from {escape(part.where)})".strip()


def _first(function: Callable[..., Any]) -> str:
    return escape((inspect.getdoc(function) or "").partition("\n")[0])


def _default(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _limit(value: float) -> str:
    return f"{value:g}" if math.isfinite(value) else ("inf" if value > 0 else "-inf")
