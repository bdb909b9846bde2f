"""The environment of runs: versions, the machine, and a folder that can be written."""

import os
import platform
import subprocess
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import qualms
from qualms.atomic import temporary_path
from qualms.processes import LockError, locked
from qualms.runs._files import now_text

SPARE = 8 * 2**20
"""Bytes that must be free in the output folder before any run starts."""
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


def environment() -> dict[str, Any]:
    """Return versions, machine and threads of this process, as JSON values."""
    return {
        "qualms": qualms.__version__,
        "commit": commit(),
        "python": platform.python_version(),
        "system": platform.platform(),
        "packages": dict(_packages()),
        "cores": os.cpu_count(),
        "threads": os.environ.get("OMP_NUM_THREADS"),
        "started": now_text(),
    }


@cache
def commit() -> str | None:
    """Return the commit of the source tree of this package; None without a tree.

    It ends in " with changes" if files of that tree differ from the commit.
    """
    source = Path(qualms.__file__).parent
    git = ["git", "-C", str(source)]
    try:
        # The package may be installed inside the repository of another project.
        _output([*git, "ls-files", "--error-unmatch", "__init__.py"])
        head = _output([*git, "rev-parse", "HEAD"])
        # Without locks, so that a commit at the same time is not disturbed.
        quick = ["--no-optional-locks", "status", "--porcelain", "-uno"]
        return f"{head} with changes" if _output([*git, *quick]) else head
    except (OSError, subprocess.SubprocessError):
        return None


def check_place(out: Path) -> None:
    """Raise unless `out` is a folder, or can be made one; nothing is written."""
    place = next((path for path in (out, *out.parents) if path.exists()), Path())
    reason = "" if place.is_dir() else f"{place} is not a folder"
    if not reason and not os.access(place, os.W_OK | os.X_OK):
        reason = f"{place} cannot be written to"
    if reason:
        raise OSError(
            f"cannot write runs to {out}: {reason}; choose another folder with --out"
        )


def check_writable(out: Path) -> None:
    """Raise unless files of `SPARE` bytes can be written and locked below `out`."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        probe = temporary_path(out / "probe")
        try:
            with probe.open("xb") as file:
                # Without a name, so that a kill leaves nothing. Windows keeps the name.
                with suppress(PermissionError):
                    probe.unlink()
                file.write(bytes(SPARE))
                file.flush()
                os.fsync(file.fileno())
            with locked(probe):
                pass
        finally:
            probe.unlink(missing_ok=True)
    except LockError:
        raise
    except OSError as error:
        raise OSError(
            f"cannot write runs to {out}: {error.strerror or error}; free space there"
            " or choose another folder with --out"
        ) from error


@cache
def _packages() -> dict[str, str]:
    """Return the versions of the installed packages among `PACKAGES`."""
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions


def _output(command: list[str]) -> str:
    process = subprocess.run(
        command, capture_output=True, text=True, timeout=5, check=True
    )
    return process.stdout.strip()
