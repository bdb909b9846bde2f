"""Hyperparameters of URL: the best that the paper found, ten others, and the search.

The learning rates of the paper are for 256 items; a step has about 2048, and the rate
grows with the square root of their ratio.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from qualms.study import Config, Range

BACKBONES = ("resnet50", "vit_medium")
SIMULATED = "species"
"""Stands for a network on simulated species, whose preset says what a step has."""
CONFIGS_EACH = 10
"""Configurations of each method in the study of the trade-off."""

_BATCHES = {"infonce": (96, 21), "mcinfonce": (96, 21), "hib": (96, 21)}
_USUAL_BATCH = (128, 16)
_HIB_VIT = (48, 43)
_HETXL_VIT = {"method.draws": 1000}
_WARM = {"method.initial_uncertainty": 0.001}
_COLD: dict[str, Any] = {"method.initial_uncertainty": None}


def _t(value: float) -> dict[str, float]:
    return {"method.inverse_temperature": value}


Chosen = Mapping[str, tuple[float, Mapping[str, Any]]]
_BEST: Mapping[str, Chosen] = {
    "resnet50": {
        "map": (2.7583e-3, {}),
        "infonce": (4.4526e-4, _t(15.183)),
        "mcinfonce": (2.3842e-5, {**_t(52.431), **_WARM, "warmup_lr": 3.4877e-5}),
        "elk": (8.3245e-3, {**_t(27.685), **_COLD}),
        "nivmf": (1.4943e-4, {**_t(10.896), **_WARM}),
        "hib": (
            5.6066e-5,
            {**_t(26.850), "method.offset": 2.0435, **_COLD, "warmup_lr": 2.2865e-6},
        ),
        "hetxl": (3.0257e-4, {"method.scale": 0.011312}),
        "losspred": (9.0767e-3, {"method.weight": 0.041375, **_COLD}),
        "mc_dropout": (1.6200e-4, {"method.rate": 0.087022}),
        "head_ensemble": (4.4059e-3, {}),
        "sngp": (3.9350e-3, {"method.spectral_bound": 3.0035}),
    },
    "vit_medium": {
        "map": (4.9540e-3, {}),
        "infonce": (6.2465e-3, _t(20.820)),
        "mcinfonce": (3.1867e-3, {**_t(50.276), **_WARM}),
        "elk": (9.0417e-3, {**_t(56.774), **_COLD}),
        "nivmf": (2.7583e-3, {**_t(31.353), **_WARM}),
        "hib": (5.9204e-4, {**_t(13.956), "method.offset": -5.3607, **_COLD}),
        "hetxl": (1.2722e-4, {"method.scale": 0.011587, **_HETXL_VIT}),
        "losspred": (2.6590e-3, {"method.weight": 0.011425, **_WARM}),
        "mc_dropout": (2.7583e-3, {"method.rate": 0.13340}),
        "head_ensemble": (4.9448e-3, {}),
        "sngp": (2.9739e-4, {}),
    },
}
"""By backbone and method: the rate for 256 items, and further options."""
_NOTES = {
    ("vit_medium", "nivmf"): "the selected runs of the released code have a rate of "
    "3.73e-4 for 256 items",
    ("resnet50", "sngp"): "the selected runs of the released code have a rate of "
    "2.118e-4 for 256 items",
    ("vit_medium", "hetxl"): "the paper's commands take the log-determinant, the "
    "selected runs of the released code the entropy",
}
_TWO_DRAWN = Range(
    option="select_uncertainty", choices=("entropy", "mutual_information")
)
_TWO_HETXL = Range(option="select_uncertainty", choices=("entropy", "log_determinant"))
_TEMPERATURE = Range(option="method.inverse_temperature", low=8, high=64, log=False)
_START = Range(option="method.initial_uncertainty", choices=(None, 0.001))
_RANGES: Mapping[str, tuple[Range, ...]] = {
    "map": (),
    "infonce": (_TEMPERATURE,),
    "mcinfonce": (_TEMPERATURE, _START),
    "elk": (_TEMPERATURE, _START),
    "nivmf": (_TEMPERATURE, _START),
    "hib": (
        _TEMPERATURE,
        _START,
        Range(option="method.offset", low=-8, high=8, log=False),
    ),
    "hetxl": (Range(option="method.scale", low=0.003, high=0.1), _TWO_HETXL),
    "losspred": (Range(option="method.weight", low=0.01, high=0.99), _START),
    "mc_dropout": (
        Range(option="method.rate", low=0.05, high=0.25, log=False),
        _TWO_DRAWN,
    ),
    "head_ensemble": (_TWO_DRAWN,),
    "sngp": (Range(option="method.layer_norm", choices=(True, False)),),
}
"""By method, the ranges that the paper searches besides the learning rate."""
_BOUND = Range(option="method.spectral_bound", choices=(None, 3.0035))
"""Bound of SNGP for networks of convolutions: none, or the paper's best."""
_RATES = (1e-4, 1e-2)
_CHOSEN_BY = {
    **dict.fromkeys(("elk", "nivmf", "losspred"), "head"),
    **dict.fromkeys(("hetxl", "mc_dropout", "head_ensemble", "sngp"), "entropy"),
}
"""The uncertainty that chooses the epoch, of methods that have several."""
_OTHERWISE = {("resnet50", "mc_dropout"): "mutual_information"}
"""Uncertainty by backbone and method, where paper, commands or released runs differ:
`jsd` for MCDropout on ResNet-50, `class-entropy` on ViT-Medium."""
_VIEWS = {"augment": ["crop", "hue_jitter", "grey", "blur", "hflip"]}
"""Augmentation that gives methods without labels two views of an item."""
_WITHOUT_LABELS = ("infonce", "mcinfonce")
_ON_FEATURES = ("elk", "nivmf", "losspred")
_FROZEN_WIDTH = 256
"""Width of uncertainty heads on cached features, which a CPU trains."""


def all_configs() -> dict[str, Config]:
    """Return all configs by name: the best ones of the paper, and further ones."""
    configs = (_best(), _spread(), _plain(), _frozen(), _alone())
    return {name: config for each in configs for name, config in each}


def best_names(backbone: str) -> dict[str, str]:
    """Return by method the name of the paper's best config for a backbone."""
    return {method: f"{method}_{backbone}" for method in _BEST[backbone]}


def plain_names() -> dict[str, str]:
    """Return by method the name of the config with options that are not searched."""
    return {method: f"{method}_plain" for method in (*_CHOSEN_BY, *_WITHOUT_LABELS)}


def view_names() -> dict[str, str]:
    """Return by method without labels the name of the config with its two views."""
    return {method: f"{method}_plain" for method in _WITHOUT_LABELS}


def frozen_names() -> dict[str, str]:
    """Return by method the name of the config of its head on cached features."""
    return {method: f"{method}_frozen" for method in _ON_FEATURES}


def alone_names() -> dict[str, str]:
    """Return by method the name of the config for a network without upstream items."""
    return {"frozen": "frozen_alone"}


def chosen_uncertainties(configs: Mapping[str, str]) -> dict[str, str]:
    """Return by method the uncertainty by which its config chooses epochs.

    >>> chosen_uncertainties(best_names("vit_medium"))["mc_dropout"]
    'entropy'
    """
    known = all_configs()
    config = {m: known[name].options for m, name in configs.items()}
    return {
        method: str(options["select_uncertainty"])
        for method, options in config.items()
        if "select_uncertainty" in options
    }


def spread_names(backbone: str, number: int) -> dict[str, str]:
    """Return by method the name of its config `number` in the trade-off study."""
    return {method: f"{method}_{backbone}_{number}" for method in _RANGES}


def searched_ranges(backbone: str) -> dict[str, tuple[Range, ...]]:
    """Return by method what `qualms tune` searches; rates are for a whole step."""
    ranges = {}
    for method, own in _RANGES.items():
        batch = _batch(method, backbone)
        low, high = (_scaled(rate, batch) for rate in _RATES)
        bound = (_BOUND,) if method == "sngp" and backbone != "vit_medium" else ()
        ranges[method] = (Range(option="lr", low=low, high=high), *own, *bound)
    return ranges


def _batch(method: str, backbone: str) -> tuple[int, int]:
    """Return the items of a forward pass, and the passes of a step."""
    if backbone == SIMULATED:
        return (256, 1)
    if (backbone, method) == ("vit_medium", "hib"):
        return _HIB_VIT
    return _BATCHES.get(method, _USUAL_BATCH)


def _passes(method: str, backbone: str) -> dict[str, Any]:
    """Return options that the paper fixes where it trains the backbone."""
    if backbone == SIMULATED:
        return {}
    batch, accumulate = _batch(method, backbone)
    drawn = _HETXL_VIT if (backbone, method) == ("vit_medium", "hetxl") else {}
    return {"batch": batch, "accumulate": accumulate, **drawn}


def _best() -> Iterator[tuple[str, Config]]:
    for backbone, chosen in _BEST.items():
        for method, (rate, options) in chosen.items():
            batch = _batch(method, backbone)
            own = {**_passes(method, backbone), **_plainly(method, backbone)}
            yield (
                f"{method}_{backbone}",
                Config(
                    method=method,
                    options={"lr": _scaled(rate, batch), **own, **options},
                    note=_NOTES.get((backbone, method), ""),
                ),
            )


def _plainly(method: str, backbone: str = "") -> dict[str, Any]:
    """Return the options of a method that no search changes."""
    if method in _WITHOUT_LABELS:
        return dict(_VIEWS)
    known = _OTHERWISE.get((backbone, method), _CHOSEN_BY.get(method))
    return {} if known is None else {"select_uncertainty": known}


def _plain() -> Iterator[tuple[str, Config]]:
    for method in (*_CHOSEN_BY, *_WITHOUT_LABELS):
        options = _plainly(method, "resnet50")
        yield f"{method}_plain", Config(method=method, options=options)


def _frozen() -> Iterator[tuple[str, Config]]:
    """Yield configs of heads on cached features, which are narrower than the paper's.

    `nivmf` starts with the paper's uncertainty.
    """
    for method in _ON_FEATURES:
        start = {"method.initial_uncertainty": 0.001} if method == "nivmf" else {}
        options = {"method.width": _FROZEN_WIDTH, **start}
        yield f"{method}_frozen", Config(method=method, options=options)


def _alone() -> Iterator[tuple[str, Config]]:
    """Yield the config of a frozen network that compares items with no others."""
    yield "frozen_alone", Config(method="frozen", options={"method.items": 0})


def _spread() -> Iterator[tuple[str, Config]]:
    """Yield ten configs of each method, spread evenly over what the paper searches."""
    for backbone in (*BACKBONES, SIMULATED):
        for method, ranges in searched_ranges(backbone).items():
            own = {**_passes(method, backbone), **_plainly(method, backbone)}
            for number in range(CONFIGS_EACH):
                shares = (_share(number, axis) for axis in range(len(ranges)))
                chosen = {
                    one.option: _at(one, share)
                    for one, share in zip(ranges, shares, strict=True)
                }
                name = spread_names(backbone, number)[method]
                yield name, Config(method=method, options={**own, **chosen})


def _share(number: int, axis: int) -> float:
    """Return coordinate `axis` of a Halton point: even in 0..1 along every axis."""
    base = (2, 3, 5, 7)[axis]
    share, left, unit = 0.0, number + 1, 1.0
    while left:
        unit /= base
        share += unit * (left % base)
        left //= base
    return share


def _at(one: Range, share: float) -> Any:
    if one.choices:
        return one.choices[int(share * len(one.choices))]
    if one.log:
        return float(f"{one.low * (one.high / one.low) ** share:.5g}")
    return float(f"{one.low + (one.high - one.low) * share:.5g}")


def _scaled(rate: float, batch: tuple[int, int]) -> float:
    """Return the learning rate of a step, from that for 256 items."""
    return rate * math.sqrt(math.prod(batch) / 256)
