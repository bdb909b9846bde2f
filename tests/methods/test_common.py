"""Every method on the shelf, on every task it claims."""

import functools
import io
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from methods.tiny import (
    TASKS,
    N,
    batches,
    built,
    data,
    made,
    moment,
    predicted,
    trained,
)
from qualms import predictions
from qualms.networks.resnet_small import resnet_small
from qualms.predictions import Maps
from qualms.shelf import names
from qualms.spec import Task

# Phases short enough for a test, weights of every epoch, and every selection score.
OPTIONS = {
    "gaussian": {
        "warmup": 1,
        "frozen": 1,
        "select": ["gmm2", "knn5", "knn3", "knn4_l2"],
    },
    "quantile": {"warmup": 1},
    "snapshot": {"cycles": 100},
    "swag": {"start": 0.0, "draws": 4},
}
CASES = [
    pytest.param(name, task, id=f"{name}-{task}")
    for name in names("methods")
    for task in sorted(made(name, OPTIONS.get(name)).tasks)
    if task in TASKS
]
each_case = pytest.mark.parametrize(("name", "task"), CASES)


@pytest.fixture(scope="module")
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def case(name, task):
    return made(name, OPTIONS.get(name)), TASKS[task]


@functools.cache
def learned(name, task):
    """A network trained once for all tests, which leave it as it is."""
    return trained(*case(name, task))


@pytest.mark.parametrize("name", names("methods"))
def test_defaults_make_a_method_for_known_tasks(name):
    method = made(name)
    assert method.tasks
    assert method.tasks <= set(names("tasks"))
    assert method.views >= 1


LENT = [
    pytest.param(name, task, id=f"{name}-{task.name}-{task.classes}")
    for name in names("methods")
    if made(name).trained_as
    for task in (*TASKS.values(), Task(name="classification", classes=2))
    if task.name in made(name).tasks
]


@pytest.mark.parametrize(("name", "task"), LENT)
def test_what_is_trained_as_another_method_can_take_its_weights(name, task):
    method = made(name)
    lender = made(method.trained_as)
    own, lent = built(method, task), built(lender, task)
    own.load_state_dict(lent.state_dict())
    (batch,) = batches(task, size=N)()
    batch = (
        replace(batch, target=batch.target.clamp(max=1)) if task.classes == 2 else batch
    )
    losses = [
        one.loss(network.train(), batch, moment())
        for one, network in ((method, own), (lender, lent))
    ]
    assert torch.equal(*losses)


@each_case
def test_loss_falls_in_every_phase(name, task):
    method, task = case(name, task)
    phases = {method.phase(epoch): epoch for epoch in range(100)}
    for epoch in phases.values():
        network = built(method, task).train()
        (batch,) = batches(task, size=N)()
        optimiser = torch.optim.Adam(method.groups(network), lr=0.01)
        losses = []
        for _ in range(25):
            optimiser.zero_grad()
            loss = method.loss(network, batch, moment(epoch))
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        assert np.isfinite(losses).all()
        assert np.mean(losses[-5:]) < np.mean(losses[:5])


@each_case
def test_predictions_fit_the_schema(name, task):
    network = learned(name, task)
    method, task = case(name, task)
    arrays = predicted(method, network, task)
    made_of = _stored(arrays, data(task)[1], task, method)
    assert made_of.task == task.name
    assert made_of.n == N
    assert set(method.select) == set(made_of.named("select"))
    if made_of.draws > 1 and task.name in ("classification", "segmentation"):
        kind = "labels" if name in ("ssn", "hetxl") else "models"
        assert method.header["draws"] == kind
    if task.name != "segmentation":
        assert set(arrays) <= set(made_of.arrays)
    for array in arrays.values():
        assert torch.isfinite(array.double()).all()


@each_case
def test_validation_may_predict_before_after(name, task):
    method, task = case(name, task)
    assert predicted(method, built(method, task), task)


@each_case
def test_same_seed_gives_same_bits(name, task, one_thread):
    first = learned(name, task)
    method, task = case(name, task)
    second = trained(method, task)
    _assert_same(*(predicted(method, network, task) for network in (first, second)))


@each_case
def test_a_checkpoint_holds_everything(name, task):
    network = learned(name, task)
    method, task = case(name, task)
    file = io.BytesIO()
    torch.save(network.state_dict(), file)
    file.seek(0)
    other = built(method, task, seed=11)
    other.load_state_dict(torch.load(file, weights_only=True))
    _assert_same(predicted(method, network, task), predicted(method, other, task))
    # Back to a checkpoint from before `after`, as when a run is resumed.
    fresh = built(method, task)
    other.load_state_dict(fresh.state_dict())
    _assert_same(predicted(method, fresh, task), predicted(method, other, task))


@each_case
def test_a_step_never_looks_at_a_value(name, task):
    """As a captured step must not; here values do not even exist."""
    method, task = case(name, task)
    for epoch in {method.phase(epoch): epoch for epoch in range(100)}.values():
        with FakeTensorMode():
            network = built(method, task).train()
            (batch,) = batches(task, size=N)()
            loss = method.loss(network, batch, moment(epoch))
            loss.backward()
        assert loss.shape == ()


@each_case
def test_half_precision_loses_little(name, task):
    network = learned(name, task).eval()
    method, task = case(name, task)
    (batch,) = batches(task, size=N)()
    losses = []
    for enabled in (False, True):
        torch.manual_seed(0)
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            losses.append(method.loss(network, batch, moment(99)))
    assert losses[1].dtype == torch.float32
    assert losses[1].item() == pytest.approx(losses[0].item(), rel=0.1, abs=0.1)


def _stored(arrays, target, task, method):
    header = {"select": dict(method.select), **method.header}
    if task.name != "segmentation":
        return predictions.build(
            {"target": target, **arrays}, header=header, task=task.name
        )
    maps = [
        Maps(
            mean_probs=arrays["mean_probs"][i],
            expected_entropy=arrays["expected_entropy"][i],
            draw_labels=arrays["draw_labels"][:, i],
            raters=target[i][None],
        )
        for i in range(N)
    ]
    made_of = predictions.build({"maps": maps}, header=header | {"ignore": task.ignore})
    assert all(len(m.draw_labels) == len(arrays["draw_labels"]) for m in made_of.maps)
    return made_of


def _assert_same(first, second):
    assert first.keys() == second.keys()
    for key, array in first.items():
        assert torch.equal(array, second[key]), key


@pytest.mark.parametrize("name", ["map", "elk", "nivmf", "losspred", "mc_dropout"])
def test_classes_start_as_those_of_pretrained_weights(name):
    """As in the released code of URL, whose best epochs are the first ones."""
    body = resnet_small(channels=1, width=4, blocks=(1, 1))
    body.classifier = torch.nn.Linear(body.features, 3)
    network = made(name).build(body, TASKS["embedding"])
    weights = [
        value
        for key, value in network.state_dict().items()
        if key.startswith("head") and value.shape == body.classifier.weight.shape
    ]
    assert any(torch.equal(value, body.classifier.weight) for value in weights)
