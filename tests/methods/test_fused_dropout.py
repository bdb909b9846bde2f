import pytest
import torch
from scipy.stats import binomtest, chisquare, kstest
from torch.nn import functional

from qualms.methods import _fused_dropout
from qualms.methods._fused_dropout import fused_dropout, keep_mask

LAGS = [odd * 2**power for odd in (1, 3, 5) for power in range(16)]


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def numbers():
    return torch.randint(-(2**31), 2**31, (2,), dtype=torch.int32)


def line(rate, entries=2**18):
    return keep_mask(torch.empty(entries), rate, numbers())


def score(one, other, rate):
    """Standard normal where the two are independent."""
    one, other = (mask.double() - (1 - rate) for mask in (one, other))
    return float((one * other).mean()) * one.numel() ** 0.5 / (rate * (1 - rate))


@pytest.mark.parametrize("rate", [0.001, 0.1, 0.5, 0.9])
def test_the_share_of_the_rate_is_dropped(rate):
    mask = torch.cat([line(rate) for _ in range(8)])
    found = binomtest(int((~mask).sum()), mask.numel(), rate)
    assert found.pvalue > 1e-3


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5])
def test_entries_at_any_distance_are_independent(rate):
    scores = []
    for _ in range(4):
        mask = line(rate)
        scores += [score(mask[lag:], mask[:-lag], rate) for lag in LAGS]
    assert kstest(scores, "norm").pvalue > 1e-3
    assert max(map(abs, scores)) < 4.5


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_calls_are_independent(rate):
    masks = [line(rate) for _ in range(12)]
    scores = [score(a, b, rate) for i, a in enumerate(masks) for b in masks[:i]]
    assert kstest(scores, "norm").pvalue > 1e-3


@pytest.mark.parametrize("rate", [0.1, 0.5])
@pytest.mark.parametrize("start", [None, -(2**31) + 5])
def test_calls_whose_places_overlap_are_independent(rate, start):
    """Later calls are no earlier ones, further along."""
    x, scores = torch.empty(2**18), []
    for lag in LAGS:
        one, other = numbers(), numbers()
        one[0] = one[0] if start is None else start
        other[0] = one[0] - lag  # past the least number it goes on from the largest
        here, there = keep_mask(x, rate, one), keep_mask(x, rate, other)
        scores.append(score(here[:-lag], there[lag:], rate))
    assert kstest(scores, "norm").pvalue > 1e-3
    assert max(map(abs, scores)) < 4.5


def test_a_rate_next_to_one_drops_everything():
    mask = keep_mask(torch.empty(2**16), 1 - 1e-12, numbers())
    assert not mask.any()


def test_words_of_entries_are_equally_frequent():
    words = (line(0.5).view(-1, 8).long() << torch.arange(8)).sum(1)
    assert chisquare(words.bincount(minlength=256).numpy()).pvalue > 1e-3


@pytest.mark.parametrize("shape", [(), (5,), (3, 4), (2, 3, 4, 5), (2, 3, 4, 5, 6)])
def test_any_shape(shape):
    assert keep_mask(torch.empty(shape), 0.5, numbers()).shape == shape


def test_neighbours_in_memory_get_neighbouring_numbers():
    plain = torch.empty(2, 3, 4, 5)
    last = plain.contiguous(memory_format=torch.channels_last)
    positions = _fused_dropout._positions
    assert torch.equal(positions(plain).flatten(), torch.arange(120))
    assert torch.equal(positions(last).permute(0, 2, 3, 1).flatten(), torch.arange(120))


@pytest.fixture
def always(monkeypatch):
    """As if this were compiled for a GPU."""
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    monkeypatch.setattr(_fused_dropout, "_on_gpu", lambda _: True)


def test_what_stays_is_scaled_and_so_are_gradients(always):
    x = torch.ones(1000, requires_grad=True)
    outputs = fused_dropout(x, 0.2)
    outputs.sum().backward()
    assert set(outputs.detach().tolist()) == {0.0, 1.25}
    assert torch.equal(x.grad, outputs.detach())


def test_the_generator_decides(always):
    x = torch.ones(1000)
    torch.manual_seed(1)
    first, second = fused_dropout(x, 0.3), fused_dropout(x, 0.3)
    torch.manual_seed(1)
    assert torch.equal(fused_dropout(x, 0.3), first)
    assert not torch.equal(first, second)


def test_it_is_plain_dropout_where_nothing_is_compiled():
    torch.manual_seed(2)
    found = fused_dropout(torch.ones(100), 0.4)
    torch.manual_seed(2)
    assert torch.equal(found, functional.dropout(torch.ones(100), 0.4))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
def test_compiled_for_a_gpu_it_is_what_it_is_here():
    last = torch.ones(3, 5, 70, 90).contiguous(memory_format=torch.channels_last)
    two = numbers()
    found = torch.compile(keep_mask)(last.cuda(), 0.3, two.cuda())
    assert torch.equal(found.cpu(), keep_mask(last, 0.3, two))
    compiled = torch.compile(fused_dropout)
    first, second = (compiled(last.cuda(), 0.3) for _ in range(2))
    assert abs(float((first == 0).float().mean()) - 0.3) < 0.02
    assert not torch.equal(first, second)
