"""What travels between the launcher and its workers: plain records, specs by value."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple

from qualms.spec import RunSpec

Status = Literal["done", "skipped", "failed", "busy"]
Work = Callable[..., None]
"""A function that is called like `qualms.training.run_together`."""


class Job(NamedTuple):
    """Runs to train at once, each with its folder, and where their data lie."""

    specs: tuple[RunSpec, ...]
    folders: tuple[Path, ...]
    data: Path


class Epoch(NamedTuple):
    """A run finished an epoch; the values are those that a `Watch` is called with."""

    hash: str
    values: tuple[Any, ...]


class Message(NamedTuple):
    """A run has something to say to the user."""

    hash: str
    text: str


class Ended(NamedTuple):
    """A run is over for now."""

    hash: str
    status: Status
    seconds: float
    error: str


class Free(NamedTuple):
    """The worker waits for its next job; also said once when it has started."""


class Lost(NamedTuple):
    """The worker is gone without having said so."""

    error: str


Event = Epoch | Message | Ended | Free | Lost
