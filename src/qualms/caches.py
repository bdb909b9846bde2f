"""Caches: files that are believed only where this user's qualms wrote them.

A cache lies beside the runs that it is about, and folders of runs are copied and
shared. So every file of a cache is sealed by an HMAC with a key that lies in the user's
own state folder and that nobody else can read. A file that anybody else wrote, that was
changed, or whose inputs have changed, counts as missing: what it held is made anew, and
deleting caches loses nothing but time. Files appear whole or not at all, so that they
need no locks. Without a key, nothing is stored.
"""

import hmac
import os
import secrets
import stat
from contextlib import suppress
from functools import cache
from pathlib import Path

from qualms.atomic import replacing
from qualms.regular import open_file, read_file

ENDING = ".cell"
"""Ends the names of all files of caches."""
MOST_BYTES = 2 << 30
"""Most bytes of one folder of a cache; the longest unused files are removed first."""
_SEAL = 32
"""Bytes of a seal, and of the key."""


class Cache:
    """A folder of sealed files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, name: str, inputs: str) -> bytes | None:
        """Return what was stored as `name` for the same inputs; None otherwise.

        Args:
            name: The name of its file, without an ending.
            inputs: A text that tells all inputs apart, such as a digest of them.
        """
        key = _key()
        if key is None:
            return None
        path = self.path(name)
        with suppress(OSError):
            stored = read_file(path, MOST_BYTES)
            content = stored[_SEAL:]
            if hmac.compare_digest(stored[:_SEAL], _seal(key, name, inputs, content)):
                os.utime(path)  # the longest unused are removed first
                return content
        return None

    def put(self, name: str, inputs: str, content: bytes) -> None:
        """Store `content`, if it can be stored."""
        key = _key()
        if key is None:
            return
        with suppress(OSError):
            self._folder.mkdir(exist_ok=True)
            with replacing(self.path(name)) as temporary:
                temporary.write_bytes(_seal(key, name, inputs, content) + content)

    def prune(self) -> None:
        """Remove the longest unused files beyond `MOST_BYTES`."""
        with suppress(OSError):
            files = sorted(
                self._folder.glob(f"*{ENDING}"), key=lambda path: -path.stat().st_mtime
            )
            total = 0
            for path in files:
                total += path.stat().st_size
                if total > MOST_BYTES:
                    path.unlink(missing_ok=True)

    def path(self, name: str) -> Path:
        """Return the file of this user's `name`; others have files of their own."""
        user = _seal(_key() or b"", "", "", b"").hex()[:8]
        return self._folder / f"{name}-{user}{ENDING}"


def state_folder() -> Path:
    """Return the user's folder for what programs remember: $XDG_STATE_HOME/qualms."""
    named = os.environ.get("XDG_STATE_HOME") or os.environ.get("LOCALAPPDATA") or ""
    root = Path(named) if Path(named).is_absolute() else Path.home() / ".local/state"
    return root / "qualms"


def _seal(key: bytes, name: str, inputs: str, content: bytes) -> bytes:
    seal = hmac.new(key, digestmod="sha256")
    for text in (name, inputs):
        encoded = text.encode()
        seal.update(len(encoded).to_bytes(8, "little") + encoded)
    seal.update(content)
    return seal.digest()


@cache
def _key() -> bytes | None:
    """Return the key of this user, which is made once; None where none can be kept."""
    with suppress(OSError, RuntimeError):  # a user without a home, a disk that is full
        path = state_folder() / "cache.key"
        key = _read_key(path)
        if key is None:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with replacing(path) as temporary:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
                with os.fdopen(os.open(temporary, flags, 0o600), "wb") as file:
                    file.write(secrets.token_bytes(_SEAL))
            key = _read_key(path)  # two processes may make one: the last counts
        return key
    return None


def _read_key(path: Path) -> bytes | None:
    """Return the key in a file that is this user's alone; None for any other file."""
    with suppress(FileNotFoundError), open_file(path) as file:
        status, key = os.fstat(file.fileno()), file.read(_SEAL + 1)
        if os.name == "posix":
            private = stat.S_IMODE(status.st_mode) & 0o077 == 0
            if not private or status.st_uid != os.getuid():
                return None
        return key if len(key) == _SEAL else None
    return None
