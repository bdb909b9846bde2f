"""Devices that a run trains on: precision, teams of devices, streams on a GPU."""

import os
import platform
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch

from qualms.training._error import TrainingError
from qualms.training._team import Team
from qualms.training.options import Execution, Precision

Context = Callable[[], AbstractContextManager[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A device, its precision, and the team that it belongs to."""

    device: torch.device
    autocast: Context
    """A context for forward passes: mixed precision, or nothing."""
    team: Team = field(default_factory=Team)
    """The processes that train a run together; this one has the device."""

    @property
    def cuda(self) -> bool:
        """True on a GPU, where steps can be recorded and run side by side."""
        return self.device.type == "cuda"


def make_machine(device: str, execution: Execution) -> Machine:
    """Return the machine that `device` names: "auto", "cpu", "cuda", "cuda:1" ..."""
    # Each of several streams gets a queue of its own; read when CUDA starts.
    os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")
    chosen = _device(device)
    if chosen.type == "cuda":
        torch.cuda.set_device(chosen)
    return Machine(device=chosen, autocast=_autocast(chosen, execution.precision))


def _autocast(device: torch.device, precision: Precision) -> Context:
    if precision in ("float32", "tf32"):
        return nullcontext
    # Mixed precision on a CPU is bfloat16: few operations there know float16.
    half = precision == "fp16" and device.type == "cuda"
    dtype = torch.float16 if half else torch.bfloat16
    return partial(torch.autocast, device.type, dtype=dtype)


def device_names(device: str) -> list[str]:
    """Return each device that a name such as "cuda:0,1" stands for.

    >>> device_names("cuda:0,2")
    ['cuda:0', 'cuda:2']
    """
    if "," not in device:
        return [device]
    kind, _, numbers = device.partition(":")
    listed = numbers.split(",")
    once = len(set(listed)) == len(listed)
    if not once or not all(number.isdecimal() for number in listed):
        raise TrainingError(
            f"several devices are named as in 'cuda:0,1', each once, got {device!r}"
        )
    return [f"{kind}:{number}" for number in listed]


def needs_team(device: str) -> bool:
    """Return whether `device` names several devices whose team must be started.

    In a process of such a team the environment has LOCAL_RANK.
    """
    return len(device_names(device)) > 1 and "LOCAL_RANK" not in os.environ


def join_team(device: str, execution: Execution) -> Machine:
    """Return the machine that `device` names; of several devices, this process's own.

    The environment says which process of the team this is (LOCAL_RANK), and where its
    processes meet (MASTER_ADDR, MASTER_PORT).
    """
    names = device_names(device)
    if len(names) == 1:
        return make_machine(device, execution)
    team = Team(rank=int(os.environ["LOCAL_RANK"]), size=len(names))
    kind = torch.device(names[0]).type
    machine = make_machine(names[team.rank] if kind == "cuda" else kind, execution)
    if not torch.distributed.is_initialized():
        torch.distributed.init_process_group(
            "nccl" if machine.cuda else "gloo", rank=team.rank, world_size=team.size
        )
    return replace(machine, team=team)


@contextmanager
def numerics(machine: Machine, execution: Execution) -> Iterator[None]:
    """Set the rounding and the choice of algorithms while the context is open."""
    # A step says where compiled code is used; everything else runs eagerly.
    eager = execution.compile and torch.compiler.set_stance("force_eager")
    with eager or nullcontext(), _rounding(machine, execution):
        yield


@contextmanager
def _rounding(machine: Machine, execution: Execution) -> Iterator[None]:
    if not machine.cuda:
        yield
        return
    tf32 = execution.precision == "tf32"
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    try:
        with torch.backends.cudnn.flags(
            enabled=True,
            benchmark=not execution.deterministic,
            deterministic=execution.deterministic,
            allow_tf32=tf32,
        ):
            yield
    finally:
        torch.set_float32_matmul_precision(before)


def make_stream(machine: Machine) -> Context:
    """Return a context for one run: its own CUDA stream and random numbers."""
    if not machine.cuda:
        return nullcontext
    stream = torch.cuda.Stream(machine.device)  # type: ignore[no-untyped-call]
    generator = torch.cuda.default_generators[machine.device.index or 0].clone_state()
    return partial(_on_stream, stream, generator)


@contextmanager
def _on_stream(stream: torch.cuda.Stream, generator: torch.Generator) -> Iterator[None]:
    # Runs take turns, so each must find the generator of the device as it left it; a
    # recorded step keeps the one it was recorded with.
    shared = torch.cuda.default_generators[stream.device_index]
    before = shared.graphsafe_get_state()
    shared.graphsafe_set_state(generator)
    try:
        with torch.cuda.stream(stream):
            yield
    finally:
        shared.graphsafe_set_state(before)


def _device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device is None or device.type not in ("cpu", "cuda"):
        raise TrainingError(
            f"device must be 'auto', 'cpu', 'cuda' or 'cuda:<number>', got {name!r}"
        )
    if device.type == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if (device.index or 0) >= count:
            raise TrainingError(
                f"there is no device {name!r}, this machine shows {count} GPUs; check"
                " the driver and CUDA_VISIBLE_DEVICES, or train on 'cpu'"
            )
        return torch.device("cuda", device.index or 0)
    return device


def hardware(device: torch.device) -> str:
    """Return the device in words."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    threads = torch.get_num_threads()
    return f"{_processor()}, {threads} thread{'s' * (threads > 1)}"


@cache
def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
