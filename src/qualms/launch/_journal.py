"""The journal of a search: an Optuna study in a file that several processes share.

It tells what came of which trial, for people and for Optuna's own tools. A search needs
nothing of it to go on, as the folders of runs say what is done.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from qualms.launch._search import Search
from qualms.launch._trials import Tried, distribution, name_of
from qualms.processes import locked
from qualms.runs import lock_path

if TYPE_CHECKING:
    from optuna import Study


class Journal:
    """The finished trials of `search`, kept in `folder`."""

    def __init__(self, search: Search, folder: Path) -> None:
        self._search = search
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "journal.log"
        try:
            with locked(lock_path(folder), wait=True):
                self._study = _study(search, path)
        except ValueError as error:  # a line that was not written to its end
            raise ValueError(
                f"{path} cannot be read ({error}); delete it and run again: trials that"
                " are done are kept in the folders of their runs"
            ) from error

    def record(self, tried: Tried) -> None:
        """Add what came of a trial, unless it stands there already."""
        from optuna.trial import TrialState, create_trial

        state = TrialState.FAIL if tried.value is None else TrialState.COMPLETE
        about = {"trial": tried.trial.number, "run": tried.trial.spec.hash}
        told = {"options": dict(tried.trial.options), "error": tried.error}
        ranges = self._search.ranges
        made = create_trial(
            state=state,
            value=tried.value,
            params=dict(tried.trial.values),
            distributions={name_of(each): distribution(each) for each in ranges},
            user_attrs={**about, **told},
        )
        with locked(lock_path(self._folder), wait=True):
            known = self._study.get_trials(deepcopy=False, states=(state,))
            if not any(about.items() <= each.user_attrs.items() for each in known):
                self._study.add_trial(made)


def _study(search: Search, path: Path) -> "Study":
    import optuna
    from optuna.storages.journal import JournalFileBackend, JournalStorage

    study = optuna.create_study(
        storage=JournalStorage(JournalFileBackend(str(path))),
        study_name=search.title,
        direction="maximize",
        load_if_exists=True,
    )
    if not study.user_attrs:
        study.set_user_attr("regime", search.regime)
        study.set_user_attr("score", search.rule.label)
    return study
