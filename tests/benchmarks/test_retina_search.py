import pytest

from qualms.benchmarks.retina import retina
from qualms.launch import options_of
from qualms.launch.options import check_options
from qualms.shelf import find


def searched(shift):
    return retina().search[shift]


# Spec section 4.1: learning rate, 1 - momentum and l2; everything by its logarithm but
# for the learning rate of FSVI.
PUBLISHED = {
    "map": ((1e-3, 0.5), (5e-3, 0.05), (1e-6, 2e-4)),
    "mc_dropout": ((1e-3, 0.5), (5e-3, 0.05), (1e-6, 2e-4)),
    "mfvi": ((0.02, 0.5), (0.02, 0.1), (1e-5, 2e-4)),
    "radial": ((0.15, 1.0), (0.01, 0.05), (1e-4, 1e-3)),
    "rank1": ((0.02, 0.5), (0.02, 0.1), (1e-5, 2e-4)),
    "fsvi": ((0.020824, 0.031448), (2.877e-3, 0.0774), (5.0e-7, 1.248e-4)),
}
# Spec section 4.2, in-domain and joint: the learning rates and 1 - momentum chosen.
CHOSEN = {
    "country": {
        "map": ((0.023072, 0.0098467), (0.026561, 0.045991)),
        "mc_dropout": ((0.027250, 0.035193), (0.0028274, 0.024251)),
        "mfvi": ((0.48065, 0.076935), (0.38662, 0.038588)),
        "radial": ((0.18958210, 0.016699763), (0.15606291, 0.032915822)),
        "rank1": ((0.032299, 0.066501), (0.049826, 0.021596)),
        "fsvi": ((0.021450800, 0.019218015), (0.027689237, 0.011677355)),
    },
    "severity": {
        "map": ((0.058737, 0.015731), (0.022779, 0.011876)),
        "mc_dropout": ((0.026561, 0.023244), (0.023072, 0.012506)),
        "mfvi": ((0.042732, 0.038292), (0.41973, 0.021539)),
        "radial": ((0.20617, 0.027963),),
        "rank1": ((0.028553, 0.077592),),
        "fsvi": ((0.029950447, 0.021384131), (0.023386492, 0.012955254)),
    },
}


def by_option(shift, method):
    return {each.option: each for each in searched(shift)[method]}


@pytest.mark.parametrize("method", PUBLISHED)
def test_the_ranges_are_the_published_ones(method):
    lr, momentum, l2 = PUBLISHED[method]
    ranges = by_option("country", method)
    assert (ranges["lr"].low, ranges["lr"].high) == lr
    assert (ranges["momentum"].low, ranges["momentum"].high) == momentum
    assert ranges["momentum"].complement
    decay = ranges.get("weight_decay") or ranges["method.l2"]
    # The gradient of l2 w^2 is that of a weight decay of 2 l2.
    factor = 2 if decay.option == "weight_decay" else 1
    assert (decay.low / factor, decay.high / factor) == pytest.approx(l2)
    steady = {each.option for each in ranges.values() if not each.log}
    assert steady == {
        "mc_dropout": {"method.rate"},
        "rank1": {"method.fast_lr"},
        "fsvi": {"lr", "method.prior_cov"},
    }.get(method, set())


def test_radial_was_searched_with_the_released_norm():
    assert by_option("country", "radial")["method.norm"].choices == ("output_channels",)


def test_fsvi_was_searched_in_other_ranges_for_severity():
    ranges = by_option("severity", "fsvi")
    assert (ranges["momentum"].low, ranges["momentum"].high) == (5e-3, 0.05)
    assert (ranges["method.l2"].low, ranges["method.l2"].high) == (1e-6, 2e-4)


@pytest.mark.parametrize("shift", CHOSEN)
@pytest.mark.parametrize("method", PUBLISHED)
def test_what_was_chosen_lies_in_the_ranges(shift, method):
    ranges = by_option(shift, method)
    for lr, momentum in CHOSEN[shift][method]:
        assert ranges["lr"].low <= lr <= ranges["lr"].high
        assert ranges["momentum"].low <= momentum <= ranges["momentum"].high


@pytest.mark.parametrize("shift", CHOSEN)
@pytest.mark.parametrize("method", PUBLISHED)
def test_what_is_searched_is_an_option_and_its_ends_fit(shift, method):
    from qualms.training.options import GROUPS, training

    groups = [options_of(group) for group in GROUPS.values()]
    known_of_loop = {name: option for group in groups for name, option in group.items()}

    for each in searched(shift)[method]:
        for value in each.choices or (each.low, each.high):
            given = 1 - value if each.complement else value
            kind, _, name = each.option.rpartition(".")
            assert kind in ("", "method")
            if kind:
                known = options_of(find("methods", method))
                check_options(method, {name: given}, known)
                find("methods", method)(**{name: given})
            else:
                check_options("training", {name: given}, known_of_loop)
                training({name: given})
