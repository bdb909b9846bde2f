"""Human alignment against scipy's Spearman correlation and entropy."""

import numpy as np
import pytest
from scipy import stats

from qualms.scores.human import human_alignment, vote_entropy


@pytest.fixture
def votes():
    return np.random.default_rng(0).multinomial(6, [0.6, 0.3, 0.1], size=80)


def test_vote_entropy_is_that_of_scipy(votes):
    np.testing.assert_allclose(
        vote_entropy(votes), stats.entropy(votes, axis=1), rtol=1e-12
    )


def test_alignment_is_the_spearman_correlation_of_scipy(votes):
    uncertainty = np.round(np.random.default_rng(1).random(80), 1)
    entropy = np.round(stats.entropy(votes, axis=1), 9)
    expected = stats.spearmanr(uncertainty, entropy).statistic
    assert human_alignment(uncertainty=uncertainty, votes=votes).value == pytest.approx(
        expected, rel=1e-12
    )


def test_the_order_of_the_classes_breaks_no_tie(votes):
    rng = np.random.default_rng(2)
    shuffled = rng.permuted(votes, axis=1)
    np.testing.assert_array_equal(vote_entropy(votes), vote_entropy(shuffled))
    np.testing.assert_array_equal(vote_entropy(votes), vote_entropy(3 * votes))


def test_items_without_votes_are_dropped_and_counted(votes):
    uncertainty = np.random.default_rng(3).random(80)
    silent = votes.copy()
    silent[[3, 50]] = 0
    kept = np.delete(np.arange(80), [3, 50])
    value = human_alignment(uncertainty=uncertainty[kept], votes=votes[kept]).value
    assert human_alignment(uncertainty=uncertainty, votes=silent) == (value, 2)


def test_constant_sides_and_lone_items_are_undefined(votes):
    assert np.isnan(human_alignment(uncertainty=np.ones(80), votes=votes).value)
    assert np.isnan(
        human_alignment(
            uncertainty=np.arange(3.0), votes=[[2, 0], [0, 1], [3, 0]]
        ).value
    )
    assert np.isnan(human_alignment(uncertainty=[0.5], votes=[[1, 1]]).value)
    alone = human_alignment(uncertainty=[0.5, 0.6], votes=[[0, 0], [0, 0]])
    assert np.isnan(alone.value)
    assert alone.dropped == 2


def test_bad_votes_are_refused(votes):
    with pytest.raises(ValueError, match="votes must not be negative, row 1 is -1"):
        vote_entropy([[1, 1], [2, -1]])
    with pytest.raises(ValueError, match="votes must have 2 items, got 80"):
        human_alignment(uncertainty=[0.1, 0.2], votes=votes)
