"""Leases: one process at a time works on a run, whichever machine it is on.

A lease is an object with a number, and the highest number counts. Its holder writes it
anew now and then. A process takes a run over by creating the next number, which only
one process can, once the lease was not written for as long as it states. Clocks of
machines do not matter: the store says when a lease was written, and what time it is.
"""

import json
import platform
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Self
from uuid import uuid4

from qualms.launch._store import ObjectStore, StoreError
from qualms.launch._worker import ClaimLostError
from qualms.processes import locked

SECONDS = 300.0
"""Seconds without a sign of life after which a lease has run out."""
RENEWALS = 5
"""Renewals of a lease in the time after which it runs out."""
_ROUNDING = 1.0
"""Stores state times in whole seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRecord:
    """The content of a lease."""

    claim: str
    """A number that no other claim has."""
    holder: str
    """The place where the holder works, in which only one process has the run's lock.
    Another process with that lock knows that the holder has ended."""
    seconds: float
    """When it runs out, after it was written last."""
    machine: str
    released: bool = False

    def to_bytes(self) -> bytes:
        """Return the record as JSON."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> Self:
        """Read a record; one that nobody can read has run out."""
        try:
            return cls(**json.loads(content))
        except (ValueError, TypeError):
            return cls(claim="", holder="", seconds=0.0, machine="", released=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A lease of this process."""

    store: ObjectStore
    folder: str
    number: int
    record: LeaseRecord
    before: int
    """The highest number before; 0 for none."""

    @property
    def name(self) -> str:
        """Name of the object."""
        return _name(self.folder, self.number)


def check_lease(store: ObjectStore, folder: str, number: int) -> None:
    """Raise if another process has taken over the lease with this number."""
    if _highest(store, folder) > number:
        raise ClaimLostError(
            "another process has taken this run over, since the store heard nothing of"
            " this one for too long"
        )


@contextmanager
def leased(
    store: ObjectStore, folder: str, holder: str, seconds: float = SECONDS
) -> Iterator[Lease | None]:
    """Hold the lease in `folder` for the context; yield None if another process does.

    Args:
        store: the store.
        folder: the folder of the leases of one run.
        holder: the place where this process works.
        seconds: when the lease runs out if this process ends without a word.
    """
    lease = _acquire(store, folder, holder, seconds)
    if lease is None:
        yield None
        return
    ended = threading.Event()
    thread = threading.Thread(target=_renew, args=(lease, ended), daemon=True)
    thread.start()
    try:
        yield lease
    finally:
        ended.set()
        thread.join()
        with suppress(StoreError):  # then it runs out
            _release(lease)


def _acquire(
    store: ObjectStore, folder: str, holder: str, seconds: float
) -> Lease | None:
    highest = _highest(store, folder)
    if highest and _is_live(store, folder, highest, holder):
        return None
    record = LeaseRecord(
        claim=uuid4().hex, holder=holder, seconds=seconds, machine=platform.node()
    )
    number = highest + 1
    lease = Lease(
        store=store, folder=folder, number=number, record=record, before=highest
    )
    if not store.create(lease.name, record.to_bytes()):
        return None
    numbers = _numbers(store, folder)
    if max(numbers) > number:  # what was seen before is of the past
        store.delete([lease.name])
        return None
    store.delete(_name(folder, each) for each in numbers if each < number)
    return lease


def _is_live(store: ObjectStore, folder: str, number: int, holder: str) -> bool:
    """Return whether another process works under a lease."""
    name = _name(folder, number)
    try:
        record = LeaseRecord.from_bytes(store.read(name))
        if record.released or record.holder == holder:
            return False
        now = _now(store, folder)
        changed = store.objects(folder)[f"{number:06d}"].changed
    except (FileNotFoundError, KeyError):
        return True  # somebody took it over just now
    return now - changed <= record.seconds + _ROUNDING


def _now(store: ObjectStore, folder: str) -> float:
    """Return the time by the store's clock."""
    name = f"{folder}/.clock-{uuid4().hex}"
    try:
        return store.written(name, b"")
    finally:
        store.delete([name])


def _renew(lease: Lease, ended: threading.Event) -> None:
    """Renew a lease until the process that holds it says that it has ended."""
    pause = lease.record.seconds / RENEWALS
    store = replace(lease.store, patience=pause)
    while not ended.wait(pause):
        with suppress(StoreError):  # the next attempt may succeed
            store.write(lease.name, lease.record.to_bytes())


def _release(lease: Lease) -> None:
    """Release the run for other claims; the object stays, so that numbers only rise."""
    record = asdict(lease.record) | {"released": True}
    if _highest(lease.store, lease.folder) == lease.number:
        lease.store.write(lease.name, LeaseRecord(**record).to_bytes())


def _highest(store: ObjectStore, folder: str) -> int:
    return max(_numbers(store, folder), default=0)


def _numbers(store: ObjectStore, folder: str) -> list[int]:
    return [int(name) for name in store.objects(folder) if name.isdecimal()]


def _name(folder: str, number: int) -> str:
    return f"{folder}/{number:06d}"


def place_name(folder: Path) -> str:
    """Return the name of a folder on this machine, unlike that of any other folder.

    It is another one after the machine has started again.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / ".name"
    with locked(folder / ".lock", wait=True):
        if not path.exists():
            path.write_text(uuid4().hex, encoding="utf-8")
        name = path.read_text(encoding="utf-8")
    boot = Path("/proc/sys/kernel/random/boot_id")
    return f"{name}@{boot.read_text().strip() if boot.exists() else platform.node()}"
