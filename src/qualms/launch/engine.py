"""Where runs are made and judged: on this machine, or on a Ray cluster."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from qualms.datasets import cores
from qualms.launch._devices import default_workers, devices_for, threads_for
from qualms.launch._dispatch import RETRIES
from qualms.launch._worker import Work, WorkerSetup
from qualms.processes import Crew, LocalCrew, RemoteCrew
from qualms.wording import suggest

LAUNCHERS = ("local", "ray")


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """The machines that make runs, and what a process on them gets."""

    launcher: str = "local"
    """"local" for this machine, "ray" for a Ray cluster."""
    address: str = ""
    """HOST:PORT of a Ray cluster; '' for one of its own on this machine."""
    cpus: float | None = None
    """Cores of a Ray cluster for each process, 1 by default."""
    gpus: float | None = None
    """GPUs of a Ray cluster for each process, or a share of one; 1 by default where the
    cluster has any."""
    retries: int = RETRIES
    """Number of new attempts at a run after its process or machine was lost."""

    def __post_init__(self) -> None:
        if self.launcher not in LAUNCHERS:
            raise ValueError(
                f"launcher must be local or ray, got {self.launcher!r}."
                f"{suggest(self.launcher, LAUNCHERS)}"
            )
        if self.cpus is not None and not self.cpus > 0:
            raise ValueError(f"cpus must be above 0, got {self.cpus}")
        if self.gpus is not None and not self.gpus >= 0:
            raise ValueError(f"gpus must be at least 0, got {self.gpus}")
        if self.gpus is not None and self.gpus > 1 and self.gpus % 1:
            raise ValueError(
                f"gpus must be a share of one GPU or a whole number, got {self.gpus}"
            )
        if self.retries < 0:
            raise ValueError(f"retries must be at least 0, got {self.retries}")
        if self.launcher == "local" and (self.address or self.cpus or self.gpus):
            raise ValueError(
                "address, cpus and gpus are for the launcher ray; add --launcher ray,"
                " or say --workers and --device for this machine"
            )


class Slots(NamedTuple):
    """Places for processes that train, and the crew of these processes."""

    setups: list[WorkerSetup]
    make_crew: Callable[[], Crew]
    on_gpus: bool
    """True if the processes train on GPUs."""
    close: Callable[[], None] = lambda: None
    """Called where no crew is made after all; a crew that ends does it itself."""


def open_slots(
    engine: Engine,
    *,
    device: str,
    workers: int | None,
    out: Path | None,
    work: Work | None,
) -> Slots:
    """Return the places of an engine: `workers` of them, or as many as it has.

    A Ray cluster is connected, or started, until its crew ends. Its nodes must see the
    folder `out`; it is None if runs are stored elsewhere.
    """
    if engine.launcher == "local":
        return _local_slots(device, workers or default_workers(device), work)
    from qualms.launch._ray import ray_slots

    return ray_slots(engine, device=device, workers=workers, out=out, work=work)


def judging_crew(engine: Engine, *, out: Path) -> RemoteCrew:
    """Connect to the machines of an engine that judge runs in `out`, on their cores.

    A Ray cluster is connected, or started, until the crew ends.
    """
    cores_only = replace(engine, gpus=None)
    # Any number of processes beyond the room on the cluster would wait.
    slots = open_slots(cores_only, device="cpu", workers=None, out=out, work=None)
    return RemoteCrew(len(slots.setups), slots.make_crew)


def launcher_command() -> list[str]:
    """Return the command that this process was started with."""
    return [Path(sys.argv[0]).name, *sys.argv[1:]]


def _local_slots(device: str, workers: int, work: Work | None) -> Slots:
    devices = devices_for(device)
    setups = [
        WorkerSetup(
            device=name,
            threads=threads_for(name, cores() // workers),
            command=launcher_command(),
            work=work,
        )
        for name in (devices[i % len(devices)] for i in range(workers))
    ]
    # Only tests define work in the script that runs here.
    crew = partial(LocalCrew, script=work is not None)
    return Slots(setups, crew, on_gpus=devices[0] != "cpu")
