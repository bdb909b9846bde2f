"""Which variant of a preset stands for which setting of the paper.

A setting is a task (country or severity shift), a regime (which validation items the
choice of configurations and epochs saw), the blur constant of the preprocessing, and
whether the data are the paper's or simulated.
"""

from collections.abc import Iterable, Sequence

from qualms.benchmarks import Benchmark, Preset, TableRow, Variant
from qualms.benchmarks._retina_data import epochs_text

TASKS = {"country": "Country Shift", "severity": "Severity Shift"}
SUBSETS = {
    "in_domain": "in-domain",
    "shifted": "shifted",
    "joint": "joint",
    "balanced": "balanced",
    "rebalanced": "rebalanced",
}
PAPER_BLUR = 30
"""Of all experiments but the study of the preprocessing."""
PAPER_ONSET, PAPER_SIZE = "moderate", 512
"""Of all experiments: what is referred, and pixels of a photograph's side."""
_CHOSEN_ON = {
    "in-domain": "chosen on in-domain validation items",
    "joint": "chosen on in-domain and shifted validation items",
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
    regime: str,
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
        setting = task_of(variant), variant.regime, variant.simulated
        if setting == (task, regime, simulated):
            found.setdefault(blur_of(variant), variant)
    if blur is not None:
        return found.get(blur)
    only = next(iter(found.values())) if len(found) == 1 else None
    return found.get(None) or found.get(PAPER_BLUR) or only


def main_variants(preset: Preset) -> tuple[Variant, ...]:
    """The variants that are not there for the study of the preprocessing alone."""
    found = (
        variant_for(preset, task, regime, simulated=simulated)
        for simulated in (False, True)
        for task in TASKS
        for regime in _CHOSEN_ON
    )
    return tuple(variant for variant in found if variant is not None)


def numbered_variants(preset: Preset) -> tuple[Variant, ...]:
    """Those of the in-domain regime, in which the paper draws its figures."""
    return tuple(v for v in main_variants(preset) if v.regime == "in-domain")


def rows_of(benchmark: Benchmark, preset: Preset, variant: Variant) -> list[TableRow]:
    """The rows that are judged on a variant, in the order of tables."""
    return [place.row for place in benchmark.places(preset, variant)]


def shared_rows(
    benchmark: Benchmark, preset: Preset, groups: Iterable[Iterable[Variant]]
) -> list[TableRow]:
    """Rows that are judged on some variant of every group, in the order of tables."""
    names = [
        {row.name for variant in group for row in rows_of(benchmark, preset, variant)}
        for group in groups
    ]
    shared = set.intersection(*names) if names else set()
    return [benchmark.row(name) for name in preset.rows if name in shared]


def method_label(benchmark: Benchmark, row: TableRow) -> str:
    """The method's name as a single run, which its pools share in figures."""
    same = (r for r in benchmark.rows if r.method.name == row.method.name)
    return next((r.label for r in same if r.pool == 1), row.label)


def pool_text(rows: Iterable[TableRow]) -> str:
    """Whether rows are single runs, or pools of how many."""
    sizes = sorted({row.pool for row in rows})
    if sizes in ([], [1]):
        return "single runs"
    return f"pools of {' or '.join(map(str, sizes))}"


def regime_text(variant: Variant) -> str:
    """The regime in words; it stands in every table and figure."""
    chosen = _CHOSEN_ON.get(variant.regime, "nothing chosen on validation items")
    return f"regime {variant.regime or 'none'}: {chosen}"


def data_text(variant: Variant) -> str:
    """Says plainly when the data, or what is asked of them, are not the paper's."""
    if variant.simulated:
        return "simulated data, not the paper's"
    if not as_in_the_paper(variant):
        return "the paper's photographs in another setting"
    return "the paper's data"


def about_text(preset: Preset, variants: Sequence[Variant], *, regime: str = "") -> str:
    """Data, preset, setting and regime: what must stand beside every number.

    The setting is that of the first of `variants`; blur constants are named where all
    have the same that is not the usual one.
    """
    first = variants[0]
    told = [f"preset {preset.told}", f"onset {onset_of(first)}"]
    if size := first.dataset.options.get("size"):
        told.append(f"{size} pixels")
    blurs = {blur_of(variant) for variant in variants}
    if len(blurs) == 1 and blurs.isdisjoint({None, PAPER_BLUR}):
        told.append(f"blur {blurs.pop()}")
    parts = [data_text(first), ", ".join(told), regime or regime_text(first)]
    return "; ".join(filter(None, (*parts, epochs_text(preset, first))))


def published_row(row: TableRow) -> dict[str, str]:
    """Where the paper's tables have a row: its method, and whether it is an ensemble.

    >>> from qualms.spec import Part
    >>> radial = TableRow(name="r", label="R", method=Part(name="radial"), pool=3)
    >>> published_row(radial)
    {'method': 'radial_mfvi', 'ensemble': 'true'}
    """
    method = {"radial": "radial_mfvi"}.get(row.method.name, row.method.name)
    return {"method": method, "ensemble": "true" if row.pool > 1 else "false"}
