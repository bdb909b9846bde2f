"""Devices that workers train on, and threads that they use."""

import os
import re
from importlib.util import find_spec

from qualms.datasets import cores

TOGETHER = 5
"""Default number of runs that train at once in one process on a GPU."""
_NAMES = re.compile(r"cpu|(cpu|cuda):\d+(,\d+)*")


def check_installed() -> None:
    """Raise if the packages that training needs are not installed."""
    if find_spec("torch") is None:
        raise LookupError(
            "training needs PyTorch, which is not installed; install it with pip"
            " install 'qualms-bench[train]'"
        )


def default_workers(device: str) -> int:
    """Return how many processes train at the same time: one per GPU, or per core."""
    devices = devices_for(device)
    return len(devices) if devices != ["cpu"] else cores()


def devices_for(device: str) -> list[str]:
    """Return the devices that a name stands for: every GPU for "auto" and "cuda".

    "auto" is the CPU if there is no GPU. Any other name must be a device of this
    machine.
    """
    if device not in ("auto", "cuda"):
        _check_device(device)
        return [device]
    count = _gpus()
    if count == 0 and device == "cuda":
        raise ValueError(
            "device must be there, got 'cuda' and no GPU is visible; check the driver"
            " and CUDA_VISIBLE_DEVICES, or train with --device cpu"
        )
    return [f"cuda:{index}" for index in range(count)] or ["cpu"]


def _check_device(device: str) -> None:
    """Raise unless this machine has the device of that name."""
    kind, _, numbers = device.partition(":")
    listed = numbers.split(",") if numbers else []
    if not _NAMES.fullmatch(device) or len(set(listed)) < len(listed):
        raise ValueError(
            "device must be auto, cpu, cuda, one GPU as in cuda:1, or several as in"
            f" cuda:0,1, each once, got {device!r}"
        )
    if kind == "cuda" and max(map(int, listed)) >= (count := _gpus()):
        raise ValueError(
            f"device must be there, got {device!r} and {count} GPUs are visible; check"
            " the driver and CUDA_VISIBLE_DEVICES, or train with --device cpu"
        )


def _gpus() -> int:
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def device_here(device: str) -> str:
    """Return the device of a run for which all GPUs that this process sees are meant.

    They divide its batches between them, where there are several.
    """
    first, *others = devices_for(device)
    return ",".join([first, *(name.removeprefix("cuda:") for name in others)])


def threads_for(device: str, share: int) -> int:
    """Return the number of threads of a worker; `OMP_NUM_THREADS` overrides it.

    On the CPU it is one: with more threads sums are rounded differently, and the number
    of workers must not change a result.

    Args:
        device: the device of the worker.
        share: the cores that it may use.
    """
    threads = os.environ.get("OMP_NUM_THREADS", "")
    if threads.isdecimal() and int(threads) > 0:
        return int(threads)
    return 1 if device.startswith("cpu") else max(1, share)
