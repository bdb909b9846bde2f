"""What a run ran on, for the headers of its predictions and its records."""

import platform
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import torch

import qualms


def hardware(device: torch.device) -> str:
    """The device in words."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    threads = torch.get_num_threads()
    return f"{_processor()}, {threads} thread{'s' * (threads > 1)}"


@cache
def commit() -> str | None:
    """The commit of the source tree this package is imported from, if it is one."""
    source = Path(qualms.__file__).parent
    command = ["git", "-C", str(source), "ls-files", "--error-unmatch", "__init__.py"]
    try:
        # A package installed below somebody else's repository has no commit of ours.
        subprocess.run(command, capture_output=True, timeout=5, check=True)
        said = subprocess.run(
            ["git", "-C", str(source), "rev-parse", "HEAD"],
            capture_output=True,
            text=True,
            timeout=5,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return said.stdout.strip()


def environment(device: torch.device) -> dict[str, Any]:
    """Versions and hardware as JSON values."""
    return {
        "qualms": qualms.__version__,
        "commit": commit(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "system": platform.platform(),
        "hardware": hardware(device),
    }


@cache
def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
