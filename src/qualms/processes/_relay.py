"""Events of a run on their way from the process that trains to the one that shows."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from qualms.spec import RunSpec


class Epoch(NamedTuple):
    """A run finished an epoch; the values are those that a listener is called with."""

    spec: RunSpec
    values: tuple[Any, ...]


class Message(NamedTuple):
    """A run has something to say to the user."""

    spec: RunSpec
    text: str


Event = Epoch | Message


class Listener(Protocol):
    """Who hears how runs go."""

    def epoch(self, spec: RunSpec, /, *values: Any) -> None:
        """A run finished an epoch."""

    def message(self, spec: RunSpec, text: str, /) -> None:
        """A run has something to say."""


class Relay:
    """A listener that hands everything to `send`, to be told in another process."""

    def __init__(self, send: Callable[[Event], None]) -> None:
        self._send = send

    def epoch(self, spec: RunSpec, *values: Any) -> None:
        """Hand over that a run finished an epoch."""
        self._send(Epoch(spec, values))

    def message(self, spec: RunSpec, text: str) -> None:
        """Hand over what a run has to say."""
        self._send(Message(spec, text))


def tell(listener: Listener, event: Event) -> None:
    """Tell `listener` of an event that a `Relay` handed over."""
    if isinstance(event, Epoch):
        listener.epoch(event.spec, *event.values)
    else:
        listener.message(event.spec, event.text)
