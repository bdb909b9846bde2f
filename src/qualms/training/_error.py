"""The error of training: a sentence with a remedy."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from qualms.predictions import PredictionsError


class TrainingError(RuntimeError):
    """A run that cannot start or go on; the message says why and what to do."""


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn errors of writing to `folder`, such as a full disk, into a sentence."""
    try:
        yield
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not folder.is_dir():
            raise TrainingError(
                f"{folder} was removed or renamed while the run worked in it; run again"
                " to make the run anew, or bring the folder back first to go on"
            ) from error
        raise TrainingError(
            f"cannot write to {folder}: {error.strerror or error}; free space there or"
            " choose another folder, and run again: the last good checkpoint is kept"
        ) from error
    except PredictionsError as error:
        raise TrainingError(f"cannot write predictions: {error}") from error
