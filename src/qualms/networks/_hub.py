"""Weights from a hub: from its cache at once, where the hub cannot be reached.

Left to itself, a download tries again for a minute before it fails.
"""

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as WaitedError
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies, proxy_bypass

_PATIENCE = 3.0
"""Seconds in which a hub must answer."""
_PORTS = {"http": 80, "https": 443}


class Hub(NamedTuple):
    """The hub of pretrained weights, as it was found."""

    url: str
    is_reachable: bool

    def reason(self, error: Exception) -> str:
        """Return the reason for missing weights, from the error of the library.

        A library may raise its own error from that of the hub.
        """
        cause = error.__cause__ or error.__context__ or error
        absent = (FileNotFoundError, ConnectionError)
        is_absent = isinstance(error, absent) or isinstance(cause, absent)
        if is_absent and not self.is_reachable:
            return f"{self.url} cannot be reached, and they are not in its cache"
        return str(error).partition("\n")[0].rstrip(".")


@contextmanager
def quick_hub() -> Iterator[Hub]:
    """Read from the cache of the hub alone, where the hub cannot be reached."""
    constants: Any = import_module("huggingface_hub.constants")
    url: str = constants.ENDPOINT
    was_offline: bool = constants.HF_HUB_OFFLINE
    hub = Hub(url, is_reachable=not was_offline and _answers(url))
    constants.HF_HUB_OFFLINE = was_offline or not hub.is_reachable
    try:
        yield hub
    finally:
        constants.HF_HUB_OFFLINE = was_offline


def _answers(url: str) -> bool:
    """Return whether a connection to a host, or to the proxy before it, is accepted."""
    place = _way(urlsplit(url))
    pool = ThreadPoolExecutor(1)
    # Looking up a name has no time limit of its own.
    waiting = pool.submit(_connect, place)
    pool.shutdown(wait=False)
    with suppress(OSError, WaitedError):
        waiting.result(timeout=_PATIENCE)
        return True
    return False


def _way(url: SplitResult) -> SplitResult:
    """Return where connections to `url` go first: to a proxy, if there is one."""
    proxy = getproxies().get(url.scheme, "")
    if not proxy or proxy_bypass(url.hostname or ""):
        return url
    return urlsplit(proxy if "://" in proxy else f"http://{proxy}")


def _connect(place: SplitResult) -> None:
    port = place.port or _PORTS.get(place.scheme, 443)
    socket.create_connection((place.hostname or "", port), timeout=_PATIENCE).close()
