import math

import pytest
import torch

from methods.tiny import TASKS, built, made, trained
from methods.url_cases import DRAWN, TARGET, WEIGHT, normal, uniform
from qualms.methods.nivmf import ClassDensities


def densities(weight, concentration, stretching="direction"):
    made_of = ClassDensities(weight.shape[1], len(weight), 1.0, stretching).double()
    made_of.mean.weight.data.copy_(weight)
    made_of.concentration.data.copy_(torch.as_tensor(concentration))
    return made_of


@pytest.mark.parametrize("stretching", ["class", "direction"])
@pytest.mark.parametrize("inverse", [8, 32])
def test_equal_concentrations_have_the_golden_loss(golden, inverse, stretching):
    """The released code agrees as long as all concentrations are equal."""
    logs = densities(WEIGHT, float(inverse), stretching)(DRAWN).logsumexp(0) - math.log(
        16
    )
    loss = torch.nn.functional.cross_entropy(logs, TARGET)
    exact = golden("url")["D_losses"][f"nivmf_t{inverse}_initial_K=t*I_injected"]
    assert loss.item() == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("seed", [0, 1])
def test_it_is_a_density(seed):
    """It integrates to 1 over the sphere, whatever the concentrations."""
    step = torch.pi / 400
    polar = (torch.arange(400, dtype=torch.float64) + 0.5) * step
    turn = (torch.arange(800, dtype=torch.float64) + 0.5) * step
    polar, turn = torch.meshgrid(polar, turn, indexing="ij")
    sphere = torch.stack(
        [polar.sin() * turn.cos(), polar.sin() * turn.sin(), polar.cos()], -1
    )
    made_of = densities(normal(seed, 2, 3), uniform(seed + 5, 0.5, 8, 2, 3))
    with torch.no_grad():
        total = (made_of(sphere).exp() * (polar.sin() * step**2)[..., None]).sum((0, 1))
    assert total.tolist() == pytest.approx([1, 1], abs=1e-3)


def test_it_is_the_direction_of_what_is_stretched():
    """By the change of variables, with the determinant of the stretching."""
    mean, stretch = normal(3, 1, 4), uniform(4, 0.5, 6, 1, 4)
    points = torch.nn.functional.normalize(normal(5, 6, 4), dim=1)
    found = densities(mean, stretch)(points)[:, 0]
    inner = stretch[0] * torch.nn.functional.normalize(mean[0], dim=0)
    kappa = inner.norm()
    # I_1 of 4 dimensions; the exponential is taken out.
    constant = kappa / ((2 * math.pi) ** 2 * torch.special.i1(kappa))
    turned = torch.nn.functional.normalize(stretch * points, dim=1)
    jacobian = stretch.prod() / torch.linalg.vector_norm(stretch * points, dim=1) ** 4
    exact = (constant * (turned @ inner).exp() * jacobian).log()
    assert found.tolist() == pytest.approx(exact.tolist(), abs=1e-9)


def test_the_methods_own_code_has_one_factor_for_each_class():
    mean, stretch = normal(3, 1, 4), uniform(4, 0.5, 6, 1, 4)
    points = torch.nn.functional.normalize(normal(5, 6, 4), dim=1)
    scores = densities(mean, stretch, "class")(points)[:, 0]
    inner = stretch[0] * torch.nn.functional.normalize(mean[0], dim=0)
    kappa = inner.norm()
    constant = (kappa / ((2 * math.pi) ** 2 * torch.special.i1(kappa))).log()
    turned = torch.nn.functional.normalize(stretch * points, dim=1)
    factor = stretch.log().sum() - kappa.log()
    exact = constant + turned @ inner + factor
    assert scores.tolist() == pytest.approx(exact.tolist(), abs=1e-9)


def test_the_methods_own_density_is_the_default():
    task = TASKS["embedding"]
    own, exact = (
        built(made("nivmf", {"width": 16, **options}), task).head.last
        for options in ({}, {"stretching": "direction"})
    )
    with torch.no_grad():
        for last in (own, exact):
            last.concentration[0, 0] = 30.0
            last.mean.weight.copy_(torch.ones_like(last.mean.weight))
        points = torch.eye(last.mean.in_features)[:2]
        along, aside = (own(points) - exact(points))[:, 0]
    # The factor of the direction takes D log |K z| from the axis that is stretched.
    assert along - aside > 5


def test_stretching_is_checked():
    with pytest.raises(ValueError, match="must be 'class' or 'direction', got 'axis'"):
        made("nivmf", {"stretching": "axis"})


@pytest.mark.parametrize("stretching", ["class", "direction"])
def test_small_concentrations_are_held(stretching):
    low, least = (
        densities(WEIGHT, size, stretching)(DRAWN).detach() for size in (0.001, 0.1)
    )
    assert low == pytest.approx(least, abs=1e-6)


def test_concentrations_of_classes_are_trained():
    method = made("nivmf", {"width": 16})
    network = trained(method, TASKS["embedding"])
    moved = network.head.last.concentration - 10.896
    assert moved.abs().mean() > 1e-3
    assert moved.std() > 1e-4
