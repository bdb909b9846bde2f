"""Events of runs, sent from the process that trains to the process that shows them."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from qualms.spec import RunSpec


class Epoch(NamedTuple):
    """The end of an epoch, with the values that a listener is called with."""

    spec: RunSpec
    values: tuple[Any, ...]


class Message(NamedTuple):
    """A message of a run to the user."""

    spec: RunSpec
    text: str


Event = Epoch | Message


class Listener(Protocol):
    """A receiver of the events of runs."""

    def epoch(self, spec: RunSpec, /, *values: Any) -> None:
        """Receive the end of an epoch."""

    def message(self, spec: RunSpec, text: str, /) -> None:
        """Receive a message."""


class Relay:
    """A listener that passes events to `send`, on to a listener in another process."""

    def __init__(self, send: Callable[[Event], None]) -> None:
        self._send = send

    def epoch(self, spec: RunSpec, *values: Any) -> None:
        """Send the end of an epoch."""
        self._send(Epoch(spec, values))

    def message(self, spec: RunSpec, text: str) -> None:
        """Send a message."""
        self._send(Message(spec, text))


def tell(listener: Listener, event: Event) -> None:
    """Pass an event from a `Relay` to `listener`."""
    if isinstance(event, Epoch):
        listener.epoch(event.spec, *event.values)
    else:
        listener.message(event.spec, event.text)
