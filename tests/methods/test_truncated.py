import torch
from scipy import stats

from qualms.methods._layers import truncated_normal


def test_numbers_follow_the_normal_distribution_between_two_and_two():
    torch.manual_seed(0)
    numbers = truncated_normal(torch.empty(200, 100)).flatten().numpy()
    assert abs(numbers).max() <= 2.0
    assert stats.kstest(numbers, stats.truncnorm(-2, 2).cdf).pvalue > 1e-3
