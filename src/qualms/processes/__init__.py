"""Processes and locks: the only package that starts, hears and ends processes."""

from qualms.processes._crew import Channel, Crew, LocalCrew, Lost, Worker, is_portable
from qualms.processes._locks import LockError, locked
from qualms.processes._relay import Epoch, Event, Listener, Message, Relay, tell
from qualms.processes._workforce import (
    LostProcessError,
    RemoteCrew,
    Workforce,
    cores,
    each,
)

__all__ = [
    "Channel",
    "Crew",
    "Epoch",
    "Event",
    "Listener",
    "LocalCrew",
    "LockError",
    "Lost",
    "LostProcessError",
    "Message",
    "Relay",
    "RemoteCrew",
    "Worker",
    "Workforce",
    "cores",
    "each",
    "is_portable",
    "locked",
    "tell",
]
