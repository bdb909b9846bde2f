import pytest
import torch

from methods.tiny import TASKS, built, made, predicted, trained
from methods.url_cases import FEATURES, TARGET, WEIGHT, normal
from qualms.methods.hetxl import LowRankCovariance, NoisyClassifier
from qualms.spec import Task


def classes(rank=1, draws=10):
    linear = torch.nn.Linear(16, 7)
    layer = NoisyClassifier(linear, rank, draws, 0.1).double()
    layer.linear.weight.data.copy_(WEIGHT)
    layer.linear.bias.data.zero_()
    layer.covariance.weight.data.copy_(0.1 * normal(70, 16, 32).T)
    return layer


def test_the_log_determinant_has_the_golden_values(golden):
    found = classes().noise(FEATURES).log_determinant
    exact = golden("url")["E_heads"]["hetxl_true_logdet_of_VVt+diag(d)"]
    # The golden features were rounded to float32.
    assert found.tolist() == pytest.approx(exact, abs=1e-5)


def test_with_one_number_for_all_dimensions_it_has_the_golden_probabilities(golden):
    """The released noise, put into our classifier."""
    case, layer = golden("url")["E_heads"], classes()
    torch.manual_seed(0)
    diagonal, low = (torch.randn(12, 10, 1).double().movedim(1, 0) for _ in range(2))
    noise = layer.noise(FEATURES)
    shared = noise.diagonal.sqrt() * diagonal + noise.factor[..., 0] * low
    logits = layer.linear(FEATURES + shared)
    logits = logits / torch.nn.functional.softplus(layer.temperature)
    logs = logits.softmax(2).mean(0).log()
    assert logs[0].tolist() == pytest.approx(case["hetxl_logprob_row0"], abs=1e-5)
    loss = torch.nn.functional.nll_loss(logs, TARGET)
    assert loss.item() == pytest.approx(case["hetxl_ce"], abs=1e-5)


@pytest.mark.parametrize("rank", [1, 3])
def test_noise_has_its_covariance(rank):
    torch.manual_seed(0)
    factor, diagonal = normal(1, 1, 5, rank), normal(2, 1, 5).exp()
    drawn = LowRankCovariance(factor, diagonal).draw(200_000)[:, 0]
    exact = factor[0] @ factor[0].T + diagonal[0].diag()
    assert torch.cov(drawn.T) == pytest.approx(exact, abs=0.03 * exact.max().item())


@pytest.mark.parametrize("rank", [1, 3])
def test_the_lemma_gives_the_determinant(rank):
    factor, diagonal = normal(1, 4, 5, rank), normal(2, 4, 5).exp()
    exact = torch.logdet(factor @ factor.mT + torch.diag_embed(diagonal))
    found = LowRankCovariance(factor, diagonal).log_determinant
    assert found.tolist() == pytest.approx(exact.tolist(), rel=1e-9)


def test_outputs_are_log_probabilities_and_temperature_is_learned():
    layer = classes()
    logs = layer(FEATURES)
    assert logs.exp().sum(1).tolist() == pytest.approx([1] * 12)
    logs[0, 0].backward()
    assert layer.temperature.grad.abs() > 0
    assert layer.covariance.weight.grad.abs().sum() > 0


def test_parameters_are_those_of_the_paper(golden):
    exact = golden("url")["E_heads"]["verified_behaviour_notes"]["param_counts"]
    last = NoisyClassifier(torch.nn.Linear(2048, 1000), 1, 10, 0.01)
    count = sum(weight.numel() for weight in last.parameters())
    assert count + 23_508_032 == exact["resnet50hetxl rank1"]


def test_two_classes_are_predicted_as_one_draw():
    task = Task(name="classification", classes=2)
    method = made("hetxl")
    network = built(method, task)
    outputs = predicted(method, network, task)
    assert outputs["probs"].shape == (1, 48, 2)
    assert outputs["uncertainty/log_determinant"].shape == (48,)


def test_an_embedding_has_no_noise():
    task, method = TASKS["embedding"], made("hetxl")
    network = trained(method, task)
    first, second = (predicted(method, network, task, seed=seed) for seed in (1, 2))
    assert torch.equal(first["embedding"], second["embedding"])
    assert not torch.equal(first["uncertainty/entropy"], second["uncertainty/entropy"])


def test_impossible_options_are_refused():
    with pytest.raises(ValueError, match="rank and draws must be at least 1"):
        made("hetxl", {"rank": 0})
