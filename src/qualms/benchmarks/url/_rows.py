"""Rows of the url benchmark: eleven methods, and their second trainings on few items.

A row is judged once, at {}. Its setting `us` names the uncertainties that it is judged
by, the paper's own first; `uncertainty` is a label of the scores. A row with the
setting `look` shows the runs of that row by another uncertainty.

Options that decide which of several forms of a loss is trained are stated, so that runs
of one form are never taken for those of another.
"""

from collections.abc import Iterator
from dataclasses import replace

from qualms.spec import Part
from qualms.study import Stage, TableRow

_PARTS = ("mutual_information", "entropy", "expected_entropy")
_FORMS = {
    "mcinfonce": {"average": "likelihood"},
    "nivmf": {"stretching": "class"},
}
"""Options of methods that are what the authors' own code computes."""

PAPER_ROWS = tuple(
    TableRow(
        name=name,
        label=label,
        method=Part(name=method, options=_FORMS.get(method, {})),
        settings={"us": us},
    )
    for name, label, method, us in (
        ("ce", "CE", "map", ("entropy",)),
        ("infonce", "InfoNCE", "infonce", ("inverse_norm",)),
        ("mcinfonce", "MCInfoNCE", "mcinfonce", ("head",)),
        ("elk", "ELK", "elk", ("head", "entropy")),
        ("nivmf", "nivMF", "nivmf", ("head", "entropy")),
        ("hib", "HIB", "hib", ("head",)),
        ("hetxl", "HET-XL", "hetxl", ("entropy", "log_determinant")),
        ("losspred", "Losspred", "losspred", ("head", "entropy")),
        ("mcdropout", "MCDropout", "mc_dropout", _PARTS),
        (
            "ensemble",
            "Ensemble",
            "head_ensemble",
            ("entropy", "mutual_information", "expected_entropy"),
        ),
        ("sngp", "SNGP", "sngp", ("entropy", "variance")),
    )
)
"""The eleven methods of the paper. The Jensen-Shannon divergence of draws is their
mutual information."""


def _look(row: str, label: str, u: str) -> TableRow:
    """Declare a row that shows the runs of `row` by the uncertainty `u`."""
    (shown,) = (one for one in PAPER_ROWS if one.name == row)
    return replace(
        shown,
        name=f"{row}_{u}",
        label=f"{shown.label}, {label}",
        settings={"us": (u,), "look": row},
    )


LOOKS = (
    _look("hetxl", "log-determinant", "log_determinant"),
    _look("mcdropout", "entropy", "entropy"),
)
"""Uncertainties that the paper takes on one backbone or in some commands."""

RANKED = TableRow(
    name="losspred_ranking",
    label="Losspred, ranking",
    method=Part(name="losspred", options={"goal": "ranking"}),
    settings={"us": ("head", "entropy")},
    beyond=True,
)
"""Method that learns which of two items has the larger loss (Kirchhof et al., 2024,
arXiv:2402.16569)."""

SHOTS = (1, 2, 5, 10)
"""Items of each class in the few-shot study."""
HALF = "half"
"""The label `shots` of a training on half of all items."""
_ALL = 1_000_000
_CONTINUED = {
    "resnet50": ("ce", "mcinfonce", "elk", "nivmf"),
    "vit_medium": ("ce", "elk", "losspred", "sngp"),
}
"""The methods whose few-shot training the paper shows, by backbone."""
_TAUGHT = ("birds", "products", "cub", "cars", "sop")
"""Names of the downstream sets that few-shot rows may train on."""


def few_shot_names(backbone: str, data: tuple[str, ...]) -> tuple[str, ...]:
    """Return the few-shot rows of a backbone on some sets, and the many-shot one.

    >>> few_shot_names("resnet50", ("cub",))[:2]
    ('ce_few1_cub', 'ce_few2_cub')
    """
    few = [
        f"{row}_few{k}_{name}"
        for row in _CONTINUED[backbone]
        for k in SHOTS
        for name in data
    ]
    return (*few, *(f"ce_many_{name}" for name in data))


_UNTRAINED = {
    "entropy": "entropy",
    "flips": "flips",
    "knn": "kNN",
    "mahalanobis": "Mahalanobis",
    "relative_mahalanobis": "relative Mahalanobis",
}
"""Uncertainties of a frozen network besides one over the length of its embedding."""
_AS_IT_IS = TableRow(
    name="frozen",
    label="frozen, 1/norm",
    method=Part(name="frozen"),
    settings={"us": ("inverse_norm",)},
    trains=False,
    beyond=True,
)
FROZEN_ROWS = (
    _AS_IT_IS,
    *(
        replace(
            _AS_IT_IS,
            name=f"frozen_{u}",
            label=f"frozen, {label}",
            settings={"us": (u,), "look": _AS_IT_IS.name},
        )
        for u, label in _UNTRAINED.items()
    ),
)
"""A network that is not trained at all, by each of its uncertainties (`--frozen`)."""
ALONE_NAMES = ("frozen", "frozen_entropy", "frozen_flips")
"""Rows of a frozen network that compare items with no upstream ones."""


def _second_trainings() -> Iterator[TableRow]:
    continued = {row for rows in _CONTINUED.values() for row in rows}
    for first in PAPER_ROWS:
        for data in _TAUGHT if first.name in continued else ():
            for k in SHOTS:
                yield _taught(first, data, k, f"few{k}", f"{k} per class")
            if first.name == "ce":
                yield _taught(first, data, _ALL, "many", f"{HALF} of all items")


def _taught(first: TableRow, data: str, k: int, name: str, items: str) -> TableRow:
    """Declare a training on items of test classes, judged on their other half."""
    return TableRow(
        name=f"{first.name}_{name}_{data}",
        label=f"{first.label}, {items} of {data}",
        method=first.method,
        labels={
            "first": first.name,
            "shots": HALF if k == _ALL else str(k),
            "taught": data,
        },
        settings=first.settings,
        stage=Stage(
            row=first.name,
            rule="few_shot",
            split=f"{data}:test/even",
            options={"k": k, "spaced": True},
            splits=(f"{data}:test/odd",),
            continues=True,
        ),
    )


SECOND = tuple(_second_trainings())
"""Each method of the few-shot study, after training on items of the test classes."""

ROWS = (*PAPER_ROWS, *LOOKS, RANKED, *FROZEN_ROWS, *SECOND)
FIRST_NAMES = tuple(row.name for row in PAPER_ROWS)
SHOWN_NAMES = (*FIRST_NAMES, *(row.name for row in LOOKS))
FROZEN_NAMES = ("ce", "elk", "nivmf", "hetxl", "losspred", RANKED.name, "ensemble")
"""Rows whose method leaves a frozen backbone as it is, and needs one view of an item.
"""
