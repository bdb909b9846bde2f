"""Rows of the values benchmark: prediction models, alone and after active learning.

A row is judged once, by every measure of uncertainty and every aggregation that its
variant names (`Variant.only`). Its predictions state what their draws vary, and so
which measure stands for which type: predictive (PU), aleatoric (AU) or epistemic (EU).
All three are labels of its results. The `measures` of the paper's rows say so before
there are predictions, since they query the pool.

A second training has runs for each measure and aggregation, as these choose its items.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from qualms.labels import Labels
from qualms.scores.maps import UNCERTAINTY_TYPES, uncertainty_type
from qualms.spec import Part
from qualms.study import GUEST, Stage, TableRow

MEMBERS = 5
"""Runs of an ensemble."""
PAPER_AGGREGATIONS = ("image", "patch", "threshold")
EXTRA_AGGREGATIONS = ("quantile", "boundary", "object")
"""Aggregations that the paper does not have."""
TYPES = ("PU", "AU", "EU")
"""Predictive, aleatoric and epistemic uncertainty."""
UNSTATED = "unstated"
_KINDS = {"predictive": "PU", "aleatoric": "AU", "epistemic": "EU"}

_LEVEL = {"PU": "MSR"}
_USUAL = {"PU": "PE", "AU": "EE", "EU": "MI"}
# The draws of an SSN are of one network: what they disagree in is ambiguity.
_SWAPPED = {"PU": "PE", "AU": "MI", "EU": "EE"}

PAPER_ROWS = (
    TableRow(
        name="softmax",
        label="Softmax",
        method=Part(name="map"),
        settings={"measures": _LEVEL},
    ),
    TableRow(
        name="ttd",
        label="TTD",
        method=Part(name="mc_dropout"),
        settings={"measures": _USUAL},
    ),
    TableRow(
        name="ensemble",
        label="Ensemble",
        method=Part(name="map"),
        pool=MEMBERS,
        settings={"measures": _USUAL},
    ),
    TableRow(
        name="tta",
        label="TTA",
        method=Part(name="tta"),
        weights_of="softmax",
        settings={"measures": _USUAL},
    ),
    TableRow(
        name="ssn",
        label="SSN",
        method=Part(name="ssn"),
        settings={"measures": _SWAPPED},
    ),
)
"""The five prediction models of the paper."""

BEYOND = (
    *(
        TableRow(
            name=name,
            label=label,
            method=Part(name=name),
            settings={"measures": _USUAL},
            beyond=True,
        )
        for name, label in (
            ("mfvi", "MFVI"),
            ("radial", "Radial-MFVI"),
            ("rank1", "Rank-1"),
        )
    ),
    TableRow(
        name="laplace",
        label="Last-layer Laplace",
        method=Part(name="laplace"),
        weights_of="softmax",
        settings={"measures": _USUAL},
        beyond=True,
    ),
)

GUESTS = (
    GUEST,
    replace(GUEST, name="{method}_ensemble", label="{method} Ensemble", pool=MEMBERS),
)
"""Rows of a method that the benchmark does not have."""

_SHARE: Mapping[str, object] = {"share": 0.5, "keep": ["train"]}
"""Half of the pool joins the training items."""


def _second_trainings() -> Iterator[TableRow]:
    for row in PAPER_ROWS:
        measures = [row.settings["measures"].get(kind) for kind in ("PU", "EU")]
        yield TableRow(
            name=f"{row.name}_queried",
            label=f"{row.label}, most uncertain half of the pool",
            method=row.method,
            pool=row.pool,
            at=tuple(_queries(filter(None, measures))),
            settings={"first": row.name, "random": f"{row.name}_random"},
            stage=Stage(
                row=row.name,
                rule="most_uncertain",
                options=_SHARE,
                chosen_by=("measure", "aggregation"),
                splits=("test",),
            ),
        )
        yield _random(row)


def _queries(measures: Iterator[str]) -> Iterator[Labels]:
    for measure in measures:
        for aggregation in PAPER_AGGREGATIONS:
            yield {"measure": measure, "aggregation": aggregation}


def _random(row: TableRow) -> TableRow:
    """Return the training on random items: the same for all rows, which share runs."""
    chosen = Stage(rule="random_items", options=_SHARE, seeded=True, splits=("test",))
    lender = f"{row.weights_of}_random" if row.weights_of else ""
    return TableRow(
        name=f"{row.name}_random",
        label=f"{row.label}, random half of the pool",
        method=row.method,
        pool=row.pool,
        settings={"first": row.name},
        stage=None if lender else chosen,
        weights_of=lender,
    )


SECOND = tuple(_second_trainings())
"""For each prediction model, a training on queried items and one on random items."""

ROWS = (*PAPER_ROWS, *BEYOND, *SECOND)
FIRST_NAMES = tuple(row.name for row in PAPER_ROWS)
BEYOND_NAMES = tuple(row.name for row in BEYOND)
SECOND_NAMES = tuple(row.name for row in SECOND)


def type_of(row: TableRow, measure: str, draws: str | None) -> str:
    """Return what a measure stands for, PU, AU or EU, by what the draws vary.

    Where predictions do not state it, it is what the row declares, else unstated.

    >>> type_of(PAPER_ROWS[1], "MI", "labels"), type_of(PAPER_ROWS[-1], "MI", None)
    ('AU', 'AU')
    """
    if draws is None:
        measures: Mapping[str, str] = row.settings.get("measures", {})
        usual = UNSTATED if measure in _USUAL.values() and measure != "PE" else "PU"
        return next((kind for kind, name in measures.items() if name == measure), usual)
    if measure not in UNCERTAINTY_TYPES[draws]:
        return "PU"  # of the method's own
    return _KINDS[uncertainty_type(measure, draws)]


def is_second(row: TableRow) -> bool:
    """Return whether a row is a second training, also if with borrowed weights."""
    return row.stage is not None or "first" in row.settings
