"""A site that is written again when its results change."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from qualms.report.site._sources import DEPTH

SECONDS = 5.0
"""Between two looks at the results."""
_RESULTS = ("results.csv", "report.npz", "search.json", "failed.json")
"""Files by which a change is seen."""

Signature = frozenset[tuple[str, int, int]]


class LiveSite:
    """Writes a site in the background, whenever its results are others than before."""

    def __init__(
        self, folder: Path, sources: Sequence[Path], write: Callable[[], Path]
    ) -> None:
        """Make a site that `update` writes.

        Args:
            folder: The folder of the site.
            sources: What it is made of.
            write: Writes it.
        """
        self.folder = folder
        self.version = 0
        """Counts how often it was written."""
        self.problem = ""
        """Why it could not be written the last time."""
        self._sources = tuple(sources)
        self._write = write
        self._seen: Signature | None = None
        self._ended = threading.Event()

    def update(self, *, strict: bool = False) -> None:
        """Write the site if its results have changed.

        Args:
            strict: Whether an error is raised. Else it is noted in `problem`, and a
                former site stays.
        """
        signature = self._signature()
        if signature == self._seen:
            return
        self._seen = signature
        try:
            self._write()
        except (ValueError, LookupError, OSError) as error:
            if strict:
                raise
            self.problem = str(error)
        else:
            self.problem = ""
            self.version += 1

    def watch(self) -> None:
        """Update until `end` is called."""
        while not self._ended.wait(SECONDS):
            self.update()

    def end(self) -> None:
        """End `watch`."""
        self._ended.set()

    def _signature(self) -> Signature:
        files: list[Path] = []
        for source in self._sources:
            if source.is_dir():
                for name in _RESULTS:
                    for depth in range(DEPTH + 1):
                        files += source.glob("*/" * depth + name)
            else:
                files.append(source)
        return frozenset(filter(None, map(_stamp, files)))


def _stamp(path: Path) -> tuple[str, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return str(path), status.st_mtime_ns, status.st_size
