"""Whether what is chosen is of the regime that its tables will state.

A benchmark declares its regimes through variants: those of the same data that differ in
which validation items configurations and epochs are chosen on, and by which rule.
"""

from collections.abc import Mapping
from typing import NamedTuple

from qualms.benchmarks import Benchmark, Config, Preset, Variant


class Declared(NamedTuple):
    """A preset of a benchmark, before a user changed it."""

    benchmark: Benchmark
    preset: Preset

    @property
    def variants(self) -> Mapping[str, Variant]:
        """By name, with those that are run only when asked for."""
        known = (*self.preset.variants, *self.preset.further)
        return {variant.name: variant for variant in known}


def in_regime(declared: Declared, name: str, regime: str) -> Variant | None:
    """The variant of the same data as variant `name` that has the regime, if any."""
    one = declared.variants[name]
    found = (v for v in declared.variants.values() if v.selection == regime)
    return next((v for v in found if _data(v) == _data(one)), None)


def check_config(declared: Declared, chosen: Preset, name: str) -> None:
    """Raise where config `name` was chosen in another regime than a chosen variant's.

    A config has the regimes of the variants whose runs take it, in any preset; one that
    no variant takes has none.
    """
    regimes = _regimes_of(declared.benchmark, declared.benchmark.configs[name])
    for variant in chosen.variants:
        if regimes and variant.selection and variant.selection not in regimes:
            regime = sorted(regimes)[0]
            raise ValueError(_told(declared, variant, f"config {name!r}", regime))


def check_rules(declared: Declared, benchmark: Benchmark, chosen: Preset) -> None:
    """Raise where epochs would be chosen by the rule of another regime.

    What no regime has as its rule is anybody's: the last epoch was chosen on nothing.
    """
    rules = {v.selection: _rule(v) for v in declared.variants.values() if v.selection}
    for variant in chosen.variants:
        for place in benchmark.places(chosen, variant):
            spec = benchmark.spec(chosen, place, chosen.seeds[0])
            rule = spec.training.get("select_by")
            its = [regime for regime, own in rules.items() if rule and own == rule]
            if its and variant.selection not in ("", *its):
                what = f"select_by={rule}"
                raise ValueError(_told(declared, variant, what, its[0]))


def _data(variant: Variant) -> tuple[object, ...]:
    return variant.dataset, variant.test, str(variant.settings)


def _rule(variant: Variant) -> object:
    return variant.training.get("select_by")


def _regimes_of(benchmark: Benchmark, config: Config) -> set[str]:
    """Equal configs count as one: the same may have been chosen in both regimes."""
    return {
        variant.selection
        for preset in benchmark.presets.values()
        for variant in (*preset.variants, *preset.further)
        if config in [benchmark.configs[name] for name in variant.configs.values()]
    } - {""}


def _told(declared: Declared, variant: Variant, what: str, regime: str) -> str:
    name = declared.benchmark.name
    other = in_regime(declared, variant.name, regime)
    advice = f"run {name}/{other.name}" if other else "leave it out"
    return (
        f"{what} is of regime {regime!r}, and {name}/{variant.name} of regime"
        f" {variant.selection!r}; {advice}"
    )
