"""Included parts that travel to other machines, by the bytes of their files."""

from collections.abc import Iterable
from pathlib import Path

from qualms.shelf import IncludedPath, including


def unpack_parts(parts: Iterable[IncludedPath], folder: Path) -> dict[str, str]:
    """Return variables of the environment by which a process includes these parts.

    Paths that this machine has with the same contents are used as they are, since their
    parts may read other files beside them. Others are written to `folder`.
    """
    return including(
        (path.folder if _is_here(path) else _written(path, folder / str(number)))
        / path.name
        for number, path in enumerate(parts)
    )


def _is_here(path: IncludedPath) -> bool:
    try:
        return all(
            (path.folder / name).read_bytes() == content
            for name, content in path.files.items()
        )
    except OSError:
        return False


def _written(path: IncludedPath, folder: Path) -> Path:
    for name, content in path.files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return folder
