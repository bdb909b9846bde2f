from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from torch.nn import functional

from qualms.training import TrainingError, entry, run_alone
from qualms.training._feed import ItemWeights, balancing
from qualms.training._team import Team
from qualms.training.machine import make_machine
from qualms.training.options import training
from training import made

MACHINE = make_machine("cpu", training({}).execution)


def by_hand(target, classes, stride):
    """1 / (C p_k), step by step."""
    weight = np.empty(len(target))
    for start in range(0, len(target), stride):
        part = target[start : start + stride]
        share = np.array([(part == k).mean() for k in range(classes)])
        weight[start : start + stride] = 1 / (classes * share[part])
    return weight


@pytest.mark.parametrize(("count", "classes"), [(24, 2), (25, 3), (5, 4)])
def test_a_class_weighs_one_over_its_share_in_the_batch(count, classes):
    target = np.random.default_rng(count).integers(0, classes, count)
    found = balancing(torch.from_numpy(target), classes, 8)
    np.testing.assert_allclose(found, by_hand(target, classes, 8), rtol=1e-6)


def test_classes_that_are_there_count_the_same_in_sum():
    target = torch.tensor([0, 0, 0, 0, 1, 2, 2, 2])
    weight = balancing(target, 4, 8)
    sums = [float(weight[target == k].sum()) for k in range(3)]
    np.testing.assert_allclose(sums, 8 / 4, rtol=1e-6)


def test_weights_are_read_off_by_step_and_place():
    target = torch.tensor([0, 1, 1, 1, 0, 0, 1, 0, 1, 1])
    weights = ItemWeights(
        target, 2, training({"batch": 2, "accumulate": 2}).steps, MACHINE
    )
    order = torch.randperm(10, generator=torch.Generator().manual_seed(3))
    weights.begin(order)
    expected = by_hand(target[order].numpy(), 2, 2)
    for step, count in enumerate((4, 4, 2)):
        cursor = torch.tensor([step])
        parts = [weights.take(cursor, first, 1) for first in range(count)]
        np.testing.assert_allclose(
            torch.cat(parts), expected[4 * step : 4 * step + count], rtol=1e-6
        )


def test_the_members_of_a_team_have_their_parts_of_the_same_weights():
    target = torch.randint(2, (24,), generator=torch.Generator().manual_seed(5))
    options = training({"batch": 4, "accumulate": 2}).steps
    order = torch.randperm(24, generator=torch.Generator().manual_seed(6))
    whole = balancing(target[order], 2, 4).view(3, 2, 2, 2)  # step, pass, member, item
    for rank in range(2):
        machine = replace(MACHINE, team=Team(rank=rank, size=2))
        weights = ItemWeights(target, 2, options, machine)
        weights.begin(order)
        for step in range(3):
            found = weights.take(torch.tensor([step]), 0, 4)
            assert torch.equal(found, whole[step, :, rank].reshape(-1))


def loss(network, batch, moment):
    logits = network(batch.x)[:, 0]
    target = batch.target.float()
    return functional.binary_cross_entropy_with_logits(
        logits, target, weight=batch.weight
    )


def predict(network, x, task):
    return {"prob": network(x)[:, 0].sigmoid()[None]}


BINARY = {"loss": loss, "predict": predict, "select": {}}


def weights_of(folder):
    return torch.load(folder / "checkpoint.pt", weights_only=True)["network"]


def seen(shelf, tmp_path, **options):
    """Record targets and weights of the batches of one epoch."""
    found = []

    def noting(network, batch, moment):
        found.append((batch.target, batch.weight))
        return loss(network, batch, moment)

    shelf(network=made.Bare, noting={**BINARY, "loss": noting})
    spec = made.spec(method="noting", epochs=1, batch=8, **options)
    run_alone(spec, made.dataset(kind="classification"), tmp_path)
    return found


def test_a_batch_carries_the_weights_of_its_items(shelf, tmp_path):
    found = seen(shelf, tmp_path, class_weights="minibatch")
    assert len(found) == 7
    for target, weight in found:
        expected = by_hand(target.numpy(), 2, 8)
        np.testing.assert_allclose(weight, expected, rtol=1e-6)


def test_without_them_nothing_is_weighed(shelf, tmp_path):
    assert all(weight is None for _, weight in seen(shelf, tmp_path))


def _with_less(train, jobs, resources, forward_items):
    """Train with a quarter of the items in a forward pass."""
    return train(jobs, resources, forward_items // 4)


def test_a_batch_cut_for_lack_of_memory_keeps_its_weights(shelf, tmp_path, monkeypatch):
    shelf(network=made.Bare, binary=BINARY)
    dataset = made.dataset(kind="classification")
    common = {"method": "binary", "class_weights": "minibatch"}
    run_alone(made.spec(batch=16, **common), dataset, tmp_path / "whole")
    monkeypatch.setattr(entry, "_train", partial(_with_less, entry._train))
    run_alone(made.spec(batch=16, **common), dataset, tmp_path / "cut")
    whole, cut = weights_of(tmp_path / "whole"), weights_of(tmp_path / "cut")
    for name in whole:
        torch.testing.assert_close(whole[name], cut[name], rtol=1e-4, atol=1e-5)
    run_alone(made.spec(batch=16, method="binary"), dataset, tmp_path / "plain")
    plain = weights_of(tmp_path / "plain")
    assert any(not torch.allclose(whole[n], plain[n], atol=1e-3) for n in whole)


@pytest.mark.parametrize("kind", ["regression", "segmentation"])
def test_other_tasks_have_no_classes_to_weigh(shelf, tmp_path, kind):
    message = f"is for classification and embedding, and 'made' is {kind}"
    with pytest.raises(TrainingError, match=message):
        run_alone(
            made.spec(class_weights="minibatch"), made.dataset(kind=kind), tmp_path
        )
