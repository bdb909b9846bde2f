"""Checks of runs that a launcher makes without training: which would be refused."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from qualms.datasets import Dataset, open_dataset
from qualms.launch.data import RequiredDataset, data_key
from qualms.launch.progress import run_text
from qualms.shelf import find, outside_parts
from qualms.spec import Part, RunSpec
from qualms.wording import plural

MOST = 60
"""Most different runs that are built; the first of all are taken."""


def check_runs(
    specs: Sequence[RunSpec], datasets: Sequence[RequiredDataset]
) -> tuple[str, ...]:
    """Raise if runs would be refused; return notes on what could not be checked.

    Runs that differ in their seed alone are checked once. Datasets that are not made
    yet are not made.

    Raises:
        ValueError: If a run would be refused, with the reason of the first.
    """
    from qualms.training import TrainingError, check_run

    ready = {
        data_key(each.part): open_dataset(each.folder)
        for each in datasets
        if each.folder is not None and each.items is not None
    }
    unique = list({spec.training_key: spec for spec in specs}.values())
    openable = [spec for spec in unique if _has_data(spec, ready)]
    refused: dict[str, str] = {}
    for spec in openable[:MOST]:
        try:
            check_run(spec, {n: ready[data_key(p)] for n, p in spec.parts.items()})
        except (TrainingError, ValueError, LookupError) as error:
            refused[run_text(spec)] = str(error)
    if refused:
        name, why = next(iter(refused.items()))
        more = len(refused) - 1
        rest = f" ({more} more {plural(more, 'run')} would fail)" if more else ""
        raise ValueError(f"{name} would fail: {why}{rest}")
    return tuple(_unchecked(unique, openable))


def try_methods(methods: Iterable[tuple[str, Part]]) -> None:
    """Raise if a method of a user's own fails on made-up items of its task.

    Raises:
        ValueError: If it does, with its name.
    """
    from qualms.training import TrainingError
    from qualms.training.trial import try_method

    own = outside_parts("methods")
    unique = {f"{task} {part}": (task, part) for task, part in methods}
    for task, part in unique.values():
        if part.name not in own:
            continue
        try:
            try_method(find("methods", part.name)(**part.options), task)
        except TrainingError as error:
            raise ValueError(f"method {part.name!r} would fail: {error}") from error


def _unchecked(unique: Sequence[RunSpec], openable: Sequence[RunSpec]) -> Iterator[str]:
    """Yield notes on the runs that were not looked at."""
    waiting = len(unique) - len(openable)
    if waiting:
        runs = "1 run was" if waiting == 1 else f"{waiting} runs were"
        yield (
            f"{runs} not built, as the data are not prepared: options and names were"
            " checked, and not whether they fit the data"
        )
    if len(openable) > MOST:
        yield f"{MOST} of {len(openable)} different runs were built, the others not"


def _has_data(spec: RunSpec, ready: Mapping[str, Dataset]) -> bool:
    return all(data_key(part) in ready for part in spec.parts.values())
