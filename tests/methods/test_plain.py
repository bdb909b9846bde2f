import pytest
import torch
from torch import nn
from torch.nn import functional

from methods.tiny import TASKS, Dense, backbone, batches, made, moment
from qualms.methods._batch import Batch
from qualms.methods._headed import features_of, read
from qualms.methods._plain import (
    check_epochs,
    likelihood_loss,
    likelihood_terms,
    plain_head,
    plain_loss,
    summarise,
    weighted_mean,
)
from qualms.spec import Task


def count(network):
    return sum(p.numel() for p in network.parameters())


class Wide(nn.Module):
    features = 512

    def forward(self, x):
        return x


def test_two_regression_heads_have_the_paper_s_parameters():
    head = made("gaussian").build(Wide(), TASKS["regression"]).head
    assert count(head) == 526_338
    assert count(plain_head(Wide(), TASKS["regression"]).head) == 526_338 // 2


def test_volumes_get_a_head_for_volumes():
    task = Task(name="segmentation", classes=4, space=3)
    network = plain_head(Wide(), task)
    assert network(torch.zeros(2, 512, 3, 3, 3)).shape == (2, 4, 3, 3, 3)


def test_classification_loss_is_cross_entropy():
    outputs, target = torch.randn(5, 3), torch.tensor([0, 1, 2, 1, 1])
    loss = likelihood_loss(
        outputs, Batch(x=outputs, target=target), TASKS["classification"]
    )
    assert loss.item() == pytest.approx(
        functional.cross_entropy(outputs, target).item()
    )


def test_regression_loss_is_the_squared_error():
    outputs, target = torch.randn(5, 1), torch.randn(5)
    loss = likelihood_loss(
        outputs, Batch(x=outputs, target=target), TASKS["regression"]
    )
    assert loss.item() == pytest.approx(
        functional.mse_loss(outputs[:, 0], target).item()
    )


def test_ignored_pixels_do_not_count():
    outputs, target = torch.randn(2, 3, 4, 4), torch.randint(0, 3, (2, 4, 4))
    target[0, :2] = 255
    loss = likelihood_loss(
        outputs, Batch(x=outputs, target=target), TASKS["segmentation"]
    )
    expected = functional.cross_entropy(outputs, target, ignore_index=255)
    assert loss.item() == pytest.approx(expected.item())


def test_a_batch_of_ignored_pixels_has_no_loss():
    outputs, target = torch.randn(2, 3, 4, 4), torch.full((2, 4, 4), 255)
    loss = likelihood_loss(
        outputs, Batch(x=outputs, target=target), TASKS["segmentation"]
    )
    assert loss.item() == 0.0


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_an_item_has_one_term(task):
    batch = Batch(x=torch.zeros(4, 1), target=torch.zeros(4))
    assert likelihood_terms(batch, TASKS[task]) == 1


def test_an_item_has_as_many_terms_as_labelled_pixels():
    target = torch.zeros(2, 3, 4)
    target[0, :2] = 255
    batch = Batch(x=torch.zeros(2, 1, 3, 4), target=target)
    assert likelihood_terms(batch, TASKS["segmentation"]).item() == (4 + 12) / 2
    everywhere = Task(name="segmentation", classes=3)
    assert likelihood_terms(batch, everywhere).item() == 12


def test_a_batch_without_labels_gives_a_prior_no_more_weight_than_others():
    target = torch.full((2, 3, 4), 255)
    batch = Batch(x=torch.zeros(2, 1, 3, 4), target=target)
    assert likelihood_terms(batch, TASKS["segmentation"]).item() == 12


def test_weights_multiply_each_item_s_loss():
    loss, weight = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([2.0, 0.0, 1.0])
    batch = Batch(x=loss, target=loss, weight=weight)
    assert weighted_mean(loss, batch).item() == pytest.approx(5 / 3)
    maps = loss[:, None, None].expand(3, 2, 2)
    assert weighted_mean(maps, batch).item() == pytest.approx(5 / 3)


def test_statistics_of_label_maps_are_those_of_the_draws():
    draws = torch.randn(5, 2, 3, 4, 4)
    arrays = summarise(iter(draws), TASKS["segmentation"])
    probs = draws.softmax(2)
    entropy = torch.distributions.Categorical(probs.movedim(2, -1)).entropy()
    torch.testing.assert_close(arrays["mean_probs"], probs.mean(0))
    torch.testing.assert_close(arrays["expected_entropy"], entropy.mean(0))
    assert torch.equal(arrays["draw_labels"], draws.argmax(2).to(torch.uint8))


def test_heads_run_in_full_precision_under_autocast():
    torch.manual_seed(0)
    network = plain_head(backbone(TASKS["regression"]), TASKS["regression"]).eval()
    features = torch.randn(4, network.backbone.features)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = read(network.head, features)
    assert torch.equal(mixed, network.head(features))


def test_a_wrapped_network_is_refused_with_a_sentence():
    network = nn.Sequential(plain_head(Dense(), TASKS["segmentation"]))
    batch = next(batches(TASKS["segmentation"])())
    with pytest.raises(TypeError, match="hand over what a wrapper holds"):
        plain_loss(network, batch, moment())


def test_a_backbone_must_state_its_features():
    class Sly(nn.Module):
        features = nn.Linear(1, 1)

    with pytest.raises(TypeError, match="in the attribute 'features', got Linear"):
        features_of(Sly())


@pytest.mark.parametrize(
    "task", [Task(name="embedding", classes=3), Task(name="classification")]
)
def test_tasks_without_a_plain_head_are_refused(task):
    with pytest.raises(ValueError, match="the plain head serves"):
        plain_head(Dense(), task)


def test_phases_have_no_negative_length():
    with pytest.raises(ValueError, match="from 0 on, got 3 and -1"):
        check_epochs(warmup=3, frozen=-1)


TWO = Task(name="classification", classes=2)


def test_two_classes_share_one_logit_unless_more_are_asked_for():
    shapes = [plain_head(Wide(), TWO, k)(torch.zeros(3, 512)).shape for k in (None, 2)]
    assert shapes == [(3, 1), (3, 2)]


def test_the_loss_of_one_logit_is_the_binary_cross_entropy():
    torch.manual_seed(0)
    outputs = 20 * torch.randn(50, 1)
    target, weight = torch.randint(0, 2, (50,)), torch.rand(50)
    found = likelihood_loss(
        outputs, Batch(x=outputs, target=target, weight=weight), TWO
    )
    expected = functional.binary_cross_entropy_with_logits(
        outputs[:, 0], target.float(), weight=weight
    )
    torch.testing.assert_close(found, expected)


def test_one_logit_predicts_the_probabilities_of_both_classes():
    draws = torch.tensor([[[0.3], [-40.0]], [[40.0], [0.0]]])
    probs = summarise(draws, TWO)["probs"]
    assert probs.shape == (2, 2, 2)
    torch.testing.assert_close(probs[..., 1], draws[..., 0].sigmoid())
    # A tiny probability of either class keeps its digits.
    torch.testing.assert_close(probs[..., 0], (-draws[..., 0]).sigmoid())
