"""How often each item counts in a bootstrap replicate.

A replicate is a vector of whole weights: item i appears `weights[i]` times. The weights
are a function of (seed, replicate) and of the items' strata and clusters only, so any
replicate can be made alone, and two files with the same items get the same replicates:
that is what makes a comparison between them paired.
"""

from dataclasses import KW_ONLY, dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qualms.scores._arrays import Index
from qualms.scores._jit import jit

Weights = NDArray[np.int32]

# splitmix64 (Steele, Lea & Flood, 2014): its increment and the two multipliers.
_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX_A = np.uint64(0xBF58476D1CE4E5B9)
_MIX_B = np.uint64(0x94D049BB133111EB)
_HALF = np.uint64(32)
_LOW_BITS = np.uint64(0xFFFFFFFF)
_MODULUS = np.uint64(1 << 32)


@dataclass(frozen=True, slots=True, eq=False)
class Resampling:
    """Seeded bootstrap weights for `n` items, with replacement.

    With `strata` (N,), for example the target, every stratum keeps its own size. With
    `cluster` (N,), for example the patient, whole clusters are drawn, so the number of
    items varies; a cluster belongs to the stratum of its highest class (a patient is
    positive if either eye is), and every stratum keeps its number of clusters.
    """

    n: int
    _: KW_ONLY
    strata: ArrayLike | None = field(default=None, repr=False)
    cluster: ArrayLike | None = field(default=None, repr=False)
    seed: int = 0
    _unit: Index | None = field(init=False, repr=False)
    _members: Index = field(init=False, repr=False)
    _start: Index = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.n < 1:
            raise ValueError(f"n must be at least one item, got {self.n}")
        stratum = _codes("strata", self.strata, self.n)
        unit = None
        if self.cluster is not None:
            unit = _codes("cluster", self.cluster, self.n)
            highest = np.zeros(int(unit.max()) + 1, dtype=np.int64)
            np.maximum.at(highest, unit, stratum)
            # A class that is never the highest of a cluster is a stratum of none.
            stratum = _codes("strata", highest, len(highest))
        start = np.concatenate([[0], np.cumsum(np.bincount(stratum))])
        object.__setattr__(self, "_unit", unit)
        object.__setattr__(self, "_members", np.argsort(stratum, kind="stable"))
        object.__setattr__(self, "_start", start.astype(np.int64))

    def weights(self, replicate: int) -> Weights:
        """(N,) how often each item counts in `replicate` (0, 1, 2, ...)."""
        if replicate < 0:
            raise ValueError(f"replicate must be 0 or more, got {replicate}")
        state = np.uint64(_mixed(_mixed(self.seed) + replicate))
        counts = _drawn(state, self._members, self._start)
        return counts if self._unit is None else counts[self._unit]


def _codes(name: str, values: ArrayLike | None, n: int) -> Index:
    """Ranks 0, 1, ... of the distinct `values`; all 0 where there are none."""
    if values is None:
        return np.zeros(n, dtype=np.int64)
    array = np.asarray(values)
    if array.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), got {array.shape}")
    if array.dtype.kind == "f" and np.isnan(array).any():
        row = int(np.flatnonzero(np.isnan(array))[0])
        raise ValueError(f"{name} must be given for every item, row {row} is nan")
    return np.unique(array, return_inverse=True)[1].astype(np.int64)


def _mixed(value: int) -> int:
    """splitmix64's next output from state `value`, so near seeds give far streams."""
    mask = (1 << 64) - 1
    z = (value + int(_STEP)) & mask
    z = ((z ^ (z >> 30)) * int(_MIX_A)) & mask
    z = ((z ^ (z >> 27)) * int(_MIX_B)) & mask
    return z ^ (z >> 31)


@jit
def _drawn(state: np.uint64, members: Index, start: Index) -> Weights:
    counts = np.zeros(len(members), dtype=np.int32)
    for stratum in range(len(start) - 1):
        first = start[stratum]
        size = np.uint64(start[stratum + 1] - first)
        # Lemire (2019): multiply and keep the high half; the few low halves below
        # `reject` would favour some members, so they are drawn again.
        reject = (_MODULUS - size) % size
        for _ in range(size):
            low = np.uint64(0)
            product = np.uint64(0)
            while True:
                state += _STEP
                z = (state ^ (state >> np.uint64(30))) * _MIX_A
                z = (z ^ (z >> np.uint64(27))) * _MIX_B
                product = ((z ^ (z >> np.uint64(31))) >> _HALF) * size
                low = product & _LOW_BITS
                if low >= reject:
                    break
            counts[members[first + np.int64(product >> _HALF)]] += 1
    return counts
