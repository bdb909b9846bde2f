"""Callbacks that report the progress of training; training itself prints nothing."""

from typing import Protocol

from qualms.spec import RunSpec


class Callbacks(Protocol):
    """Callbacks for every epoch and for messages to the user."""

    def epoch(
        self,
        spec: RunSpec,
        epoch: int,
        epochs: int,
        loss: float,
        images_per_second: float,
        seconds_left: float,
        /,
    ) -> None:
        """Report that `epoch` of `epochs` are done; `loss` is the last one's mean."""

    def message(self, spec: RunSpec, text: str, /) -> None:
        """Report a sentence, such as what was done instead of what was asked."""


class NoCallbacks:
    """Callbacks that do nothing."""

    def epoch(self, spec: RunSpec, epoch: int, epochs: int, *_: float) -> None:
        """Ignore the epoch."""

    def message(self, spec: RunSpec, text: str) -> None:
        """Ignore the message."""
