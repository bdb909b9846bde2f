"""Findings of the paper, as questions to any results (Kirchhof et al., 2023).

The paper prints few numbers; those of its figures are of the runs that the authors
released. Where a sentence has no number ("fail"), the limit is ours and stands in the
text. Rank correlations are the printed ones over all configurations, or else those over
the methods of a run.
"""

import math
from typing import TYPE_CHECKING

from qualms.effects import ByName, DecidingNumber, Numbers, Wishes, estimates
from qualms.labels import Wanted
from qualms.study import Expectation

if TYPE_CHECKING:
    from qualms.evaluate.benchmark_results import BenchmarkResults

FEWEST = 6
"""Methods that a rank correlation needs: with fewer its interval is of no use."""
_METHODS = (
    *("ce", "infonce", "mcinfonce", "elk", "nivmf", "hib", "hetxl"),
    *("losspred", "mcdropout", "ensemble", "sngp"),
)
_TAUGHT = ("birds", "products", "cub", "cars", "sop")
_USUAL: Wishes = {
    "source": (None, "released_runs"),
    "selection": (None, "r_auroc"),
    **{"shots": None, "config": None, "uncertainty": None},
}
"""Epochs and configurations chosen by R-AUROC, and the paper's own uncertainty."""


def _of(
    score: str,
    *,
    subset: str = "all",
    row: Wanted = _METHODS,
    minus: Wishes | None = None,
    **labels: Wanted,
) -> Numbers:
    """Return a function to a score of each method, by backbone."""
    return estimates(
        {**_USUAL, "subset": subset, "score": score, "row": row, **labels},
        lines=("backbone", "row"),
        minus=minus,
    )


def _correlation(
    first: tuple[str, str], second: tuple[str, str], printed: str
) -> Numbers:
    """Return a function to the rank correlation of two scores over methods.

    Where results have the number `printed`, as those of the paper, it is that number.
    The interval is Bonett and Wright's (2000).
    """

    def numbers(results: "BenchmarkResults") -> ByName:
        number = results.table.get(score=printed)
        if number is not None:
            return {"printed": DecidingNumber(number.value, number.low, number.high)}
        x, y = (_of(score, subset=subset)(results) for subset, score in (first, second))
        values = [_values(x, y, name) for name in x if name in y]
        pairs = [pair for pair in values if all(map(math.isfinite, pair))]
        if len(pairs) < FEWEST:
            return {}
        return {f"over {len(pairs)} methods": _spearman(pairs)}

    return numbers


def _values(
    x: ByName,
    y: ByName,
    name: str,
) -> tuple[float, float]:
    first, second = x[name], y[name]
    assert isinstance(first, DecidingNumber) and isinstance(second, DecidingNumber)  # noqa: PT018
    return first.value, second.value


def _spearman(pairs: list[tuple[float, float]]) -> DecidingNumber:
    from scipy import stats  # declarations are read by every command

    value = float(stats.spearmanr(*zip(*pairs, strict=True)).statistic)
    if not math.isfinite(value):
        return DecidingNumber(value)
    centre = math.atanh(max(-0.999, min(0.999, value)))
    width = 1.96 * math.sqrt((1 + value**2 / 2) / (len(pairs) - 3))
    return DecidingNumber(value, math.tanh(centre - width), math.tanh(centre + width))


FINDINGS = (
    Expectation(
        text="No uncertainty of a pretrained network reaches the R-AUROC of 0.68 of a "
        "network that was trained on the downstream classes",
        where="Section 4.2, figure 1",
        numbers=_of("r_auroc"),
        high=0.68,
        of_paper=True,
    ),
    Expectation(
        text="MCInfoNCE has the best R-AUROC among ResNets",
        where="Section 4.3, figures 1 and 2",
        numbers=_of("r_auroc", backbone="resnet50", minus={"row": "mcinfonce"}),
        high=0.0,
    ),
    Expectation(
        text="Losspred has the best R-AUROC among vision transformers",
        where="Section 4.3, figures 1 and 2",
        numbers=_of("r_auroc", backbone="vit_medium", minus={"row": "losspred"}),
        high=0.0,
    ),
    Expectation(
        text="nivMF retrieves best (R@1, vision transformers)",
        where="Section 4.3, figure 2",
        numbers=_of("recall_at_1", backbone="vit_medium", minus={"row": "nivmf"}),
        high=0.0,
    ),
    Expectation(
        text="The baselines CE and InfoNCE fail downstream (R-AUROC below 0.55)",
        where="Section 4.3, figure 1",
        numbers=_of("r_auroc", row=("ce", "infonce")),
        high=0.55,
    ),
    Expectation(
        text="Ensembles and MC dropout fail downstream (R-AUROC below 0.55)",
        where="Section 4.3, figure 1",
        numbers=_of("r_auroc", row=("ensemble", "mcdropout")),
        high=0.55,
    ),
    Expectation(
        text="Upstream the majority of methods has an R-AUROC above 0.7",
        where="Section 4.5, figure 4",
        numbers=_of("r_auroc", subset="upstream"),
        low=0.7,
        of_paper=True,
        most=True,
    ),
    Expectation(
        text="R-AUROC upstream does not indicate R-AUROC downstream (rank correlation "
        "between -0.3 and 0.3)",
        where="Section 4.5, figure 4",
        numbers=_correlation(
            ("upstream", "r_auroc"),
            ("all", "r_auroc"),
            "rank_corr_upstream_vs_downstream_r_auroc",
        ),
        low=-0.3,
        high=0.3,
    ),
    Expectation(
        text="The crop rate upstream does (rank correlation above 0)",
        where="Section 4.5, figure 4",
        numbers=_correlation(
            ("upstream", "crop_rate"),
            ("all", "r_auroc"),
            "rank_corr_upstream_crop_pct_vs_downstream_r_auroc",
        ),
        low=0.0,
    ),
    Expectation(
        text="Methods with a high R-AUROC are aligned with human uncertainty (rank "
        "correlation above 0, sets with votes)",
        where="Section 4.6, figure 5",
        numbers=_correlation(
            ("soft", "human_alignment"),
            ("soft", "r_auroc"),
            "rank_corr_human_alignment_vs_r_auroc",
        ),
        low=0.0,
    ),
    Expectation(
        text="Class entropies and norms detect unseen classes better than the "
        "predicted loss (OOD AUROC)",
        where="Appendix C.4, figure 10",
        numbers=_of(
            "ood_auroc",
            row=("ce", "infonce", "hetxl", "ensemble", "sngp"),
            minus={"row": "losspred"},
        ),
        low=0.0,
    ),
    Expectation(
        text="CE reaches an R-AUROC of 0.6 with five items of each downstream class",
        where="Appendix C.6, figure 13",
        numbers=estimates(
            {
                "score": "r_auroc",
                "shots": "5",
                "uncertainty": None,
                "row": ("ce", *(f"ce_few5_{name}" for name in _TAUGHT)),
                "subset": ("all", *_TAUGHT),
            },
            lines=("backbone", "row"),
        ),
        low=0.6,
        of_paper=True,
    ),
)
