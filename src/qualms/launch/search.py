"""What `qualms tune` searches: the ranges of a benchmark, and what all trials share."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from qualms.benchmarks import Benchmark, Range
from qualms.launch._regimes import Declared, in_regime
from qualms.launch.choice import Choice, Wish, choose
from qualms.launch.options import written
from qualms.shelf import find, names, suggest
from qualms.spec import RunSpec, digest

Regime = Literal["in_domain", "joint"]


class Rule(NamedTuple):
    """What trials of a regime are judged by."""

    select_by: Literal["val_auroc", "val_referral"]
    """The same rule chooses the epoch within a trial."""
    splits: tuple[str, ...]
    label: str


RULES: Mapping[Regime, Rule] = {
    "in_domain": Rule("val_auroc", ("val",), "AUROC of in-domain validation items"),
    "joint": Rule(
        "val_referral",
        ("val", "val/shifted"),
        "area under the referral curve of accuracy on balanced in-domain and shifted"
        " validation items",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A search for the best options of a method on one variant of a benchmark."""

    variant: str
    wish: Wish
    regime: Regime
    ranges: tuple[Range, ...]
    base: RunSpec
    """What all trials share; their options replace some of its own."""

    @property
    def rule(self) -> Rule:
        """What trials are judged by."""
        return RULES[self.regime]

    @property
    def method(self) -> str:
        """Whose options are searched."""
        return self.base.method.name

    @property
    def title(self) -> str:
        """The search in words; names the regime."""
        return (
            f"{self.base.benchmark}/{self.variant}, {self.method}, preset"
            f" {self.wish.preset}, seed {self.base.seed}, regime {self.regime}"
        )

    def folder(self, out: Path) -> Path:
        """Where the results of the search are kept below `out`."""
        told = [self.base.to_json(), *(asdict(each) for each in self.ranges)]
        mark = digest(json.dumps(told, sort_keys=True))[:8]
        parts = (self.variant, self.method, self.regime, self.wish.preset, mark)
        return out / self.base.benchmark / "tune" / "-".join(parts)

    def command(self, options: Mapping[str, Any]) -> list[str]:
        """The words of a command that runs the benchmark with `options`."""
        words = ["qualms", "run", f"{self.base.benchmark}/{self.variant}"]
        words += ["--preset", self.wish.preset, "--methods", self.method]
        words += ["--config", self.wish.config] if self.wish.config else []
        texts = written({**self.wish.options, **options})
        return words + [word for text in texts for word in ("-o", text)]


def search_of(target: str, wish: Wish, regime: str = "") -> Search:
    """The search that `target`, as BENCHMARK/VARIANT, and `wish` name.

    The wish names one method and one seed; options that it states are not searched.
    Without a regime it is that of the variant. A regime that is not the variant's is
    searched on the variant of the same data that has it.
    """
    name, _, variant = target.partition("/")
    benchmark: Benchmark = find("benchmarks", name)()
    _check_searchable(benchmark, variant, wish.preset)
    if regime and regime not in RULES:
        raise LookupError(
            f"no regime {regime!r}.{suggest(regime, RULES)} Known: {', '.join(RULES)}."
        )
    variant = _of_regime(benchmark, wish, variant, regime)
    choice = choose(name, replace(wish, variants=(variant,)))
    base = _base(choice, wish)
    searched = _regime(regime or choice.preset.variants[0].selection)
    _check_rule(wish, searched)
    return Search(
        variant=variant,
        wish=wish,
        regime=searched,
        ranges=_ranges(benchmark, variant, base.method.name, wish),
        base=base,
    )


def _check_searchable(benchmark: Benchmark, variant: str, preset: str) -> None:
    if not benchmark.search:
        able = [n for n in names("benchmarks") if find("benchmarks", n)().search]
        raise LookupError(
            f"{benchmark.name} states no ranges to search; benchmarks that do:"
            f" {', '.join(able) or 'none'}"
        )
    if not variant or "," in variant:
        known = list(benchmark.search)
        if preset in benchmark.presets:
            there = Declared(benchmark, benchmark.presets[preset]).variants
            known = [name for name in known if name in there]
        raise ValueError(
            f"name one variant to search on, as in {benchmark.name}/VARIANT, got"
            f" {variant!r}. Known: {', '.join(known)}."
        )


def _check_rule(wish: Wish, regime: Regime) -> None:
    """Raise where epochs of a trial would be chosen by another rule than trials are."""
    asked, rule = wish.options.get("select_by"), RULES[regime].select_by
    if asked not in (None, rule):
        raise ValueError(
            f"a search in regime {regime} chooses epochs by {rule}, as it does trials,"
            f" got select_by={asked}; leave it out"
        )


def _of_regime(benchmark: Benchmark, wish: Wish, variant: str, regime: str) -> str:
    """The variant of the same data that has the regime; as it is where none is asked.

    A variant that states no regime has nothing chosen on shifted items.
    """
    preset = benchmark.presets.get(wish.preset)
    declared = None if preset is None else Declared(benchmark, preset)
    if not regime or declared is None or variant not in declared.variants:
        return variant  # choosing it answers a wrong name
    known = declared.variants[variant]
    if _regime(known.selection) == regime:
        return variant
    if regime == "joint" and "val/shifted" not in known.splits:
        raise ValueError(
            "regime 'joint' needs shifted validation items, and variant"
            f" {variant!r} of {benchmark.name} has none; search in regime 'in_domain'"
        )
    other = in_regime(declared, variant, regime)
    if other is None:
        raise ValueError(
            f"no variant of {benchmark.name}, preset {wish.preset}, has the data of"
            f" {variant!r} in regime {regime!r}; search in regime"
            f" {_regime(known.selection)!r}"
        )
    return other.name


def _regime(name: str) -> Regime:
    return "joint" if name == "joint" else "in_domain"


def _base(choice: Choice, wish: Wish) -> RunSpec:
    runs = choice.runs
    if len(runs) != 1:
        raise ValueError(
            f"a search is for one method, with one training for each seed, got"
            f" {' and '.join(wish.methods) or 'all'}, which has {len(runs)}; name one"
            f" of the rows {', '.join(choice.preset.rows)} with --method"
        )
    return runs[0]


def _ranges(
    benchmark: Benchmark, variant: str, method: str, wish: Wish
) -> tuple[Range, ...]:
    by_method = benchmark.search.get(variant, {})
    if method not in by_method:
        known = ", ".join(by_method) or "none"
        raise LookupError(
            f"{benchmark.name}/{variant} states no ranges for {method!r}."
            f"{suggest(method, by_method)} Known: {known}."
        )
    left = tuple(r for r in by_method[method] if r.option not in wish.options)
    if all(len(r.choices) == 1 for r in left):
        raise ValueError(
            "an option that is given with -o is not searched, and here all are given;"
            " leave some out"
        )
    return left
