"""The scores that matter most for each task: what `qualms score` shows at first."""

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
"""So many are shown, the first of those that a file has."""


class MainScore(NamedTuple):
    """A score, and with which settings; of several that fit, the first is shown."""

    score: str
    settings: Mapping[str, str] = {}
    every: bool = False
    """Whether all that fit are shown: a user has asked for each of them."""

    def fits(self, row: ScoreRow) -> bool:
        """Whether `row` is of this score."""
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
"""Those that are shown of every group."""


def with_main_scores(scored: Scored) -> Scored:
    """`scored` with the rows of the main scores alone, in their order.

    Scores from outside the package are kept: whoever brings one wants to see it.
    """
    own = [MainScore(name) for name in names("scores")]
    rows = [row for result in scored.results for row in result.rows]
    chosen: dict[Kind, None] = {}
    for wanted in MAIN[scored.results[0].task]:
        found = [_kind(row) for row in rows if wanted.fits(row)]
        new = [*dict.fromkeys(kind for kind in found if kind not in chosen)]
        if len(chosen) < SHOWN:
            chosen |= dict.fromkeys(new if wanted.every else new[:1])
    chosen |= {_kind(row): None for row in rows if any(o.fits(row) for o in own)}
    return _kept(scored, list(chosen))


def main_rows(results: Results) -> tuple[ScoreRow, ...]:
    """The rows of the main scores of one file."""
    return with_main_scores(Scored(results=(results,))).results[0].rows


def with_scores(scored: Scored, wanted: Iterable[str]) -> Scored:
    """`scored` with the rows of these scores alone, whatever their settings.

    Raises:
        LookupError: If no file has such a score.
    """
    rows = [row for result in scored.results for row in result.rows]
    known = dict.fromkeys(row.score for row in rows)
    by_label = {row.label.lower(): row.score for row in rows}
    chosen = []
    for name in wanted:
        plain = name.strip().lower()
        score = plain if plain in known else by_label.get(plain)
        if score is None:
            needed = plain in scores.__all__
            why = " It may need other arrays, or --val." if needed else ""
            raise LookupError(
                f"no score {name!r} here.{why or suggest(plain, known)} These "
                f"predictions have {', '.join(known)}."
            )
        chosen.append(score)
    order = {score: place for place, score in enumerate(dict.fromkeys(chosen))}
    kinds = dict.fromkeys(_kind(row) for row in rows if row.score in order)
    told = tuple(replace(result, answers=result.verdict) for result in scored.results)
    judged = replace(scored, results=told)
    return _kept(judged, sorted(kinds, key=lambda kind: order[kind[0]]))


def _kind(row: ScoreRow) -> Kind:
    """What a row is about, whatever its subset."""
    return row.score, row.key[2]


def _kept(scored: Scored, kinds: Sequence[Kind]) -> Scored:
    """The rows of these kinds, in their order."""
    place = {kind: number for number, kind in enumerate(kinds)}
    rows = [row for result in scored.results for row in result.rows]
    keys = dict.fromkeys(row.key for row in rows if _kind(row) in place)
    return with_rows(scored, sorted(keys, key=lambda key: place[key[::2]]))


def with_rows(scored: Scored, keys: Iterable[RowKey]) -> Scored:
    """`scored` with the rows and contrasts of these keys alone, in their order."""
    kept = dict.fromkeys(keys)
    results = []
    for result in scored.results:
        own = {row.key: row for row in result.rows}
        rows = tuple(own[key] for key in kept if key in own)
        results.append(replace(result, rows=rows))
    comparison = scored.comparison
    if comparison is not None:
        found = {contrast.key: contrast for contrast in comparison.contrasts}
        contrasts = tuple(found[key] for key in kept if key in found)
        comparison = replace(comparison, contrasts=contrasts)
    return Scored(results=tuple(results), comparison=comparison)
