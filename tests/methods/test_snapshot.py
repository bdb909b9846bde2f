"""Snapshot ensembles: members are the network at the end of each cycle."""

import math

import numpy as np
import pytest
import torch

from methods.tiny import TASKS, batches, built, data, made, moment
from qualms.methods import plain_predict
from qualms.methods.snapshot import cycle_ends, snapshot

TASK = TASKS["classification"]


def test_each_member_predicts_as_the_network_did_at_the_end_of_its_cycle():
    method, epochs = snapshot(cycles=3), 7
    network = built(method, TASK)
    optimiser = torch.optim.SGD(network.parameters(), lr=0.1)
    x, expected = data(TASK)[0], []
    for epoch in range(epochs):
        with torch.no_grad():
            method.epoch(network.eval(), moment(epoch, epochs=epochs), batches(TASK))
        network.train()
        for batch in batches(TASK)():
            optimiser.zero_grad()
            method.loss(network, batch, moment(epoch)).backward()
            optimiser.step()
        if epoch + 1 in (2, 4, 7):
            with torch.no_grad():
                expected.append(plain_predict(network.eval(), x, TASK)["probs"][0])
    with torch.no_grad():
        method.after(network.eval(), batches(TASK))
        outputs = method.predict(network, x, TASK)["probs"]
    assert torch.equal(outputs, torch.stack(expected))


@pytest.mark.parametrize("cycles", [1, 4])
def test_schedule_is_that_of_the_paper(cycles):
    epochs, steps = 8, 5
    time = torch.arange(epochs * steps, dtype=torch.float64) / steps
    length = epochs * steps // cycles
    expected = [
        (math.cos(math.pi * (t % length) / length) + 1) / 2
        for t in range(epochs * steps)
    ]
    found = snapshot(cycles=cycles).schedule(time, epochs)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_cycles_are_whole_epochs():
    assert cycle_ends(3, 7) == [2, 4, 7]
    assert cycle_ends(5, 2) == [1, 2]
    time = torch.tensor([0.0, 2.0, 4.0, 5.5], dtype=torch.float64)
    found = snapshot(cycles=3).schedule(time, 7)
    np.testing.assert_allclose(found, [1, 1, 1, 0.5])


def test_options_are_checked():
    with pytest.raises(ValueError, match="cycles must be at least 1"):
        made("snapshot", {"cycles": 0})
