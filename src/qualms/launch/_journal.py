"""The journal of a search: an Optuna study in a file that several processes share.

It tells what came of which trial, for people and for Optuna's own tools. A search needs
nothing of it to go on, as the folders of runs say what is done.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from qualms.launch._folder import locked
from qualms.launch._search import Search
from qualms.launch._trials import Tried, distribution, name_of

if TYPE_CHECKING:
    from optuna import Study

_POLL = 0.05


class Journal:
    """The finished trials of `search`, kept in `folder`."""

    def __init__(self, search: Search, folder: Path) -> None:
        self._search = search
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "journal.log"
        try:
            with _alone(folder):
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
        with _alone(self._folder):
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


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Wait until no other search reads or writes the journal in `folder`."""
    while True:
        with locked(folder) as mine:
            if mine:
                yield
                return
        time.sleep(_POLL)
