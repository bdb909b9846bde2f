"""Checks that options and configs fit the selection that tables state.

A benchmark declares its selections: on which validation items, and by which rule,
epochs and configurations are chosen. A variant names the selection of its runs.
"""

from qualms.study import Benchmark, Config, Preset, RunPlan, Variant


def with_selection(preset: Preset, name: str, selection: str) -> Variant | None:
    """Return the variant with the data of variant `name` and the selection, if any."""
    data = _data(preset.variant(name))
    variants = (v for v in preset.every_variant if v.selection == selection)
    return next((v for v in variants if _data(v) == data), None)


def check_config(plan: RunPlan, name: str) -> None:
    """Raise if config `name` belongs to another selection than a variant of the plan.

    A config belongs to the selection that it states, and to those of the variants that
    use it, in any preset. One that states none and that no variant uses fits all.
    """
    fitting = _selections_of(plan.benchmark, plan.benchmark.configs[name])
    for variant in plan.variants:
        if fitting and variant.selection and variant.selection not in fitting:
            cause = f"config {name!r}"
            raise ValueError(_advice(plan, variant, cause, sorted(fitting)[0]))


def check_rules(plan: RunPlan) -> None:
    """Raise if epochs would be chosen by the rule of another selection.

    A rule of no selection fits those that look at shifted validation items if it does
    so too, and otherwise all of them: the last epoch is chosen on no items.
    """
    if not plan.benchmark.selections:
        return
    for line in plan.lines:
        for rule in {run.training.get("select_by") for run in line.runs} - {None}:
            fitting = _selections_with(plan.benchmark, str(rule))
            if fitting and line.variant.selection not in ("", *fitting):
                cause = f"select_by={rule}"
                raise ValueError(_advice(plan, line.variant, cause, fitting[0]))


def _selections_with(benchmark: Benchmark, rule: str) -> list[str]:
    """Return the selections that a rule belongs to; none where it fits all of them."""
    from qualms.training.selection import RULES

    same = [s.name for s in benchmark.selections if s.rule == rule]
    definition = RULES.get(rule)
    if same or definition is None or not definition.needs_shifted:
        return same
    splits = set(definition.splits)
    return [s.name for s in benchmark.selections if splits <= set(s.splits)]


def _data(variant: Variant) -> tuple[object, ...]:
    return (
        *(variant.dataset, variant.test),
        *(str(variant.labels), str(variant.settings)),
    )


def _selections_of(benchmark: Benchmark, config: Config) -> set[str]:
    """Return the selections whose variants use a config, or one with its options."""
    used = {
        variant.selection
        for preset in benchmark.presets.values()
        for variant in preset.every_variant
        if config in [benchmark.configs[name] for name in variant.configs.values()]
    }
    return (used | {config.selection}) - {""}


def _advice(plan: RunPlan, variant: Variant, cause: str, selection: str) -> str:
    name = plan.benchmark.name
    other = with_selection(plan.preset, variant.name, selection)
    advice = f"run {name}/{other.name}" if other else "leave it out"
    return (
        f"{cause} belongs to selection {selection!r}, and {name}/{variant.name} to"
        f" selection {variant.selection!r}; {advice}"
    )
