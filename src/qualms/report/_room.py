"""Check that a file can be written, before the work that fills it."""

import os
from pathlib import Path

from qualms.atomic import temporary_path


def check_room(path: Path, size: int) -> None:
    """Raise unless `size` bytes can be written beside `path`."""
    if path.is_dir():
        raise IsADirectoryError(
            f"cannot write {path}: it is a folder; give the path of a file, in it or"
            " elsewhere"
        )
    temporary = temporary_path(path)
    try:
        try:
            with temporary.open("xb") as file:
                file.write(bytes(size))
                file.flush()
                os.fsync(file.fileno())
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise OSError(
            f"cannot write {path}: {error.strerror or error}; free "
            f"{max(1, size // 1_000_000)} MB there, or choose another folder"
        ) from error
