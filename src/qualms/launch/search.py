"""What `qualms tune` searches: the ranges of options, and what all trials share."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from qualms.benchmarks import Benchmark, Range, Selection
from qualms.launch._selections import Unchanged, with_selection
from qualms.launch.choice import Choice, Wish, choice_of
from qualms.launch.options import written
from qualms.shelf import find, names
from qualms.spec import RunSpec, digest, parse_split
from qualms.wording import suggest

Sampler = Literal["sobol", "tpe"]
"""How trials are chosen: evenly, or by the results of those before them."""
SAMPLERS: tuple[Sampler, ...] = ("sobol", "tpe")


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A search for the best options of a method on one variant of a benchmark."""

    variant: str
    wish: Wish
    selection: Selection
    """What trials are judged by; the same rule chooses the epoch within a trial."""
    ranges: tuple[Range, ...]
    base: RunSpec
    """The spec of all trials, apart from the options that they search."""
    sampler: Sampler = "sobol"

    @property
    def method(self) -> str:
        """The method whose options are searched."""
        return self.base.method.name

    @property
    def judged_on(self) -> tuple[str, ...]:
        """The splits that trials are judged on.

        A selection that names none takes the validation splits of further datasets that
        the runs of its variant predict.
        """
        further = (split for split in self.base.splits if parse_split(split)[0])
        found = tuple(split for split in further if parse_split(split)[1] == "val")
        return self.selection.splits or found

    @property
    def title(self) -> str:
        """The search in words."""
        return (
            f"{self.base.benchmark}/{self.variant}, {self.method}, preset"
            f" {self.wish.preset}, seed {self.base.seed}, selection"
            f" {self.selection.name}{self._suffix(', sampler ')}"
        )

    def folder(self, out: Path) -> Path:
        """Where the results of the search are kept below `out`."""
        told = [self.base.to_json(), *(asdict(each) for each in self.ranges)]
        mark = digest(json.dumps(told, sort_keys=True))[:8]
        parts = (self.variant, self.method, self.selection.name, self.wish.preset, mark)
        name = "-".join(parts) + self._suffix("-")
        return out / self.base.benchmark / "tune" / name

    def command(self, options: Mapping[str, Any]) -> list[str]:
        """The words of a command that runs the benchmark with `options`."""
        words = ["qualms", "run", f"{self.base.benchmark}/{self.variant}"]
        words += ["--preset", self.wish.preset, "--methods", self.method]
        words += ["--config", self.wish.config] if self.wish.config else []
        texts = written({**self.wish.options, **options})
        return words + [word for text in texts for word in ("-o", text)]

    def _suffix(self, sign: str) -> str:
        """What tells the search from an even one with the same ranges."""
        return "" if self.sampler == "sobol" else f"{sign}{self.sampler}"


def search_of(
    target: str, wish: Wish, selection: str = "", *, sampler: str = "sobol"
) -> Search:
    """The search that `target`, as BENCHMARK/VARIANT, and `wish` name.

    The wish names one method and one seed. Options that it states are not searched.
    The selection is that of the variant by default. Another one is searched on the
    variant with the same data that has it.
    """
    name, _, variant = target.partition("/")
    chosen = next((each for each in SAMPLERS if each == sampler), None)
    if chosen is None:
        raise LookupError(
            f"no sampler {sampler!r}.{suggest(sampler, SAMPLERS)} Known:"
            f" {', '.join(SAMPLERS)}."
        )
    benchmark: Benchmark = find("benchmarks", name)()
    _check_searchable(benchmark, variant, wish.preset)
    known = [each.name for each in benchmark.selections]
    if selection and selection not in known:
        raise LookupError(
            f"no selection {selection!r} in {benchmark.name}."
            f"{suggest(selection, known)} Known: {', '.join(known)}."
        )
    variant = _variant_for(benchmark, wish, variant, selection)
    choice = choice_of(name, replace(wish, variants=(variant,)))
    base = _base(choice, wish)
    searched = _selection(benchmark, selection or choice.preset.variants[0].selection)
    _check_rule(wish, searched)
    return Search(
        variant=variant,
        wish=wish,
        selection=searched,
        ranges=_ranges(benchmark, variant, base.method.name, wish),
        base=base,
        sampler=chosen,
    )


def _check_searchable(benchmark: Benchmark, variant: str, preset: str) -> None:
    if not benchmark.search or not benchmark.selections:
        able = [n for n in names("benchmarks") if find("benchmarks", n)().search]
        raise LookupError(
            f"{benchmark.name} states no ranges to search; benchmarks that do:"
            f" {', '.join(able) or 'none'}"
        )
    if not variant or "," in variant:
        known = list(benchmark.search)
        if preset in benchmark.presets:
            there = Unchanged(benchmark, benchmark.presets[preset]).variants
            known = [name for name in known if name in there]
        raise ValueError(
            f"name one variant to search on, as in {benchmark.name}/VARIANT, got"
            f" {variant!r}. Known: {', '.join(known)}."
        )


def _check_rule(wish: Wish, selection: Selection) -> None:
    """Raise if epochs of a trial would be chosen by another rule than trials are."""
    asked = wish.options.get("select_by")
    if asked not in (None, selection.rule):
        raise ValueError(
            f"a search by selection {selection.name} chooses epochs by"
            f" {selection.rule}, as it does trials, got select_by={asked}; leave it out"
        )


def _variant_for(benchmark: Benchmark, wish: Wish, variant: str, asked: str) -> str:
    """The variant with the same data that has the selection which is asked for."""
    preset = benchmark.presets.get(wish.preset)
    declared = None if preset is None else Unchanged(benchmark, preset)
    if not asked or declared is None or variant not in declared.variants:
        return variant  # `choice_of` says so if there is no such variant
    known = declared.variants[variant]
    own = _selection(benchmark, known.selection).name
    if own == asked:
        return variant
    lacking = set(_selection(benchmark, asked).splits) - set(known.splits)
    if lacking:
        raise ValueError(
            f"selection {asked!r} needs the split {sorted(lacking)[0]!r}, which variant"
            f" {variant!r} of {benchmark.name} does not have; search by selection"
            f" {own!r}"
        )
    other = with_selection(declared, variant, asked)
    if other is None:
        raise ValueError(
            f"no variant of {benchmark.name}, preset {wish.preset}, has the data of"
            f" {variant!r} and selection {asked!r}; search by selection {own!r}"
        )
    return other.name


def _selection(benchmark: Benchmark, name: str) -> Selection:
    """The selection `name`; the benchmark's first one for variants that name none."""
    return benchmark.selection(name) or benchmark.selections[0]


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
