"""Rows that a benchmark does not declare: other methods, and pools by name.

Any method of the shelf, or from outside, runs on a benchmark whose task it serves. The
benchmark says what rows such a method gets: alone, and in pools as large as its own. A
method that is trained as another one takes the runs of a row of that method.

`METHOD_ensemble` asks for the pools of any method or row, and `deep_ensemble` for those
of `map`. A benchmark that pools no runs gets such a row, and the seeds that it needs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from inspect import Parameter
from typing import TYPE_CHECKING, NamedTuple

from qualms.launch.options import options_of
from qualms.shelf import find, names, traits
from qualms.spec import Part
from qualms.study import RunPlan, TableRow

if TYPE_CHECKING:
    from qualms.methods import Method

POOLED = "_ensemble"
"""Suffix of the name of a method that asks for its pools."""
NICKNAMES = {"deep_ensemble": f"map{POOLED}"}
"""Pools that users know by another name."""
MEMBERS = 5
"""Runs of a pool where the benchmark pools none (Lakshminarayanan et al., 2017)."""


class ExtendedPlan(NamedTuple):
    """A plan with the rows that a user asks for."""

    plan: RunPlan
    names: tuple[str, ...]
    """Requested methods and rows; a pool is named by its rows."""


def with_extra_rows(
    plan: RunPlan, requested: Sequence[str], seeds: Sequence[int]
) -> ExtendedPlan:
    """Add rows for the requested methods and pools that a plan does not have.

    `seeds` are the requested seeds, () for the preset's.
    """
    row_names = list[str]()
    for name in requested:
        method = _pooled_method(plan, name)
        plan = _with_method(plan, method or name)
        if method:
            plan, rows = _with_pools(plan, method, seeds)
            row_names += rows
        else:
            row_names.append(name)
    return ExtendedPlan(plan, tuple(dict.fromkeys(row_names)))


def default_method(name: str) -> "Method":
    """Return the method `name` with its default options.

    Raises:
        ValueError: If it has an option without a default.
    """
    function = find("methods", name)
    required = [
        option
        for option, about in options_of(function).items()
        if about.default is Parameter.empty
    ]
    if required:
        raise ValueError(
            f"every option of a method must have a default, got none for"
            f" {', '.join(required)} of {name!r}; give it one"
        )
    method: Method = function()
    return method


def serving(task: str) -> list[str]:
    """Return the methods of the shelf that serve `task`."""
    return [name for name in names("methods") if _serves(name, task)]


def _serves(name: str, task: str) -> bool:
    try:
        return task in default_method(name).tasks
    except (ValueError, ImportError):
        return True  # requesting it shows the error


def methods_of(plan: RunPlan) -> list[str]:
    """Return the methods of the plan's rows, and of the rows whose weights they use."""
    lenders = [plan.row(row.weights_of) for row in plan.rows if row.weights_of]
    return list(dict.fromkeys(row.method.name for row in (*plan.rows, *lenders)))


def _pooled_method(plan: RunPlan, name: str) -> str:
    """Return the method whose pools `name` asks for; '' for any other request."""
    of_rows = {row.name: row.method.name for row in plan.every_row}
    shelf = {*of_rows.values(), *names("methods")}
    full_name = NICKNAMES.get(name, name)
    is_row = any(row.name == name for row in plan.rows)
    if is_row or name in shelf or not full_name.endswith(POOLED):
        return ""
    method = full_name.removesuffix(POOLED)
    return method if method in shelf else of_rows.get(method, "")


def _with_method(plan: RunPlan, name: str) -> RunPlan:
    """Return a plan with rows of the method `name`, if it has none and there is one."""
    used = {each for row in plan.every_row for each in (row.name, row.method.name)}
    if name in used or name not in names("methods"):
        return plan
    return _with_rows(plan, tuple(_method_rows(plan, name)))


def _with_rows(plan: RunPlan, rows: tuple[TableRow, ...]) -> RunPlan:
    extra_rows = (*plan.extra_rows, *rows)
    return replace(plan, rows=(*plan.rows, *rows), extra_rows=extra_rows)


def _method_rows(plan: RunPlan, name: str) -> Iterator[TableRow]:
    """Yield the rows that a benchmark gives a method that it does not have."""
    benchmark, method = plan.benchmark, default_method(name)
    if benchmark.task not in method.tasks:
        raise ValueError(
            f"{benchmark.name} is about {benchmark.task}, and {name!r} serves"
            f" {', '.join(sorted(method.tasks))}; leave it out"
        )
    sizes = {row.pool for row in plan.rows}
    for row in benchmark.guests:
        if row.pool in sizes:
            yield replace(
                row,
                name=row.name.format(method=name),
                label=row.label.format(method=name),
                method=Part(name=name, options=row.method.options),
                weights_of=_lender(plan, method.trained_as, row),
                trains=method.trains,
                beyond=True,
            )


def _lender(plan: RunPlan, method: str, guest: TableRow) -> str:
    """Return the row whose runs a guest would otherwise train itself; '' for none."""
    lenders = [
        row
        for row in plan.every_row
        if row.method == Part(name=method, options=guest.method.options)
        if row.network == guest.network
        if not (row.stage or row.weights_of or row.trained_by)
    ]
    return min(lenders, key=lambda row: row.pool).name if lenders else ""


def _with_pools(
    plan: RunPlan, method: str, seeds: Sequence[int]
) -> tuple[RunPlan, list[str]]:
    """Return a plan with pools of a method, and the names of all such rows."""
    pooled = [r.name for r in plan.rows if r.pool > 1 and r.method.name == method]
    if pooled:
        return plan, pooled
    if "vectors" in traits(plan.benchmark.task):
        raise ValueError(
            f"{plan.benchmark.name} is about embeddings, and those of different"
            f" networks cannot be pooled, got {method}{POOLED}; take 'head_ensemble'"
        )
    largest = max(row.pool for row in plan.rows)
    requested = max(2, len(set(seeds))) if seeds else MEMBERS
    alone = next(row for row in plan.every_row if row.method.name == method)
    row = replace(
        alone,
        name=f"{alone.name}{POOLED}",
        label=f"{alone.label} Ensemble",
        pool=largest if largest > 1 else requested,
        beyond=True,
    )
    return _with_rows(_with_members(plan, row.pool), (row,)), [row.name]


def _with_members(plan: RunPlan, size: int) -> RunPlan:
    """Return a plan with seeds for pools of `size`; rows that pool none stay.

    Pools share no seed, and there are as many as the seeds of the plan fill.
    """
    if all(len(pool) >= size for pool in plan.pools):
        return plan
    more = (seed for seed in range(len(plan.seeds) + size) if seed not in plan.seeds)
    seeds = plan.seeds
    while len(seeds) < size:
        seeds = (*seeds, next(more))
    starts = range(0, len(seeds) - size + 1, size)
    return replace(
        plan,
        seeds=seeds,
        alone=plan.alone or tuple(pool[0] for pool in plan.pools),
        pools=tuple(seeds[start : start + size] for start in starts),
    )
