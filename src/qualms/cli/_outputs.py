"""Checks of files that a command writes, before the work."""

from collections.abc import Iterable
from pathlib import Path

_BEGINNING = 1_000
"""Bytes of a file in which its mark stands."""


def refuse_overwriting(
    outputs: Iterable[Path | None], inputs: Iterable[Path | None]
) -> None:
    """Raise if a file that will be written is read by the same command, or is twice."""
    read = {path.resolve() for path in inputs if path is not None}
    written: set[Path] = set()
    for path in outputs:
        if path is None:
            continue
        if path.resolve() in read:
            raise ValueError(
                f"cannot write {path}: this command reads it, and it would be lost;"
                " give another path"
            )
        if path.resolve() in written:
            raise ValueError(
                f"cannot write {path} twice: two options name it; give each its own"
            )
        written.add(path.resolve())


def check_ending(option: str, path: Path | None, *endings: str) -> None:
    """Raise if a file that will be written has the ending of another kind of file."""
    if path is not None and path.suffix and path.suffix.lower() not in endings:
        raise ValueError(
            f"{option} writes a file that ends in {' or '.join(endings)}, got {path};"
            f" call it {path.with_suffix(endings[0]).name}"
        )


def refuse_foreign(option: str, path: Path | None, mark: str) -> None:
    """Raise if there is a file already that does not hold `mark` near its beginning."""
    if path is None or not path.is_file() or not path.stat().st_size:
        return
    with path.open("rb") as file:
        if mark.encode() not in file.read(_BEGINNING):
            raise ValueError(
                f"{option} would replace {path}, which is a file of another kind; give"
                " another path, or remove it first"
            )
