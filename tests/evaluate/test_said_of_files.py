"""What is said of groups that are values, and of targets that were changed."""

import numpy as np

import qualms
from qualms import compare


def arrays(n=300):
    rng = np.random.default_rng(0)
    target = rng.integers(0, 2, n)
    prob = np.clip(0.3 + 0.4 * target + rng.normal(0, 0.2, n), 0.01, 0.99)
    return {"target": target, "prob": prob, "item": [f"i{k}" for k in range(n)]}


def test_ages_as_groups_are_one_line():
    rng = np.random.default_rng(1)
    files = arrays()
    ages = {
        "group/age": rng.integers(20, 90, 300),
        "group/sex": rng.integers(0, 2, 300),
    }
    found = qualms.score({**files, **ages}, by_group=True, resamples=0)
    (note,) = (note for note in found.notes if "values and no groups" in note)
    assert "'group/age' holds" in note
    groups = {row.subset for row in found.rows if "group" in row.subset}
    assert groups == {"group/sex=0", "group/sex=1"}
    hospitals = {"group": np.arange(300) % 25}
    found = qualms.score({**files, **hospitals}, by_group=True, resamples=0)
    assert len({row.subset for row in found.rows if "group" in row.subset}) == 25


def test_three_changed_targets_are_not_another_order():
    first = arrays()
    target = first["target"].copy()
    target[[3, 8, 9]] = 1 - target[[3, 8, 9]]
    files = [first, {**first, "target": target}]
    results = [
        qualms.score(each, name=name, resamples=0)
        for each, name in zip(files, "ab", strict=True)
    ]
    (note,) = compare(results).notes
    assert note.startswith(
        "the targets of 3 of 300 items differ between a and b, first"
    )
    assert "of item 'i3'" in note
    turned = {name: values[::-1] for name, values in first.items()}
    (note,) = compare([results[0], qualms.score(turned, name="c", resamples=0)]).notes
    assert "the same items in another order" in note
