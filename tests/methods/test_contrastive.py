import pytest
import torch
from torch.nn import functional

from methods.tiny import TASKS, backbone, batches, made, moment
from methods.url_cases import DRAWN, FEATURES, as_views
from qualms.methods import Batch
from qualms.methods._contrastive import (
    anchor_losses,
    contrastive_losses,
    over_views,
)
from qualms.methods.mcinfonce import over_draws

TASK = TASKS["embedding"]
UNIT = functional.normalize(FEATURES, dim=1)


@pytest.mark.parametrize("inverse", [8, 32])
def test_infonce_has_the_golden_value(golden, inverse):
    name = f"infonce_t{inverse}_clean_negatives_only_denominator"
    loss = contrastive_losses(as_views(UNIT), inverse).mean()
    exact = golden("url")["D2_own_paper_faithful_values"][name]
    assert loss.item() == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("inverse", [8, 32])
@pytest.mark.parametrize(
    ("average", "words"),
    [
        ("loss", "mean_over_samples(paper eq.2 style, per direction)"),
        ("likelihood", "logmeanexp_over_samples"),
    ],
)
def test_mcinfonce_has_the_golden_value(golden, inverse, average, words):
    losses = over_draws(anchor_losses(as_views(DRAWN), inverse), average)
    exact = golden("url")["D2_own_paper_faithful_values"]
    name = f"mcinfonce_t{inverse}_clean_{words}"
    assert over_views(losses).mean().item() == pytest.approx(exact[name], rel=1e-12)


def test_the_mean_likelihood_of_draws_is_the_default():
    """It gains from spread where no single draw fits; the mean loss does not."""
    losses = {}
    for options in ({}, {"average": "likelihood"}, {"average": "loss"}):
        torch.manual_seed(0)
        method = made("mcinfonce", {"width": 16, "initial_uncertainty": 0.1, **options})
        network = method.build(backbone(TASK), TASK).eval()
        with torch.no_grad():
            method.epoch(network, moment(), batches(TASK))
        (plain,) = batches(TASK, size=48)()
        x = torch.cat([plain.x, plain.x.flip(2)])
        torch.manual_seed(1)
        loss = method.loss(network, Batch(x=x, target=plain.target), moment())
        losses[str(options)] = loss.item()
    default, likelihood, loss = losses.values()
    assert default == likelihood < loss - 0.1


def test_the_average_over_draws_is_checked():
    with pytest.raises(ValueError, match="must be 'likelihood' or 'loss', got 'mean'"):
        made("mcinfonce", {"average": "mean"})


def test_the_released_infonce_leaks_the_anchor_itself(golden):
    """Its value follows from ours, with exp(0) on both sides."""
    inverse = 8
    views = as_views(UNIT)
    similar = inverse * views @ views.T
    losses = []
    for i in range(12):
        positive = similar[i, (i + 6) % 12]
        others = [similar[i, j] for j in range(12) if j % 6 != i % 6]
        above = torch.logaddexp(torch.zeros(()).double(), positive)
        losses.append(
            torch.stack([*others, torch.zeros(()).double()]).logsumexp(0) - above
        )
    exact = golden("url")["D_losses"]["infonce_t8_pairs"]
    assert torch.stack(losses).mean().item() == pytest.approx(exact, rel=1e-12)


def test_a_single_item_has_no_negatives():
    views = functional.normalize(torch.randn(2, 4), dim=1)
    assert contrastive_losses(views, 3.0).item() == pytest.approx(
        -3 * (views[0] @ views[1]).item()
    )


@pytest.mark.parametrize("name", ["infonce", "mcinfonce"])
def test_two_views_of_an_item_are_pulled_together(name):
    torch.manual_seed(0)
    method = made(name)
    assert method.views == 2
    network = method.build(backbone(TASK), TASK).train()
    (plain,) = batches(TASK, size=48)()
    with torch.no_grad():
        method.epoch(network, moment(), batches(TASK))
    x = torch.cat([plain.x, plain.x + 0.1 * torch.randn_like(plain.x)])
    batch = Batch(x=x, target=plain.target)
    optimiser = torch.optim.Adam(network.parameters(), lr=0.01)
    losses = []
    for _ in range(25):
        optimiser.zero_grad()
        loss = method.loss(network, batch, moment())
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] - 1


def test_items_without_weight_are_not_anchors():
    torch.manual_seed(0)
    method = made("infonce")
    network = method.build(backbone(TASK), TASK).eval()
    (plain,) = batches(TASK, size=48)()
    x = torch.cat([plain.x, plain.x.flip(2)])
    half = torch.tensor([2.0, 0.0]).repeat(24)
    whole, weighted = (
        method.loss(network, Batch(x=x, target=plain.target, weight=weight), moment())
        for weight in (torch.ones(48), half)
    )
    vectors = functional.normalize(network.backbone(x), dim=1)
    each = contrastive_losses(vectors, 15.183)
    assert whole.item() == pytest.approx(each.mean().item(), rel=1e-5)
    assert weighted.item() == pytest.approx(each[::2].mean().item(), rel=1e-5)


def test_infonce_is_uncertain_of_short_embeddings():
    method = made("infonce")
    network = method.build(backbone(TASK), TASK).eval()
    (batch,) = batches(TASK, size=48)()
    with torch.no_grad():
        outputs = method.predict(network, batch.x, TASK)
    length = torch.linalg.vector_norm(outputs["embedding"], dim=1)
    assert outputs["uncertainty/inverse_norm"] * length == pytest.approx(torch.ones(48))
    assert set(outputs) == {"embedding", "uncertainty/inverse_norm"}


@pytest.mark.parametrize("name", ["infonce", "mcinfonce", "elk", "nivmf", "hib"])
def test_a_temperature_is_positive(name):
    with pytest.raises(ValueError, match="inverse_temperature must be positive"):
        made(name, {"inverse_temperature": 0.0})
