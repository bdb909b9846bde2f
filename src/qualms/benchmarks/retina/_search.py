"""Ranges that RETINA searched for each method (Band et al., 2021, and its code).

Its l2 multiplies a sum of squares, so that the weight decay with the same gradient is
twice as large. For `map` and `mc_dropout` the released code never applied it; here it
acts on kernels. Where that code had two losses to choose from for `fsvi`, with and
without the penalty on the parameters of normalisation, here the penalty comes close to
none at the lower end of its range.

Rates and momenta are those of SGD with Nesterov's momentum, so that every search fixes
the optimiser: a preset may have another.
"""

from collections.abc import Mapping
from typing import Literal

from qualms.study import Range

Ranges = tuple[Range, ...]


def searched(shift: Literal["country", "severity"]) -> Mapping[str, Ranges]:
    """Return by method the ranges that were searched for a shift."""
    return {**_ALIKE, "fsvi": _FSVI[shift]}


def _loop(lr: tuple[float, float], one_minus_momentum: tuple[float, float]) -> Ranges:
    low, high = one_minus_momentum
    return (
        _OPTIMISER,
        Range(option="lr", low=lr[0], high=lr[1]),
        Range(option="momentum", low=low, high=high, complement=True),
    )


def _decay(low: float, high: float) -> Range:
    return Range(option="weight_decay", low=2 * low, high=2 * high)


def _spread(mean: tuple[float, float], stddev: tuple[float, float]) -> Ranges:
    return (
        Range(option="method.stddev_mean", low=mean[0], high=mean[1]),
        Range(option="method.stddev_stddev", low=stddev[0], high=stddev[1]),
    )


def _fsvi(one_minus_momentum: tuple[float, float], l2: tuple[float, float]) -> Ranges:
    low, high = one_minus_momentum
    return (
        _OPTIMISER,
        Range(option="lr", low=0.020824, high=0.031448, log=False),
        Range(option="momentum", low=low, high=high, complement=True),
        Range(option="method.l2", low=l2[0], high=l2[1]),
        Range(option="method.prior_cov", low=1.0, high=20.0, log=False),
        Range(option="method.inducing", choices=(10, 20, 30)),
        Range(option="method.stochastic_linearisation", choices=(True, False)),
    )


_OPTIMISER = Range(option="optimiser", choices=("sgd",))
_WIDE = _loop(lr=(1e-3, 0.5), one_minus_momentum=(5e-3, 0.05))
_NARROW = _loop(lr=(0.02, 0.5), one_minus_momentum=(0.02, 0.1))
_ALIKE: Mapping[str, Ranges] = {
    "map": (
        *_WIDE,
        _decay(1e-6, 2e-4),
        Range(option="final_factor", choices=(1e-3, 1e-2, 0.1)),
    ),
    "mc_dropout": (
        *_WIDE,
        _decay(1e-6, 2e-4),
        Range(option="method.rate", low=0.05, high=0.2, log=False),
    ),
    "mfvi": (
        *_NARROW,
        Range(option="method.l2", low=1e-5, high=2e-4),
        *_spread(mean=(1e-5, 2e-3), stddev=(0.01, 1.0)),
    ),
    "radial": (
        *_loop(lr=(0.15, 1.0), one_minus_momentum=(0.01, 0.05)),
        Range(option="method.l2", low=1e-4, high=1e-3),
        # The ranges are of the released norm.
        Range(option="method.norm", choices=("output_channels",)),
        *_spread(mean=(1e-5, 2e-2), stddev=(0.01, 0.2)),
    ),
    "rank1": (
        *_NARROW,
        _decay(1e-5, 2e-4),
        Range(option="method.fast_lr", low=0.5, high=1.25, log=False),
    ),
}
_FSVI: Mapping[str, Ranges] = {
    "country": _fsvi(one_minus_momentum=(2.877e-3, 0.0774), l2=(5.0e-7, 1.248e-4)),
    "severity": _fsvi(one_minus_momentum=(5e-3, 0.05), l2=(1e-6, 2e-4)),
}
