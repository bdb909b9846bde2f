"""The main scores of each task, which `qualms score` shows at first."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from qualms import scores
from qualms.evaluate.compare import RowKey, RowSettings
from qualms.evaluate.results import Results, ScoreRow
from qualms.evaluate.scoring import Scored
from qualms.shelf import names
from qualms.wording import suggest

Kind = tuple[str, RowSettings]
"""A score and its settings."""
SHOWN = 10
"""How many are shown: the first ones that a file has."""


class MainScore(NamedTuple):
    """A score, with certain settings where it has several."""

    score: str
    settings: Mapping[str, str] = {}
    every: bool = False
    """Whether all rows that fit are shown, as a user chose them; else the first."""

    def fits(self, row: ScoreRow) -> bool:
        """Return whether `row` is of this score."""
        same = all(row.settings.get(name) == v for name, v in self.settings.items())
        return same and row.score == self.score


_CONFORMAL = {"interval": "conformal"}
_PATCH = {"aggregation": "patch"}
MAIN: Mapping[str, Sequence[MainScore]] = {
    "classification": (
        MainScore("accuracy"),
        MainScore("balanced_accuracy"),
        MainScore("auroc"),
        MainScore("macro_auroc"),
        MainScore("nll"),
        MainScore("ece"),
        MainScore("aurc"),
        MainScore("risk_at_coverage"),
        MainScore("set_coverage"),
        MainScore("set_size"),
        MainScore("ood_auroc"),
        MainScore("brier"),
        MainScore("mcc"),
        MainScore("macro_f1"),
    ),
    "regression": (
        MainScore("mae"),
        MainScore("rmse"),
        MainScore("gaussian_nll"),
        MainScore("crps_gaussian"),
        MainScore("crps_ensemble"),
        MainScore("regression_ece"),
        MainScore("aurc"),
        MainScore("coverage"),
        MainScore("interval_length"),
        MainScore("coverage", _CONFORMAL),
        MainScore("interval_length", _CONFORMAL),
        MainScore("interval_score"),
        MainScore("prediction_rate"),
    ),
    "segmentation": (
        MainScore("dice"),
        MainScore("macro_dice"),
        MainScore("ged"),
        MainScore("ncc"),
        MainScore("ncc", {"measure": "aleatoric"}),
        MainScore("ncc", {"measure": "epistemic"}),
        MainScore("stated_ace"),
        MainScore("aurc", _PATCH),
        MainScore("ood_auroc", _PATCH),
        MainScore("ace"),
        MainScore("augrc", _PATCH),
        MainScore("eaurc", _PATCH),
    ),
    "embedding": (
        MainScore("recall_at_1"),
        MainScore("recall_at_k", every=True),
        MainScore("r_auroc"),
        MainScore("crop_rate"),
        MainScore("human_alignment"),
        MainScore("mixed_r_auroc"),
        MainScore("ood_auroc"),
        MainScore("accuracy"),
        MainScore("ood_auprc"),
        MainScore("ood_fpr95"),
    ),
}

GROUPED: Mapping[str, Sequence[str]] = {
    "classification": ("accuracy", "nll", "ece", "aurc"),
    "regression": ("mae", "crps_gaussian", "coverage", "interval_length"),
    "segmentation": ("dice", "macro_dice", "ged", "stated_ace", "aurc"),
    "embedding": ("recall_at_1", "r_auroc"),
}
"""The scores that are shown for every group."""


def with_main_scores(scored: Scored) -> Scored:
    """Return `scored` with the rows of the main scores alone, in their order.

    Scores from outside the package are kept: whoever brings one wants to see it.
    """
    outside = [MainScore(name) for name in names("scores")]
    rows = [row for result in scored.results for row in result.rows]
    chosen: dict[Kind, None] = {}
    for main in MAIN[scored.results[0].task]:
        kinds = dict.fromkeys(_kind(row) for row in rows if main.fits(row))
        new = [kind for kind in kinds if kind not in chosen]
        if len(chosen) < SHOWN:
            chosen |= dict.fromkeys(new if main.every else new[:1])
    chosen |= {_kind(row): None for row in rows if any(o.fits(row) for o in outside)}
    return _with_kinds(scored, list(chosen))


def main_rows(results: Results) -> tuple[ScoreRow, ...]:
    """Return the rows of the main scores of one file."""
    return with_main_scores(Scored(results=(results,))).results[0].rows


def with_scores(scored: Scored, score_names: Iterable[str]) -> Scored:
    """Return `scored` with the rows of these scores alone, whatever their settings.

    Raises:
        LookupError: If no file has such a score.
    """
    rows = [row for result in scored.results for row in result.rows]
    known = dict.fromkeys(row.score for row in rows)
    by_label = {row.label.lower(): row.score for row in rows}
    chosen = []
    for name in score_names:
        plain = name.strip().lower()
        score = plain if plain in known else by_label.get(plain)
        if score is None:
            exists = plain in scores.__all__
            why = " It may need other arrays, or --val." if exists else ""
            raise LookupError(
                f"no score {name!r} here.{why or suggest(plain, known)} These "
                f"predictions have {', '.join(known)}."
            )
        chosen.append(score)
    order = {score: place for place, score in enumerate(dict.fromkeys(chosen))}
    kinds = dict.fromkeys(_kind(row) for row in rows if row.score in order)
    # The verdict rests on rows that are about to go.
    judged = tuple(replace(result, answers=result.verdict) for result in scored.results)
    return _with_kinds(
        replace(scored, results=judged), sorted(kinds, key=lambda kind: order[kind[0]])
    )


def _kind(row: ScoreRow) -> Kind:
    """Return the score and the settings of a row."""
    return row.score, row.key[2]


def _with_kinds(scored: Scored, kinds: Sequence[Kind]) -> Scored:
    """Return `scored` with the rows of these scores and settings, in their order."""
    place = {kind: number for number, kind in enumerate(kinds)}
    rows = [row for result in scored.results for row in result.rows]
    keys = dict.fromkeys(row.key for row in rows if _kind(row) in place)
    return with_rows(scored, sorted(keys, key=lambda key: place[key[::2]]))


def with_rows(scored: Scored, keys: Iterable[RowKey]) -> Scored:
    """Return `scored` with the rows and contrasts of these keys alone, in order."""
    order = dict.fromkeys(keys)
    results = []
    for result in scored.results:
        rows = {row.key: row for row in result.rows}
        chosen = tuple(rows[key] for key in order if key in rows)
        results.append(replace(result, rows=chosen))
    comparison = scored.comparison
    if comparison is not None:
        contrasts = {contrast.key: contrast for contrast in comparison.contrasts}
        comparison = replace(
            comparison,
            contrasts=tuple(contrasts[key] for key in order if key in contrasts),
        )
    return Scored(results=tuple(results), comparison=comparison)
