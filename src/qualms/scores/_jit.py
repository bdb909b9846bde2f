"""numba's `njit`, typed and configured once.

Compiled code is cached on disk, so a second process never compiles. `fastmath` stays
off: kernels must treat nan and signed zero as NumPy does.
"""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numba

P = ParamSpec("P")
R = TypeVar("R")


def jit(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` on first call; reuse the compiled code in later processes."""
    compiled: Callable[P, R] = numba.njit(cache=True, nogil=True)(function)
    return compiled
