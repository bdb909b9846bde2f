"""numba's `njit`, typed and configured once.

Compiled code is cached on disk, so that later processes need not compile. Without a
readable or writable cache, every process compiles. `fastmath` stays off: kernels must
treat nan, signed zero and division by zero as NumPy does.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, ParamSpec, TypeVar

import numba
from numba.core.caching import FunctionCache

P = ParamSpec("P")
R = TypeVar("R")


def jit(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` on first call; reuse the compiled code in later processes."""
    compiled: Any = numba.njit(nogil=True, error_model="numpy")(function)
    # numba raises where it finds no folder to write to, for example a read-only home.
    with suppress(RuntimeError, OSError):
        cache = FunctionCache(function)  # type: ignore[no-untyped-call]
        compiled._cache = _ForgivingCache(cache)
    kernel: Callable[P, R] = compiled
    return kernel


class _ForgivingCache:
    """A cache of compiled code; where it fails, the code is compiled again."""

    def __init__(self, cache: Any) -> None:
        self._cache = cache

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)

    def load_overload(self, signature: Any, target: Any) -> Any:
        try:
            overload = self._cache.load_overload(signature, target)
            # Two processes that save at once may give one file to two signatures.
            if overload is None or overload.signature.args == tuple(signature):
                return overload
        # Unpickling bytes that were cut short raises nearly every class there is.
        except Exception:
            pass
        with suppress(Exception):
            self._cache.flush()  # otherwise the damaged index would stay
        return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        # A full disk, or a home that became read-only since.
        with suppress(Exception):
            self._cache.save_overload(signature, compiled)
