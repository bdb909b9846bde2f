"""From the names of the arrays to the task, and to what is missing or misspelt."""

from collections.abc import Collection
from difflib import get_close_matches
from functools import lru_cache

from qualms.predictions._errors import PredictionsError, listed, shortened
from qualms.predictions._schema import (
    ELSEWHERE,
    TASKS,
    Field,
    array_field,
    is_array_name,
)
from qualms.wording import suggest

# Names this alike are a slip of the keyboard, not another array.
_CLOSE = 0.8
# Names this alike are worth mentioning where an array would be lost otherwise.
_CLOSEST = 0.5
# What an array of one task is called in another.
_COUNTERPART = {
    ("regression", "uncertainty/"): "select/",
    ("classification", "select/"): "uncertainty/",
    ("embedding", "select/"): "uncertainty/",
}
NO_TARGET = (
    "there is no 'target': these predictions can be checked, pooled and referred, but "
    "not scored"
)


def settle_task(names: Collection[str], stated: str | None, asked: str | None) -> str:
    """The task asked for, else the one the header states, else what the names show."""
    for task in (asked, stated):
        if task is not None:
            return _known_task(task)
    fits = tasks_shown(names)
    if len(fits) == 1:
        return fits[0]
    if fits:
        shown = listed(sorted({m for t in fits for m in TASKS[t].marks} & set(names)))
        raise PredictionsError(
            f"the arrays {shown} fit more than one task ({', '.join(fits)}); say which "
            "with --task (task=...)"
        )
    raise PredictionsError(_no_task(names))


def tasks_shown(names: Collection[str]) -> list[str]:
    """The tasks that have one of their own arrays among `names`."""
    return [task for task, about in TASKS.items() if set(about.marks) & set(names)]


def check_names(
    task: str, names: Collection[str], *, strict: bool = False
) -> tuple[str, ...]:
    """Refuse misspelt and missing arrays; give notes on those left out.

    With `strict`, an array that would be left out is refused.
    """
    unknown = [name for name in names if array_field(task, name) is None]
    for name in unknown:
        _refuse_misspelt(task, name)
        if strict:
            raise PredictionsError(_would_be_lost(task, name))
    _check_company(task, names)
    return (*ignored_notes(task, unknown), *_without_target(task, names))


def _check_company(task: str, names: Collection[str]) -> None:
    """Refuse arrays that lack another, or say the same as another."""
    about, there = TASKS[task], set(names)
    for needed in about.needs:
        if not any(_has(need, names) for need in needed):
            raise PredictionsError(_missing(task, needed, names))
    for name, partner in about.given:
        if name in there and partner not in there:
            raise PredictionsError(
                f"array '{name}' needs '{partner}' beside it, found only "
                f"{listed(names)}; add '{partner}'"
            )
    for alike in about.instead:
        twice = [name for name in alike if name in there]
        if len(twice) > 1:
            raise PredictionsError(
                f"arrays '{twice[0]}' and '{twice[1]}' say the same thing twice; keep "
                "one"
            )


def ignored_notes(task: str, unknown: list[str]) -> tuple[str, ...]:
    """Notes on arrays that `task` does not have; many of them are listed in one."""
    if len(unknown) <= 5:
        return tuple(
            f"array '{shortened(name)}' is not part of {task} predictions and was "
            "ignored"
            for name in unknown
        )
    return (
        f"the arrays {listed(unknown)} are not part of {task} predictions and were "
        "ignored",
    )


def _without_target(task: str, names: Collection[str]) -> tuple[str, ...]:
    if task == "segmentation" or "target" in names:
        return ()
    for name in names:
        if ELSEWHERE.get(name) == "target":
            raise PredictionsError(
                f"array '{name}' is called 'target' here; rename it, or write it as "
                f"'extra/{name}' if it is something else"
            )
    return (NO_TARGET,)


def _known_task(task: str) -> str:
    if task not in TASKS:
        raise PredictionsError(
            f"no task {task!r:.60}.{suggest(str(task), TASKS)} Known: "
            f"{', '.join(TASKS)}."
        )
    return task


def _no_task(names: Collection[str]) -> str:
    needs = "; ".join(
        f"{task}: {' and '.join(_either(needed) for needed in about.needs)}"
        for task, about in TASKS.items()
        if task != "segmentation"
    )
    return (
        f"the arrays ({listed(names)}) fit no task.{_slip(names)} Needed for {needs}; "
        "segmentation is a folder with index.json"
    )


def _slip(names: Collection[str]) -> str:
    for name in names:
        if name in ELSEWHERE:
            return f" '{name}' is called '{ELSEWHERE[name]}' here."
        for task in TASKS:
            if hint := _alike(task, name):
                return f" For '{shortened(name)}':{hint}"
    return ""


def _alike(task: str, name: str) -> str:
    fields = TASKS[task].fields
    for family in (f.name for f in fields if f.family and not is_array_name(name)):
        if name.rstrip("/") == family[:-1]:
            return f" Write it as '{family}<name>'."
        if name.startswith(family[:-1]) and not name[len(family) - 1].isalnum():
            return f" Write it as '{family}{shortened(name[len(family) :])}'."
    # Only the part before the slash can be misspelt; what follows is the user's own.
    head, slash, rest = name.partition("/")
    close = _closest(task, head.rstrip("0123456789"), bool(slash), _CLOSE)
    if not close or close == head:
        return ""
    return f" Did you mean '{close}{slash}{shortened(rest)}'?"


# A table may have a hundred thousand columns that differ in a number alone.
@lru_cache(maxsize=1024)
def _closest(task: str, head: str, family: bool, cutoff: float) -> str:
    heads = [f.name.rstrip("/") for f in TASKS[task].fields if f.family == family]
    longest = 2 * max(map(len, heads), default=0)
    if len(head) > longest:
        return ""
    return next(iter(get_close_matches(head, heads, n=1, cutoff=cutoff)), "")


def _refuse_misspelt(task: str, name: str) -> None:
    if hint := _alike(task, name):
        raise PredictionsError(
            f"array '{shortened(name)}' is not part of {task} predictions.{hint} "
            "Rename it, or leave it out"
        )
    for (where, head), other in _COUNTERPART.items():
        if where == task and name.startswith(head):
            raise PredictionsError(
                f"array '{shortened(name)}' is not part of {task} predictions; write "
                f"it as '{other}{shortened(name.removeprefix(head))}'"
            )


def _would_be_lost(task: str, name: str) -> str:
    shown = shortened(name)
    called = ELSEWHERE.get(name, "")
    if not called or array_field(task, called) is None:
        called = _closest(task, name, False, _CLOSEST)
    hint = f" The closest that is known is '{called}'." if called else ""
    kept = "" if task == "segmentation" else f", or write it as 'extra/{shown}'"
    return (
        f"array '{shown}' is not part of {task} predictions and would be lost.{hint} "
        f"Rename it{kept} to keep it"
    )


def _missing(task: str, needed: tuple[str, ...], names: Collection[str]) -> str:
    called = [n for n in names if ELSEWHERE.get(n) in needed]
    hint = f"; is it '{called[0]}'? rename it" if called else "; add it"
    return (
        f"{task} predictions need {_either(needed)}, found only {listed(names)}{hint}"
    )


def _either(needed: tuple[str, ...]) -> str:
    return " or ".join(Field(name=need).shown for need in needed)


def _has(need: str, names: Collection[str]) -> bool:
    return any(Field(name=need).covers(name) for name in names)
