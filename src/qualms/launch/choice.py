"""The part of a benchmark that a user asks for.

The result is again a benchmark and a preset, changed as the user asked. This pair says
both which runs are made and how they are judged.
"""

import fnmatch
import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from qualms.benchmarks import (
    Benchmark,
    Expectation,
    GivenData,
    Preset,
    TableRow,
    pools_of,
)
from qualms.launch._selections import Unchanged, check_config, check_rules
from qualms.launch.data import data_key
from qualms.launch.guests import methods_of, serving, with_guests
from qualms.launch.options import written
from qualms.launch.overrides import data_of, with_options
from qualms.shelf import find, names
from qualms.spec import RunSpec
from qualms.wording import suggest

Declared = Callable[..., Benchmark]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a user asks for, by name; empty means everything."""

    preset: str = "demo"
    config: str = ""
    variants: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    """Methods, or rows of tables."""
    seeds: tuple[int, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    """`epochs` is an option of the loop, `method.rate`, `network.width` and
    `dataset.sizes` are options of these parts."""
    given: GivenData | None = None
    """Data that the user brings; its benchmark has one preset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A benchmark with the preset that is run; both as the user changed them."""

    benchmark: Benchmark
    preset: Preset
    dropped: tuple[str, ...] = ()
    """Rows left out because they pool more runs than there are seeds."""
    part: str = ""
    """How this differs from the preset that the benchmark declares, in words; '' if it
    does not."""

    @property
    def runs(self) -> tuple[RunSpec, ...]:
        """Every training it needs, each once."""
        return self.benchmark.runs(self.preset)


def choice_of(name: str, wish: Wish) -> Choice:
    """The part of benchmark `name` that a user asks for.

    Raises:
        LookupError: If something that is asked for by name does not exist.
        ValueError: If options or configs belong to another selection of epochs and
            configurations than the tables would state.
    """
    benchmark = _declared(find("benchmarks", name), wish.given)
    asked = wish.preset if wish.given is None else wish.given.name
    preset = benchmark.presets[_known(asked, benchmark.presets, "presets", name)]
    declared = Unchanged(benchmark, preset)
    preset = replace(preset, changed=tuple(_changed(wish)))
    preset = _with_variants(benchmark, preset, wish.variants)
    options = dict(wish.options)
    if wish.config:
        config = _known(wish.config, benchmark.configs, "configs", name)
        check_config(declared, preset, config)
        preset, options = _with_config(benchmark, preset, config, options)
    benchmark, preset, methods = with_guests(
        benchmark, preset, wish.methods, wish.seeds
    )
    preset = _with_methods(benchmark, preset, methods)
    _check_taken(benchmark, preset, wish.config)
    rows = preset.rows
    preset = _with_seeds(benchmark, preset, wish.seeds)
    dropped = tuple(row for row in rows if row not in preset.rows)
    benchmark, preset = with_options(benchmark, preset, options)
    check_rules(declared, benchmark, preset)
    # Of data that a user brings, what is asked for is the whole.
    whole = preset if wish.given else declared.preset
    return Choice(
        benchmark=_with_expectations(benchmark, preset),
        preset=preset,
        dropped=dropped,
        part=", ".join(_differences(whole, preset, wish)),
    )


def _differences(declared: Preset, chosen: Preset, wish: Wish) -> Iterator[str]:
    """The differences between what is chosen and the declared preset, in words."""
    variants = [variant.name for variant in chosen.variants]
    if variants != [variant.name for variant in declared.variants]:
        yield from variants
    if wish.methods and chosen.rows != declared.rows:
        yield from wish.methods
    if set(chosen.seeds) != set(declared.seeds):
        yield f"seeds {' '.join(_ranges(chosen.seeds))}"
    if chosen is not declared:
        yield from chosen.changed


def _ranges(numbers: Sequence[int]) -> Iterator[str]:
    """Numbers in words, e.g. 0-4 and 7."""
    left = sorted(numbers)
    while left:
        end = next(i for i, n in enumerate((*left[1:], None), 1) if n != left[0] + i)
        yield f"{left[0]}-{left[end - 1]}" if end > 1 else f"{left[0]}"
        del left[:end]


def _changed(wish: Wish) -> Iterator[str]:
    """What a user changes of the preset's runs, in words."""
    if wish.config:
        yield f"config {wish.config}"
    yield from written(wish.options)


def everything(target: str, wish: Wish) -> list[Choice]:
    """The choices that `target` names: BENCHMARK, BENCHMARK/VARIANT, or '' for all.

    '' with methods is every benchmark that has at least one of them.
    """
    name, _, variants = target.partition("/")
    chosen = tuple(variant for variant in variants.split(",") if variant)
    wish = replace(wish, variants=chosen)
    shelf = names("benchmarks")
    every = [n for n in shelf if not _takes_data(find("benchmarks", n))]
    if name or not wish.methods:
        return [choice_of(n, wish) for n in ([name] if name else every)]
    known = {name: _methods(find("benchmarks", name)()) for name in every}
    for method in wish.methods:
        _known(method, dict.fromkeys(chain(*known.values())), "methods", "benchmarks")
    own = {n: tuple(m for m in wish.methods if m in known[n]) for n in known}
    return [choice_of(n, replace(wish, methods=m)) for n, m in own.items() if m]


def without(choice: Choice, missing: Collection[str]) -> Choice:
    """`choice` without the variants that need a dataset whose key is in `missing`."""
    left = [
        variant
        for variant in choice.preset.variants
        if not any(data_key(part) in missing for part in data_of(variant))
    ]
    preset = replace(choice.preset, variants=tuple(left))
    benchmark = _with_expectations(choice.benchmark, preset)
    return replace(choice, benchmark=benchmark, preset=preset)


def _known(name: str, known: Collection[str], what: str, where: str) -> str:
    if name not in known:
        listed = ", ".join(known) or "none"
        raise LookupError(
            f"no {name!r} in the {what} of {where}.{suggest(name, known)}"
            f" Known: {listed}."
        )
    return name


def _with_variants(
    benchmark: Benchmark, preset: Preset, asked: Sequence[str]
) -> Preset:
    if not asked:
        return preset
    known = {v.name: v for v in (*preset.variants, *preset.further)}
    where = f"{benchmark.name}, preset {preset.name}"
    # A pattern such as screening_* stands for all variants that fit it.
    wanted = chain(*(fnmatch.filter(known, name) or [name] for name in asked))
    chosen = [known[_known(name, known, "variants", where)] for name in wanted]
    return replace(preset, variants=tuple(chosen))


def _with_config(
    benchmark: Benchmark, preset: Preset, name: str, options: Mapping[str, Any]
) -> tuple[Preset, dict[str, Any]]:
    """The preset whose runs use the config, and the options that all runs get."""
    config = benchmark.configs[name]
    if not config.method:
        return preset, {**config.options, **options}
    variants = tuple(
        replace(variant, configs={**variant.configs, config.method: name})
        for variant in preset.variants
    )
    return replace(preset, variants=variants), dict(options)


def _check_taken(benchmark: Benchmark, preset: Preset, name: str) -> None:
    """Raise if the config `name` is for a method that is not run."""
    method = benchmark.configs[name].method if name else ""
    methods = methods_of(benchmark, preset.rows)
    if method and method not in methods:
        raise ValueError(
            f"config {name!r} is for {method!r}, which is not among the methods to run"
            f" ({', '.join(methods)}); ask for it with --methods, or leave it out"
        )


def _with_methods(benchmark: Benchmark, preset: Preset, asked: Sequence[str]) -> Preset:
    if not asked:
        return preset
    rows = [benchmark.row(name) for name in preset.rows]
    chosen: set[str] = set()
    for name in asked:
        # A user may ask for a row that the preset does not have.
        found = _rows_of(name, rows) or _rows_of(name, benchmark.rows)
        if not found:
            known = dict.fromkeys((*_methods(benchmark), *serving(benchmark.task)))
            _known(name, known, "methods", benchmark.name)
        chosen.update(found)
    ordered = dict.fromkeys((*preset.rows, *(row.name for row in benchmark.rows)))
    kept = tuple(name for name in ordered if name in chosen)
    _check_judged(benchmark, preset, kept)
    return replace(preset, rows=kept)


def _check_judged(benchmark: Benchmark, preset: Preset, rows: Sequence[str]) -> None:
    """Raise if none of `rows` is judged on any of the variants that are run."""
    if any(not v.rows or set(v.rows) & set(rows) for v in preset.variants):
        return
    homes = [
        f"{benchmark.name}/{variant.name} --preset {home.name}"
        for home in benchmark.presets.values()
        for variant in (*home.variants, *home.further)
        if set(variant.rows) & set(rows)
    ]
    run = ", ".join(variant.name for variant in preset.variants)
    raise ValueError(
        f"a row must belong to a variant that is run, and {run} of preset "
        f"{preset.name} has no {' or '.join(rows)}; ask for one of: "
        f"{', '.join(homes[:6])}"
    )


def _methods(benchmark: Benchmark) -> dict[str, None]:
    """The names that a user may ask for: methods, then rows."""
    methods = [row.method.name for row in benchmark.rows]
    return dict.fromkeys([*methods, *(row.name for row in benchmark.rows)])


def _rows_of(name: str, rows: Sequence[TableRow]) -> list[str]:
    """The rows that `name` asks for: of a method, its first trainings."""
    second = {row.name for row in rows if row.stage is not None}
    second |= {row.name for row in rows if row.weights_of in second}
    return [
        row.name
        for row in rows
        if row.name == name or (row.method.name == name and row.name not in second)
    ]


def _with_seeds(benchmark: Benchmark, preset: Preset, seeds: Sequence[int]) -> Preset:
    """The preset with other seeds: all of them are run, and pooled where rows pool.

    Pools of the preset stay where the seeds fill them. Seeds that it does not have, or
    that no pool of it would use, are pooled in turns: 0 1 2, 1 2 0, 2 0 1.
    """
    if not seeds:
        return preset
    order = tuple(dict.fromkeys(seeds))
    if set(order) == set(preset.seeds):
        return replace(preset, seeds=order)
    rows = tuple(n for n in preset.rows if benchmark.row(n).pool <= len(order))
    if not rows:
        least = min(benchmark.row(name).pool for name in preset.rows)
        raise ValueError(
            f"{' and '.join(preset.rows)} pool at least {least} runs with different"
            f" seeds, got {len(order)}; list more with --seeds"
        )
    alone = order if preset.alone else ()
    preset = replace(preset, seeds=order, alone=alone, rows=rows)
    kept = tuple(pool for pool in preset.pools if set(pool) <= set(order))
    declared = replace(preset, pools=kept)
    if kept and _uses_all(benchmark, declared):
        return declared
    turns = tuple(order[i:] + order[:i] for i in range(len(order)))
    return replace(preset, pools=turns)


def _uses_all(benchmark: Benchmark, preset: Preset) -> bool:
    """Whether every seed of the preset has a run of a row with the largest pools."""
    rows = [benchmark.row(name) for name in preset.rows]
    largest = max(row.pool for row in rows)
    used = {
        seed
        for row in rows
        if row.pool == largest
        for pool in pools_of(preset, row)
        for seed in pool
    }
    return used >= set(preset.seeds)


def _with_expectations(benchmark: Benchmark, preset: Preset) -> Benchmark:
    """The benchmark with those expected effects that the preset can show."""
    variants = {variant.name for variant in preset.variants}
    kept = [
        shown
        for expected in benchmark.expectations.get(preset.name, ())
        if {expected.variant, expected.minus} - {""} <= variants
        if (shown := _of_rows(expected, preset.rows)).rows
    ]
    return replace(
        benchmark, expectations={**benchmark.expectations, preset.name: tuple(kept)}
    )


def _of_rows(expected: Expectation, rows: Collection[str]) -> Expectation:
    """`expected` for those of its rows that are run, with what is subtracted."""
    pairs = {a: b for a, b in expected.pairs.items() if {a, b} <= set(rows)}
    minus = tuple(pairs.values()) if expected.minus_rows else ()
    return replace(expected, rows=tuple(pairs), minus_rows=minus)


def _declared(function: Declared, given: GivenData | None) -> Benchmark:
    """What `function` declares, of the data that are given where it takes them."""
    check_data(function, given=given is not None)
    return function() if given is None else function(given=given)


def check_data(function: Declared, *, given: bool) -> None:
    """Raise if a benchmark takes data and none are given, or the reverse."""
    takes, name = _takes_data(function), function.__name__
    if takes and not given:
        raise ValueError(
            f"{name} is about your own data: name a folder, a table in CSV or a TOML"
            " file with --from (docs/own_data.md)"
        )
    if given and not takes:
        shelf = names("benchmarks")
        own = [other for other in shelf if _takes_data(find("benchmarks", other))]
        raise ValueError(
            f"{name} has data of its own: leave out --from, or run {' or '.join(own)}"
        )


def _takes_data(function: Declared) -> bool:
    """Whether a benchmark is about data that a user brings."""
    return "given" in inspect.signature(function).parameters
