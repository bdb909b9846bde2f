"""The rule by which rows tied with the best before model confidence sets.

The best row is taken as fixed, and every other one is compared with it (Holm, 1979).
`bench/coverage.py` counts how often it excludes equals.
"""

from collections.abc import Mapping

import numpy as np

from qualms.scores import paired_difference


def former_ties(
    values: Mapping[str, float], samples: Mapping[str, np.ndarray]
) -> tuple[str, ...]:
    """The row with the lowest value, and those that do not differ from it at 5 %."""
    best = min(values, key=lambda name: values[name])
    rivals = [name for name in values if name != best]
    p = np.array(
        [
            paired_difference(
                a_samples=samples[name],
                b_samples=samples[best],
                a_value=values[name],
                b_value=values[best],
            ).p
            for name in rivals
        ]
    )
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(order), 0, -1))
    stays = {
        rivals[row] for row, value in zip(order, stepped, strict=True) if value > 0.05
    }
    return tuple(name for name in values if name == best or name in stays)
