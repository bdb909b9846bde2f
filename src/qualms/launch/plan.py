"""From a request to a plan: which part of a benchmark is run and judged.

A plan chooses among the declared variants, rows and seeds of a preset, adds rows for
methods that the benchmark does not have, and keeps the options that a user sets beside
the declared ones.
"""

import fnmatch
import inspect
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from qualms.launch._config_file import (
    ConfigFile,
    check_config_options,
    is_config_file,
    read_config,
    with_config,
)
from qualms.launch._extra_rows import methods_of, serving, with_extra_rows
from qualms.launch._frozen import FROZEN, with_frozen_rows, with_network
from qualms.launch._overrides import with_options
from qualms.launch._selections import check_config, check_rules
from qualms.launch.data import data_key
from qualms.launch.options import option_texts
from qualms.shelf import broken, find, names
from qualms.study import USUAL_SEEDS, Benchmark, GivenData, RunPlan, TableRow
from qualms.wording import suggest

Declared = Callable[..., Benchmark]
"""The function of a benchmark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """The requested part of a benchmark, by names; empty for everything."""

    preset: str = "demo"
    config: str = ""
    """Name of a config of the benchmark, or a file that ends with .toml."""
    variants: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    """Methods, or rows of tables."""
    seeds: tuple[int, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    """`epochs` is an option of training; `method.rate`, `network.width` and
    `dataset.sizes` are options of these parts."""
    network: str = ""
    """Name of the network, in place of the benchmark's."""
    frozen: bool = False
    """True to keep the network's weights as they are: only rows that train nothing."""
    given: GivenData | None = None
    """Data that the user brings; their benchmark has one preset."""
    corruptions: tuple[str, ...] = ()
    """Corruptions of their test items: names, families or patterns."""
    severities: tuple[int, ...] = ()
    """From 1 to 5; () for all of them."""


def plan_of(name: str, request: RunRequest) -> RunPlan:
    """Return the requested part of benchmark `name`.

    Raises:
        LookupError: If a name in the request does not exist.
        ValueError: If options or configs belong to another selection of epochs and
            configurations than the tables would state.
    """
    benchmark = _declared(find("benchmarks", name), request.given)
    file = _config_file(request)
    if file is not None:
        benchmark = with_config(benchmark, file, request.config)
        request = replace(request, config=file.name)
    preset = request.preset if request.given is None else request.given.name
    full_plan = benchmark.plan(_checked(preset, benchmark.presets, "presets", name))
    plan = replace(full_plan, changes=tuple(_changes(request)))
    options = {**({} if file is None else file.shared), **request.options}
    plan = _with_network(_with_variants(plan, request.variants), request, options)
    if request.config:
        config = _checked(request.config, benchmark.configs, "configs", name)
        check_config(plan, config)
        if benchmark.configs[config].method:
            overrides = replace(plan.overrides, config=config)
            plan = replace(plan, overrides=overrides)
        else:
            options = {**benchmark.configs[config].options, **options}
    plan, methods = with_extra_rows(plan, _methods_asked(request), request.seeds)
    plan = _with_methods(plan, methods)
    _check_config_used(plan)
    if file is not None:
        check_config_options(plan, file)
    rows = plan.rows
    plan = _with_seeds(plan, _seeds_asked(plan, request))
    plan = with_options(plan, options)
    part = _differences(full_plan, plan, request)
    plan = replace(
        plan,
        left_out=tuple(row.name for row in rows if row not in plan.rows),
        part=", ".join(part),
    )
    check_rules(plan)
    return plan


def _with_network(
    plan: RunPlan, request: RunRequest, options: Mapping[str, Any]
) -> RunPlan:
    """Return the plan with the requested network, frozen if that is asked for."""
    if request.network:
        plan = with_network(plan, request.network, frozen=request.frozen)
    if request.frozen:
        plan = with_frozen_rows(plan, request.methods, options)
    return plan


def _seeds_asked(plan: RunPlan, request: RunRequest) -> tuple[int, ...]:
    """Return the requested seeds; one for what is not trained, as all are alike."""
    return request.seeds or (plan.seeds[:1] if request.frozen else ())


def _methods_asked(request: RunRequest) -> tuple[str, ...]:
    """Return the requested methods and rows; () for those of the preset."""
    return request.methods or ((FROZEN,) if request.frozen else ())


def plans_of(target: str, request: RunRequest) -> list[RunPlan]:
    """Return the plans that BENCHMARK, BENCHMARK/VARIANT, or '' for all stands for.

    '' with methods is every benchmark that has at least one of them.
    """
    name, _, variants = target.partition("/")
    chosen = tuple(variant for variant in variants.split(",") if variant)
    request = replace(request, variants=chosen)
    if name:
        return [plan_of(name, request)]
    shelf = _benchmarks()
    every = [n for n in shelf if not _takes_data(find("benchmarks", n))]
    if not request.methods:
        return [plan_of(n, request) for n in every]
    serves = {name: _methods(find("benchmarks", name)()) for name in every}
    for method in request.methods:
        _checked(
            method, dict.fromkeys(chain(*serves.values())), "methods", "benchmarks"
        )
    shared = {n: tuple(m for m in request.methods if m in serves[n]) for n in serves}
    return [plan_of(n, replace(request, methods=m)) for n, m in shared.items() if m]


def parse_seeds(text: str) -> tuple[int, ...]:
    """Parse seeds from a text such as 0-4 or 0,2,7.

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


def parse_names(text: str, what: str = "methods") -> tuple[str, ...]:
    """Parse names from a text such as map,gaussian; `what` they are, for messages.

    >>> parse_names("map, gaussian")
    ('map', 'gaussian')
    """
    names = tuple(filter(None, (part.strip() for part in text.split(","))))
    if text and not names:
        raise ValueError(f"{what} must name at least one, got {text!r}")
    if apart := next((name for name in names if len(name.split()) > 1), None):
        raise ValueError(
            f"{what} must be separated by commas, got {apart!r}; write"
            f" {','.join(apart.split())}"
        )
    return names


def without_datasets(plan: RunPlan, keys: Collection[str]) -> RunPlan:
    """Return the plan without the variants that read a dataset with one of the keys."""
    variants = tuple(
        variant
        for variant in plan.variants
        if not any(data_key(part) in keys for part in variant.parts)
    )
    return replace(plan, variants=variants)


def check_data(function: Declared, *, has_data: bool) -> None:
    """Raise if a benchmark takes data and none are given, or the reverse."""
    takes, name = _takes_data(function), function.__name__
    if takes and not has_data:
        raise ValueError(
            f"{name} is about your own data: name a folder, a table in CSV or a TOML"
            " file with --from (`qualms docs own_data`)"
        )
    if has_data and not takes:
        shelf = _benchmarks()
        taking = [other for other in shelf if _takes_data(find("benchmarks", other))]
        raise ValueError(
            f"{name} has data of its own: leave out --from, or run"
            f" {' or '.join(taking)}"
        )


def _benchmarks() -> list[str]:
    """Return the benchmarks that can be loaded."""
    wrong = broken("benchmarks")
    return [name for name in names("benchmarks") if name not in wrong]


def _declared(function: Declared, data: GivenData | None) -> Benchmark:
    """Return the benchmark that a function declares, of given data if it takes them."""
    check_data(function, has_data=data is not None)
    return function() if data is None else function(given=data)


def _takes_data(function: Declared) -> bool:
    """Return whether a benchmark is about data that a user brings."""
    return "given" in inspect.signature(function).parameters


def _checked(name: str, choices: Collection[str], kind: str, owner: str) -> str:
    """Return `name`; raise unless it is one of the choices."""
    if name not in choices:
        listed = ", ".join(choices) or "none"
        raise LookupError(
            f"no {name!r} in the {kind} of {owner}.{suggest(name, choices)}"
            f" Known: {listed}."
        )
    return name


def _config_file(request: RunRequest) -> ConfigFile | None:
    """Return the config that a request names as a file; None where it names none."""
    if not is_config_file(request.config):
        return None
    return read_config(Path(request.config))


def _changes(request: RunRequest) -> Iterator[str]:
    """Yield what a user changes of the preset's runs, in words."""
    if request.config:
        yield f"config {request.config}"
    if request.given is not None and request.given.network is not None:
        yield f"network.name={request.given.network.name}"
    if request.network:
        yield f"network.name={request.network}"
    if request.frozen:
        yield "frozen"
    yield from option_texts(request.options)


def _differences(
    declared: RunPlan, plan: RunPlan, request: RunRequest
) -> Iterator[str]:
    """Yield the differences between a plan and its whole preset, in words."""
    variants = [variant.name for variant in plan.variants]
    if variants != [variant.name for variant in declared.variants]:
        yield from variants
    if request.methods and plan.rows != declared.rows:
        yield from request.methods
    # The preset of data that a user brings has the seeds that are asked for.
    usual = declared.seeds if request.given is None else USUAL_SEEDS
    if set(plan.seeds) != set(usual):
        yield f"seeds {' '.join(_ranges(plan.seeds))}"
    yield from plan.changes


def _ranges(numbers: Sequence[int]) -> Iterator[str]:
    """Yield numbers in words, e.g. 0-4 and 7."""
    left = sorted(numbers)
    while left:
        end = next(i for i, n in enumerate((*left[1:], None), 1) if n != left[0] + i)
        yield f"{left[0]}-{left[end - 1]}" if end > 1 else f"{left[0]}"
        del left[:end]


def _with_variants(plan: RunPlan, requested: Sequence[str]) -> RunPlan:
    if not requested:
        return plan
    by_name = {variant.name: variant for variant in plan.preset.every_variant}
    where = f"{plan.benchmark.name}, preset {plan.preset.name}"
    # A pattern such as screening_* stands for all variants that fit it.
    wanted = chain(*(fnmatch.filter(by_name, name) or [name] for name in requested))
    variants = [by_name[_checked(name, by_name, "variants", where)] for name in wanted]
    return replace(plan, variants=tuple(variants))


def _check_config_used(plan: RunPlan) -> None:
    """Raise if the plan has a config for a method that is not run."""
    name, methods = plan.overrides.config, methods_of(plan)
    method = plan.benchmark.configs[name].method if name else ""
    if method and method not in methods:
        raise ValueError(
            f"config {name!r} is for {method!r}, which is not among the methods to run"
            f" ({', '.join(methods)}); ask for it with --methods, or leave it out"
        )


def _with_methods(plan: RunPlan, requested: Sequence[str]) -> RunPlan:
    if not requested:
        return plan
    chosen: set[str] = set()
    for name in requested:
        # A user may request a row that the preset does not have.
        row_names = _rows_of(name, plan.rows) or _rows_of(name, plan.every_row)
        if not row_names:
            methods = (*_methods(plan.benchmark), *serving(plan.benchmark.task))
            _checked(name, dict.fromkeys(methods), "methods", plan.benchmark.name)
        chosen.update(row_names)
    ordered = {row.name: row for row in (*plan.rows, *plan.every_row)}
    rows = tuple(row for name, row in ordered.items() if name in chosen)
    plan = replace(plan, rows=rows)
    _check_judged(plan)
    return plan


def _check_judged(plan: RunPlan) -> None:
    """Raise if none of the rows is judged on any of the variants that are run."""
    if any(plan.rows_allowed(variant) for variant in plan.variants):
        return
    benchmark = plan.benchmark
    rows = [row.name for row in plan.rows]
    homes = [
        f"{benchmark.name}/{variant.name} --preset {preset.name}"
        for preset in benchmark.presets.values()
        for variant in preset.every_variant
        if set(variant.rows) & set(rows)
    ]
    variants = ", ".join(variant.name for variant in plan.variants)
    raise ValueError(
        f"a row must belong to a variant that is run, and {variants} of preset "
        f"{plan.preset.name} has no {' or '.join(rows)}; ask for one of: "
        f"{', '.join(homes[:6])}"
    )


def _methods(benchmark: Benchmark) -> dict[str, None]:
    """Return the names that a user may ask for: methods, then rows."""
    methods = [row.method.name for row in benchmark.rows]
    return dict.fromkeys([*methods, *(row.name for row in benchmark.rows)])


def _rows_of(name: str, rows: Sequence[TableRow]) -> list[str]:
    """Return the rows that a name asks for: all first trainings of a method."""
    second = {row.name for row in rows if row.stage is not None}
    second |= {row.name for row in rows if row.weights_of in second}
    return [
        row.name
        for row in rows
        if row.name == name or (row.method.name == name and row.name not in second)
    ]


def _with_seeds(plan: RunPlan, seeds: Sequence[int]) -> RunPlan:
    """Return the plan with other seeds: all are run, and pooled where rows pool.

    Pools of the preset stay where the seeds fill them. Seeds that it does not have, or
    that no pool of it would use, are pooled in turns: 0 1 2, 1 2 0, 2 0 1.
    """
    if not seeds:
        return plan
    order = tuple(dict.fromkeys(seeds))
    if set(order) == set(plan.seeds):
        return replace(plan, seeds=order)
    rows = tuple(row for row in plan.rows if row.pool <= len(order))
    if not rows:
        raise ValueError(
            f"{' and '.join(row.name for row in plan.rows)} pool at least"
            f" {min(row.pool for row in plan.rows)} runs with different seeds, got"
            f" {len(order)}; list more with --seeds"
        )
    alone = order if plan.alone else ()
    pools = tuple(pool for pool in plan.pools if set(pool) <= set(order))
    plan = replace(plan, seeds=order, alone=alone, rows=rows, pools=pools)
    if pools and _uses_all_seeds(plan):
        return plan
    turns = tuple(order[i:] + order[:i] for i in range(len(order)))
    return replace(plan, pools=turns)


def _uses_all_seeds(plan: RunPlan) -> bool:
    """Return whether every seed has a run of a row with the largest pools."""
    largest = max(row.pool for row in plan.rows)
    pooled = (plan.pools_of(row) for row in plan.rows if row.pool == largest)
    return {seed for pools in pooled for pool in pools for seed in pool} >= set(
        plan.seeds
    )
