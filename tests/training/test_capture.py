from contextlib import contextmanager

import pytest
import torch

from qualms.methods import Moment
from qualms.training._step import Recorder

MOMENT = Moment(epoch=0, epochs=1, items=1, batch=1, progress=torch.zeros(()))


class Graph:
    """A fake CUDA graph that replays what was recorded."""

    def __init__(self):
        self.replayed = 0

    def pool(self):
        return self

    def replay(self):
        self.replayed += 1


@pytest.fixture
def graphs(monkeypatch):
    made = []

    @contextmanager
    def record(graph, *, pool, stream, capture_error_mode):
        made.append((graph, pool))
        yield

    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "graph", record)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: None)
    return made


def test_each_form_is_taken_eagerly_three_times_then_replayed(graphs):
    steps = []
    take = Recorder(lambda _, count: steps.append(count), record=True, message=None)
    for _ in range(5):
        take("all", MOMENT, 8)
    take("all", MOMENT, 3)
    take("frozen", MOMENT, 8)
    # Three eager steps, one that is only recorded, two replays; then two other forms.
    assert steps == [8, 8, 8, 8, 3, 8]
    assert [graph.replayed for graph, _ in graphs] == [2]


def test_graphs_of_one_run_share_their_memory(graphs):
    take = Recorder(lambda *_: None, record=True, message=None)
    for count in (8, 3):
        for _ in range(3):
            take(0, MOMENT, count)
    (first, none), (_, shared) = graphs
    assert none is None
    assert shared is first


def test_what_cannot_be_recorded_stays_eager_with_a_message(monkeypatch):
    def refuse():
        raise RuntimeError("operation not permitted\nmore about it")

    monkeypatch.setattr(torch.cuda, "CUDAGraph", refuse)
    steps, said = [], []
    take = Recorder(
        lambda _, count: steps.append(count), record=True, message=said.append
    )
    for _ in range(6):
        take(0, MOMENT, 8)
    assert len(steps) == 6
    assert said == [
        "steps cannot be recorded as a CUDA graph and stay eager: operation not"
        " permitted"
    ]


def test_nothing_is_recorded_unless_asked(graphs):
    take = Recorder(lambda *_: None, record=False, message=None)
    for _ in range(6):
        take(0, MOMENT, 8)
    assert graphs == []
