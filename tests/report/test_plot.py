"""`results.plot(...)`: the right picture for a score, as matplotlib axes."""

import sys

import numpy as np
import pytest

import qualms

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module", autouse=True)
def _no_window():
    import matplotlib
    from matplotlib import pyplot

    before = matplotlib.get_backend()
    pyplot.switch_backend("Agg")
    yield
    pyplot.close("all")
    pyplot.switch_backend(before)


@pytest.fixture(scope="module")
def results():
    rng = np.random.default_rng(0)
    target = rng.integers(0, 2, 200)
    prob = np.clip(0.3 + 0.4 * target + rng.normal(0, 0.25, 200), 0.01, 0.99)
    arrays = {"target": target, "prob": prob, "shifted": np.arange(200) > 120}
    return qualms.score(arrays, resamples=0, name="mine")


def lines(axes):
    """The curves that are drawn: x and y of each."""
    return [line.get_xydata() for line in axes.get_lines()]


def test_a_plain_score_is_drawn_with_its_intervals(results):
    axes = results.plot("accuracy")
    words = [label.get_text() for label in axes.get_yticklabels()]
    assert words == ["in-domain", "shifted"]
    row = results["shifted/accuracy"]
    ends = [line[:, 0].tolist() for line in lines(axes) if len(line) == 2]
    assert [row.low, row.high] in ends
    assert axes.get_xlabel() == "Accuracy (higher is better)"


def test_scores_that_have_a_curve_show_it(results):
    axes = results.plot("ece")
    for subset in ("in_domain", "shifted"):
        (curve,) = [
            c for c in results.curves if (c.name, c.subset) == ("reliability", subset)
        ]
        assert any(np.array_equal(line[:, 0], curve.x) for line in lines(axes))
    axes = results.plot("auroc")
    assert axes.get_xlabel() == "false positive rate"
    legend = [text.get_text() for text in axes.get_legend().get_texts()]
    assert legend == ["in-domain", "shifted"]
    # The area under what is drawn is the score.
    drawn = max(lines(results.plot("in_domain/auroc")), key=len)
    area = float(np.trapezoid(drawn[:, 1], drawn[:, 0]))
    assert area == pytest.approx(results["in_domain/auroc"].value)


def test_risk_against_coverage_ends_at_the_error_rate(results):
    axes = results.plot("in_domain/aurc")
    (drawn,) = lines(axes)
    kept_all = drawn[drawn[:, 0].argmax(), 1]
    assert kept_all == pytest.approx(1 - results["in_domain/accuracy"].value)
    assert results.plot("referral_accuracy").get_xlabel() == "share referred"
    assert results.plot("uncertainty/entropy").get_xlabel() == "entropy"


def test_given_axes_are_drawn_in(results):
    from matplotlib import pyplot

    given = pyplot.subplots()[1]
    assert results.plot("nll", axes=given) is given


def test_an_unknown_name_is_answered_with_the_closest(results):
    with pytest.raises(
        LookupError, match=r"'acuracy' in mine. Did you mean 'accuracy'"
    ):
        results.plot("acuracy")


def test_scoring_and_notebooks_need_no_matplotlib(monkeypatch):
    for name in [n for n in sys.modules if n.split(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    arrays = {"target": [0, 1] * 9, "prob": [0.2, 0.7] * 9}
    results = qualms.score(arrays, resamples=0)
    assert "Accurate?" in results._repr_html_()
    with pytest.raises(ValueError, match="matplotlib"):
        results.plot("ece")
