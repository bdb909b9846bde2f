"""What must not matter to any row or interval of a judged file."""

import numpy as np
import pytest

import qualms
from qualms import predictions, scores
from qualms.evaluate import ScoreOptions

N = 180
SHIFTED = np.arange(N) % 3 == 0  # twice as many in-domain: balanced without remainder


def binary(rng):
    target = (rng.random(N) < 0.4).astype(int)
    logit = -1 + 2 * target + rng.standard_normal((5, N))
    # Rounded to one decimal, so that there are ties.
    return {"target": target, "prob": np.round(1 / (1 + np.exp(-logit)), 1)}


def classes(rng):
    target = rng.integers(0, 4, N)
    probs = rng.multinomial(8, [0.25] * 4, (5, N)) + 4 * np.eye(4)[target]
    return {
        "target": target,
        "probs": probs / probs.sum(axis=-1, keepdims=True),
        "uncertainty/own": np.round(rng.random(N), 1),
    }


def unknown(rng):
    arrays = classes(rng)
    arrays["target"] = np.where(np.arange(N) % 9 == 0, -1, arrays["target"])
    return arrays


def regression(rng):
    target = rng.normal(size=N)
    return {
        "target": target,
        "mean": target + rng.normal(size=(4, N)),
        "var": rng.uniform(0.5, 2.0, (4, N)),
        "select/far": rng.random(N),
    }


def embedding(rng):
    target = rng.integers(0, 8, N)
    near = rng.standard_normal((8, 12))[target] + rng.standard_normal((N, 12))
    u = rng.random(N)
    return {
        "embedding": near.astype(np.float32),
        "target": target,
        "uncertainty/head": np.round(u, 2),
        "uncertainty_cropped/head": u + 0.1 * rng.standard_normal(N),
        "votes": rng.multinomial(6, [0.5, 0.3, 0.2], N),
    }


MADE = [binary, classes, unknown, regression, embedding]


def made(make, seed=0):
    return make(np.random.default_rng(seed)) | {"shifted": SHIFTED}


def rows(arrays, val=None, **options):
    results = qualms.score(
        arrays, val=val, options=ScoreOptions(resamples=0, **options)
    )
    return {row.key: (row.value, row.low, row.high, row.n) for row in results.rows}


def assert_same(one, other):
    assert list(one) == list(other)
    for key, numbers in one.items():
        np.testing.assert_allclose(
            numbers, other[key], rtol=1e-9, atol=1e-9, err_msg=str(key)
        )


def validated(make):
    return None if make in (unknown, embedding) else made(make, seed=1)


def reordered(arrays, order):
    """Items in another order; they are the last axis but one of class probabilities."""
    return {
        name: values[:, order] if with_draws(name, values) else values[order]
        for name, values in arrays.items()
    }


def with_draws(name, values):
    many = name in ("prob", "probs", "mean", "var")
    return many and values.shape[0] != N


@pytest.mark.parametrize("make", MADE)
def test_the_order_of_items(make):
    arrays, val = made(make), validated(make)
    order = np.random.default_rng(5).permutation(N)
    moved = None if val is None else reordered(val, order[::-1])
    assert_same(rows(arrays, val), rows(reordered(arrays, order), moved))


@pytest.mark.parametrize("make", MADE)
def test_the_order_of_items_in_clusters(make):
    arrays = made(make) | {"cluster": np.arange(N) // 4, "shifted": np.arange(N) >= 120}
    order = np.random.default_rng(6).permutation(N)
    one, other = (
        # What is left over of the balanced set is drawn by place.
        {key: row for key, row in rows(each).items() if key[1] != "balanced"}
        for each in (arrays, reordered(arrays, order))
    )
    assert_same(one, other)


@pytest.mark.parametrize("make", [binary, classes, regression])
def test_the_order_of_draws(make):
    arrays, val = made(make), validated(make)
    moved = [
        {n: v[::-1] if with_draws(n, v) else v for n, v in each.items()}
        for each in (arrays, val)
    ]
    assert_same(rows(arrays, val), rows(*moved))


@pytest.mark.parametrize("make", [classes, unknown])
def test_the_names_of_classes(make):
    name = np.array([2, 0, 3, 1])

    def renamed(arrays):
        target = arrays["target"]
        probs = np.empty_like(arrays["probs"])
        probs[..., name] = arrays["probs"]
        new = np.where(target < 0, -1, name[target])
        return arrays | {"target": new, "probs": probs}

    arrays, val = made(make), made(classes, seed=1)
    plain, other = rows(arrays, val), rows(renamed(arrays), renamed(val))
    # Venn-Abers makes ties between classes, of which the first is predicted. That
    # decides which items are errors, and so all but the values of these two.
    by_map = (("recalibration", "venn-abers"),)
    for key in [key for key in plain if key[2] == by_map]:
        value, renamed_value = plain.pop(key)[0], other.pop(key)[0]
        if key[0] in ("nll", "brier"):
            assert value == pytest.approx(renamed_value, abs=1e-9)
    assert_same(plain, other)


@pytest.mark.parametrize("make", MADE)
def test_how_many_items_are_worked_on_at_a_time(make, monkeypatch):
    arrays, val = made(make), validated(make)
    whole = rows(arrays, val, workers=1)
    monkeypatch.setattr("qualms.evaluate.draws._BLOCK", 64)
    monkeypatch.setattr("qualms.tasks.classification.judging.BLOCK", 64)
    assert_same(whole, rows(arrays, val, workers=4))


@pytest.mark.parametrize("make", MADE)
def test_clusters_of_one_item(make):
    arrays, val = made(make), validated(make)
    alone = [
        None
        if each is None
        else each | {"cluster": np.random.default_rng(2).permutation(N)}
        for each in (arrays, val)
    ]
    assert_same(rows(arrays, val), rows(*alone))


@pytest.mark.parametrize("make", MADE)
def test_shifted_items_beside_in_domain_ones(make):
    if make is embedding:
        pytest.skip("neighbours are sought among all items")
    arrays = made(make)
    whole = rows(arrays)
    for subset, inside in (("in_domain", ~SHIFTED), ("shifted", SHIFTED)):
        part = reordered(arrays, np.flatnonzero(inside))
        del part["shifted"]
        alone = rows(part)
        for (score, _, settings), numbers in alone.items():
            if (score, subset, settings) in whole:
                np.testing.assert_allclose(
                    numbers, whole[score, subset, settings], rtol=1e-9, atol=1e-9
                )


def segmented(folder, order, workers=1):
    rng = np.random.default_rng(0)
    items = []
    for _ in range(12):
        p = rng.random((3, 10, 10))
        statistics = scores.sufficient_statistics(
            np.stack([p, 1 - p], 1).astype(np.float32)
        )
        raters = (rng.random((3, 10, 10)) < 0.5).astype(np.uint8)
        items.append(predictions.Maps(**statistics._asdict(), raters=raters))
    with predictions.SegmentationWriter(folder, header={"method": "tta"}) as writer:
        for i in order:
            writer.add(f"item-{i}", items[i], shifted=i >= 6)
    return rows(folder, val=folder, workers=workers)


def test_the_order_of_segmented_items(tmp_path):
    one = segmented(tmp_path / "one", range(12))
    assert_same(one, segmented(tmp_path / "other", range(12)[::-1], workers=3))
