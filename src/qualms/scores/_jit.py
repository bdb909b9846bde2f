"""numba's `njit`, typed and configured once.

Compiled code is cached on disk, so a second process never compiles. `fastmath` stays
off: kernels must treat nan, signed zero and division by zero as NumPy does.
"""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numba

P = ParamSpec("P")
R = TypeVar("R")


def jit(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` on first call; reuse the compiled code in later processes."""
    compile_ = numba.njit(cache=True, nogil=True, error_model="numpy")
    compiled: Callable[P, R] = compile_(function)
    return compiled


def jit_sum(function: Callable[P, R]) -> Callable[P, R]:
    """`jit` for a plain sum, whose terms may be added in any order, several at once."""
    compile_ = numba.njit(
        cache=True, nogil=True, error_model="numpy", fastmath={"reassoc"}
    )
    compiled: Callable[P, R] = compile_(function)
    return compiled
