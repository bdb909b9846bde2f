"""Whom training tells how it goes; it prints nothing itself."""

from typing import Protocol

from qualms.spec import RunSpec


class Watch(Protocol):
    """Is told of every epoch, and of whatever a user should know."""

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
        """`epoch` of `epochs` are done; `loss` is the mean of the last one."""

    def message(self, spec: RunSpec, text: str, /) -> None:
        """A sentence for the user, such as what was done instead of what was asked."""


class Silent:
    """A watch that says nothing."""

    def epoch(self, spec: RunSpec, epoch: int, epochs: int, *_: float) -> None:
        """Ignore it."""

    def message(self, spec: RunSpec, text: str) -> None:
        """Ignore it."""
