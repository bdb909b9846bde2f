"""How often each item counts in a bootstrap replicate.

A replicate is a vector of whole weights: item i appears `weights[i]` times. The weights
depend only on the seed, the number of the replicate, and the strata and clusters of the
items. So any replicate can be made alone, and two files with the same items get the
same replicates, which makes comparisons between them paired.
"""

from dataclasses import KW_ONLY, dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qualms.arrays import Index
from qualms.jit import jit

Weights = NDArray[np.int32]
Units = NDArray[np.uint32]

# splitmix64 (Steele, Lea & Flood, 2014): its increment and the two multipliers.
_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX_A = np.uint64(0xBF58476D1CE4E5B9)
_MIX_B = np.uint64(0x94D049BB133111EB)
_HALF = np.uint64(32)
_LOW_BITS = np.uint64(0xFFFFFFFF)
_MODULUS = np.uint64(1 << 32)
# Random numbers made together.
_AT_ONCE = 1024


@dataclass(frozen=True, slots=True, eq=False)
class Resampling:
    """Seeded bootstrap weights for `n` items, with replacement.

    With `strata` (N,), for example the target, every stratum keeps its size. With
    `cluster` (N,), for example the patient, whole clusters are drawn, so the number of
    items varies. A cluster belongs to the stratum of its highest class (a patient is
    positive if either eye is), and every stratum keeps its number of clusters.
    """

    n: int
    _: KW_ONLY
    strata: ArrayLike | None = field(default=None, repr=False)
    cluster: ArrayLike | None = field(default=None, repr=False)
    seed: int = 0
    _unit: Index | None = field(init=False, repr=False)
    _members: Units = field(init=False, repr=False)
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
        members = np.argsort(stratum, kind="stable").astype(np.uint32)
        object.__setattr__(self, "_members", members)
        object.__setattr__(self, "_start", start.astype(np.int64))

    def weights(self, replicate: int) -> Weights:
        """(N,) how often each item counts in `replicate` (0, 1, 2, ...)."""
        if replicate < 0:
            raise ValueError(f"replicate must be 0 or more, got {replicate}")
        weights: Weights = self.block(range(replicate, replicate + 1))[0]
        return weights

    def block(self, replicates: range) -> Weights:
        """(replicates, N) the weights of several replicates, one row each."""
        seed = _mixed(self.seed)
        states = np.array([_mixed(seed + i) for i in replicates], dtype=np.uint64)
        counts = _drawn(states, self._members, self._start)
        return counts if self._unit is None else np.take(counts, self._unit, axis=1)


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
def _drawn(states: NDArray[np.uint64], members: Units, start: Index) -> Weights:
    counts = np.zeros((len(states), len(members)), dtype=np.int32)
    product = np.empty(_AT_ONCE, dtype=np.uint64)
    for row in range(len(states)):
        state = states[row]
        for stratum in range(len(start) - 1):
            first = np.uint64(start[stratum])
            left = start[stratum + 1] - start[stratum]
            size = np.uint64(left)
            # Lemire (2019): multiply and keep the high half; the few low halves below
            # `reject` would favour some members, so they are drawn again.
            reject = (_MODULUS - size) % size
            while left > 0:
                tried = min(left, _AT_ONCE)
                # Numbers first and counts after, so that the former are made in
                # vector registers.
                for i in range(tried):
                    z = state + np.uint64(i + 1) * _STEP
                    z = (z ^ (z >> np.uint64(30))) * _MIX_A
                    z = (z ^ (z >> np.uint64(27))) * _MIX_B
                    product[i] = ((z ^ (z >> np.uint64(31))) >> _HALF) * size
                state += np.uint64(tried) * _STEP
                for i in range(tried):
                    kept = (product[i] & _LOW_BITS) >= reject
                    counts[row, members[first + (product[i] >> _HALF)]] += kept
                    left -= kept
    return counts
