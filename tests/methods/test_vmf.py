from itertools import pairwise

import mpmath
import pytest
import torch

from qualms.methods._vmf import draw_vmf, gap_slope, log_normaliser, mean_cosine

KAPPAS = (0.1, 1.0, 12.0, 100.0, 1000.0, 5000.0)


def bessel(order, kappa):
    with mpmath.workdps(40):
        return mpmath.besseli(order, kappa)


def exact_log_normaliser(kappa, dimension):
    with mpmath.workdps(40):
        order = mpmath.mpf(dimension) / 2 - 1
        around = (order + 1) * mpmath.log(2 * mpmath.pi)
        return order * mpmath.log(kappa) - around - mpmath.log(bessel(order, kappa))


def exact_mean_cosine(kappa, dimension):
    order = dimension / 2 - 1
    return float(bessel(order + 1, kappa) / bessel(order, kappa))


@pytest.mark.parametrize("dimension", [2, 3, 4, 16, 129, 130, 512, 2048])
def test_the_normaliser_and_its_gradient_are_exact(dimension):
    kappa = torch.tensor(KAPPAS, dtype=torch.float64, requires_grad=True)
    value = log_normaliser(kappa, dimension)
    (slope,) = torch.autograd.grad(value.sum(), kappa)
    cosine = mean_cosine(kappa, dimension)
    for i, k in enumerate(KAPPAS):
        exact = float(exact_log_normaliser(k, dimension))
        assert value[i].item() == pytest.approx(exact, abs=1e-9, rel=0)
        ratio = exact_mean_cosine(k, dimension)
        assert slope[i].item() == pytest.approx(-ratio, abs=1e-9, rel=0)
        assert cosine[i].item() == pytest.approx(ratio, abs=1e-9, rel=0)


def test_the_normaliser_of_the_golden_file(golden):
    for dimension, cases in golden("url")["B_log_vmf_norm_const"].items():
        kappa = torch.tensor([float(k) for k in cases], dtype=torch.float64)
        exact = [case["exact"] for case in cases.values()]
        found = log_normaliser(kappa, int(dimension))
        assert found.tolist() == pytest.approx(exact, abs=1e-9)


def test_without_concentration_all_directions_are_alike():
    kappa = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    value = log_normaliser(kappa, 3)
    value.sum().backward()
    assert value.item() == pytest.approx(-torch.tensor(4 * torch.pi).log().item())
    assert kappa.grad.item() == 0


@pytest.mark.parametrize("dimension", [2, 3, 16, 512, 2048])
@pytest.mark.parametrize("kappa", [0.1, 1.0, 12.0, 100.0, 1000.0, 5000.0])
def test_draws_have_the_mean_cosine_of_theory(dimension, kappa):
    torch.manual_seed(0)
    items, draws = 50, 40
    mean = torch.nn.functional.normalize(torch.randn(items, dimension), dim=1)
    spread = torch.full((items,), kappa, dtype=torch.float64)
    drawn = draw_vmf(mean, spread, draws)
    length = torch.linalg.vector_norm(drawn, dim=2)
    # In two dimensions noise may point along the mean, where little is left of it.
    assert length == pytest.approx(torch.ones(draws, items), abs=1e-3)
    cosine = (drawn * mean).sum(2).double()
    error = cosine.std() / cosine.numel() ** 0.5
    exact = exact_mean_cosine(kappa, dimension)
    assert abs(cosine.mean().item() - exact) < 3 * error + 2e-7  # of float32


def test_directions_beside_the_mean_are_alike():
    torch.manual_seed(0)
    mean = torch.tensor([[0.0, 0.6, 0.8]])
    drawn = draw_vmf(mean, torch.tensor([3.0]), 20_000)[:, 0]
    beside = drawn - (drawn * mean).sum(1, keepdim=True) * mean
    assert beside.mean(0).tolist() == pytest.approx([0, 0, 0], abs=0.02)
    spread = beside.T @ beside / len(beside)
    plane = torch.eye(3) - mean.T @ mean
    assert spread == pytest.approx(plane * spread.trace() / 2, abs=0.01)


@pytest.mark.parametrize(
    ("dimension", "kappa"), [(2, 0.5), (3, 20.0), (16, 700.0), (2048, 700.0)]
)
def test_gradients_keep_the_quantile_of_a_draw(dimension, kappa):
    """The distribution function, by quadrature, does not move along the gradient."""

    def quantile(k, gap):
        def density(angle):
            low = mpmath.mpf(k) * (mpmath.cos(angle) - mpmath.cos(peak))
            return mpmath.exp(low) * (mpmath.sin(angle) / mpmath.sin(peak)) ** around

        here = mpmath.acos(1 - gap)
        places = sorted({mpmath.mpf(0), here, peak, mpmath.pi})
        total = [
            mpmath.quad(density, mpmath.linspace(a, b, 9)) for a, b in pairwise(places)
        ]
        return sum(total[: places.index(here)]) / sum(total)

    around = dimension - 2
    root = (around**2 + 4 * kappa**2) ** 0.5
    peak = mpmath.acos(2 * kappa / (around + root)) + mpmath.mpf("1e-9")
    cosine = exact_mean_cosine(kappa, dimension)
    deviation = (1 - cosine**2 - (dimension - 1) * cosine / kappa) ** 0.5
    step = kappa * 1e-4
    for away in (-1.0, 0.7):
        gap = min(max(1 - cosine - away * deviation, 1e-6), 1.9)
        slope = gap_slope(
            torch.tensor([[gap]], dtype=torch.float64),
            torch.tensor([kappa], dtype=torch.float64),
            dimension,
        ).item()
        before, after = (
            quantile(kappa + side * step, gap + side * step * slope) for side in (-1, 1)
        )
        still = quantile(kappa + step, gap) - quantile(kappa - step, gap)
        assert abs(after - before) < 1e-4 * abs(still)


def test_gradients_have_no_bias():
    """The mean slope of the cosine is the derivative of its mean."""
    torch.manual_seed(0)
    kappa = torch.full((2000,), 30.0, dtype=torch.float64, requires_grad=True)
    mean = torch.nn.functional.normalize(torch.randn(1, 64), dim=1)
    drawn = draw_vmf(mean.expand(2000, -1), kappa, 4)
    (drawn * mean).sum(2).mean(0).sum().backward()
    cosine = exact_mean_cosine(30.0, 64)
    exact = 1 - cosine**2 - 63 * cosine / 30.0
    error = kappa.grad.std().item() / 2000**0.5
    assert abs(kappa.grad.mean().item() - exact) < 3 * error


def test_draws_of_large_concentrations_stay_at_the_mean():
    mean = torch.nn.functional.normalize(torch.randn(3, 32), dim=1)
    kappa = torch.full((3,), 1e12, dtype=torch.float64, requires_grad=True)
    drawn = draw_vmf(mean, kappa, 5)
    drawn.sum().backward()
    assert drawn.detach() == pytest.approx(mean.expand(5, -1, -1), abs=1e-4)
    assert kappa.grad.isfinite().all()


def test_the_mean_cosine_of_the_golden_file(golden):
    for name, case in golden("url")["C_vmf_sampler_mean_cosine"].items():
        if not isinstance(case, dict):
            continue
        dimension, kappa = name.removeprefix("dim").split("_kappa")
        found = mean_cosine(torch.tensor([float(kappa)]), int(dimension))
        assert found.item() == pytest.approx(case["exact_A_p"], abs=1e-9)
