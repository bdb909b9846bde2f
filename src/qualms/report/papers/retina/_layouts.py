"""What each of the paper's tables 1 to 13 holds: tasks, regime, and columns."""

from collections.abc import Callable
from typing import NamedTuple

from qualms.report.papers.retina._scores import AREAS, PERCENT, STANDARD, Score
from qualms.report.papers.retina._settings import SUBSETS, TASKS


class Column(NamedTuple):
    """One column of a table."""

    score: Score
    subset: str
    head: str
    """Stands above a group of columns."""
    label: str
    task: str
    theirs: bool = False
    """Whether it shows ours by the released code's rule; else by the right one."""


class PartLayout(NamedTuple):
    """Columns that share their lines."""

    title: str
    columns: tuple[Column, ...]


class Layout(NamedTuple):
    """One table of the paper."""

    name: str
    title: str
    tasks: tuple[str, ...]
    regime: str
    parts: tuple[PartLayout, ...]
    blurs: tuple[int, ...] = ()
    """Blur constants that have lines of their own; () for the main experiments."""
    source: str = "000_retina"
    """Which of the two texts of the paper printed it."""
    printed: str = ""
    """Its number there, where `name` is another."""


_AFTER = {0.0: "no referral", 0.5: "50% referred", 0.7: "70% referred"}
_THREE = ("in_domain", "shifted", "joint")
_FOUR = (*_THREE, "balanced")
BLURS = (5, 10, 20, 30)


def _referred(task: str) -> tuple[PartLayout, ...]:
    """Tables 1, 2, 12 and 13: AUROC and accuracy of what is kept."""
    return tuple(
        PartLayout(
            SUBSETS[subset],
            tuple(
                Column(_at(score, tau), subset, head, score.label, task)
                for tau, head in _AFTER.items()
                for score in (STANDARD["auroc"], STANDARD["accuracy"])
            ),
        )
        for subset in ("in_domain", "shifted")
    )


def _at(score: Score, tau: float) -> Score:
    return score._replace(name=f"{score.name}@{tau:g}", referral=tau) if tau else score


def _detected() -> PartLayout:
    """Table 3: shifted items found by their uncertainty."""
    scores = [
        Score(name, name, label, PERCENT)
        for name, label in (("ood_auroc", "AUROC ↑"), ("ood_auprc", "AUPRC ↑"))
    ]
    return PartLayout(
        "joint",
        tuple(
            Column(score, "joint", head, score.label, task)
            for task, head in TASKS.items()
            for score in scores
        ),
    )


def _crossed(
    task: str, scores: tuple[Score, ...], subsets: tuple[str, ...]
) -> PartLayout:
    """Scores by subset, as in tables 4 to 11."""
    return PartLayout(
        "",
        tuple(
            Column(score, subset, score.label, SUBSETS[subset], task)
            for score in scores
            for subset in subsets
        ),
    )


def _standard(task: str) -> tuple[PartLayout, ...]:
    first = tuple(STANDARD[name] for name in ("nll", "accuracy", "auprc"))
    second = tuple(STANDARD[name] for name in ("auroc", "ece"))
    return _crossed(task, first, _THREE), _crossed(task, second, _THREE)


def _areas(task: str) -> tuple[PartLayout, ...]:
    pairs = (("auroc", "accuracy"), ("nll", "auprc"))
    return tuple(
        _crossed(task, tuple(AREAS[name] for name in names), _FOUR) for names in pairs
    )


_KINDS: dict[str, tuple[str, Callable[[str], tuple[PartLayout, ...]]]] = {
    "referred": ("AUROC and accuracy of the items kept after referral", _referred),
    "standard": ("standard scores", _standard),
    "areas": ("areas under referral curves, referred items count as perfect", _areas),
}


def _layout(name: str, task: str, regime: str, kind: str) -> Layout:
    what, parts = _KINDS[kind]
    return Layout(name, f"{TASKS[task]}, {what}", (task,), regime, parts(task))


def _blurred(name: str, task: str) -> Layout:
    layout = _layout(name, task, "in-domain", "referred")
    title = f"{layout.title}, preprocessing with different blur"
    return layout._replace(title=title, blurs=BLURS)


LAYOUTS = (
    _layout("1", "country", "in-domain", "referred"),
    _layout("1", "country", "in-domain", "referred")._replace(
        name="1_full_paper", printed="1", source="001_retina"
    ),
    _layout("2", "severity", "in-domain", "referred"),
    Layout(
        "3",
        "shifted items found by their uncertainty",
        tuple(TASKS),
        "in-domain",
        (_detected(),),
    ),
    _layout("4", "country", "in-domain", "standard"),
    _layout("5", "severity", "in-domain", "standard"),
    _layout("6", "country", "in-domain", "areas"),
    _layout("7", "severity", "in-domain", "areas"),
    _layout("8", "country", "joint", "standard"),
    _layout("9", "severity", "joint", "standard"),
    _layout("10", "country", "joint", "areas"),
    _layout("11", "severity", "joint", "areas"),
    _blurred("12", "severity"),
    _blurred("13", "country"),
)
"""Tables 1 to 13 of the supplement, and the full paper's own version of the first."""
