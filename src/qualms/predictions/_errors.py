"""Bytes that are not what their name says: every parser's complaint as one sentence."""

from collections.abc import Iterator
from contextlib import contextmanager
from errno import EINVAL
from pathlib import Path


class PredictionsError(ValueError):
    """Predictions that cannot be read, written or pooled; the message says why."""


@contextmanager
def naming(source: str) -> Iterator[None]:
    """Put `source` before every refusal made inside, and make the system's speak alike.

    Used once per file: errors raised inside must not name the file themselves.
    """
    try:
        yield
    except PredictionsError as error:
        raise PredictionsError(f"{source}: {error}") from error.__cause__
    except MemoryError:
        raise PredictionsError(
            f"{source}: needs more memory than there is; split it into several files, "
            "or run on a larger machine"
        ) from None
    except OSError as error:
        if error.strerror is None:  # raised by us, already a sentence
            raise PredictionsError(f"{source}: {error}") from error
        raise PredictionsError(
            f"{source}: the system says '{error.strerror}'; check the path, its "
            "permissions and the free space"
        ) from error


_BEGINNINGS = {
    b"PK\x03\x04": "an .npz (zip) file",
    b"PAR1": "a .parquet file",
    b"\x93NUMPY": "an .npy file: save several arrays by name with np.savez",
    b"\x89HDF": "an HDF5 file",
    b"\x80": "a Python pickle, which is never loaded",
    b"\x1f\x8b": "a gzip file: unpack it first",
    b"ARROW1": "an Arrow (feather) file",
}


@contextmanager
def parsing(path: Path) -> Iterator[None]:
    """Turn whatever a parser raises on the bytes of `path` into one sentence."""
    try:
        yield
    except (PredictionsError, MemoryError):
        raise
    # Parsers of foreign bytes raise nearly every class there is, on purpose or not.
    except Exception as error:
        if _by_the_system(error):
            raise
        kind = path.suffix.lower()
        said = next(iter(str(error).splitlines()), type(error).__name__)[:200]
        raise PredictionsError(
            f"is not a readable {kind} file ({said}){_looks(path)}; it may be cut "
            "short or carry the wrong name: write it again"
        ) from error


@contextmanager
def encoding(path: Path) -> Iterator[None]:
    """Turn whatever a carrier's writer raises into one sentence."""
    try:
        yield
    except (PredictionsError, MemoryError):
        raise
    except Exception as error:
        if _by_the_system(error):
            raise
        said = next(iter(str(error).splitlines()), type(error).__name__)[:200]
        raise PredictionsError(
            f"cannot be written as {path.suffix.lower()} ({said}); try another ending, "
            "and check the free space"
        ) from error


def _by_the_system(error: Exception) -> bool:
    # Damaged bytes are an OSError too: without a number from pyarrow, and an invalid
    # argument where an offset in them points before the beginning of the file.
    return isinstance(error, OSError) and error.errno not in (None, EINVAL)


def _looks(path: Path) -> str:
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        begins = file.read(16)
    if not begins:
        return "; it is empty"
    for magic, what in _BEGINNINGS.items():
        if begins.startswith(magic):
            return f"; it begins like {what}"
    if begins[8:10] in (b'{"', b"{ "):
        return "; it begins like a .safetensors file"
    return ""
