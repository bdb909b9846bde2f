"""The part of a benchmark that a user asks for.

The result is again a benchmark and a preset, changed as the user asked. This pair says
both which runs are made and how they are judged.
"""

import fnmatch
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from qualms.benchmarks import (
    Benchmark,
    Expectation,
    Preset,
    TableRow,
    Variant,
    pools_of,
)
from qualms.launch._selections import Unchanged, check_config, check_rules
from qualms.launch.data import data_key
from qualms.launch.guests import methods_of, with_guests
from qualms.launch.options import changed_part, check_options, options_of, written
from qualms.shelf import find, names, suggest
from qualms.spec import Part, RunSpec

SHELVES = ("method", "network", "dataset")


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
    benchmark: Benchmark = find("benchmarks", name)()
    preset = benchmark.presets[_known(wish.preset, benchmark.presets, "presets", name)]
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
    asked = preset.rows
    preset = _with_seeds(benchmark, preset, wish.seeds)
    dropped = tuple(row for row in asked if row not in preset.rows)
    benchmark, preset = _with_options(benchmark, preset, options)
    check_rules(declared, benchmark, preset)
    return Choice(
        benchmark=_with_expectations(benchmark, preset),
        preset=preset,
        dropped=dropped,
        part=", ".join(_differences(declared.preset, preset, wish)),
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
    if name or not wish.methods:
        return [choice_of(n, wish) for n in ([name] if name else names("benchmarks"))]
    known = {name: _methods(find("benchmarks", name)()) for name in names("benchmarks")}
    for method in wish.methods:
        _known(method, dict.fromkeys(chain(*known.values())), "methods", "benchmarks")
    own = {n: tuple(m for m in wish.methods if m in known[n]) for n in known}
    return [choice_of(n, replace(wish, methods=m)) for n, m in own.items() if m]


def without(choice: Choice, missing: Collection[str]) -> Choice:
    """`choice` without the variants that need a dataset whose key is in `missing`."""
    left = [
        variant
        for variant in choice.preset.variants
        if not any(data_key(part) in missing for part in _data_of(variant))
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
            _known(name, _methods(benchmark), "methods", benchmark.name)
        chosen.update(found)
    ordered = dict.fromkeys((*preset.rows, *(row.name for row in benchmark.rows)))
    return replace(preset, rows=tuple(name for name in ordered if name in chosen))


def _methods(benchmark: Benchmark) -> dict[str, None]:
    """The names that a user may ask for: methods, then rows."""
    methods = [row.method.name for row in benchmark.rows]
    return dict.fromkeys([*methods, *(row.name for row in benchmark.rows)])


def _rows_of(name: str, rows: Sequence[TableRow]) -> list[str]:
    return [row.name for row in rows if name in (row.method.name, row.name)]


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


def _with_options(
    benchmark: Benchmark, preset: Preset, options: Mapping[str, Any]
) -> tuple[Benchmark, Preset]:
    loop, method, network, dataset = _sorted(options)
    methods = _spread("methods", methods_of(benchmark, preset.rows), method)
    data = [part.name for v in preset.variants for part in _data_of(v)]
    datasets = _spread("datasets", data, dataset)
    used = [(v.network or preset.network).name for v in preset.variants]
    networks = _spread("networks", used, network)
    _check_loop(loop)
    changed = tuple(
        replace(row, method=changed_part(row.method, methods)) for row in benchmark.rows
    )
    variants = tuple(
        replace(
            variant,
            dataset=changed_part(variant.dataset, datasets, _data_of(variant)),
            datasets={
                name: changed_part(part, datasets, _data_of(variant))
                for name, part in variant.datasets.items()
            },
            network=variant.network and changed_part(variant.network, networks),
            training={n: loop.get(n, value) for n, value in variant.training.items()},
        )
        for variant in preset.variants
    )
    configs = {
        name: replace(config, options=_without(config.options, loop))
        for name, config in benchmark.configs.items()
    }
    return replace(benchmark, rows=changed, configs=configs), replace(
        preset,
        variants=variants,
        network=changed_part(preset.network, networks),
        networks={n: _without(own, network) for n, own in preset.networks.items()},
        training={**preset.training, **loop},
    )


def _check_loop(loop: Mapping[str, Any]) -> None:
    """Refuse options of training that do not exist, or values that make no sense."""
    if not loop:
        return
    from qualms.training.options import Training, training

    check_options("training", loop, options_of(Training))
    if training(loop).epochs == 0:
        raise ValueError(
            "training option 'epochs' must be a whole number from 1 on, got 0; rows"
            " that use the weights of others train for no epoch by themselves"
        )


def _data_of(variant: Variant) -> list[Part]:
    """Every dataset that runs of a variant read."""
    return [variant.dataset, *variant.datasets.values()]


def _without(options: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name not in names}


def _sorted(options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Options of the loop, methods, network and datasets, without their prefixes."""
    kinds: dict[str, dict[str, Any]] = {kind: {} for kind in ("", *SHELVES)}
    for name, value in options.items():
        kind, dot, rest = name.rpartition(".")
        if dot and kind not in SHELVES:
            raise LookupError(
                f"no part {kind!r} has options.{suggest(kind, SHELVES)} Known:"
                f" {', '.join(SHELVES)}, or no prefix for options of training."
            )
        kinds[kind][rest] = value
    return list(kinds.values())


def _spread(
    shelf: str, parts: Iterable[str], given: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """The options among `given` of each part; every option must belong to some part."""
    if not given:
        return {}
    unique = list(dict.fromkeys(parts))
    on_shelf = [part for part in unique if part in names(shelf)]
    options = {part: options_of(find(shelf, part), shelf=shelf) for part in on_shelf}
    everyone = {name: o for known in options.values() for name, o in known.items()}
    # A network from outside the shelf checks its options itself.
    outside = [p for p in unique if p not in on_shelf] if shelf == "networks" else []
    strange = _without(given, everyone) if outside else {}
    check_options(
        " and ".join(on_shelf),
        _without(given, strange),
        everyone,
        prefix=f"{shelf.rstrip('s')}.",
    )
    return {
        **{
            part: {name: value for name, value in given.items() if name in known}
            for part, known in options.items()
        },
        **dict.fromkeys(outside, strange),
    }


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
