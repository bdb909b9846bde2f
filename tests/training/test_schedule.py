from typing import get_args

import numpy as np
import pytest
import torch

from qualms.training._optimiser import EpochSteps, Plateau, step_rates
from qualms.training.options import ScheduleName, training


def whole(options, steps=4):
    spans = [
        EpochSteps(e, options.steps.epochs, steps) for e in range(options.steps.epochs)
    ]
    parts = [step_rates(options.optimisation, span, Plateau()) for span in spans]
    return torch.stack(parts).numpy()


def test_cosine_has_the_rates_of_the_url_benchmark(golden):
    case = golden("url")["F_lr_schedule_base0.001_batch2048"]["lr_per_epoch"]
    lr = 1e-3 * np.sqrt(2048 / 256)
    options = training(
        {
            "epochs": 32,
            "lr": lr,
            "schedule": "cosine",
            "warmup_epochs": 5,
            "warmup_lr": 1e-4,
        }
    )
    found = whole(options)
    np.testing.assert_allclose(found[:, 0], case, rtol=1e-12)
    assert (found == found[:, :1]).all()


def test_constant_is_constant_and_warms_up_when_asked():
    assert (whole(training({"epochs": 3})) == 1e-3).all()
    warmed = whole(training({"epochs": 3, "warmup_epochs": 2, "lr": 8.0})).ravel()
    assert warmed.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 8, 8, 8]


@pytest.mark.parametrize("schedule", get_args(ScheduleName))
def test_every_schedule_warms_up_when_asked(schedule):
    chosen = {"epochs": 6, "warmup_epochs": 2, "lr": 8.0, "schedule": schedule}
    options = training(chosen)
    found, cold = whole(options), whole(training({**chosen, "warmup_epochs": 0}))
    rises = [0, 0, 0, 0, 4, 4, 4, 4] if schedule == "cosine" else range(8)
    assert found[:2].ravel().tolist() == [*rises]
    if schedule != "linear":  # whose warm-up shortens the line
        assert (found[2:] == cold[2:]).all()


def test_step_warms_up_in_the_first_epoch_and_falls_to_a_fifth_twice():
    found = whole(
        training({"epochs": 90, "lr": 0.1, "schedule": "step", "warmup_epochs": 1})
    )
    np.testing.assert_allclose(found[0], [0, 0.025, 0.05, 0.075])
    assert np.allclose(found[1:30], 0.1)
    assert np.allclose(found[30:60], 0.02)
    assert np.allclose(found[60:], 0.004)


def test_step_scales_its_breakpoints_with_the_number_of_epochs():
    found = whole(training({"epochs": 9, "lr": 1.0, "schedule": "step"}))[:, 0]
    np.testing.assert_allclose(found, [1] * 3 + [0.2] * 3 + [0.04] * 3)


@pytest.mark.parametrize(("epochs", "steps"), [(90, 137), (20, 7), (5, 3), (4, 1)])
def test_step_is_the_released_stairs_at_every_step(epochs, steps):
    # Where the breakpoints are no whole epochs, the release rounds them down.
    options = training(
        {"epochs": epochs, "lr": 0.3, "schedule": "step", "warmup_epochs": 1}
    )
    time = np.arange(epochs * steps) / steps
    stairs = np.select(
        [time < 1, time < 30 * epochs // 90, time < 60 * epochs // 90],
        [time, 1.0, 0.2],
        0.04,
    )
    np.testing.assert_allclose(whole(options, steps).ravel(), 0.3 * stairs, rtol=1e-12)


@pytest.mark.parametrize(("epochs", "steps"), [(90, 137), (20, 7), (2, 3)])
@pytest.mark.parametrize("factor", [1e-3, 0.1])
def test_linear_is_the_released_line_at_every_step(epochs, steps, factor):
    options = training(
        {
            "epochs": epochs,
            "lr": 0.02,
            "schedule": "linear",
            "warmup_epochs": 1,
            "final_factor": factor,
        }
    )
    time = np.arange(epochs * steps) / steps
    left = np.maximum(0.0, 1 - time / (epochs - 1))
    line = np.where(time < 1, time, factor + (1 - factor) * left)
    np.testing.assert_allclose(whole(options, steps).ravel(), 0.02 * line, rtol=1e-12)


def test_linear_decays_from_step_0_and_is_flat_in_the_last_epoch():
    options = training(
        {"epochs": 90, "lr": 0.1, "schedule": "linear", "warmup_epochs": 1}
    )
    found = whole(options)
    np.testing.assert_allclose(found[0], [0, 0.025, 0.05, 0.075])
    # TensorFlow's polynomial decay of power 1 over 89 epochs, counted from step 0.
    step = 4 * 10 + 2
    expected = (0.1 - 0.001) * (1 - step / (4 * 89)) + 0.001
    assert found[10, 2] == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(found[89], 0.001)


def test_polynomial_is_that_of_torch():
    options = training({"epochs": 5, "lr": 0.01, "schedule": "polynomial"})
    optimiser = torch.optim.SGD([torch.zeros(1)], lr=0.01)
    reference = torch.optim.lr_scheduler.PolynomialLR(optimiser, 20, 0.9)
    expected = []
    for _ in range(20):
        expected.append(reference.get_last_lr()[0])
        optimiser.step()
        reference.step()
    np.testing.assert_allclose(whole(options).ravel(), expected, rtol=1e-10)


def test_a_method_may_have_a_schedule_of_its_own():
    options = training(
        {"epochs": 4, "lr": 8.0, "schedule": "cosine", "warmup_epochs": 2}
    )

    def own(time, epochs):
        return 1 - time / epochs

    found = torch.stack(
        [
            step_rates(options.optimisation, EpochSteps(epoch, 4, 2), Plateau(), own)
            for epoch in range(4)
        ]
    )
    assert found.ravel().tolist() == [0, 2, 4, 6, 4, 3, 2, 1]


def test_plateau_reduces_when_torch_does():
    losses = np.r_[3.0, 2.0, 1.9999, np.full(14, 2.1), 1.5, np.full(13, 1.6), -1.0]
    optimiser = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    reference = torch.optim.lr_scheduler.ReduceLROnPlateau(optimiser, patience=10)
    plateau, options = Plateau(), training({"schedule": "plateau", "lr": 1.0})
    for loss in losses:
        plateau = plateau.after(float(loss))
        reference.step(float(loss))
        found = step_rates(options.optimisation, EpochSteps(0, 75, 2), plateau)
        np.testing.assert_allclose(found, reference.get_last_lr()[0], rtol=1e-12)
    assert plateau.factor == pytest.approx(0.01)


def test_plateau_knows_a_lower_loss_below_zero():
    # torch takes a loss that is a hair worse for a better one if both are negative.
    plateau = Plateau().after(-0.8)
    for _ in range(3):
        plateau = plateau.after(-0.79999, patience=2)
    assert plateau.factor == pytest.approx(0.1)
    assert plateau.after(-0.9).best == -0.9
