"""Protocol of runs on a user's own data: the scores of a file, also by group."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace

from qualms.evaluate.entry import Entry, Judgement
from qualms.evaluate.protocol import Protocol, Repeat, judge_by_task

MARGIN = 0.05
"""Coverages this close to what intervals promise are good enough."""
FAR = 3.0
"""Standard errors by which a coverage must be below that to be called far below."""
OVERFITTED = (
    "intervals hold far fewer targets than they promise: the network has probably"
    " learned its training items by heart; conformal intervals keep the promise, more"
    " items or fewer epochs mend it"
)


def own_protocol(notes: tuple[str, ...]) -> Protocol:
    """Return the protocol of data that have these notes."""
    return Protocol(judge=_judge, notes=lambda _plan, _options: notes)


def _judge(repeat: Repeat) -> Judgement:
    if "corruption" in repeat.line.labels:
        return _of_corrupted(judge_by_task(repeat))
    judgement = judge_by_task(_by_group(repeat))
    warnings = (*judgement.warnings, *_overfitted(judgement.entries))
    return replace(judgement, warnings=warnings)


def _of_corrupted(judgement: Judgement) -> Judgement:
    """Return what is new of corrupted items: dozens of variants share the others.

    Scores of the items as they are stored are where curves begin, and are not ranked
    again; what needs both kinds, such as an OOD score, has no such score beside it.
    """
    alone = {e.score_name for e in judgement.entries if e.subset == "shifted"}
    entries = tuple(
        replace(entry, ranked=entry.ranked and entry.subset != "in_domain")
        for entry in judgement.entries
        if entry.subset in ("in_domain", "shifted") or entry.score_name not in alone
    )
    return Judgement(
        entries=entries, design=judgement.design, warnings=judgement.warnings
    )


def _by_group(repeat: Repeat) -> Repeat:
    return repeat._replace(options=replace(repeat.options, by_group=True))


def _overfitted(entries: Iterable[Entry]) -> Iterator[str]:
    """Warn of intervals, as they were predicted, that cover far too few items."""
    for entry in entries:
        as_predicted = entry.settings.get("interval") in ("gaussian", "as predicted")
        if entry.score_name != "coverage" or not as_predicted or entry.aim is None:
            continue
        if entry.subset not in ("all", "in_domain") or not len(entry.index):
            continue
        least = entry.aim - MARGIN
        error = math.sqrt(least * (1.0 - least) / len(entry.index))
        if entry.value < least - FAR * error:
            yield OVERFITTED
            return
