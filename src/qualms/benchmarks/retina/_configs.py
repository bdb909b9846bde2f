"""The 22 published configurations of RETINA (Band et al., 2021, and its released code).

Each configuration belongs to a method, a shift and a selection: on in-domain validation
items alone, or on shifted items too (joint). For `radial` and `rank1` under severity
shift both selections chose the same one.

A published batch was divided among cores, and each normalised its own part; here as
many passes are accumulated. The paper prints one minus the momentum. Its penalty was l2
times a sum of squares, so the weight decay with the same gradient is twice as large.
Where the released code never applied its l2 (`map`, `mc_dropout`, and `fsvi` with loss
type 3), we do not apply it either, and the note has the printed value. The noise of
`radial` has the norm of the released code, over output channels, for which its standard
deviations were chosen. With the paper's norm, over all weights of a layer, they would
give almost no noise.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from qualms.study import Config


def config_name(method: str, shift: str, selection: str) -> str:
    """Return the name of the published configuration of a method.

    >>> config_name("map", "country", "in_domain")
    'map_country_in_domain'
    """
    return f"{method}_{shift}_{selection}"


def published_configs() -> dict[str, Config]:
    """Return all 22 by name; those of both selections have two names."""
    return {
        config_name(line.method, line.shift, selection): _config(line)
        for line in _LINES
        for selection in line.selections
    }


class _TunedLine(NamedTuple):
    method: str
    shift: str
    selections: tuple[str, ...]
    lr: float
    momentum_gap: float
    """One minus the momentum."""
    l2: float
    values: tuple[Any, ...]
    """Values of the options in `_OWN_OPTIONS` of the method."""
    l2_used: bool = True


def _config(line: _TunedLine) -> Config:
    method = line.method
    options = dict(zip(_OWN_OPTIONS[method], line.values, strict=True))
    used = line.l2_used and method in _PENALTY
    if used:
        option, factor = _PENALTY[method]
        options[option] = factor * line.l2
    note = "" if used else f"l2 {line.l2:g} is printed, and was never applied"
    return Config(
        method=method,
        options={
            **_ALL,
            **_LOOP[method],
            "lr": line.lr,
            # 15 digits, without the rounding error of the difference.
            "momentum": round(1 - line.momentum_gap, 15),
            **options,
        },
        note=note,
    )


_ALL: Mapping[str, Any] = {
    "epochs": 90,
    "optimiser": "sgd",
    "warmup_epochs": 1,
    "weight_decay": 0.0,
    "class_weights": "minibatch",
    "partial": False,
    "normalise": "none",
}
_LOOP: Mapping[str, Mapping[str, Any]] = {
    "map": {"schedule": "linear", "batch": 32, "accumulate": 8},
    "mc_dropout": {"schedule": "step", "batch": 16, "accumulate": 8},
    "mfvi": {"schedule": "step", "batch": 32, "accumulate": 8},
    "radial": {
        "schedule": "step",
        "batch": 16,
        "accumulate": 8,
        "method.norm": "output_channels",
    },
    "rank1": {"schedule": "step", "batch": 16, "accumulate": 8},
    "fsvi": {
        "schedule": "step",
        "batch": 64,
        "accumulate": 4,
        # The released code ignores its option of class weights here.
        "class_weights": "none",
    },
}
_OWN_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "map": ("final_factor",),
    "mc_dropout": ("method.rate",),
    "mfvi": ("method.stddev_mean", "method.stddev_stddev"),
    "radial": ("method.stddev_mean", "method.stddev_stddev"),
    "rank1": ("method.fast_lr",),
    "fsvi": ("method.prior_cov", "method.inducing", "method.stochastic_linearisation"),
}
_PENALTY: Mapping[str, tuple[str, float]] = {
    "mfvi": ("method.l2", 1.0),
    "radial": ("method.l2", 1.0),
    "rank1": ("weight_decay", 2.0),
    "fsvi": ("method.l2", 1.0),
}
"""Our option for a published l2, and the factor."""

_ID, _JT, _BOTH = ("in_domain",), ("joint",), ("in_domain", "joint")
_C, _S = "country", "severity"
# fmt: off
_LINES = (
    _TunedLine("map", _C, _ID, 0.023072, 0.0098467, 1.0674e-4, (0.01,)),
    _TunedLine("map", _C, _JT, 0.026561, 0.045991, 1.3148e-4, (0.1,)),
    _TunedLine("map", _S, _ID, 0.058737, 0.015731, 3.1828e-6, (0.01,)),
    _TunedLine("map", _S, _JT, 0.022779, 0.011876, 1.2376e-5, (0.001,)),
    _TunedLine("mc_dropout", _C, _ID, 0.027250, 0.035193, 1.4128e-5, (0.17798,)),
    _TunedLine("mc_dropout", _C, _JT, 0.0028274, 0.024251, 4.1296e-5, (0.067338,)),
    _TunedLine("mc_dropout", _S, _ID, 0.026561, 0.023244, 1.6501e-4, (0.18813,)),
    _TunedLine("mc_dropout", _S, _JT, 0.023072, 0.012506, 4.7560e-6, (0.18222,)),
    _TunedLine("mfvi", _C, _ID, 0.48065, 0.076935, 1.3178e-4, (9.7618e-4, 0.41994)),
    _TunedLine("mfvi", _C, _JT, 0.38662, 0.038588, 1.9733e-5, (2.9392e-4, 0.28203)),
    _TunedLine("mfvi", _S, _ID, 0.042732, 0.038292, 3.3089e-5, (1.0821e-3, 0.012984)),
    _TunedLine("mfvi", _S, _JT, 0.41973, 0.021539, 2.4503e-5, (1.1944e-4, 0.10938)),
    _TunedLine("radial", _C, _ID, 0.18958210, 0.016699763, 5.2438498e-4,
            (1.4497838e-4, 0.062824966)),
    _TunedLine("radial", _C, _JT, 0.15606291, 0.032915822, 1.4935598e-4,
            (2.1409842e-5, 0.067824557)),
    _TunedLine("radial", _S, _BOTH, 0.20617, 0.027963, 8.4192e-4, (0.012607, 0.037535)),
    _TunedLine("rank1", _C, _ID, 0.032299, 0.066501, 2.2417e-5, (1.2390,)),
    _TunedLine("rank1", _C, _JT, 0.049826, 0.021596, 4.3192e-5, (0.60756,)),
    _TunedLine("rank1", _S, _BOTH, 0.028553, 0.077592, 2.2310e-5, (0.92953,)),
    _TunedLine("fsvi", _C, _ID, 0.021450800, 0.019218015, 1.5793214e-4,
            (15.35947556, 10, True)),
    _TunedLine("fsvi", _C, _JT, 0.027689237, 0.011677355, 3.0473977e-6,
            (17.00721032, 20, False), l2_used=False),
    _TunedLine("fsvi", _S, _ID, 0.029950447, 0.021384131, 1.5549034e-6,
            (5.630095606, 20, True), l2_used=False),
    _TunedLine("fsvi", _S, _JT, 0.023386492, 0.012955254, 2.5277460e-5,
            (4.275120502, 10, False)),
)
# fmt: on
