import pytest
import torch

from methods.tiny import TASKS, batches, built, made, moment, predicted, trained
from methods.url_cases import LOGITS, TARGET, UNCERTAINTY
from qualms.methods import Batch
from qualms.methods._plain import class_losses
from qualms.methods.losspred import ranking_losses
from qualms.spec import Task

TASK = TASKS["classification"]
SEVEN = Task(name="classification", classes=7)


def test_its_parts_have_the_golden_values(golden):
    case = golden("url")["D_losses"]
    losses = class_losses(LOGITS, TARGET, SEVEN)
    assert losses.tolist() == pytest.approx(case["per_sample_ce"], rel=1e-12)
    error = (UNCERTAINTY - losses).square().mean()
    whole = (losses.mean() + 0.3 * error).item()
    assert whole == pytest.approx(case["losspred_lambda0.3"], rel=1e-12)


def test_the_ranking_has_the_golden_value(golden):
    losses = class_losses(LOGITS, TARGET, SEVEN)
    exact = golden("url")["D_losses"]["loss_order(main branch, PVU) gap0.1"]
    found = ranking_losses(UNCERTAINTY, losses, 0.1).mean().item()
    assert found == pytest.approx(exact, rel=1e-12)


def loss_and_parts(options, task=TASK, weight=None):
    method = made("losspred", {"width": 16, **options})
    network = built(method, task).eval()
    (batch,) = batches(task, size=48)()
    batch = Batch(x=batch.x, target=batch.target, weight=weight)
    loss_value = method.loss(network, batch, moment())
    embedding = network.backbone(batch.x)
    losses = class_losses(network.head.last(embedding), batch.target, task)
    return network, loss_value, losses, network.head.beside(embedding)


def test_the_loss_is_equation_8():
    _, found, losses, head = loss_and_parts({"weight": 0.3})
    exact = losses.mean() + 0.3 * (head - losses).square().mean()
    assert found.item() == pytest.approx(exact.item(), rel=1e-5)


def test_items_are_weighted():
    weight = torch.linspace(0, 2, 48)
    _, found, losses, head = loss_and_parts({"weight": 0.3}, weight=weight)
    exact = (weight * (losses + 0.3 * (head - losses).square())).mean()
    assert found.item() == pytest.approx(exact.item(), rel=1e-5)


def test_the_classifier_does_not_learn_to_be_predicted():
    network, found, losses, _ = loss_and_parts({"weight": 0.9})
    found.backward()
    grad = network.head.last.weight.grad.clone()
    (alone,) = torch.autograd.grad(losses.mean(), network.head.last.weight)
    assert grad == pytest.approx(alone, abs=1e-6)


def test_ranking_leaves_the_backbone_alone():
    grads = []
    for weight in (0.1, 10.0):
        network, found, *_ = loss_and_parts({"goal": "ranking", "weight": weight})
        found.backward()
        grads.append([p.grad for p in network.backbone.parameters()])
        assert network.head.beside.layers[0].weight.grad.abs().sum() > 0
    for one, other in zip(*grads, strict=True):
        assert torch.equal(one, other)


def test_an_odd_item_has_no_pair():
    predicted, losses = torch.randn(5), torch.randn(5)
    found = ranking_losses(predicted, losses, 0.1)
    assert torch.equal(found, ranking_losses(predicted[:4], losses[:4], 0.1))
    method = made("losspred", {"goal": "ranking", "width": 16})
    network = built(method, TASK).eval()
    (batch,) = batches(TASK, size=48)()
    one = Batch(x=batch.x[:1], target=batch.target[:1])
    assert method.loss(network, one, moment()).isfinite()


@pytest.mark.parametrize("goal", ["value", "ranking"])
def test_the_head_learns_which_items_are_hard(goal):
    options = {"goal": goal, "weight": 1.0, "width": 32}
    method = made("losspred", options)
    network = trained(method, TASK, epochs=range(40), lr=0.003)
    outputs = predicted(method, network, TASK)
    (batch,) = batches(TASK, size=48)()
    chosen = outputs["probs"][0].gather(1, batch.target[:, None])[:, 0]
    pair = torch.stack([outputs["uncertainty/head"], -chosen.log()])
    ranks = pair.argsort(1).argsort(1).double()
    assert torch.corrcoef(ranks)[0, 1] > 0.3


def test_two_classes_have_one_logit():
    task = Task(name="classification", classes=2)
    method = made("losspred", {"width": 16})
    network = built(method, task)
    assert network.head.last.out_features == 1
    assert predicted(method, network, task)["probs"].shape == (1, 48, 2)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"goal": "order"}, "goal must be 'value' or 'ranking'"),
        ({"weight": 0.0}, "weight must be positive"),
    ],
)
def test_impossible_options_are_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        made("losspred", options)


def test_parameters_are_those_of_the_paper(golden):
    class Wide(torch.nn.Module):
        features = 2048

    notes = golden("url")["E_heads"]["verified_behaviour_notes"]
    task = Task(name="embedding", classes=1000)
    network = made("losspred").build(Wide(), task)
    count = sum(weight.numel() for weight in network.parameters())
    exact = notes["param_counts"]["resnet50 pred-net(1024)"]
    assert count + 23_508_032 == exact
