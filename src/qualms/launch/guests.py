"""The rows that a user asks for by the name of a method, of a row, or of a pool.

Any method of the shelf, or from outside, runs on a benchmark whose task it serves. The
benchmark says what rows such a guest gets: alone, and in pools as large as its own. A
guest that is trained as another method takes the runs of a row of that method.

`METHOD_ensemble` asks for the pools of any method or row, and `deep_ensemble` for those
of `map`. A benchmark that pools no runs gets such a row, and the seeds that it needs.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from inspect import Parameter
from typing import TYPE_CHECKING, NamedTuple

from qualms.benchmarks import Benchmark, Preset, TableRow
from qualms.launch.options import options_of
from qualms.shelf import find, names
from qualms.spec import Part

if TYPE_CHECKING:
    from qualms.methods import Method

POOLED = "_ensemble"
"""How the name of a method goes on to ask for its pools."""
NICKNAMES = {"deep_ensemble": f"map{POOLED}"}
"""Pools that users know by another name."""
MEMBERS = 5
"""Runs of a pool where the benchmark pools none (Lakshminarayanan et al., 2017)."""


class Hosted(NamedTuple):
    """A benchmark with the rows that were asked for."""

    benchmark: Benchmark
    preset: Preset
    asked: tuple[str, ...]
    """Names of methods and rows; a pool is named by its rows."""


def with_guests(
    benchmark: Benchmark, preset: Preset, asked: Sequence[str], seeds: Sequence[int]
) -> Hosted:
    """The benchmark and preset, with rows for those of `asked` that they lack.

    `seeds` are those that the user asks for, () for the preset's.
    """
    host, found = Hosted(benchmark, preset, ()), list[str]()
    for name in asked:
        method = _pooled_method(host, name)
        host = _with_guest(host, method or name)
        if method:
            host, rows = _with_pools(host, method, seeds)
            found += rows
        else:
            found.append(name)
    return host._replace(asked=tuple(dict.fromkeys(found)))


def default_method(name: str) -> "Method":
    """The method `name` with its default options.

    Raises:
        ValueError: If it has an option without a default.
    """
    function = find("methods", name)
    lacking = [
        option
        for option, about in options_of(function).items()
        if about.default is Parameter.empty
    ]
    if lacking:
        raise ValueError(
            f"every option of a method must have a default, got none for"
            f" {', '.join(lacking)} of {name!r}; give it one"
        )
    made: Method = function()
    return made


def serving(task: str) -> list[str]:
    """The methods of the shelf that serve `task`."""
    return [name for name in names("methods") if _serves(name, task)]


def _serves(name: str, task: str) -> bool:
    try:
        return task in default_method(name).tasks
    except (ValueError, ImportError):
        return True  # nobody knows until it can be made; asking for it says why


def methods_of(benchmark: Benchmark, rows: Collection[str]) -> list[str]:
    """The methods of the runs of some rows, and of the runs whose weights these use."""
    chosen = [benchmark.row(name) for name in rows]
    chosen += [benchmark.row(row.weights_of) for row in chosen if row.weights_of]
    return list(dict.fromkeys(row.method.name for row in chosen))


def _pooled_method(host: Hosted, name: str) -> str:
    """The method whose pools `name` asks for; '' where it asks for something else."""
    own = {row.name: row.method.name for row in host.benchmark.rows}
    shelf = {*own.values(), *names("methods")}
    whole = NICKNAMES.get(name, name)
    if name in host.preset.rows or name in shelf or not whole.endswith(POOLED):
        return ""
    method = whole.removesuffix(POOLED)
    return method if method in shelf else own.get(method, "")


def _with_guest(host: Hosted, name: str) -> Hosted:
    """`host` with rows of the method `name`, where it is one that it does not have."""
    benchmark, preset, _ = host
    known = {each for row in benchmark.rows for each in (row.name, row.method.name)}
    if name in known or name not in names("methods"):
        return host
    sizes = {benchmark.row(row).pool for row in preset.rows}
    return _with_rows(host, tuple(_guest_rows(benchmark, name, sizes)))


def _with_rows(host: Hosted, rows: tuple[TableRow, ...]) -> Hosted:
    own = tuple(row.name for row in rows)
    variants = tuple(
        replace(variant, rows=(*variant.rows, *own)) if variant.rows else variant
        for variant in host.preset.variants
    )
    return host._replace(
        benchmark=replace(host.benchmark, rows=(*host.benchmark.rows, *rows)),
        preset=replace(host.preset, rows=(*host.preset.rows, *own), variants=variants),
    )


def _guest_rows(
    benchmark: Benchmark, method: str, sizes: set[int]
) -> Iterator[TableRow]:
    made = default_method(method)
    if benchmark.task not in made.tasks:
        raise ValueError(
            f"{benchmark.name} is about {benchmark.task}, and {method!r} serves"
            f" {', '.join(sorted(made.tasks))}; leave it out"
        )
    for row in benchmark.guests:
        if row.pool in sizes:
            yield replace(
                row,
                name=row.name.format(method=method),
                label=row.label.format(method=method),
                method=Part(name=method, options=row.method.options),
                weights_of=_lender(benchmark, made.trained_as, row),
                beyond=True,
            )


def _lender(benchmark: Benchmark, method: str, guest: TableRow) -> str:
    """The row whose runs are those that a guest would train itself; '' for none."""
    fitting = [
        row
        for row in benchmark.rows
        if row.method == Part(name=method, options=guest.method.options)
        if row.network == guest.network
        if not (row.stage or row.weights_of or row.trained_by)
    ]
    return min(fitting, key=lambda row: row.pool).name if fitting else ""


def _with_pools(
    host: Hosted, method: str, seeds: Sequence[int]
) -> tuple[Hosted, list[str]]:
    """`host` with a row that pools runs of `method`, and the names of all such rows."""
    rows = [host.benchmark.row(name) for name in host.preset.rows]
    pooled = [row.name for row in rows if row.pool > 1 and row.method.name == method]
    if pooled:
        return host, pooled
    if host.benchmark.task == "embedding":
        raise ValueError(
            f"{host.benchmark.name} is about embeddings, and those of different"
            f" networks cannot be pooled, got {method}{POOLED}; take 'head_ensemble'"
        )
    largest = max(row.pool for row in rows)
    asked = max(2, len(set(seeds))) if seeds else MEMBERS
    alone = next(row for row in host.benchmark.rows if row.method.name == method)
    row = replace(
        alone,
        name=f"{alone.name}{POOLED}",
        label=f"{alone.label} Ensemble",
        pool=largest if largest > 1 else asked,
        beyond=True,
    )
    preset = _with_members(host.preset, row.pool)
    return _with_rows(host._replace(preset=preset), (row,)), [row.name]


def _with_members(preset: Preset, size: int) -> Preset:
    """The preset with seeds for pools of `size`; rows that pool none stay as they are.

    Pools share no seed, and there are as many as the seeds of the preset fill.
    """
    if all(len(pool) >= size for pool in preset.pools):
        return preset
    more = (
        seed for seed in range(len(preset.seeds) + size) if seed not in preset.seeds
    )
    seeds = preset.seeds
    while len(seeds) < size:
        seeds = (*seeds, next(more))
    starts = range(0, len(seeds) - size + 1, size)
    return replace(
        preset,
        seeds=seeds,
        alone=preset.alone or tuple(pool[0] for pool in preset.pools),
        pools=tuple(seeds[start : start + size] for start in starts),
    )
