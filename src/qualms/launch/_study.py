"""The study of Optuna beside a search: its finished trials, for Optuna's own tools.

By default it is a file of SQLite. Many processes that share a network folder, where
SQLite's locks are not to be trusted, keep a journal instead. A search goes on without
either, since the folders of runs say what is done.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from qualms.launch._objectives import directions
from qualms.launch._pruning import validation_losses
from qualms.launch._search import Search, one_of
from qualms.launch._trials import TrialResult, distribution, name_of
from qualms.processes import locked
from qualms.runs import lock_path

if TYPE_CHECKING:
    from optuna import Study
    from optuna.storages import BaseStorage

Storage = Literal["sqlite", "journal"]
"""Form of a stored study: a file of SQLite, or a journal for many workers."""
STORAGES: tuple[Storage, ...] = ("sqlite", "journal")
FILES: dict[Storage, str] = {"sqlite": "study.db", "journal": "journal.log"}
SECONDS = 60.0
"""Seconds for which a write waits for another process."""


def checked_storage(name: str) -> Storage:
    """Return the storage of this name; raise where there is none."""
    return one_of("storage", name, STORAGES)


class SearchStudy:
    """A study in the folder of a search, which several processes may share."""

    def __init__(
        self, search: Search, folder: Path, *, storage: Storage = "sqlite"
    ) -> None:
        self._search = search
        self._folder = folder
        self._path = folder / FILES[storage]
        folder.mkdir(parents=True, exist_ok=True)
        with locked(lock_path(folder), wait=True):
            self._study = _opened(search, self._path, storage)

    def record(self, result: TrialResult) -> None:
        """Add the result of a trial, unless it is there already."""
        from optuna.trial import TrialState, create_trial

        trial = result.trial
        state = TrialState.FAIL if result.value is None else TrialState.COMPLETE
        if result.is_pruned:
            state = TrialState.PRUNED
        about = {"trial": trial.number, "run": trial.spec.hash}
        more = {"options": dict(trial.options), "error": result.error}
        ranges = self._search.ranges
        record = create_trial(
            state=state,
            values=list(result.values) or None,
            params=dict(trial.values),
            distributions={name_of(each): distribution(each) for each in ranges},
            intermediate_values=dict(validation_losses(result.outcome.folder)),
            user_attrs={**about, **more},
        )
        with locked(lock_path(self._folder), wait=True):
            trials = self._study.get_trials(deepcopy=False, states=(state,))
            if not any(about.items() <= each.user_attrs.items() for each in trials):
                self._add(record)

    def _add(self, record: object) -> None:
        from optuna.exceptions import StorageInternalError

        try:
            self._study.add_trial(record)  # type: ignore[arg-type]
        except StorageInternalError as error:
            raise ValueError(_unreadable(self._path, error)) from error


def _opened(search: Search, path: Path, storage: Storage) -> "Study":
    """Return the study in a file; raise a sentence where the file holds another."""
    import optuna
    from optuna.exceptions import DuplicatedStudyError, StorageInternalError
    from sqlalchemy.exc import SQLAlchemyError

    try:
        study = optuna.create_study(
            storage=_storage(path, storage),
            study_name=search.title,
            directions=directions(search),
            load_if_exists=True,
        )
    except (
        ValueError,  # a line of a journal was not written completely
        RuntimeError,  # a schema of another version of Optuna
        DuplicatedStudyError,
        StorageInternalError,
        SQLAlchemyError,
    ) as error:
        raise ValueError(_unreadable(path, error)) from error
    if not study.user_attrs:
        study.set_user_attr("selection", search.selection.name)
        study.set_user_attr("score", search.selection.label)
        study.set_user_attr("sampler", search.sampler)
        study.set_user_attr("pruner", search.pruner)
        study.set_user_attr("objectives", [search.selection.rule, *search.objectives])
    _check_same(search, study, path)
    return study


def _storage(path: Path, storage: Storage) -> "BaseStorage":
    if storage == "journal":
        from optuna.storages.journal import JournalFileBackend, JournalStorage

        return JournalStorage(JournalFileBackend(str(path)))
    from optuna.storages import RDBStorage

    waiting = {"connect_args": {"timeout": SECONDS}}
    return RDBStorage(f"sqlite:///{path.resolve()}", engine_kwargs=waiting)


def _check_same(search: Search, study: "Study", path: Path) -> None:
    """Raise if the study was made by another selection."""
    selection = study.user_attrs.get("selection")
    if selection != search.selection.name:
        raise ValueError(
            f"{path} holds a study by selection {selection!r}, got a search by"
            f" {search.selection.name!r}; delete it and run again: trials that are done"
            " are kept in the folders of their runs"
        )


def _unreadable(path: Path, error: Exception) -> str:
    words = str(error).splitlines()[0] if str(error) else type(error).__name__
    return (
        f"{path} cannot be read ({words}); delete it and run again: trials that are"
        " done are kept in the folders of their runs"
    )
