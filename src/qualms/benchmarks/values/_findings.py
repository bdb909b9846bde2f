"""Findings of the paper, as questions to any results (Kahl et al., 2024).

Where a sentence has no number ("similar", "always better"), the limit is ours and
stands in the text.
"""

from qualms.effects import Numbers, Wishes, estimates
from qualms.labels import Wanted
from qualms.study import Expectation

_LIDC = ("LIDC TEX", "LIDC MAL")
_STREETS = "GTA5/CS"
_DRAWN = ("ttd", "ensemble", "tta", "ssn")
"""Models that have measures of all three types."""
_MAPS = ("patch", "threshold")


def _of(
    dataset: Wanted, score: str, *, minus: Wishes | None = None, **labels: Wanted
) -> Numbers:
    """Return a function to a score by dataset, row, aggregation and subset."""
    lines = ("dataset", "row", "aggregation", "subset")
    return estimates(
        {"row": _DRAWN, "dataset": dataset, "score": score, **labels},
        lines=lines,
        minus=minus,
        named=_named,
    )


def _named(dataset: str, row: str, aggregation: str | None, subset: str) -> str:
    parts = (dataset, row, aggregation, subset if subset == "shifted" else None)
    return ", ".join(filter(None, parts))


def _ncc(dataset: Wanted, **labels: Wanted) -> Numbers:
    """Return a function to the NCC of AU measures minus that of EU measures."""
    return _of(
        *(dataset, "ncc"),
        **{"type": "AU", "subset": "in_domain", "minus": {"type": "EU"}, **labels},  # type: ignore[arg-type]
    )


def _unseen(dataset: Wanted, aggregation: Wanted, **labels: Wanted) -> Numbers:
    """Return a function to the shift AUROC of EU measures minus that of AU measures."""
    return _of(
        *(dataset, "ood_auroc"),
        **{"type": "EU", "aggregation": aggregation, "minus": {"type": "AU"}, **labels},  # type: ignore[arg-type]
    )


FINDINGS = (
    Expectation(
        text="On toy data AU measures show the raters' disagreement better than EU "
        "measures (NCC)",
        where="Section 4.4, figure 2 (b), table 4a",
        numbers=_ncc("Toy 1"),
        low=0.0,
    ),
    Expectation(
        text="On LIDC the benefit is not evident: NCC of AU and EU measures differ by "
        "less than 0.15",
        where="Section 4.4, figure 3, table 4a",
        numbers=_ncc(_LIDC),
        low=-0.15,
        high=0.15,
    ),
    Expectation(
        text="On GTA5/Cityscapes AU measures show the ambiguity better than EU "
        "measures",
        where="Section 4.4, table 4a",
        numbers=_ncc(_STREETS),
        low=0.0,
    ),
    Expectation(
        text="On GTA5/Cityscapes the AU measure of SSN shows it best",
        where="Appendix G.1, table 4a",
        numbers=_of(
            *(_STREETS, "ncc"),
            type="AU",
            subset="in_domain",
            minus={"row": "ssn"},
        ),
        high=0.0,
    ),
    Expectation(
        text="On LIDC EU measures always find shifted items better than chance (AUROC, "
        "patch)",
        where="Appendix G.1, table 4b",
        numbers=_of(_LIDC, "ood_auroc", type="EU", aggregation="patch"),
        low=0.5,
    ),
    Expectation(
        text="Where training and test items are ambiguous, EU measures find shifted "
        "ones better than AU measures (toy 3b)",
        where="Section 4.4, appendix G.1, table 4b",
        numbers=_unseen("Toy 3b", _MAPS),
        low=0.0,
    ),
    Expectation(
        text="Without ambiguity both find them alike (toy 2, patch: within 0.1 for "
        "most models)",
        where="Appendix G.1, table 4b",
        numbers=_unseen("Toy 2", "patch"),
        low=-0.1,
        high=0.1,
        most=True,
    ),
    Expectation(
        text="On GTA5/Cityscapes EU measures find them better than AU measures, for "
        "all models but TTD",
        where="Appendix G.1, table 4b",
        numbers=_unseen(_STREETS, ("image", "patch"), row=("ensemble", "tta", "ssn")),
        low=0.0,
    ),
    Expectation(
        text="Segmentations are worse on shifted items (Dice), for every model",
        where="Section 4.5, tables 5 and 6",
        numbers=_of(
            (*_LIDC, _STREETS, "Toy 2", "Toy 3a"),
            "dice",
            row=("softmax", *_DRAWN),
            subset="shifted",
            minus={"subset": "in_domain"},
        ),
        high=0.0,
    ),
    Expectation(
        text="Ensembles find failures better than most other models (AURC, PU "
        "measures)",
        where="Section 4.5, figure 3, tables 5 and 6",
        numbers=_of(
            *((*_LIDC, _STREETS, "Toy 2", "Toy 3a"), "aurc"),
            row=("softmax", *_DRAWN),
            type="PU",
            aggregation=("image", *_MAPS),
            subset=("in_domain", "shifted"),
            minus={"row": "ensemble", "measure": "PE"},
        ),
        low=0.0,
        most=True,
    ),
    Expectation(
        text="SSN falls short in finding failures: its AURC is larger than that of "
        "ensembles, in-domain",
        where="Section 5, tables 5 and 6",
        numbers=_of(
            *((*_LIDC, _STREETS, "Toy 2", "Toy 3a"), "aurc"),
            row="ssn",
            type="PU",
            aggregation=("image", *_MAPS),
            subset="in_domain",
            minus={"row": "ensemble"},
        ),
        low=0.0,
    ),
    Expectation(
        text="PU measures are calibrated best: ACE of most AU and EU measures is "
        "larger",
        where="Section 4.5, figure 3, tables 5 and 6",
        numbers=estimates(
            {
                **{"dataset": (*_LIDC, _STREETS, "Toy 1"), "row": _DRAWN},
                **{"score": "ace", "type": ("AU", "EU")},
                "subset": ("in_domain", "shifted"),
            },
            lines=("dataset", "row", "type", "subset"),
            minus={"type": "PU"},
        ),
        low=0.0,
        most=True,
    ),
    Expectation(
        text="SSN models ambiguity best: no other model's AU measure has a higher NCC",
        where="Section 4.5, figure 3, tables 5 and 6",
        numbers=_of(
            *((*_LIDC, _STREETS, "Toy 1"), "ncc"),
            type="AU",
            subset=("in_domain", "shifted"),
            minus={"row": "ssn"},
        ),
        high=0.0,
    ),
    Expectation(
        text="In active learning EU measures outperform PU measures, except on LIDC "
        "MAL (gain, most models)",
        where="Section 4.5, figure 3, tables 5 and 6",
        numbers=_of(
            *(("LIDC TEX", _STREETS), "gain"),
            type="EU",
            aggregation=("image", *_MAPS),
            minus={"type": "PU"},
        ),
        low=0.0,
        most=True,
    ),
    Expectation(
        text="On LIDC MAL the aggregation decides: patch finds shifted items better "
        "than threshold",
        where="Section 4.5, table 4b",
        numbers=_of(
            *("LIDC MAL", "ood_auroc"),
            row=("softmax", *_DRAWN),
            type="PU",
            aggregation="patch",
            minus={"aggregation": "threshold"},
        ),
        low=0.0,
    ),
)
