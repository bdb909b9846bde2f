import numpy as np
import pytest
import torch

from methods.url_cases import FOUND, TARGET, WEIGHT, normal, uniform
from qualms.methods._uncertain import UncertainEmbedding
from qualms.methods.elk import expected_likelihood


def loss_of(logits, target):
    return torch.nn.functional.cross_entropy(logits, target).item()


@pytest.mark.parametrize("inverse", [8, 32])
def test_the_golden_losses_of_16_dimensions(golden, inverse):
    exact = golden("url")["D2_own_paper_faithful_values"]
    found = loss_of(expected_likelihood(FOUND, WEIGHT, inverse), TARGET)
    wanted = exact[f"elk_exact_normaliser_t{inverse}_dim16"]
    assert found == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("dimension", [512, 2048])
def test_the_golden_losses_of_many_dimensions(golden, dimension):
    exact = golden("url")["D2_own_paper_faithful_values"]
    found = UncertainEmbedding(normal(20, 6, dimension), uniform(22, 0.001, 0.05, 6))
    target = torch.from_numpy(np.random.default_rng(23).integers(0, 5, 6))
    logits = expected_likelihood(found, 0.05 * normal(21, 5, dimension), 28)
    rows = exact[f"elk_sim_row0_exact_dim{dimension}"]
    assert logits[0].tolist() == pytest.approx(rows, abs=1e-8)
    wanted = exact[f"elk_exact_normaliser_t28_dim{dimension}"]
    assert loss_of(logits, target) == pytest.approx(wanted, rel=1e-9)


def test_it_is_the_integral_of_the_product_of_the_densities():
    """On the sphere of three dimensions, by a fine grid."""
    step = torch.pi / 400
    polar = (torch.arange(400, dtype=torch.float64) + 0.5) * step
    turn = (torch.arange(800, dtype=torch.float64) + 0.5) * step
    polar, turn = torch.meshgrid(polar, turn, indexing="ij")
    sphere = torch.stack(
        [polar.sin() * turn.cos(), polar.sin() * turn.sin(), polar.cos()], -1
    )
    area = polar.sin() * step**2

    def density(mean, kappa):
        constant = kappa / (4 * torch.pi * torch.tensor(kappa).sinh().item())
        return constant * (kappa * sphere @ mean).exp()

    image = torch.nn.functional.normalize(normal(1, 3), dim=0)
    weight = torch.nn.functional.normalize(normal(2, 1, 3), dim=1)
    exact = (area * density(image, 3.0) * density(weight[0], 5.0)).sum().log().item()
    uncertainty = torch.tensor([1 / 3.0], dtype=torch.float64)
    found = expected_likelihood(
        UncertainEmbedding(image[None], uncertainty), weight, 5.0
    )
    assert found.item() == pytest.approx(exact, abs=1e-4)


def test_opposite_distributions_have_gradients():
    embedding = torch.tensor([[1.0, 0.0, 0.0]], requires_grad=True)
    weight = torch.tensor([[-1.0, 0.0, 0.0]], requires_grad=True)
    found = UncertainEmbedding(embedding, torch.tensor([0.1]))
    expected_likelihood(found, weight, 10.0).sum().backward()
    assert embedding.grad.isfinite().all()
    assert weight.grad.isfinite().all()
