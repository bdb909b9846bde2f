"""Processes and locks: the one layer that starts, hears and ends other processes."""

from qualms.processes._crew import Channel, Crew, LocalCrew, Lost, Worker
from qualms.processes._team import LostProcessError, Team, cores, each
from qualms.processes.locks import LockError, locked
from qualms.processes.relay import Epoch, Event, Listener, Message, Relay, tell

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
    "Team",
    "Worker",
    "cores",
    "each",
    "locked",
    "tell",
]
