"""From the names of the arrays to the task, and to what is missing or misspelt."""

from collections.abc import Collection
from difflib import get_close_matches

from qualms.predictions._error import PredictionsError
from qualms.predictions._schema import ELSEWHERE, TASKS, Field, field, known, listed
from qualms.shelf import suggest

# Names this alike are a slip of the keyboard, not another array.
CLOSE = 0.8
# One idea, two tasks: the array that plays the part of the other.
_COUNTERPART = {
    ("regression", "uncertainty/"): "select/",
    ("classification", "select/"): "uncertainty/",
    ("embedding", "select/"): "uncertainty/",
}


def settle_task(names: Collection[str], stated: str | None, asked: str | None) -> str:
    """The task asked for, else the one the header states, else what the names show."""
    for task in (asked, stated):
        if task is not None:
            return _known_task(task)
    fits = [task for task, about in TASKS.items() if set(about.marks) & set(names)]
    if len(fits) == 1:
        return fits[0]
    if fits:
        shown = listed(sorted({m for t in fits for m in TASKS[t].marks} & set(names)))
        raise PredictionsError(
            f"the arrays {shown} fit more than one task ({', '.join(fits)}); say which "
            "with --task (task=...)"
        )
    raise PredictionsError(_no_task(names))


def check_names(task: str, names: Collection[str]) -> tuple[str, ...]:
    """Refuse misspelt and missing arrays; give a note for each one left out."""
    notes = tuple(_left_out(task, name) for name in names if field(task, name) is None)
    about = TASKS[task]
    for needed in about.needs:
        if not any(_has(need, names) for need in needed):
            raise PredictionsError(_missing(task, needed, names))
    for name, partner in about.given:
        if name in names and partner not in names:
            raise PredictionsError(
                f"array '{name}' needs '{partner}' beside it, found only "
                f"{listed(names)}; add '{partner}'"
            )
    for name, other in about.instead:
        if name in names and other in names:
            raise PredictionsError(
                f"arrays '{name}' and '{other}' say the same thing twice; keep one"
            )
    return notes


def _known_task(task: str) -> str:
    if task not in TASKS:
        raise PredictionsError(
            f"no task {task!r}.{suggest(str(task), TASKS)} Known: {', '.join(TASKS)}."
        )
    return task


def _no_task(names: Collection[str]) -> str:
    needs = "; ".join(
        f"{task}: {' and '.join(_either(needed) for needed in about.needs)}"
        for task, about in TASKS.items()
        if task != "segmentation"
    )
    everything = [f for about in TASKS.values() for f in about.fields]
    return (
        f"the arrays ({listed(names)}) fit no task.{_slip(names, everything)} "
        f"Needed for {needs}; segmentation is a folder with index.json"
    )


def _slip(names: Collection[str], fields: Collection[Field]) -> str:
    for name in names:
        if name in ELSEWHERE:
            return f" '{name}' is called '{ELSEWHERE[name]}' here."
        if hint := _alike(name, fields):
            return f" For '{name}':{hint}"
    return ""


def _alike(name: str, fields: Collection[Field]) -> str:
    for member in (f for f in fields if f.family and not known(name)):
        if name.rstrip("/") == member.name[:-1]:
            return f" Write it as '{member.name}<name>'."
        if (
            name.startswith(member.name[:-1])
            and not name[len(member.name) - 1].isalnum()
        ):
            return f" Write it as '{member.name}{name[len(member.name) :]}'."
    # Only the part before the slash can be misspelt; what follows is the user's own.
    head, slash, rest = name.partition("/")
    heads = [f.name.rstrip("/") for f in fields if f.family == bool(slash)]
    close = get_close_matches(head, heads, n=1, cutoff=CLOSE)
    if not close or close[0] == head:
        return ""
    return f" Did you mean '{close[0]}{slash}{rest}'?"


def _left_out(task: str, name: str) -> str:
    if hint := _alike(name, TASKS[task].fields):
        raise PredictionsError(
            f"array '{name}' is not part of {task} predictions.{hint} Rename it, or "
            "leave it out"
        )
    for (where, head), other in _COUNTERPART.items():
        if where == task and name.startswith(head):
            raise PredictionsError(
                f"array '{name}' is not part of {task} predictions; write it as "
                f"'{other}{name.removeprefix(head)}'"
            )
    return f"array '{name}' is not part of {task} predictions and was ignored"


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
