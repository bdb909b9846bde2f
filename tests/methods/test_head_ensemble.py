import pytest
import torch

from methods.tiny import TASKS, batches, built, made, moment, predicted
from methods.url_cases import LOGITS, normal
from qualms.methods import Draw, summarise
from qualms.methods.head_ensemble import ManyHeads
from qualms.spec import Task

DRAWN = 2 * normal(40, 10, 4, 7)


def test_entropies_have_the_golden_values(golden):
    case = golden("url")["E_heads"]
    draws = [Draw(logits, torch.zeros(4, 3)) for logits in DRAWN]
    found = summarise(draws, Task(name="embedding", classes=7))
    for name, key in (("mutual_information", "jsd"), ("entropy", "entropy_of_mean")):
        assert found[f"uncertainty/{name}"].tolist() == pytest.approx(case[key])


def test_the_mean_of_probabilities_has_the_golden_value(golden):
    exact = golden("url")["E_heads"]["log_mean_prob_row0"]
    last = ManyHeads(70, 7, 10).double()
    # Weights that hand each head its logits.
    last.linear.weight.data.copy_(torch.eye(70))
    last.linear.bias.data.zero_()
    found = last(DRAWN.movedim(0, 1).flatten(1))
    assert found[0].tolist() == pytest.approx(exact, rel=1e-12)


def test_the_mean_is_trained():
    task = TASKS["classification"]
    method = made("head_ensemble", {"heads": 4})
    network = built(method, task).eval()
    (batch,) = batches(task, size=48)()
    loss_value = method.loss(network, batch, moment())
    probs = predicted(method, network, task)["probs"]
    assert probs.shape == (4, 48, 3)
    chosen = probs.mean(0).gather(1, batch.target[:, None])
    assert loss_value.item() == pytest.approx(-chosen.log().mean().item(), rel=1e-5)


def test_parameters_are_those_of_the_paper(golden):
    """Apart from the classifier that the released code keeps without using it."""
    notes = golden("url")["E_heads"]["verified_behaviour_notes"]
    last = ManyHeads(2048, 1000, 10)
    count = sum(weight.numel() for weight in last.parameters())
    unused = 2049 * 1000
    assert count + 23_508_032 + unused == notes["param_counts"]["resnet50 10 heads"]


def test_heads_are_needed():
    with pytest.raises(ValueError, match="heads must be at least 1"):
        made("head_ensemble", {"heads": 0})


def test_the_entropy_of_one_head_has_the_golden_values(golden):
    exact = golden("url")["E_heads"]["entropy_single"]
    draw = Draw(LOGITS, torch.zeros(12, 3))
    found = summarise([draw], Task(name="embedding", classes=7))
    assert found["uncertainty/entropy"].tolist() == pytest.approx(exact)
