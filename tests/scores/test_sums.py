import math

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from qualms.scores._sums import plain_dot


def test_a_sum_of_products_does_not_depend_on_threads():
    rng = np.random.default_rng(5)
    one, other = rng.standard_normal((2, 300_001))
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            found.append(plain_dot(one, other))
    assert found[0] == found[1]
    assert found[0] == pytest.approx(math.fsum(one * other), rel=1e-9)
