"""numba's `njit` for simulators, typed and configured once.

The scores have their own: the two shelves do not import each other.
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
