from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from methods.tiny import TASKS, Dense, backbone, batches, made, moment
from qualms.methods import (
    Batch,
    Draw,
    features_of,
    likelihood_loss,
    plain_head,
    plain_loss,
    read_head,
    summarise,
    weighted_mean,
)
from qualms.methods._plain import check_epochs, likelihood_terms, soft_dice
from qualms.scores import decompose
from qualms.spec import Task
from scores.segmentation_items import GOLDEN, ball


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


@pytest.mark.parametrize("classes", [2, 3])
def test_statistics_of_label_maps_are_those_of_the_draws(classes):
    draws = torch.randn(5, 2, classes, 4, 4)
    arrays = summarise(iter(draws), TASKS["segmentation"])
    probs = draws.softmax(2)
    entropy = torch.distributions.Categorical(probs.movedim(2, -1)).entropy()
    torch.testing.assert_close(arrays["mean_probs"], probs.mean(0))
    torch.testing.assert_close(arrays["expected_entropy"], entropy.mean(0))
    assert torch.equal(arrays["draw_labels"], draws.argmax(2).to(torch.uint8))


def test_a_single_logit_of_a_pixel_is_that_of_the_second_class():
    draws = 4 * torch.randn(5, 2, 1, 4, 4)
    both = torch.cat([torch.zeros_like(draws), draws], 2)
    one, two = (summarise(iter(d), TASKS["segmentation"]) for d in (draws, both))
    for name, values in one.items():
        torch.testing.assert_close(values, two[name])


def test_two_classes_are_as_exact_as_their_smaller_probability():
    logits = torch.tensor([[0.0, 0.0], [30.0, 0.0], [0.0, 80.0]]).T[None, :, None]
    arrays = summarise(iter(logits[None]), TASKS["segmentation"])
    exact = logits.double().softmax(1)
    less = exact.amin(1)
    entropy = -less * less.log() - (1 - less) * torch.log1p(-less)
    torch.testing.assert_close(arrays["mean_probs"].double(), exact, rtol=1e-5, atol=0)
    found = arrays["expected_entropy"].double()
    torch.testing.assert_close(found, entropy, rtol=1e-5, atol=0)


def test_heads_run_in_full_precision_under_autocast():
    torch.manual_seed(0)
    network = plain_head(backbone(TASKS["regression"]), TASKS["regression"]).eval()
    features = torch.randn(4, network.backbone.features)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = read_head(network.head, features)
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


@pytest.mark.parametrize("name", ["classification", "segmentation"])
def test_tasks_without_a_number_of_classes_are_refused(name):
    with pytest.raises(ValueError, match=f"head of {name} needs a number of classes"):
        plain_head(Dense(), Task(name=name))


def test_phases_have_no_negative_length():
    with pytest.raises(ValueError, match="at least 0, got 3 and -1"):
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


CLASSES = Task(name="embedding", classes=3)


def test_an_embedding_is_what_the_class_head_reads():
    torch.manual_seed(0)
    x = torch.randn(5, 512)
    method = made("map", {"projection": 7})
    for plain, width in ((made("map"), 512), (method, 7)):
        network = plain.build(Wide(), CLASSES).eval()
        with torch.no_grad():
            arrays, outputs = plain.predict(network, x, CLASSES), network(x)
            expected = network.head.trunk(x)
        torch.testing.assert_close(arrays["embedding"], expected)
        assert expected.shape == (5, width)
        assert arrays["predicted"].tolist() == outputs.argmax(1).tolist()
    assert torch.equal(arrays["embedding"], network.head.trunk(x))


def test_the_loss_of_an_embedding_is_the_cross_entropy_of_its_head():
    torch.manual_seed(0)
    network = plain_head(Wide(), CLASSES)
    batch = Batch(x=torch.randn(6, 512), target=torch.randint(0, 3, (6,)))
    expected = functional.cross_entropy(network(batch.x), batch.target)
    torch.testing.assert_close(plain_loss(network, batch, moment()), expected)


@pytest.mark.parametrize("classes", [2, 3])
def test_uncertainties_of_embeddings_are_those_of_the_scores(classes):
    torch.manual_seed(0)
    task = Task(name="embedding", classes=classes)
    logits = 3 * torch.randn(4, 5, 1 if classes == 2 else classes).double()
    embeddings = torch.randn(4, 5, 6)
    arrays = summarise(map(Draw, logits, embeddings), task)
    probs = summarise(logits, Task(name="classification", classes=classes))["probs"]
    parts = decompose(probs.numpy())
    torch.testing.assert_close(arrays["embedding"], embeddings.mean(0))
    for name, values in (
        ("entropy", parts.total),
        ("expected_entropy", parts.aleatoric),
        ("mutual_information", parts.epistemic),
    ):
        found = arrays[f"uncertainty/{name}"].numpy()
        np.testing.assert_allclose(found, values, rtol=1e-12, atol=1e-15)
    assert torch.equal(arrays["predicted"], probs.mean(0).argmax(1))


def test_one_draw_has_no_parts_of_its_uncertainty():
    draw = Draw(torch.tensor([[40.0, 0, 0], [45.0, 0, 0]]), torch.zeros(2, 4))
    arrays = summarise([draw], CLASSES)
    assert arrays.keys() == {"embedding", "predicted", "uncertainty/entropy"}
    # Very certain items are still told apart.
    sure, surer = arrays["uncertainty/entropy"]
    assert sure > surer > 0


def test_an_embedding_without_classes_is_uncertain_where_it_is_short():
    task = Task(name="embedding")
    network = plain_head(Wide(), task)
    x = torch.zeros(3, 512)
    x[0, 0], x[1, 0] = 2.0, 4.0
    arrays = made("map").predict(network, x, task)
    assert arrays.keys() == {"embedding", "uncertainty/inverse_norm"}
    lengths = arrays["uncertainty/inverse_norm"]
    assert lengths[:2].tolist() == [0.5, 0.25]
    assert torch.isfinite(lengths).all()
    batch = Batch(x=x, target=torch.zeros(3))
    with pytest.raises(ValueError, match="cross-entropy needs a number of classes"):
        plain_loss(network, batch, moment())


@pytest.mark.parametrize("name", ["laplace", "fsvi"])
def test_a_random_last_layer_needs_classes(name):
    with pytest.raises(ValueError, match=f"{name} needs a number of classes"):
        made(name).build(Wide(), Task(name="embedding"))


def test_a_projection_is_for_embeddings():
    with pytest.raises(ValueError, match="for the task embedding, got regression"):
        plain_head(Wide(), TASKS["regression"], projection=4)
    with pytest.raises(ValueError, match="at least 1 wide, got 0"):
        plain_head(Wide(), CLASSES, projection=0)


def released_dice(probs, target, classes):
    """The Dice term as the authors of VALUES write it, with loops."""
    found = []
    for item, labels in zip(probs, target, strict=True):
        for number in range(classes):
            true = (labels == number).double()[labels != 255]
            prob = item[number].double()[labels != 255]
            hit, wrong = (prob * true).sum(), (prob * (1 - true)).sum()
            missed = ((1 - prob) * true).sum()
            found.append((2 * hit + 1e-5) / (2 * hit + wrong + missed + 1e-5))
    return -sum(found) / len(found)


@pytest.mark.parametrize("space", [(4, 5), (3, 4, 2)])
def test_dice_is_added_over_all_classes_and_items(space):
    task = Task(name="segmentation", classes=3, ignore=255, space=len(space))
    outputs = torch.randn(2, 3, *space)
    target = torch.randint(0, 2, (2, *space))  # nobody has class 2
    target[0, :1] = 255
    plain = Batch(x=outputs, target=target)
    both = replace(plain, loss="dice_likelihood")
    loss = likelihood_loss(outputs, both, task) - likelihood_loss(outputs, plain, task)
    expected = released_dice(outputs.softmax(1), target, 3)
    assert loss.item() == pytest.approx(expected.item(), abs=1e-6)


def test_dice_of_a_perfect_prediction_is_one_and_weights_count():
    target = torch.tensor([[[0, 1], [1, 0]], [[0, 0], [0, 0]]])
    right = 50.0 * functional.one_hot(target, 3).movedim(-1, 1)
    task = Task(name="segmentation", classes=3)
    batch = Batch(x=right, target=target, loss="dice_likelihood")
    assert likelihood_loss(right, batch, task).item() == pytest.approx(-1.0)
    weight = torch.tensor([0.5, 1.0])
    halved = replace(batch, weight=weight)
    assert likelihood_loss(right, halved, task).item() == pytest.approx(-0.75)


@pytest.mark.parametrize("name", ["map", "mc_dropout", "mfvi", "radial", "rank1"])
def test_every_method_with_the_likelihood_takes_the_dice(name):
    task = TASKS["segmentation"]
    method = made(name)
    torch.manual_seed(0)
    network = method.build(Dense(), task).train()
    plain = next(batches(task)())
    found = []
    for loss in ("likelihood", "dice_likelihood"):
        for seed in (1, 1):
            torch.manual_seed(seed)
            with torch.no_grad():
                found.append(
                    method.loss(network, replace(plain, loss=loss), moment()).item()
                )
    assert found[0] == found[1]
    # The rest of the loss, such as a KL term, is the same; Dice lies in -1..0.
    assert -1 < found[2] - found[0] < -0.05


def test_dice_of_the_golden_ball_is_that_of_the_released_code():
    item = ball(100)
    probs = torch.from_numpy(item.probs.mean(axis=0))[None]
    golden = GOLDEN["A_3d_binary"]["soft_dice_loss_mean_pred_per_rater"]
    for rater, expected in zip(item.raters, golden, strict=True):
        target = torch.from_numpy(rater)[None]
        actual = soft_dice(probs, target, torch.ones_like(target, dtype=torch.bool))
        assert -actual.item() == pytest.approx(expected, abs=1e-6)
