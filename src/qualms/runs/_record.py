"""Records in the folder of a run: its spec, its end, its costs, its process."""

import json
import math
import os
import platform
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from qualms.atomic import LEFTOVER, remove
from qualms.processes import LockError
from qualms.regular import UNREADABLE, as_object, read_file, read_object
from qualms.runs._environment import environment
from qualms.runs._files import checkpoint_paths, done_path, now_text, write_text
from qualms.runs._predictions import was_finished
from qualms.spec import RunSpec

LARGEST = 1e300
"""Limit on the numbers of records, so that sums of them are finite."""
PACE = ("seconds_per_item", "seconds_per_crop")
"""Names of the times that are measured while a split is predicted."""


class RunFolderError(ValueError):
    """A run folder with unexpected contents; the message describes them."""


class RunCosts(NamedTuple):
    """Seconds that a run took; None where they are unknown."""

    training: float | None = None
    """Seconds of all epochs and of fitting the method after them."""
    per_item: float | None = None
    """Seconds to predict an item, as a mean over splits."""
    per_crop: float | None = None
    """Seconds to predict the crop of an item, if crops are predicted."""


class RunLosses(NamedTuple):
    """Lost processes of a run that is not done."""

    lost: int = 0
    """Number of times that its process or its machine was lost."""
    killed: int = 0
    """Number of times that only its process was lost."""
    error: str = ""
    """Reason for not trying it again; '' if it is tried again."""


def describe(folder: Path, spec: RunSpec, facts: Mapping[str, Any]) -> None:
    """Make the folder of a run and write its spec and its environment.

    Args:
        folder: the folder of the run.
        spec: the spec of the run.
        facts: facts about the environment beside those of `environment`, as JSON
            values. Facts of former attempts stay unless they are stated again.

    Raises:
        RunFolderError: If the folder holds another run.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _check_same(folder, spec)
    write_text(folder / "spec.json", spec.to_json())
    record = {**read_object(folder / "environment.json"), **environment(), **facts}
    write_text(folder / "environment.json", json.dumps(record, indent=1))
    for ending in ("failed.json", "pruned.json"):
        (folder / ending).unlink(missing_ok=True)


def mend_spec(folder: Path, spec: RunSpec) -> str:
    """Restore the spec file of a finished run if it was changed since.

    Returns:
        A sentence for the user; '' if the file is as it was.
    """
    path = folder / "spec.json"
    try:
        if not os.path.lexists(path) or _stored_hash(path) == spec.hash:
            return ""
        write_text(path, spec.to_json())
    except OSError as error:
        return f"{path} cannot be read or mended: {error.strerror or error}"
    return (
        f"{path} was changed after the run was made, so its hash was not {spec.hash};"
        " it was written again as it had been"
    )


def tidy(folder: Path) -> None:
    """Remove temporary files of killed processes; call it while holding the lock."""
    for stale in list(folder.rglob(LEFTOVER)):
        remove(stale)


def mark_done(folder: Path, spec: RunSpec, facts: Mapping[str, Any]) -> None:
    """Record that the run is finished, with `facts` about it as JSON values."""
    checkpoint_paths(folder)[1].unlink(missing_ok=True)
    (folder / "losses.json").unlink(missing_ok=True)
    record = {"hash": spec.hash, **facts}
    write_text(done_path(folder), json.dumps(record, indent=1))


def mark_failed(folder: Path, spec: RunSpec, error: str) -> None:
    """Record why the run failed, in one sentence."""
    record = {"hash": spec.hash, "error": error, "when": now_text()}
    write_text(folder / "failed.json", json.dumps(record, indent=1))


def mark_pruned(folder: Path, spec: RunSpec, reason: str, *, search: str) -> None:
    """Record why a search stopped the run before its end, in one sentence."""
    record = {"hash": spec.hash, "search": search, "reason": reason, "when": now_text()}
    write_text(folder / "pruned.json", json.dumps(record, indent=1))


def why_failed(folder: Path) -> str:
    """Return the error of the last attempt if it failed, else ''."""
    return str(read_object(folder / "failed.json").get("error", ""))


def why_pruned(folder: Path, search: str) -> str:
    """Return why the search of this name stopped the run, '' if it did not."""
    record = read_object(folder / "pruned.json")
    return str(record.get("reason", "")) if record.get("search") == search else ""


def read_costs(folder: Path, header: Mapping[str, Any] | None = None) -> RunCosts:
    """Return the costs of the finished run in `folder`.

    Args:
        folder: the folder of the run, whose name is its hash.
        header: the header of its predictions, as a mapping. Foreign files and those of
            former versions state the times there; `done.json` has precedence.
    """
    record = read_object(done_path(folder)) if was_finished(folder) else {}
    header = header or {}
    about = as_object(header.get("about"))
    paces = [as_object(pace) for pace in as_object(record.get("pace")).values()] or [
        about
    ]
    return RunCosts(
        number_in(record if "seconds" in record else header, "seconds"),
        *(_mean([number_in(pace, name) for pace in paces]) for name in PACE),
    )


def number_in(record: Mapping[str, Any], name: str) -> float | None:
    """Return a finite number of a record that anybody may have written, or None."""
    value = record.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if abs(value) < LARGEST else None


def _mean(seconds: Sequence[float | None]) -> float | None:
    known = [each for each in seconds if each is not None]
    return math.fsum(known) / len(known) if known else None


def read_losses(folder: Path, *, since: float) -> RunLosses:
    """Return how often the process of a run was lost.

    A launcher that starts after a run was given up counts from zero: its user asks for
    another attempt.

    Args:
        folder: the folder of the run.
        since: when the launcher started, in seconds since 1970.
    """
    record = read_object(folder / "losses.json")
    lost, killed = (number_in(record, name) or 0 for name in ("lost", "killed"))
    losses = RunLosses(int(lost), int(killed))
    if "error" not in record:
        return losses
    earlier = (number_in(record, "when") or 0.0) < since
    return RunLosses() if earlier else losses._replace(error=str(record["error"]))


def count_loss(folder: Path, losses: RunLosses) -> None:
    """Record that the process of a run was lost, or why the run is given up."""
    folder.mkdir(parents=True, exist_ok=True)
    record: dict[str, Any] = {"lost": losses.lost, "killed": losses.killed}
    if losses.error:
        record |= {"error": losses.error, "when": time.time()}
    write_text(folder / "losses.json", json.dumps(record, indent=1))


def owner_path(folder: Path) -> Path:
    """Return the file with the name of the process that has locked the run."""
    return folder / "owner.txt"


def sign(folder: Path) -> None:
    """Write the name of this process to a run folder that it has locked."""
    write_text(owner_path(folder), _process_name())


def check_signed(folder: Path) -> None:
    """Raise if another process has taken a run folder that this one has locked.

    Some network file systems have locks that reach no further than one machine.

    Raises:
        LockError: It says which process has the folder now.
    """
    try:
        owner = read_file(owner_path(folder)).decode("utf-8", "replace")
    except FileNotFoundError:  # the folder was removed, or an older version has it
        return
    if owner != _process_name():
        raise LockError(
            f"{folder} was locked by this process, and {owner} works there as well:"
            " locks of this file system reach no further than one machine; mount it"
            " with locks, or choose a folder on another disk"
        )


def _process_name() -> str:
    return f"process {os.getpid()} on {platform.node() or 'this machine'}"


def _check_same(folder: Path, spec: RunSpec) -> None:
    path = folder / "spec.json"
    if not path.exists():
        return
    stored_hash = _stored_hash(path)
    if stored_hash == spec.hash:
        return
    if not stored_hash:
        raise RunFolderError(
            f"{path} is not the spec of a run; choose another folder, or delete this"
            " one to start anew"
        )
    if folder.name == spec.hash:
        raise RunFolderError(
            f"{path} was changed: its hash must be the name of its folder, and is"
            f" {stored_hash}; delete that file and run again"
        )
    raise RunFolderError(
        f"{folder} holds another run ({stored_hash}); choose another folder"
    )


def _stored_hash(path: Path) -> str:
    """Return the hash of the spec in `path`; '' if it holds none."""
    try:
        return RunSpec.from_json(read_file(path).decode()).hash
    except UNREADABLE:
        return ""
