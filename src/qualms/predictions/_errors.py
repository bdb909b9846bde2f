"""Errors of predictions: one sentence with the fault, its place, and the remedy.

`parsing` and `encoding` turn all errors of a parser or a writer into such a sentence.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from errno import EINVAL
from pathlib import Path

# Longest message, and longest name in a message. Names in files may have any length.
_MESSAGE = 1000
_NAME = 60
# Most names that a message lists.
_LISTED = 12

_BEGINNINGS = {
    b"PK\x03\x04": "a zip file, as .npz, .xlsx and packed folders are",
    b"PAR1": "a .parquet file",
    b"\x93NUMPY": "an .npy file: save several arrays by name with np.savez",
    b"\x89HDF": "an HDF5 file",
    b"\x80": "a Python pickle, which is never loaded",
    b"\x1f\x8b": "a gzip file: unpack it first",
    b"ARROW1": "an Arrow (feather) file",
    b"version https://": "a pointer that Git LFS left: run git lfs pull",
    b"\xff\xfe": "text in UTF-16: save it as UTF-8",
    b"\xfe\xff": "text in UTF-16: save it as UTF-8",
    b"<": "a web page or XML",
}


_PICKLED = "nothing is ever unpickled: save arrays with numpy.savez_compressed"
_SHEET = "save the sheet as .csv"
_ENDINGS = {
    **dict.fromkeys((".zip", ".gz", ".bz2", ".xz", ".tar", ".tgz"), "unpack it first"),
    **dict.fromkeys((".xlsx", ".xls", ".ods"), _SHEET),
    **dict.fromkeys((".pkl", ".pickle", ".pt", ".pth", ".joblib"), _PICKLED),
    ".arrow": "load it with `datasets` and pass it: qualms.score(dataset)",
}
"""Remedies for files whose endings no reader takes."""
_UNKNOWN = "; it may be cut short or carry the wrong name: write it again"


class PredictionsError(ValueError):
    """Predictions that cannot be read, written or pooled; the message says why."""

    def __init__(self, message: str) -> None:
        super().__init__(shortened(message, _MESSAGE))


def shortened(text: str, length: int = _NAME) -> str:
    """Return `text`, or its beginning and its end if it has over `length` characters.

    >>> shortened("abcdefghijklmnopqrstuvwxyz", 15)
    'abcdef[...]wxyz'
    """
    if len(text) <= length:
        return text
    mark = "[...]"
    end = (length - len(mark)) * 2 // 5
    return f"{text[: length - len(mark) - end]}{mark}{text[len(text) - end :]}"


def listed(names: Iterable[str]) -> str:
    """Return names in quotes for a sentence: the first dozen, and how many more.

    >>> listed(["target", "probs"])
    "'target', 'probs'"
    """
    names = list(names)
    shown = ", ".join(f"'{shortened(name)}'" for name in names[:_LISTED])
    more = len(names) - _LISTED
    return f"{shown} and {more} more" if more > 0 else shown or "nothing"


@contextmanager
def naming(source: str) -> Iterator[None]:
    """Prefix messages of errors in this context with `source`; reword system errors.

    Use it once per file: messages of errors in the context must not name the file.
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
        if error.strerror is None:  # an error of our own, which is a sentence already
            raise PredictionsError(f"{source}: {error}") from error
        raise PredictionsError(
            f"{source}: the system says '{error.strerror}'; check the path, its "
            "permissions and the free space"
        ) from error


def parsing(path: Path) -> AbstractContextManager[None]:
    """Turn all errors of a parser on the bytes of `path` into one sentence."""
    return _refusing(
        lambda error: (
            f"is not a readable {path.suffix.lower()} file ({said_by(error)})"
            f"{_looks(path) or _remedy_of(error)}"
        )
    )


def remedy_of_ending(path: Path) -> str:
    """Return the remedy for a file with an ending that no reader takes; '' if none."""
    return _ENDINGS.get(path.suffix.lower(), "")


def _remedy_of(error: Exception) -> str:
    return "; save it as UTF-8" if isinstance(error, UnicodeDecodeError) else _UNKNOWN


def encoding(path: Path) -> AbstractContextManager[None]:
    """Turn all errors of the writer of a format into one sentence."""
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
    """Return the first line of an error's message, or the name of its class."""
    first = next(iter(str(error).splitlines()), type(error).__name__)
    return shortened(first, 200)


def refuse_undecodable(path: Path) -> None:
    """Raise if the bytes of a path are not text: no table or report could name it."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        shown = str(path).encode("utf-8", "backslashreplace").decode()
        raise PredictionsError(
            f"{shown}: the name of a file must be text in UTF-8, and this one is not; "
            "rename the file"
        ) from None


def _by_the_system(error: Exception) -> bool:
    # Damaged bytes raise OSError too: without an error number in pyarrow, and as an
    # invalid argument if an offset in them points before the beginning of the file.
    return isinstance(error, OSError) and error.errno not in (None, EINVAL)


def _looks(path: Path) -> str:
    """Return the likely kind of a file and a remedy; '' if the kind is unknown."""
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        beginning = file.read(16)
    if not beginning:
        return f"; it is empty{_UNKNOWN}"
    for magic, kind in _BEGINNINGS.items():
        if beginning.startswith(magic):
            return f"; it begins like {kind}{'' if ':' in kind else _UNKNOWN}"
    if beginning[8:10] in (b'{"', b"{ "):
        return f"; it begins like a .safetensors file{_UNKNOWN}"
    return ""
