"""Who is told how training goes; the engine itself prints nothing."""

from typing import Protocol

from qualms.spec import RunSpec


class Watch(Protocol):
    """Hears about every epoch, and about whatever a user should know."""

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
        """A sentence: what was done instead of what was asked, and why."""


class Silent:
    """A watch that says nothing."""

    def epoch(self, spec: RunSpec, epoch: int, epochs: int, *_: float) -> None:
        """Keep it."""

    def message(self, spec: RunSpec, text: str) -> None:
        """Keep it."""
