"""Finding the task by the names of the arrays, and names missing or misspelt."""

import re
from collections.abc import Collection
from difflib import get_close_matches
from functools import lru_cache

from qualms.predictions._errors import PredictionsError, listed, shortened
from qualms.predictions.schema import (
    SYNONYMS,
    Field,
    array_field,
    folder_task,
    is_array_name,
    schemas,
)
from qualms.shelf import traits
from qualms.wording import cluster_hint, suggest

# Similarity above which one name is taken for a misspelling of another.
_CLOSE = 0.8
# Similarity above which a name is suggested for an array that would be lost.
_CLOSEST = 0.5
# Scores that select items, and what they are called in tasks without them.
_SELECTS, _OWN = "select/", "uncertainty/"
# Names that other programs give to the column with the probability of a class.
_NUMBERED_PROB = re.compile(r"(?:p|proba|class|softmax)_?([0-9]{1,6})")
_FINDING = re.compile(r"(?:target|label|y_true)_[0-9]{1,6}")
NO_TARGET = (
    "there is no 'target': these predictions can be checked, pooled and referred, but "
    "not scored"
)

SEVERAL_FINDINGS = (
    "{} holds {} findings, of which an item may have several or none (multi-label),"
    " and these are not scored yet; score each finding by itself: its column as"
    " 'target', and its sigmoid as 'prob'"
)


def settle_task(
    names: Collection[str], in_header: str | None, requested: str | None
) -> str:
    """Return the task: the requested one, else the header's, else that of the names."""
    for task in (requested, in_header):
        if task is not None:
            return _check_task(task)
    tasks = matching_tasks(names)
    if len(tasks) == 1:
        return tasks[0]
    if tasks:
        shown = listed(
            sorted({m for t in tasks for m in schemas()[t].marks} & set(names))
        )
        raise PredictionsError(
            f"the arrays {shown} fit more than one task ({', '.join(tasks)}); say"
            " which with --task (task=...)"
        )
    raise PredictionsError(_no_task(names))


def matching_tasks(names: Collection[str]) -> list[str]:
    """Return the tasks that one of the arrays is specific to."""
    return [task for task, about in schemas().items() if set(about.marks) & set(names)]


def check_names(
    task: str, names: Collection[str], *, strict: bool = False
) -> tuple[str, ...]:
    """Raise on misspelt and missing arrays; return notes on arrays that are left out.

    With `strict`, raise on an array that would be left out.
    """
    unknown = [name for name in names if array_field(task, name) is None]
    findings = [name for name in unknown if _FINDING.fullmatch(name)]
    if len(findings) > 1 and "probabilities" in traits(task) and "target" not in names:
        columns = f"{findings[0]} to {findings[-1]}"
        raise PredictionsError(SEVERAL_FINDINGS.format(columns, len(findings)))
    for name in unknown:
        _refuse_misspelt(task, name)
        if strict:
            raise PredictionsError(_would_be_lost(task, name))
    _check_combination(task, names)
    notes = ignored_notes(task, unknown, clustered="cluster" in names)
    return (*notes, *_target_notes(task, names))


def _check_combination(task: str, names: Collection[str]) -> None:
    """Raise if an array is missing, or two arrays hold the same thing."""
    schema, present = schemas()[task], set(names)
    for required in schema.required:
        if not any(_has(name, names) for name in required):
            raise PredictionsError(_missing(task, required, names))
    for name, partner in schema.together:
        if name in present and partner not in present:
            raise PredictionsError(
                f"array '{name}' needs '{partner}' beside it, found only "
                f"{listed(names)}; add '{partner}'"
            )
    for exclusive in schema.exclusive:
        twice = [name for name in exclusive if name in present]
        if len(twice) > 1:
            raise PredictionsError(
                f"arrays '{twice[0]}' and '{twice[1]}' say the same thing twice; keep "
                "one"
            )


def ignored_notes(
    task: str, unknown: list[str], *, clustered: bool = True
) -> tuple[str, ...]:
    """Return notes on arrays that `task` does not have; many are listed in one note.

    Unless items are `clustered` already, an array of patients is offered as clusters.
    """
    if len(unknown) <= 5:
        hints = ["" if clustered else cluster_hint([name]) for name in unknown]
        return tuple(
            f"{_array_words(name)} is not part of {task} predictions and was ignored"
            + hint
            for name, hint in zip(unknown, hints, strict=True)
        )
    hint = "" if clustered else cluster_hint(unknown)
    return (
        f"the arrays {listed(unknown)} are not part of {task} predictions and were "
        f"ignored{hint}",
    )


def _array_words(name: str) -> str:
    return f"array '{shortened(name)}'" if name else "a column without a name"


def _target_notes(task: str, names: Collection[str]) -> tuple[str, ...]:
    if schemas()[task].folder or "target" in names:
        return ()
    for name in names:
        if SYNONYMS.get(name) == "target":
            raise PredictionsError(
                f"array '{name}' is called 'target' here; rename it, or write it as "
                f"'extra/{name}' if it is something else"
            )
    return (NO_TARGET,)


def _check_task(task: str) -> str:
    if task not in schemas():
        raise PredictionsError(
            f"no task {task!r:.60}.{suggest(str(task), schemas())} Known: "
            f"{', '.join(schemas())}."
        )
    return task


def _no_task(names: Collection[str]) -> str:
    required = "; ".join(
        f"{task}: {' and '.join(map(_either, schema.required))}"
        for task, schema in schemas().items()
        if not schema.folder
    )
    wrong = (
        f"the arrays ({listed(names)}) fit no task.{_name_hint(names)}"
        if names
        else "must hold arrays of predictions, got none; write them by name."
    )
    return (
        f"{wrong} Needed for {required}; {folder_task()} is a folder with index.json; a"
        " table whose columns have other names is read by `qualms convert table`"
        " (`qualms docs readers`)"
    )


def _name_hint(names: Collection[str]) -> str:
    """Return a hint on the first array that may be one of a task under a wrong name."""
    for name in names:
        if name in SYNONYMS:
            return f" '{name}' is called '{SYNONYMS[name]}' here."
        if numbered := _NUMBERED_PROB.fullmatch(name):
            return f" '{name}' is called 'prob_{numbered[1]}' here."
        if name == "arr_0":
            return " Name the arrays: np.savez(path, target=target, probs=probs)."
        for task in schemas():
            if hint := spelling_hint(task, name):
                return f" For '{shortened(name)}':{hint}"
    return ""


def spelling_hint(task: str, name: str) -> str:
    """Return a hint on the array of `task` that `name` may stand for; '' if none."""
    fields = schemas()[task].fields
    for family in (f.name for f in fields if f.family and not is_array_name(name)):
        if name.rstrip("/") == family[:-1]:
            return f" Write it as '{family}<name>'."
        if name.startswith(family[:-1]) and not name[len(family) - 1].isalnum():
            return f" Write it as '{family}{shortened(name[len(family) :])}'."
    # Only the part before the slash can be misspelt; users choose the rest.
    head, slash, rest = name.partition("/")
    close = _closest(task, head.rstrip("0123456789"), bool(slash), _CLOSE)
    if not close or close == head:
        return ""
    return f" Did you mean '{close}{slash}{shortened(rest)}'?"


# A table may have a hundred thousand columns whose names differ only in a number.
@lru_cache(maxsize=1024)
def _closest(task: str, head: str, family: bool, cutoff: float) -> str:
    heads = [f.name.rstrip("/") for f in schemas()[task].fields if f.family == family]
    longest = 2 * max(map(len, heads), default=0)
    if len(head) > longest:
        return ""
    return next(iter(get_close_matches(head, heads, n=1, cutoff=cutoff)), "")


def _refuse_misspelt(task: str, name: str) -> None:
    if hint := spelling_hint(task, name):
        raise PredictionsError(
            f"array '{shortened(name)}' is not part of {task} predictions.{hint} "
            "Rename it, or leave it out"
        )
    if name.startswith(_SELECTS) and not schemas()[task].folder:
        raise PredictionsError(
            f"array '{shortened(name)}' is not part of {task} predictions; write "
            f"it as '{_OWN}{shortened(name.removeprefix(_SELECTS))}'"
        )


def _would_be_lost(task: str, name: str) -> str:
    shown = shortened(name)
    suggestion = SYNONYMS.get(name, "")
    if not suggestion or array_field(task, suggestion) is None:
        suggestion = _closest(task, name, False, _CLOSEST)
    hint = f" The closest that is known is '{suggestion}'." if suggestion else ""
    extra = "" if schemas()[task].folder else f", or write it as 'extra/{shown}'"
    return (
        f"array '{shown}' is not part of {task} predictions and would be lost.{hint} "
        f"Rename it{extra} to keep it"
    )


def _missing(task: str, required: tuple[str, ...], names: Collection[str]) -> str:
    synonyms = [name for name in names if SYNONYMS.get(name) in required]
    hint = f"; is it '{synonyms[0]}'? rename it" if synonyms else "; add it"
    if others := [other for other in matching_tasks(names) if other != task]:
        hint = f"; these are arrays of {' and '.join(others)}: state that task, or none"
    shown = f"only {listed(names)}" if names else "no array"
    return f"{task} predictions need {_either(required)}, found {shown}{hint}"


def _either(required: tuple[str, ...]) -> str:
    return " or ".join(Field(name=name).shown for name in required)


def _has(field_name: str, names: Collection[str]) -> bool:
    return any(Field(name=field_name).covers(name) for name in names)
