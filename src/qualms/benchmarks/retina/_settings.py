"""The paper's settings: their variants, and the remarks on their data.

A setting is a shift (country or severity), a selection (which validation items the
choice of configurations and epochs saw), the blur constant of the preprocessing, and
whether the photographs are simulated. All of them are labels.
"""

from collections.abc import Mapping, Sequence

from qualms.benchmarks.retina._rows import LABELLED_OPTIONS, USUAL_BLUR
from qualms.evaluate.benchmark_results import BenchmarkResults
from qualms.labels import Label, Labels, fits
from qualms.spec import grid
from qualms.study import RunPlan, TableRow, Variant

TASKS = {"country": "Country Shift", "severity": "Severity Shift"}
SUBSETS = {
    "in_domain": "in-domain",
    "shifted": "shifted",
    "joint": "joint",
    "balanced": "balanced",
    "rebalanced": "rebalanced",
}
SELECTIONS = ("in_domain", "joint")


def variants_where(plan: RunPlan, **wanted: Label | None) -> list[Variant]:
    """Return the variants of the plan whose results have these labels."""
    return [v for v in plan.variants if fits(plan.labels_of(v), wanted)]


def main_variants(plan: RunPlan, **wanted: Label | None) -> list[Variant]:
    """Return the first variant of each setting, outside the study of preprocessing.

    It has the usual preprocessing where any has.
    """
    return [variants[0] for variants in _by_setting(plan, wanted)]


def own_variants(plan: RunPlan) -> list[Variant]:
    """Return all variants outside the study of preprocessing, by setting.

    Simulated photographs have a mild shift besides their main one.
    """
    return [v for variants in _by_setting(plan, {}) for v in variants]


def _by_setting(
    plan: RunPlan, wanted: Mapping[str, Label | None]
) -> list[list[Variant]]:
    """Return the variants of each setting that has any."""
    settings = grid(simulated=(False, True), selection=SELECTIONS, shift=tuple(TASKS))
    chosen = []
    for setting in settings:
        if fits(setting, {n: w for n, w in wanted.items() if n in setting}):
            variants = variants_where(plan, **{**setting, **wanted})
            usual = [v for v in variants if _has_usual_blur(plan, v)]
            chosen.append(usual or (variants if len(variants) == 1 else []))
    return [variants for variants in chosen if variants]


def _has_usual_blur(plan: RunPlan, variant: Variant) -> bool:
    return plan.labels_of(variant).get("blur", USUAL_BLUR) == USUAL_BLUR


def pool_text(rows: Sequence[TableRow]) -> str:
    """Say whether rows are single runs, or pools of how many."""
    sizes = sorted({row.pool for row in rows})
    if sizes in ([], [1]):
        return "single runs"
    return f"pools of {' or '.join(map(str, sizes))}"


def retina_data_text(labels: Labels) -> str:
    """Say when the data, or the task on them, are not the paper's."""
    if labels["simulated"]:
        return "simulated data, not the paper's"
    usual = LABELLED_OPTIONS["eyepacs"]
    if any(labels.get(name) != usual[name] for name in ("onset", "size")):
        return "the paper's photographs in another setting"
    return "the paper's data"


def about_text(
    results: BenchmarkResults, variants: Sequence[Variant], *, selection: str = ""
) -> str:
    """Return data, preset, setting and selection, to be shown with every number.

    The setting is that of the first of `variants`; blur constants are named where all
    have the same that is not the usual one.
    """
    plan = results.plan
    labels = [plan.labels_of(variant) for variant in variants]
    first = labels[0]
    setting = [f"preset {plan.preset_text}", f"onset {first['onset']}"]
    if variants[0].simulated and not variants[0].dataset.options.get("deceptive"):
        setting.append("mild shift")
    if size := variants[0].dataset.options.get("size"):
        setting.append(f"{size} pixels")
    blurs = {of_variant.get("blur") for of_variant in labels}
    if len(blurs) == 1 and blurs.isdisjoint({None, USUAL_BLUR}):
        setting.append(f"blur {blurs.pop()}")
    chosen = selection or plan.selection_text(variants[0])
    parts = (retina_data_text(first), ", ".join(setting), chosen)
    return "; ".join(filter(None, parts))
