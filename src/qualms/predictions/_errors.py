"""How predictions are refused: one sentence with what is wrong, where, and the remedy.

`parsing` and `encoding` turn whatever a parser or a writer raises into such a sentence.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from errno import EINVAL
from itertools import islice
from pathlib import Path

# Characters of a message, and of a name inside one. Names come from files and may be
# of any length.
_MESSAGE = 1000
_NAME = 60
# Names that are listed one by one in a message.
_LISTED = 12

_BEGINNINGS = {
    b"PK\x03\x04": "an .npz (zip) file",
    b"PAR1": "a .parquet file",
    b"\x93NUMPY": "an .npy file: save several arrays by name with np.savez",
    b"\x89HDF": "an HDF5 file",
    b"\x80": "a Python pickle, which is never loaded",
    b"\x1f\x8b": "a gzip file: unpack it first",
    b"ARROW1": "an Arrow (feather) file",
}


class PredictionsError(ValueError):
    """Predictions that cannot be read, written or pooled; the message says why."""

    def __init__(self, message: str) -> None:
        super().__init__(shortened(message, _MESSAGE))


def shortened(text: str, length: int = _NAME) -> str:
    """`text` if it has at most `length` characters, else its beginning and its end.

    >>> shortened("abcdefghijklmnopqrstuvwxyz", 15)
    'abcdef[...]wxyz'
    """
    if len(text) <= length:
        return text
    mark = "[...]"
    end = (length - len(mark)) * 2 // 5
    return f"{text[: length - len(mark) - end]}{mark}{text[len(text) - end :]}"


def listed(names: Iterable[str]) -> str:
    """Names in quotes, for a sentence: the first dozen, and how many more.

    >>> listed(["target", "probs"])
    "'target', 'probs'"
    """
    held = list(names)
    shown = ", ".join(f"'{shortened(name)}'" for name in islice(held, _LISTED))
    more = len(held) - _LISTED
    return f"{shown} and {more} more" if more > 0 else shown or "nothing"


@contextmanager
def naming(source: str) -> Iterator[None]:
    """Put `source` before every refusal made inside, and reword the system's errors.

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


def parsing(path: Path) -> AbstractContextManager[None]:
    """Turn whatever a parser raises on the bytes of `path` into one sentence."""
    return _refusing(
        lambda error: (
            f"is not a readable {path.suffix.lower()} file ({said_by(error)})"
            f"{_looks(path)}; it may be cut short or carry the wrong name: write it "
            "again"
        )
    )


def encoding(path: Path) -> AbstractContextManager[None]:
    """Turn whatever the writer of a format raises into one sentence."""
    return _refusing(
        lambda error: (
            f"cannot be written as {path.suffix.lower()} ({said_by(error)}); try "
            "another ending, and check the free space"
        )
    )


@contextmanager
def _refusing(sentence: Callable[[Exception], str]) -> Iterator[None]:
    try:
        yield
    except (PredictionsError, MemoryError):
        raise
    # Libraries that handle foreign bytes raise nearly every class there is.
    except Exception as error:
        if _by_the_system(error):
            raise
        raise PredictionsError(sentence(error)) from error


def said_by(error: BaseException) -> str:
    """The first line of an error's own message, or the name of its class."""
    first = next(iter(str(error).splitlines()), type(error).__name__)
    return shortened(first, 200)


def refuse_undecodable(path: Path) -> None:
    """Refuse a path whose bytes are not text: no table or report could name it."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        shown = str(path).encode("utf-8", "backslashreplace").decode()
        raise PredictionsError(
            f"{shown}: the name of a file must be text in UTF-8, and this one is not; "
            "rename the file"
        ) from None


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
