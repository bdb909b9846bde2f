import pytest
import torch

from methods.tiny import TASKS, backbone, batches, made, moment
from methods.url_cases import DRAWN
from qualms.methods import Batch
from qualms.methods.hib import match_logs, pair_losses


def released(logs):
    """The released code adds 1e-5 to every probability."""
    return (logs.exp() + 1e-5).log()


@pytest.mark.parametrize("inverse", [8, 32])
def test_pairs_have_the_golden_loss(golden, inverse):
    name = f"hib_t{inverse}_b-2_pairs_injected(submission: +log p)"
    logs = released(match_logs(DRAWN, inverse, -2))
    loss = pair_losses(logs, torch.arange(6).repeat_interleave(2)).mean()
    assert loss.item() == pytest.approx(golden("url")["D_losses"][name], rel=1e-9)


def test_classes_have_the_golden_loss(golden):
    logs = released(match_logs(DRAWN, 8, -2))
    loss = pair_losses(logs, torch.arange(6).repeat(2)).mean()
    exact = golden("url")["D_losses"]["hib_t8_b-2_supervised_y=arange(6)x2_injected"]
    assert loss.item() == pytest.approx(exact, rel=1e-9)


def test_the_original_negatives_have_the_golden_loss(golden):
    """The later branch of the released code has -log(1 - p)."""
    p = match_logs(DRAWN, 8, -2).exp() + 1e-5
    target = torch.arange(6).repeat_interleave(2)
    loss = pair_losses(p.log(), target, apart=-(1 - p).log()).mean()
    name = "hib_t8_b-2_pairs_injected(main branch: -log(1-p))"
    exact = golden("url")["D_losses"][name]
    assert loss.item() == pytest.approx(exact, rel=1e-4)


def test_the_original_negatives_are_an_option():
    """Where no draw matches, log p asks for ever less, and -log(1 - p) for no more."""
    task = TASKS["embedding"]
    (batch,) = batches(task, size=48)()
    batch = Batch(x=batch.x[:8], target=torch.arange(8))
    steep = {}
    for original in (False, True):
        options = {"width": 16, "offset": -40.0, "original_negatives": original}
        method = made("hib", options)
        torch.manual_seed(0)
        network = method.build(backbone(task), task).eval()
        loss = method.loss(network, batch, moment())
        steep[original] = loss.item()
    assert steep[False] < -5
    assert 0 <= steep[True] < 0.01


def test_it_is_equation_5():
    logs = match_logs(DRAWN, 8, -2)
    target = torch.tensor([0, 0, 0, 1, 1, 2, 3, 3, 3, 3, 4, 5])
    same, different = [], []
    for n in range(12):
        for m in range(12):
            if n != m:
                p = torch.sigmoid(8 * (DRAWN[:, n] * DRAWN[:, m]).sum(1) - 2).mean()
                (same if target[n] == target[m] else different).append(p.log())
    exact = torch.stack(different).mean() - torch.stack(same).mean()
    found = pair_losses(logs, target).mean()
    assert found.item() == pytest.approx(exact.item(), rel=1e-12)


def test_a_batch_without_a_pair_has_the_other_term():
    logs = match_logs(DRAWN, 8, -2)
    off = logs[~torch.eye(12, dtype=torch.bool)].mean().item()
    alone = pair_losses(logs, torch.arange(12)).mean()
    assert alone.item() == pytest.approx(off, rel=1e-12)
    alike = pair_losses(logs, torch.zeros(12)).mean()
    assert alike.item() == pytest.approx(-off, rel=1e-12)


def test_batches_without_a_pair_have_gradients():
    task = TASKS["embedding"]
    method = made("hib", {"width": 16})
    network = method.build(backbone(task), task).train()
    (batch,) = batches(task, size=48)()
    alone = Batch(x=batch.x[:8], target=torch.arange(8))
    method.loss(network, alone, moment()).backward()
    grads = [weight.grad for weight in network.parameters()]
    assert all(grad.isfinite().all() for grad in grads if grad is not None)
