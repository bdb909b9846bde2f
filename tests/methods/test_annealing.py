import math

import pytest
import torch

from qualms.methods import Moment
from qualms.methods._variational import check_annealing, kl_weight


def weights(annealing, *, epochs=90, steps=10, **options):
    """The weight of every step of a training."""
    return [
        kl_weight(
            Moment(
                epoch=step // steps,
                epochs=epochs,
                items=1,
                batch=1,
                progress=torch.tensor((step + 1) / (epochs * steps)),
            ),
            annealing=annealing,
            **options,
        ).item()
        for step in range(epochs * steps)
    ]


def test_linear_annealing_is_the_released_one():
    """Which counts iterations from 0 and ends on the way up."""
    actual = weights("linear")
    expected = [min(1.0, (iteration + 1) / (10 * 200)) for iteration in range(900)]
    assert actual == pytest.approx(expected, rel=1e-6)
    assert actual[-1] == pytest.approx(0.45)


def test_linear_annealing_stays_at_its_end():
    actual = weights("linear", epochs=300)
    assert actual[1999:] == [1.0] * 1001
    assert actual[1998] < 1


def test_cyclical_annealing_is_that_of_fu_et_al():
    """Their formula, one step ahead as the linear one: no step has weight 0."""
    total, cycles, share = 900, 4, 0.5
    length = math.ceil(total / cycles)
    expected = [
        min(1.0, ((step % length) + 1) / (total / cycles) / share)
        for step in range(total)
    ]
    actual = weights("cyclical")
    # The step that ends a cycle may round into the next.
    off = [i for i in range(total) if abs(actual[i] - expected[i]) > 1e-5]
    assert set(off) <= {224, 449, 674}
    assert actual[0] == pytest.approx(1 / 112.5, rel=1e-5)
    assert actual[-1] == 1.0


def test_cycles_and_their_rise_can_be_chosen():
    actual = weights("cyclical", epochs=8, steps=16, cycles=2, rising=0.25)
    ramp = [(i + 1) / 16 for i in range(16)]
    assert actual == pytest.approx((ramp + [1.0] * 48) * 2)


@pytest.mark.parametrize("annealing", ["linear", "cyclical", "none"])
def test_tempering_scales_every_weight(annealing):
    full = weights(annealing, epochs=4)
    tempered = weights(annealing, epochs=4, tempering=0.3)
    assert tempered == pytest.approx([0.3 * weight for weight in full])


def test_without_annealing_the_weight_is_one():
    assert set(weights("none")) == {1.0}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"annealing": "cosine"},
            "annealing must be 'linear', 'cyclical' or 'none', got 'cosine'",
        ),
        ({"epochs": 0}, "a linear rise takes at least 1 epoch, got 0"),
        ({"tempering": -1.0}, "tempering must not be negative, got -1.0"),
        ({"tempering": math.nan}, "tempering must not be negative, got nan"),
    ],
)
def test_schedules_that_make_no_sense_are_refused(options, sentence):
    good = {"annealing": "linear", "epochs": 200, "tempering": 1.0}
    check_annealing(**good)
    with pytest.raises(ValueError, match=sentence):
        check_annealing(**good | options)
