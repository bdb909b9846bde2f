"""RETINA as released: golden values, and the text of its definitions, step by step."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import auc, precision_recall_curve, roc_auc_score
from sklearn.metrics import log_loss as sklearn_log_loss

from qualms.scores.as_published import retina
from qualms.scores.decomposition import entropy

NAMES = ("accuracy", "nll", "auroc", "auprc")
MAKERS = {"A_mc_samples": "case_mc", "B_ties": "case_ties", "E_tiny": "case_tiny"}


def case(golden, key):
    """Expected values of a golden case and the items its recipe makes."""
    return golden("retina")["cases"][key], recipe(golden, MAKERS[key])


def recipe(golden, function):
    space = {}
    exec(golden("retina")["recipe_python"], space)
    return space[function]()


def slow_curve(name, p, y, u, oracle):
    """The curve as the definitions describe it, one point after the other.

    `k > 0` is not in their text: the released code leaves the full set out of the rule.
    """
    order = sorted(range(len(u)), key=lambda i: (u[i], i))
    p, y = p[order], y[order]
    if name in ("accuracy", "nll"):
        return slow_means(name, p, y, oracle)
    points, rule, n = [1.0], True, len(p)
    for k in range(99, -1, -1):
        m = int(((100 - k) / 100) * n)
        one_class = m > 0 and len(set(y[:m])) == 1
        rule = rule and one_class and np.array_equal(p[:m] > 0.5, y[:m]) and k > 0
        value = 1.0 if rule else slow_area(name, p[:m], y[:m])
        if oracle and not rule:
            value = (m * value + (n - m)) / n
        points.append(value)
    return points[::-1]


def slow_means(name, p, y, oracle):
    clipped = [min(max(x, 1e-15), 1 - 1e-15) for x in p]
    values = {
        "accuracy": np.array((p > 0.5) == y, dtype=float),
        "nll": np.array(
            [-math.log(c if t else 1 - c) for c, t in zip(clipped, y, strict=True)]
        ),
    }[name]
    n, perfect = len(p), float(name == "accuracy")
    points = [
        (values[: n - i].sum() + i * perfect) / n if oracle else values[: n - i].mean()
        for i in range(n)
    ]
    return [*points, perfect]


def slow_area(name, p, y):
    if len(y) == 0:
        return 0.0
    if name == "auroc":
        return roc_auc_score(y, p) if len(set(y)) == 2 else 0.0
    if not any(y):
        return 0.5
    precision, recall, _ = precision_recall_curve(y, p)
    return auc(recall, precision)


@pytest.mark.parametrize("oracle", [False, True])
@pytest.mark.parametrize("key", MAKERS)
def test_areas_and_curves_agree_with_the_golden_cases(golden, key, oracle):
    expected, items = case(golden, key)
    block = expected["oracle" if oracle else "no_oracle"]
    taus = golden("retina")["tau"]
    for name in NAMES:
        curve = retina.referral_curve(name, items["p"], items["y"], items["u"], oracle)
        assert curve.area == pytest.approx(block["area"][name], rel=1e-9)
        assert curve.at(1.0) == block["last_point_all_referred"][name]
        if f"{name}_full" in block["curve"]:
            full = block["curve"][f"{name}_full"]
            np.testing.assert_allclose(curve.value, full, rtol=1e-9)
        else:
            points = block["curve"][name]
            at = [curve.at(tau) for tau in [*taus, 1.0][: len(points)]]
            np.testing.assert_allclose(at, points, rtol=1e-9)


@pytest.mark.parametrize("key", MAKERS)
def test_scalars_agree_with_the_golden_cases(golden, key):
    expected, items = case(golden, key)
    scalars = expected["scalars"]
    p, y = items["p"], items["y"]
    assert retina.nll(p, y) == pytest.approx(scalars["nll"], rel=1e-9)
    loss = scalars["nll_sklearn_log_loss"]
    assert retina.log_loss(p, y) == pytest.approx(loss, rel=1e-9)
    assert retina.auprc(score=p, positive=y) == pytest.approx(
        scalars["auprc"], rel=1e-9
    )


def test_draws_and_the_default_uncertainty_give_the_golden_area(golden):
    expected, items = case(golden, "A_mc_samples")
    draws = np.stack([1 - items["samples"], items["samples"]], axis=-1)
    for name in NAMES:
        area = retina.referral_curve(name, draws, items["y"]).area
        assert area == pytest.approx(expected["no_oracle"]["area"][name], rel=1e-9)


@pytest.mark.parametrize("oracle", [False, True])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "function", ["case_single", "case_joint", "case_saturated", "case_tiny"]
)
def test_every_golden_recipe_follows_the_text(golden, function, name, oracle):
    items = recipe(golden, function)
    p, y, u = items["p"], items["y"], items["u"]
    curve = retina.referral_curve(name, p, y, u, oracle)
    np.testing.assert_allclose(
        curve.value, slow_curve(name, p, y, u, oracle), rtol=1e-9, atol=0
    )


def test_the_default_uncertainty_is_that_of_the_recipes(golden):
    for function in ("case_single", "case_joint", "case_saturated"):
        items = recipe(golden, function)
        ours = entropy(items["p"], class_axis=None)
        np.testing.assert_allclose(ours, items["u"], rtol=1e-13, atol=1e-300)


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([0.0, 0.2, 0.5, 0.6, 1.0]),
            st.integers(0, 1),
            st.integers(0, 4),
        ),
        min_size=1,
        max_size=130,
    ),
    st.sampled_from(NAMES),
    st.booleans(),
)
def test_any_items_follow_the_text(rows, name, oracle):
    p, y, u = (np.array(column) for column in zip(*rows, strict=True))
    curve = retina.referral_curve(name, p, y, u, oracle)
    expected = slow_curve(name, p, y, u, oracle)
    np.testing.assert_allclose(curve.value, expected, rtol=1e-9, atol=0)
    assert curve.area == pytest.approx(np.mean(expected), rel=1e-9)


def test_one_class_and_all_correct_counts_as_one_except_for_the_full_set():
    p, y = np.linspace(0.6, 0.9, 200), np.ones(200)
    auroc = retina.referral_curve("auroc", p, y)
    np.testing.assert_array_equal(auroc.value, [0.0] + [1.0] * 100)
    oracle = retina.referral_curve("auroc", p, y, oracle=True)
    np.testing.assert_array_equal(oracle.value, [0.0] + [1.0] * 100)
    negatives = retina.referral_curve("auprc", 1 - p, 1 - y)
    np.testing.assert_array_equal(negatives.value, [0.5] + [1.0] * 100)


def test_log_loss_clips_where_scikit_learn_does():
    p, y = [0.0, 1.0, 0.3], [1, 0, 1]
    expected = sklearn_log_loss(y, p, labels=[0, 1])
    today = retina.log_loss(p, y, clip=np.finfo(np.float64).eps)
    assert today == pytest.approx(expected, rel=1e-12)
    # The version of the paper's time clipped at 1e-15, as the released curves do.
    then = -np.log([1e-15, 1 - (1 - 1e-15), 0.3]).mean()
    assert retina.log_loss(p, y) == pytest.approx(then, rel=1e-12)
    assert retina.log_loss(p, y) == retina.nll(p, y) < expected - 0.5


def joint(golden):
    items = recipe(golden, "case_joint")
    keep = np.r_[0:1600, 1600:1737]
    return {name: array[keep] for name, array in items.items()}


def test_the_balanced_joint_set_is_drawn_as_defined(golden):
    shifted = joint(golden)["is_ood"]
    index = retina.balanced_joint(shifted)
    np.random.seed(0)  # noqa: NPY002 - the definition uses the old generator
    rows = np.arange(1600, 1737)
    drawn = np.random.choice(rows, 1600 - 11 * 137, replace=False)  # noqa: NPY002
    expected = [*range(1600), *(11 * list(rows)), *drawn]
    np.testing.assert_array_equal(index, expected)


def test_more_shifted_than_in_domain_items_are_thinned_out():
    index = retina.balanced_joint(np.arange(10) >= 3)
    assert len(index) == 6
    np.testing.assert_array_equal(index[:3], [0, 1, 2])
    assert len(set(index[3:])) == 3


@pytest.mark.parametrize("name", NAMES)
def test_only_accuracy_and_nll_are_balanced(golden, name):
    items = joint(golden)
    p, y, u, shifted = (items[key] for key in ("p", "y", "u", "is_ood"))
    curve = retina.balanced_referral_curve(
        name=name, probs=p, target=y, shifted=shifted, uncertainty=u
    )
    rows = (
        retina.balanced_joint(shifted) if name in ("accuracy", "nll") else slice(None)
    )
    expected = slow_curve(name, p[rows], y[rows], u[rows], False)
    np.testing.assert_allclose(curve.value, expected, rtol=1e-9)
    default = retina.balanced_referral_curve(
        name=name, probs=p, target=y, shifted=shifted
    )
    assert default.area == pytest.approx(curve.area, rel=1e-12)


def test_stderr_is_biased_and_skips_undefined_runs():
    runs = [0.3, None, 0.5, float("nan"), 0.1]
    assert retina.stderr(runs) == pytest.approx(np.std([0.3, 0.5, 0.1]) / np.sqrt(3))
    assert np.isnan(retina.stderr([None]))


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (
            lambda: retina.referral_curve("ece", [0.1], [0]),
            LookupError,
            r"no 'ece' in the released referral curves\. Known: accuracy",
        ),
        (
            lambda: retina.nll([[0.2, 0.3, 0.5]], [0]),
            ValueError,
            r"two classes in RETINA's scores, got 3",
        ),
        (
            lambda: retina.referral_curve("nll", [0.1], [0]).at(1.5),
            ValueError,
            r"tau must lie in \[0, 1\], got 1\.5",
        ),
        (
            lambda: retina.balanced_joint([False]),
            ValueError,
            r"shifted must mark at least one row",
        ),
    ],
)
def test_bad_input_is_refused_with_a_sentence(call, error, sentence):
    with pytest.raises(error, match=sentence):
        call()
