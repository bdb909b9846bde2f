"""The search of `qualms tune`: ranges of options, and the run that trials vary."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from qualms.launch._config_file import is_config_file, read_config
from qualms.launch._selections import with_selection
from qualms.launch.options import option_texts
from qualms.launch.plan import RunRequest, plan_of
from qualms.shelf import broken, find, names
from qualms.spec import RunSpec, digest, parse_split
from qualms.study import Benchmark, Range, RunPlan, Selection
from qualms.wording import suggest

Pruner = Literal["none", "median"]
"""Rule that stops trials before their end, by the loss on validation items."""
PRUNERS: tuple[Pruner, ...] = ("none", "median")
Direction = Literal["maximize", "minimize"]
OBJECTIVES = ("nll", "brier", "ece", "accuracy")
"""Scores that a search may have as an objective beside the rule of its selection."""
CLASS_RULES = ("val_auroc", "val_referral", "val_referral_kept")
"""Rules of selections that look at predicted classes."""
Name = TypeVar("Name", bound=str)


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A search for the best options of a method on one variant of a benchmark."""

    variant: str
    request: RunRequest
    selection: Selection
    """Rule that trials are judged by; it also chooses the epoch within a trial."""
    ranges: tuple[Range, ...]
    base: RunSpec
    """The spec of all trials, apart from the options that they search."""
    pruner: Pruner = "none"
    objective: str = ""
    """Objective beside the rule of the selection, among `OBJECTIVES`; '' for none."""
    simulated: bool = False
    """True if the data are simulated."""

    @property
    def method(self) -> str:
        """The method whose options are searched."""
        return self.base.method.name

    @property
    def config_options(self) -> dict[str, Any]:
        """The options that all trials have: those of the request and of its config."""
        name = self.request.config
        if not name:
            return dict(self.request.options)
        if is_config_file(name):
            declared = read_config(Path(name)).options
        else:
            benchmark: Benchmark = find("benchmarks", self.base.benchmark)()
            declared = benchmark.configs[name].options
        return {**declared, **self.request.options}

    @property
    def judged_on(self) -> tuple[str, ...]:
        """The splits that trials are judged on.

        A selection that names none takes the validation splits of further datasets that
        the runs of its variant predict.
        """
        further = (split for split in self.base.splits if parse_split(split)[0])
        validation = tuple(s for s in further if parse_split(s)[1] == "val")
        return self.selection.splits or validation

    @property
    def title(self) -> str:
        """The search in words."""
        pruner = "" if self.pruner == "none" else f", pruner {self.pruner}"
        objective = f", objective {self.objective}" if self.objective else ""
        return (
            f"{self.base.benchmark}/{self.variant}, {self.method}, preset"
            f" {self.request.preset}, seed {self.base.seed}, selection"
            f" {self.selection.name}{pruner}{objective}"
        )

    @property
    def directions(self) -> list[Direction]:
        """Directions of the objectives, as Optuna calls them."""
        facts = self.objective_facts()
        return [
            "maximize" if better == "higher" else "minimize" for *_, better in facts
        ]

    def objective_facts(self) -> list[tuple[str, str, str]]:
        """Return name, words and better direction of each objective."""
        facts = [(self.selection.rule, self.selection.label, "higher")]
        if self.objective:
            from qualms import scores

            about = scores.about(objective_score(self.objective))
            facts.append((self.objective, about.label, about.better))
        return facts

    def folder(self, out: Path) -> Path:
        """Return the folder of the results of the search below `out`."""
        searched = [self.base.to_json(), *(asdict(each) for each in self.ranges)]
        mark = digest(json.dumps(searched, sort_keys=True))[:8]
        parts = (
            self.variant,
            self.method,
            self.selection.name,
            self.request.preset,
            mark,
            self.objective,
            "" if self.pruner == "none" else self.pruner,
        )
        name = "-".join(filter(None, parts))
        return out / self.base.benchmark / "tune" / name

    def command(self, options: Mapping[str, Any]) -> list[str]:
        """Return the words of a command that runs the benchmark with `options`."""
        words = ["qualms", "run", f"{self.base.benchmark}/{self.variant}"]
        words += ["--preset", self.request.preset, "--methods", self.method]
        words += ["--config", self.request.config] if self.request.config else []
        texts = option_texts({**self.request.options, **options})
        return words + [word for text in texts for word in ("-o", text)]


def objective_score(name: str) -> Callable[..., float]:
    """Return the score of predicted classes that is an objective."""
    from qualms import scores  # compiles kernels, which few searches need

    return {
        "nll": scores.nll,
        "brier": scores.brier,
        "ece": scores.ece,
        "accuracy": scores.accuracy,
    }[name]


def search_of(
    target: str,
    request: RunRequest,
    selection: str = "",
    *,
    pruner: str = "none",
    objective: str = "",
) -> Search:
    """Return the search that a target, as BENCHMARK/VARIANT, and a request name.

    The request names one method and one seed. Options that it states are not searched.
    The selection is that of the variant by default. Another one is searched on the
    variant with the same data that has it.
    """
    name, _, variant = target.partition("/")
    chosen_pruner = one_of("pruner", pruner, PRUNERS)
    benchmark: Benchmark = find("benchmarks", name)()
    _check_searchable(benchmark, variant, request.preset)
    selections = [each.name for each in benchmark.selections]
    if selection and selection not in selections:
        raise LookupError(
            f"no selection {selection!r} in {benchmark.name}."
            f"{suggest(selection, selections)} Known: {', '.join(selections)}."
        )
    variant = _variant_for(benchmark, request, variant, selection)
    plan = plan_of(name, replace(request, variants=(variant,)))
    base = _base(plan, request)
    searched = _selection(benchmark, selection or plan.variants[0].selection)
    _check_rule(request, searched)
    _check_objective(objective, searched)
    return Search(
        variant=variant,
        request=request,
        selection=searched,
        ranges=_ranges(benchmark, variant, base.method.name, request),
        base=base,
        pruner=chosen_pruner,
        objective=objective,
        simulated=plan.variants[0].simulated,
    )


def one_of(kind: str, name: str, names: Sequence[Name]) -> Name:
    """Return the one of `names` that a user gave; raise where there is none."""
    chosen = next((each for each in names if each == name), None)
    if chosen is None:
        raise LookupError(
            f"no {kind} {name!r}.{suggest(name, names)} Known: {', '.join(names)}."
        )
    return chosen


def _check_searchable(benchmark: Benchmark, variant: str, preset: str) -> None:
    if not benchmark.search or not benchmark.selections:
        wrong = broken("benchmarks")
        shelf = (n for n in names("benchmarks") if n not in wrong)
        able = [n for n in shelf if find("benchmarks", n)().search]
        raise LookupError(
            f"{benchmark.name} states no ranges to search; benchmarks that do:"
            f" {', '.join(able) or 'none'}"
        )
    if not variant or "," in variant:
        searchable = list(benchmark.search)
        if preset in benchmark.presets:
            variants = {v.name for v in benchmark.presets[preset].every_variant}
            searchable = [name for name in searchable if name in variants]
        raise ValueError(
            f"name one variant to search on, as in {benchmark.name}/VARIANT, got"
            f" {variant!r}. Known: {', '.join(searchable)}."
        )


def _check_objective(objective: str, selection: Selection) -> None:
    """Raise unless the objective is a score of what the selection looks at."""
    if objective:
        one_of("objective", objective, OBJECTIVES)
    if objective and selection.rule not in CLASS_RULES:
        raise ValueError(
            "objectives are scores of predicted classes, and trials of selection"
            f" {selection.name} are judged by {selection.rule}; leave --objective out"
        )


def _check_rule(request: RunRequest, selection: Selection) -> None:
    """Raise if epochs of a trial would be chosen by another rule than trials are."""
    rule = request.options.get("select_by")
    if rule not in (None, selection.rule):
        raise ValueError(
            f"a search by selection {selection.name} chooses epochs by"
            f" {selection.rule}, as it does trials, got select_by={rule}; leave it out"
        )


def _variant_for(
    benchmark: Benchmark, request: RunRequest, name: str, selection: str
) -> str:
    """Return the variant with the same data that has the requested selection."""
    preset = benchmark.presets.get(request.preset)
    variants = {} if preset is None else {v.name: v for v in preset.every_variant}
    if not selection or preset is None or name not in variants:
        return name  # `plan_of` says so if there is no such variant
    current = _selection(benchmark, variants[name].selection).name
    if current == selection:
        return name
    needed = set(_selection(benchmark, selection).splits)
    missing = needed - set(variants[name].splits)
    if missing:
        raise ValueError(
            f"selection {selection!r} needs the split {sorted(missing)[0]!r}, which"
            f" variant {name!r} of {benchmark.name} does not have; search by selection"
            f" {current!r}"
        )
    other = with_selection(preset, name, selection)
    if other is None:
        raise ValueError(
            f"no variant of {benchmark.name}, preset {request.preset}, has the data of"
            f" {name!r} and selection {selection!r}; search by selection {current!r}"
        )
    return other.name


def _selection(benchmark: Benchmark, name: str) -> Selection:
    """Return the selection `name`; the first one for variants that name none."""
    return benchmark.selection(name) or benchmark.selections[0]


def _base(plan: RunPlan, request: RunRequest) -> RunSpec:
    runs = plan.runs
    if len(runs) != 1:
        raise ValueError(
            f"a search is for one method, with one training for each seed, got"
            f" {' and '.join(request.methods) or 'all'}, which has {len(runs)}; name"
            f" one of the rows {', '.join(row.name for row in plan.rows)} with"
            " --method"
        )
    return runs[0]


def _ranges(
    benchmark: Benchmark, variant: str, method: str, request: RunRequest
) -> tuple[Range, ...]:
    by_method = benchmark.search.get(variant, {})
    if method not in by_method:
        methods = ", ".join(by_method) or "none"
        raise LookupError(
            f"{benchmark.name}/{variant} states no ranges for {method!r}."
            f"{suggest(method, by_method)} Known: {methods}."
        )
    ranges = tuple(r for r in by_method[method] if r.option not in request.options)
    if all(len(r.choices) == 1 for r in ranges):
        raise ValueError(
            "an option that is given with -o is not searched, and here all are given;"
            " leave some out"
        )
    return ranges
