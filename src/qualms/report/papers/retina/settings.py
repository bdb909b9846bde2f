"""Which variant of a preset stands for which setting of the paper.

A setting is a task (country or severity shift), a selection (which validation items
the choice of configurations and epochs saw), the blur constant of the preprocessing,
and whether the data are the paper's or simulated.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

from qualms.benchmarks import Benchmark, Preset, TableRow, Variant, selection_text
from qualms.evaluate.results import BenchmarkResults
from qualms.published import Number, published

TASKS = {"country": "Country Shift", "severity": "Severity Shift"}
SUBSETS = {
    "in_domain": "in-domain",
    "shifted": "shifted",
    "joint": "joint",
    "balanced": "balanced",
    "rebalanced": "rebalanced",
}
SELECTIONS = ("in_domain", "joint")
BLURS = (5, 10, 20, 30)
PAPER_BLUR = 30
"""Of all experiments but the study of the preprocessing."""
PAPER_ONSET, PAPER_SIZE = "moderate", 512
"""Of all experiments: what is referred, and pixels of a photograph's side."""


class ScoreLabel(NamedTuple):
    """A score as we and as the paper name it, and how it is printed."""

    name: str
    """Ours, without the set of items."""
    metric: str
    """The published one."""
    label: str
    scale: float = 100.0
    """What ours is multiplied by to have the published unit."""
    decimals: int = 1
    unit: str = "%"
    referral: str | float = ""
    """Share referred, as the published numbers state it."""

    def at(self, share: float) -> "ScoreLabel":
        """The score of what is kept when a share of the items is referred."""
        if not share:
            return self
        return self._replace(name=f"{self.name}@{share:g}", referral=share)


STANDARD = {
    "nll": ScoreLabel("nll", "nll", "NLL ↓", 1.0, 2, "nats", 0.0),
    "accuracy": ScoreLabel("accuracy", "accuracy", "Accuracy ↑", referral=0.0),
    "auprc": ScoreLabel("auprc", "auprc", "AUPRC ↑", referral=0.0),
    "auroc": ScoreLabel("auroc", "auroc", "AUROC ↑", referral=0.0),
    "ece": ScoreLabel("ece", "ece", "ECE ↓", 1.0, 2, "", 0.0),
}
AREAS = {
    name: ScoreLabel(
        f"referral_{name}_oracle_area",
        f"r_{name}_auc",
        f"R-{label} AUC {'↓' if name == 'nll' else '↑'}",
        unit="x100" if name == "nll" else "%",
    )
    for name, label in (
        ("auroc", "AUROC"),
        ("accuracy", "Accuracy"),
        ("nll", "NLL"),
        ("auprc", "AUPRC"),
    )
}


def task_of(variant: Variant) -> str:
    """Country or severity."""
    return str(variant.dataset.options["shift"])


def blur_of(variant: Variant) -> int | None:
    """The blur constant; None for images that are not preprocessed."""
    default = None if variant.simulated else PAPER_BLUR
    blur = variant.dataset.options.get("blur", default)
    return None if blur is None else int(blur)


def onset_of(variant: Variant) -> str:
    """The mildest grade that is to be referred, in words."""
    return str(variant.dataset.options.get("onset", PAPER_ONSET))


def as_in_the_paper(variant: Variant) -> bool:
    """Whether published numbers may stand beside those of a variant.

    They may beside numbers of the same photographs, onset and size. Blur constants are
    not asked for here: published numbers of several exist, each found by its own.
    """
    size = variant.dataset.options.get("size", PAPER_SIZE)
    same = (onset_of(variant), size) == (PAPER_ONSET, PAPER_SIZE)
    return same and not variant.simulated


def variant_for(
    preset: Preset,
    task: str,
    selection: str,
    *,
    simulated: bool,
    blur: int | None = None,
) -> Variant | None:
    """The variant of that setting, if the preset has it.

    Without `blur` it is the one of the main experiments: simulated images as they are,
    the paper's blur constant, or, where there is one constant alone, that.
    """
    found: dict[int | None, Variant] = {}
    for variant in preset.variants:
        setting = task_of(variant), variant.selection, variant.simulated
        if setting == (task, selection, simulated):
            found.setdefault(blur_of(variant), variant)
    if blur is not None:
        return found.get(blur)
    only = next(iter(found.values())) if len(found) == 1 else None
    return found.get(None) or found.get(PAPER_BLUR) or only


def main_variants(preset: Preset) -> tuple[Variant, ...]:
    """The variants that are not there for the study of the preprocessing alone."""
    found = (
        variant_for(preset, task, selection, simulated=simulated)
        for simulated in (False, True)
        for task in TASKS
        for selection in SELECTIONS
    )
    return tuple(variant for variant in found if variant is not None)


def numbered_variants(preset: Preset) -> tuple[Variant, ...]:
    """Those chosen on in-domain items, of which the paper draws its figures."""
    return tuple(v for v in main_variants(preset) if v.selection == "in_domain")


def rows_of(benchmark: Benchmark, preset: Preset, variant: Variant) -> list[TableRow]:
    """The rows that are judged on a variant, in the order of tables."""
    return [place.row for place in benchmark.places(preset, variant)]


def shared_rows(
    results: BenchmarkResults, groups: Iterable[Iterable[Variant]]
) -> list[TableRow]:
    """Rows that are judged on some variant of every group, in the order of tables."""
    benchmark, preset = results.benchmark, results.preset
    names = [
        {row.name for variant in group for row in rows_of(benchmark, preset, variant)}
        for group in groups
    ]
    shared = set.intersection(*names) if names else set()
    return [benchmark.row(name) for name in preset.rows if name in shared]


def pool_text(rows: Iterable[TableRow]) -> str:
    """Whether rows are single runs, or pools of how many."""
    sizes = sorted({row.pool for row in rows})
    if sizes in ([], [1]):
        return "single runs"
    return f"pools of {' or '.join(map(str, sizes))}"


def retina_data_text(variant: Variant) -> str:
    """Says plainly when the data, or what is asked of them, are not the paper's."""
    if variant.simulated:
        return "simulated data, not the paper's"
    if not as_in_the_paper(variant):
        return "the paper's photographs in another setting"
    return "the paper's data"


def about_text(
    results: BenchmarkResults, variants: Sequence[Variant], *, selection: str = ""
) -> str:
    """Data, preset, setting and selection: what must stand beside every number.

    The setting is that of the first of `variants`; blur constants are named where all
    have the same that is not the usual one.
    """
    first, preset = variants[0], results.preset
    told = [f"preset {preset.told}", f"onset {onset_of(first)}"]
    if size := first.dataset.options.get("size"):
        told.append(f"{size} pixels")
    blurs = {blur_of(variant) for variant in variants}
    if len(blurs) == 1 and blurs.isdisjoint({None, PAPER_BLUR}):
        told.append(f"blur {blurs.pop()}")
    chosen = selection or selection_text(results.benchmark, preset, first)
    return "; ".join(filter(None, (retina_data_text(first), ", ".join(told), chosen)))


_PLACE = (
    "task",
    "tuned_on",
    "dataset",
    "blur_constant",
    "method",
    "ensemble",
    "referral",
    "metric",
)


def published_where(
    variant: Variant, row: TableRow, subset: str, score: ScoreLabel
) -> dict[str, str | float]:
    """Where the published numbers have a cell of ours, but for source and table."""
    method = {"radial": "radial_mfvi"}.get(row.method.name, row.method.name)
    return {
        "task": task_of(variant),
        "tuned_on": variant.selection.replace("_", ""),
        "dataset": SUBSETS.get(subset, subset),
        "blur_constant": float(blur_of(variant) or PAPER_BLUR),
        "method": method,
        "ensemble": "true" if row.pool > 1 else "false",
        "referral": score.referral,
        "metric": score.metric,
    }


def printed(
    results: BenchmarkResults,
    variant: Variant,
    row: TableRow,
    subset: str,
    score: ScoreLabel,
) -> Number | None:
    """The paper's number for a cell of ours; of tables that repeat it, the first.

    None where ours is of another setting, or of simulated data.
    """
    if row.beyond or not as_in_the_paper(variant):
        return None
    where = published_where(variant, row, subset, score)
    at = tuple(where[column] for column in _PLACE)
    return _first(results.benchmark.published).get(at)


@cache
def _first(name: str) -> dict[tuple[str | float, ...], Number]:
    found: dict[tuple[str | float, ...], Number] = {}
    for number in published(name).numbers:
        found.setdefault(tuple(number.where[c] for c in _PLACE), number)
    return found
