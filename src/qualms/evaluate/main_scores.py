"""The main scores of a file: the short output of `qualms score`."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from qualms.evaluate.chosen_uncertainty import COMPUTED, uncertainty_of
from qualms.evaluate.judging import judging_of
from qualms.evaluate.rows import RowSettings, ScoreRow
from qualms.shelf import names
from qualms.wording import suggest

Kind = tuple[str, RowSettings]
"""A score and its settings."""
SHOWN = 10
"""Number of scores shown."""

OTHER_NAMES: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(
        ("auc", "roc_auc", "auc_roc", "rocauc", "roc_auc_score"),
        ("auroc", "macro_auroc", "ood_auroc", "r_auroc"),
    ),
    **dict.fromkeys(("ap", "pr_auc", "auc_pr"), ("average_precision", "auprc")),
    **dict.fromkeys(("acc", "error", "error_rate"), ("accuracy",)),
    **dict.fromkeys(("f1", "f1_score", "fscore"), ("macro_f1",)),
    **dict.fromkeys(("log_loss", "logloss", "cross_entropy", "ce"), ("nll",)),
    **dict.fromkeys(("recall", "tpr"), ("sensitivity", "recall_at_1")),
    "precision": ("ppv",),
    "tnr": ("specificity",),
    **dict.fromkeys(("iou", "jaccard", "dsc"), ("macro_dice", "dice")),
    **dict.fromkeys(("mse", "r2"), ("rmse",)),
    "crps": ("crps_gaussian", "crps_ensemble"),
    "fpr95": ("ood_fpr95",),
    "kappa": ("quadratic_kappa",),
    "mpiw": ("interval_length",),
    "picp": ("coverage",),
}
"""Scores that others call by these names, or those that come closest."""


class MainScore(NamedTuple):
    """A score, with settings that choose among its rows."""

    score: str
    settings: Mapping[str, str] = {}
    every: bool = False
    """True to show all fitting rows, because a user chose them; else the first only."""
    beside: bool = False
    """True to show the computed uncertainty beside one of the file's own."""

    def fits(self, row: ScoreRow) -> bool:
        """Return whether `row` is of this score."""
        same = all(row.settings.get(name) == v for name, v in self.settings.items())
        return same and row.score == self.score


def score_hint(name: str, available: Collection[str]) -> str:
    """Return ' Did you mean ...?' for a score of another name or spelling, else ''.

    >>> score_hint("AUC", ["aurc", "auroc"])
    " Did you mean 'auroc'?"
    """
    plain = re.sub(r"[ -]", "_", name.lower())
    meant = [score for score in OTHER_NAMES.get(plain, ()) if score in available]
    return suggest(meant[0] if meant else plain, available)


def main_kinds(
    task: str, rows: Sequence[ScoreRow], uncertainty: str = ""
) -> list[Kind]:
    """Return the main scores among `rows`, with their settings.

    Scores from outside the package are always included. Scores that judge an
    uncertainty are those of `uncertainty`, if not '', and the AURC of the computed one
    is added.
    """
    outside = [MainScore(name) for name in names("scores")]
    chosen: dict[Kind, None] = {}
    for main in judging_of(task).shown(rows).main:
        kinds = _kinds(main, rows, uncertainty)
        new = [kind for kind in kinds if kind not in chosen]
        chosen |= dict.fromkeys(new[: SHOWN - len(chosen)])
    chosen |= {kind_of(row): None for row in rows if any(o.fits(row) for o in outside)}
    return list(chosen)


def _kinds(main: MainScore, rows: Sequence[ScoreRow], uncertainty: str) -> list[Kind]:
    """Return the kinds of a main score that are shown."""
    fitting = [row for row in rows if main.fits(row)]
    kinds = list(dict.fromkeys(map(kind_of, fitting)))
    if main.every:
        return kinds
    by_it = [
        row
        for row in rows
        if row.score == main.score and uncertainty_of(row.settings) == uncertainty
    ]
    if not uncertainty or not by_it or uncertainty_of(main.settings):
        return kinds[:1]
    first = next((row for row in by_it if main.fits(row)), by_it[0])
    beside = [kind_of(row) for row in fitting if _is_computed(row)]
    return [kind_of(first), *(beside[:1] if main.beside else [])]


def _is_computed(row: ScoreRow) -> bool:
    return "measure" in row.settings or uncertainty_of(row.settings) in COMPUTED


def main_rows(
    task: str, rows: Sequence[ScoreRow], uncertainty: str = ""
) -> list[ScoreRow]:
    """Return the rows of the main scores, in their order."""
    kinds = main_kinds(task, rows, uncertainty)
    order = {kind: number for number, kind in enumerate(kinds)}
    return sorted(
        (row for row in rows if kind_of(row) in order),
        key=lambda row: order[kind_of(row)],
    )


def kind_of(row: ScoreRow) -> Kind:
    """Return the score and the settings of a row."""
    score, _, settings = row.key
    return score, settings
