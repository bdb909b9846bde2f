"""What a run runs on: versions, hardware, and the command that started it."""

import json
import os
import platform
import sys
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import qualms

PACKAGES = (
    "numpy",
    "scipy",
    "scikit-learn",
    "numba",
    "safetensors",
    "torch",
    "torchvision",
    "timm",
)


def environment(device: str, command: list[str]) -> str:
    """JSON on this process: versions, machine, device, threads and command."""
    stated = {
        **_training(device),
        "packages": _packages(),
        "cores": os.cpu_count(),
        "threads": os.environ.get("OMP_NUM_THREADS"),
        "device": device,
        "command": command,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    return json.dumps(stated, indent=1)


def _training(device: str) -> dict[str, Any]:
    """What training itself records; less where something else does the work."""
    plain = {
        "qualms": qualms.__version__,
        "python": platform.python_version(),
        "system": platform.platform(),
    }
    if "qualms.training" not in sys.modules:
        return plain
    import torch

    from qualms.training.hardware import environment

    first = device.partition(",")[0]  # of several, all are alike
    try:
        return environment(torch.device(first))
    except (RuntimeError, AssertionError):  # training says what is wrong with it
        return plain


@cache
def _packages() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
