from dataclasses import replace

import pytest
import torch
from torch import nn

from methods.tiny import TASKS, backbone, batches, built, made, moment
from methods.url_cases import normal
from qualms.methods import Headed
from qualms.methods._uncertain import UncertaintyHead, embed_uncertain

TASK = TASKS["embedding"]
WITH_HEAD = ("mcinfonce", "elk", "nivmf", "hib", "losspred")


def count(network):
    return sum(weight.numel() for weight in network.parameters())


def test_the_head_has_the_golden_outputs(golden):
    cases = golden("url")["E_heads"]
    head = UncertaintyHead(8, 6).double()
    for i, weight in enumerate(head.parameters()):
        weight.data.copy_(0.5 * normal(50 + i, *weight.shape))
    found = head(normal(60, 3, 8))
    assert found.tolist() == pytest.approx(cases["mlp_forward"], rel=1e-12)


@pytest.mark.parametrize("features", [2048, 512])
def test_the_head_has_the_paper_s_parameters(golden, features):
    exact = golden("url")["E_heads"][f"mlp_params_{features}_1024"]
    assert count(UncertaintyHead(features, 1024)) == exact


@pytest.mark.parametrize("name", WITH_HEAD)
def test_uncertainty_starts_where_it_is_told_to(name):
    method = made(name, {"initial_uncertainty": 0.01, "width": 32})
    network = built(method, TASK).eval()
    with torch.no_grad():
        method.epoch(network, moment(), batches(TASK))
        (batch,) = batches(TASK, size=48)()
        found = embed_uncertain(network, batch.x).uncertainty
    assert found.mean().item() == pytest.approx(0.01, rel=1e-4)


@pytest.mark.parametrize("name", WITH_HEAD)
def test_uncertainty_starts_once_also_after_a_checkpoint(name):
    method = made(name, {"initial_uncertainty": 0.01, "width": 32})
    network = built(method, TASK).eval()
    with torch.no_grad():
        method.epoch(network, moment(), batches(TASK))
        for weight in network.head.beside.parameters():
            weight.mul_(1.5)
        other = built(method, TASK, seed=3).eval()
        other.load_state_dict(network.state_dict())
        method.epoch(other, moment(1), batches(TASK))
        (batch,) = batches(TASK, size=48)()
        kept, found = (
            embed_uncertain(each, batch.x).uncertainty for each in (network, other)
        )
    assert torch.equal(kept, found)


def test_without_a_start_uncertainty_is_as_the_head_gives_it():
    method = made("elk", {"width": 32})
    network = built(method, TASK).eval()
    method.epoch(network, moment(), batches(TASK))
    assert network.head.beside.scale.item() == 1


def test_the_head_teaches_the_backbone():
    method = made("losspred", {"width": 32, "weight": 1.0})
    network = built(method, TASK).train()
    (batch,) = batches(TASK, size=48)()
    embed_uncertain(network, batch.x).uncertainty.sum().backward()
    grads = [weight.grad for weight in network.backbone.parameters()]
    assert any(grad is not None and grad.abs().sum() > 0 for grad in grads)


@pytest.mark.parametrize("name", WITH_HEAD)
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"initial_uncertainty": 0.0}, "initial_uncertainty must be positive"),
        ({"width": 0}, "width must be at least 1"),
    ],
)
def test_impossible_heads_are_refused(name, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        made(name, options)


@pytest.mark.parametrize("name", ["mcinfonce", "nivmf", "hib"])
def test_draws_are_needed(name):
    with pytest.raises(ValueError, match="draws must be at least 1"):
        made(name, {"draws": 0})


@pytest.mark.parametrize("name", ["elk", "nivmf", "losspred", "sngp", "hetxl"])
def test_classifiers_need_classes(name):
    with pytest.raises(ValueError, match=f"{name} needs a number of classes"):
        made(name).build(backbone(TASK), replace(TASK, classes=None))


def test_a_head_without_anything_beside_it_keeps_its_weights():
    network = made("map").build(backbone(TASK), TASK)
    assert isinstance(network, Headed)
    names = [name for name in network.state_dict() if name.startswith("head.")]
    assert names == ["head.last.weight", "head.last.bias"]
    assert isinstance(network.head.last, nn.Linear)
