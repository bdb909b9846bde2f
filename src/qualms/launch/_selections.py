"""Whether what a user asks for fits the selection that the tables will state.

A benchmark declares its selections: on which validation items, and by which rule,
epochs and configurations are chosen. A variant names the selection of its runs.
"""

from collections.abc import Mapping
from typing import NamedTuple

from qualms.benchmarks import Benchmark, Config, Preset, Variant


class Unchanged(NamedTuple):
    """A preset of a benchmark, before a user changed it."""

    benchmark: Benchmark
    preset: Preset

    @property
    def variants(self) -> Mapping[str, Variant]:
        """By name, including those that are run only when asked for."""
        known = (*self.preset.variants, *self.preset.further)
        return {variant.name: variant for variant in known}


def with_selection(declared: Unchanged, name: str, selection: str) -> Variant | None:
    """The variant with the data of variant `name` and the selection, if any."""
    one = declared.variants[name]
    found = (v for v in declared.variants.values() if v.selection == selection)
    return next((v for v in found if _data(v) == _data(one)), None)


def check_config(declared: Unchanged, chosen: Preset, name: str) -> None:
    """Raise if config `name` belongs to another selection than a chosen variant.

    A config belongs to the selections of the variants that use it, in any preset. One
    that no variant uses fits all of them.
    """
    fitting = _selections_of(declared.benchmark, declared.benchmark.configs[name])
    for variant in chosen.variants:
        if fitting and variant.selection and variant.selection not in fitting:
            raise ValueError(
                _advice(declared, variant, f"config {name!r}", sorted(fitting)[0])
            )


def check_rules(declared: Unchanged, benchmark: Benchmark, chosen: Preset) -> None:
    """Raise if epochs would be chosen by the rule of another selection.

    A rule of no selection fits those that look at shifted validation items if it does
    so too, and otherwise all of them: the last epoch is chosen on no items.
    """
    for variant in chosen.variants:
        for place in benchmark.places(chosen, variant):
            spec = benchmark.spec(chosen, place, chosen.seeds[0])
            rule = spec.training.get("select_by")
            fitting = _selections_with(benchmark, str(rule)) if rule else []
            if fitting and variant.selection not in ("", *fitting):
                what = f"select_by={rule}"
                raise ValueError(_advice(declared, variant, what, fitting[0]))


def _selections_with(benchmark: Benchmark, rule: str) -> list[str]:
    """The selections that the rule belongs to; none where it fits all of them."""
    from qualms.training.selection import RULES

    same = [s.name for s in benchmark.selections if s.rule == rule]
    known = RULES.get(rule)
    if same or known is None or not known.needs_shifted:
        return same
    seen = set(known.splits)
    return [s.name for s in benchmark.selections if seen <= set(s.splits)]


def _data(variant: Variant) -> tuple[object, ...]:
    return variant.dataset, variant.test, str(variant.settings)


def _selections_of(benchmark: Benchmark, config: Config) -> set[str]:
    """The selections whose variants use `config`, or one with the same options."""
    return {
        variant.selection
        for preset in benchmark.presets.values()
        for variant in (*preset.variants, *preset.further)
        if config in [benchmark.configs[name] for name in variant.configs.values()]
    } - {""}


def _advice(declared: Unchanged, variant: Variant, what: str, selection: str) -> str:
    name = declared.benchmark.name
    other = with_selection(declared, variant.name, selection)
    advice = f"run {name}/{other.name}" if other else "leave it out"
    return (
        f"{what} belongs to selection {selection!r}, and {name}/{variant.name} to"
        f" selection {variant.selection!r}; {advice}"
    )
