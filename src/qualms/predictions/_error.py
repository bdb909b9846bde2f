"""The one way predictions are refused: a sentence with what, where and the remedy."""

from collections.abc import Iterator
from contextlib import contextmanager


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
