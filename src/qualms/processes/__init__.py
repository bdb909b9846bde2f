"""Processes and locks: the one layer that starts, hears and ends other processes."""

from qualms.processes._locks import LockError, locked

__all__ = ["LockError", "locked"]
