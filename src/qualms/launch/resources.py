"""Where runs are, and what makes and judges them."""

from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

from qualms.launch.data import data_root
from qualms.launch.engine import Engine


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """Folders, processes and device of runs."""

    out: Path
    data: Path
    workers: int | None = None
    device: str = "auto"
    together: int | None = None
    engine: Engine = field(default_factory=Engine)


def resources_for(
    out: str | PathLike[str],
    data: str | PathLike[str] | None,
    *,
    workers: int | None = None,
    device: str = "auto",
    together: int | None = None,
    engine: Engine | None = None,
) -> Resources:
    """Return resources for runs in a folder."""
    return Resources(
        out=runs_folder(out),
        data=data_root(None if data is None else Path(data)),
        workers=workers,
        device=device,
        together=together,
        engine=engine or Engine(),
    )


def runs_folder(out: str | PathLike[str]) -> Path:
    """Return the folder of runs; raise if it is the address of an object store.

    >>> runs_folder("runs").name
    'runs'
    """
    kind, colon, rest = str(out).partition(":/")
    if colon and len(kind) > 1 and kind.isalnum():  # a path has lost one of the slashes
        address = f"{kind}://{rest.lstrip('/')}"
        raise ValueError(
            f"runs are in folders, got {address}; mount the bucket and name the folder"
            " that it is mounted on, or make runs in a folder and copy them there"
            " (`qualms docs scale`)"
        )
    return Path(out)
