"""A cache of judged variants, each identified by a digest of its inputs.

The inputs are predictions, options, the code of judging and its libraries. Files hold
plain numbers (`qualms.records`) under a seal of this user (`qualms.caches`), so that
a folder of runs from somebody else brings no judged numbers with it.
"""

import hashlib
import sys
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import qualms
from qualms.caches import Cache
from qualms.evaluate._variant import JudgedVariant, RunFacts
from qualms.evaluate.benchmark_results import Cost, Missing
from qualms.evaluate.entry import Curve, Histogram, MapSlice, Scatter
from qualms.evaluate.pairs import PairedDifference, PairedScore
from qualms.evaluate.uncertainty_ranking import RankedUncertainty, UncertaintyRanking
from qualms.records import DAMAGE, from_archive, record_kinds, to_archive
from qualms.results import Result
from qualms.shelf import names, outside_parts, source_of

_LIBRARIES = ("numpy", "scipy", "numba", "safetensors", "pyarrow")
_KINDS = record_kinds(
    (
        *(JudgedVariant, Result, Curve, Histogram, Scatter, MapSlice, PairedScore),
        *(PairedDifference, UncertaintyRanking, RankedUncertainty, Cost, Missing),
        RunFacts,
    )
)


class CellFolder:
    """A folder of judged variants."""

    def __init__(self, folder: Path) -> None:
        self.cache = Cache(folder)

    def get(self, name: str, key: str) -> JudgedVariant | None:
        """Return the cell `name` if its inputs have the digest `key`, else None.

        Args:
            name: The name of its file.
            key: A digest of all its inputs.
        """
        content = self.cache.get(name, key)
        if content is not None:
            with suppress(*DAMAGE):
                cell = from_archive(content, _KINDS)
                return cell if isinstance(cell, JudgedVariant) else None
        return None

    def put(self, name: str, key: str, cell: JudgedVariant) -> None:
        """Store a cell, if it can be stored."""
        with suppress(TypeError):  # a protocol from outside may label by anything
            self.cache.put(name, key, to_archive(cell, _KINDS))


def text_digest(*texts: str) -> str:
    """Return a digest of several texts."""
    digest = hashlib.blake2b(digest_size=16)
    for text in texts:
        encoded = text.encode()
        digest.update(len(encoded).to_bytes(8, "little") + encoded)
    return digest.hexdigest()


@cache
def package_digest() -> str:
    """Return a digest of the code of this package and of its libraries."""
    source = Path(qualms.__file__).parent
    digest = hashlib.blake2b(sys.version.encode(), digest_size=16)
    for path in sorted(source.rglob("*.py")):
        digest.update(str(path.relative_to(source)).encode())
        digest.update(path.read_bytes())
    for library in _LIBRARIES:
        with suppress(PackageNotFoundError):
            digest.update(f"{library} {version(library)}".encode())
    return digest.hexdigest()


def outside_digest() -> str:
    """Return a digest of the code of included benchmarks and scores."""
    parts = [
        f"{shelf}/{name} {source_of(shelf, name)}"
        for shelf in ("benchmarks", "scores")
        for name in names(shelf)
        if name in outside_parts(shelf)
    ]
    return text_digest(*parts) if parts else ""
