"""Which files compare item by item, by which rows, and what can be claimed."""

import numpy as np
import pytest

import qualms
from qualms import predictions
from qualms.evaluate import ScoreOptions, compare, score_files

QUICK = ScoreOptions(resamples=40)


def binary(n=200, noise=1.0, seed=0, **more):
    rng = np.random.default_rng(seed)
    target = (rng.random(n) < 0.4).astype(int)
    shift = noise * np.random.default_rng(seed + 1).standard_normal(n)
    prob = 1 / (1 + np.exp(-(-1 + 2 * target + shift)))
    return {"target": target, "prob": prob, **more}


def classes(count, *, sharpness=1.0, n=900):
    rng = np.random.default_rng(count)
    score = 2.0 * rng.normal(size=(n, count))
    likely = np.exp(score) / np.exp(score).sum(axis=1, keepdims=True)
    target = (likely.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    stated = likely**sharpness
    return {"target": target, "probs": stated / stated.sum(axis=1, keepdims=True)}


def regression(n=400, width=1.0, error=1.0, seed=0):
    rng = np.random.default_rng(seed)
    target = rng.normal(size=n)
    mean = target + error * rng.normal(size=n)
    return {"target": target, "mean": mean, "var": np.full(n, width**2)}


def compared(**files):
    return compare(
        [
            qualms.score(arrays, options=QUICK, name=name)
            for name, arrays in files.items()
        ]
    )


def contrast(comparison, score, **settings):
    (found,) = [
        each
        for each in comparison.contrasts
        if each.score == score and dict(each.settings) == settings
    ]
    return found


def test_copies_of_one_file_are_noted():
    (note,) = compared(a=binary(), b=binary(), c=binary(noise=0.5)).notes
    assert note == (
        "a and b have the same value of every score: are they copies of one file?"
    )


def test_items_compare_as_texts_whatever_they_are_stored_as():
    number = np.arange(200)
    files = {
        "numbers": binary(item=number),
        "narrow": binary(item=number.astype("U3")),
        "wide": binary(item=number.astype("U12")),
    }
    comparison = compared(**files)
    assert comparison.contrasts
    assert all("copies of one file?" in note for note in comparison.notes)


def test_targets_compare_within_the_resolution_of_float32():
    arrays = regression()
    rounded = {name: values.astype(np.float32) for name, values in arrays.items()}
    assert compared(a=arrays, b=rounded).contrasts


@pytest.mark.parametrize("ending", ["npz", "safetensors", "csv"])
def test_a_copy_in_another_format_compares(tmp_path, ending):
    cluster = np.repeat(np.arange(100), 2)
    arrays = binary(item=[f"eye-{i}" for i in range(200)], cluster=cluster)
    files = [
        predictions.write(tmp_path / name, arrays) for name in ("a.npz", f"b.{ending}")
    ]
    comparison = score_files(files, options=QUICK).comparison
    assert comparison.contrasts
    assert all("copies of one file?" in note for note in comparison.notes)


@pytest.mark.parametrize(
    "other",
    [
        {"item": [str(i + 1) for i in range(200)]},
        {"item": [str(i) for i in range(200)], "cluster": np.arange(200) // 4},
    ],
)
def test_other_items_or_clusters_do_not_compare(other):
    mine = binary(item=[str(i) for i in range(200)])
    assert compared(a=mine, b=binary(**other)).contrasts == ()


def test_interval_length_ranks_only_files_that_reach_the_coverage():
    comparison = compared(
        short=regression(width=0.2),
        fair=regression(width=1.0),
        long=regression(width=1.6),
    )
    length = contrast(comparison, "interval_length", interval="gaussian")
    assert length.best == "fair"
    assert set(length.difference) == {"fair", "long"}
    coverage = contrast(comparison, "coverage", interval="gaussian")
    assert set(coverage.difference) == {"short", "fair", "long"}
    assert coverage.tied == ("fair",)


def test_a_row_that_one_file_lacks_is_compared_among_the_others():
    point = {name: v for name, v in regression().items() if name != "var"}
    comparison = compared(
        point=point, narrow=regression(width=0.9), wide=regression(width=1.2)
    )
    assert set(contrast(comparison, "mae").difference) == {"point", "narrow", "wide"}
    assert set(contrast(comparison, "crps_gaussian").difference) == {"narrow", "wide"}


def test_a_row_that_one_file_alone_has_is_not_compared():
    point = {name: v for name, v in regression().items() if name != "var"}
    comparison = compared(point=point, whole=regression())
    assert {each.score for each in comparison.contrasts} == {"mae", "rmse"}


def test_a_comparison_is_a_table_in_a_notebook():
    arrays = binary(60)
    worse = arrays | {"prob": arrays["prob"] ** 3}
    results = [
        qualms.score(each, resamples=0, name=name)
        for name, each in (("<good>", arrays), ("bad", worse))
    ]
    compared = compare(results)
    assert len(repr(compared)) < 100
    page = compared._repr_html_()
    assert page.count("<tr>") == len(compared.contrasts) + 1
    assert "<th>&lt;good&gt;</th><th>bad</th>" in page
    assert "best *" in page
    assert "nan" not in page
    nll = next(c for c in compared.contrasts if c.score == "nll")
    assert f"{nll.difference['bad'].value:+.4g}" in page


def test_calibration_errors_are_compared_for_any_number_of_classes():
    comparison = compared(good=classes(10), bad=classes(10, sharpness=4.0))
    for score in ("ece", "adaptive_ece", "smooth_ece"):
        assert contrast(comparison, score).tied == ("good",), score
        assert contrast(comparison, score).difference["bad"].low > 0.0, score


def test_a_column_that_cannot_be_compared_says_why():
    classwise = contrast(compared(good=classes(3), bad=classes(3)), "classwise_ece")
    assert "nearly empty" in classwise.reason
    assert classwise.tied == ("good", "bad")
    assert np.isnan(classwise.difference["bad"].low)


def test_fpr95_is_compared():
    shifted = np.arange(600) % 2 == 0
    rng = np.random.default_rng(0)
    files = {
        name: binary(600)
        | {"shifted": shifted, "uncertainty/own": gap * shifted + noise}
        for name, gap, noise in (
            ("far", 4.0, rng.normal(size=600)),
            ("near", 1.0, rng.normal(size=600)),
        )
    }
    found = contrast(compared(**files), "ood_fpr95", uncertainty="own")
    assert found.tied == ("far",)
    assert found.difference["near"].low > 0.0


@pytest.mark.parametrize("n", [1, 3, 9])
def test_a_handful_of_items_tells_no_file_from_another(n):
    target = np.arange(n) % 2
    sure = 0.8 + 0.01 * np.arange(n)
    right = np.where(target == 1, sure, 1.0 - sure)
    comparison = compared(
        right={"target": target, "prob": right},
        wrong={"target": target, "prob": 1.0 - right},
    )
    assert comparison.contrasts
    for each in comparison.contrasts:
        assert "too few to tell" in each.reason
        assert set(each.tied) == set(each.difference)
        assert all(np.isnan(gap.p) for gap in each.difference.values())


def test_distances_from_an_aim_say_so():
    comparison = compared(a=regression(width=1.2), b=regression(width=1.1))
    found = contrast(comparison, "coverage", interval="gaussian")
    assert found.aim == 0.9
    assert found.compared == "coverage, distance from 0.9"
    assert contrast(comparison, "mae").compared == "MAE"


def test_a_column_without_a_known_influence_says_why():
    val = regression(seed=9)
    comparison = compare(
        [
            qualms.score(regression(width=width), val=val, options=QUICK, name=name)
            for name, width in (("a", 1.2), ("b", 1.1))
        ]
    )
    found = contrast(comparison, "interval_score", interval="conformal")
    assert found.reason == "how it depends on the validation items is not known"
    assert found.tied == ("a", "b")


def test_intervals_of_equal_length_are_not_told_apart():
    files = {"a": regression(error=0.5), "b": regression(error=0.6)}
    found = contrast(compared(**files), "interval_length", interval="gaussian")
    assert found.tied == ("a", "b")
    assert {gap.p for gap in found.difference.values()} == {1.0}


def test_files_of_one_name_are_compared_too(tmp_path):
    for number, folder in enumerate(("a", "b")):
        (tmp_path / folder).mkdir()
        predictions.write(tmp_path / folder / "p.npz", binary(noise=1 + number))
    scored = [qualms.score(tmp_path / f / "p.npz", resamples=0) for f in "ab"]
    comparison = compare(scored)
    assert comparison.names == ("p.npz (1)", "p.npz (2)")
    (nll,) = (c for c in comparison.contrasts if c.score == "nll")
    assert nll.best == "p.npz (1)"


@pytest.mark.parametrize(
    ("results", "got"),
    [
        ([], "none"),
        (qualms.score(binary(), resamples=0), "one file"),
        (["a.npz", "b.npz"], "str"),
    ],
)
def test_what_cannot_be_compared_is_answered_with_what_to_say(results, got):
    said = rf"a list of what qualms.score gives, got {got}; say compare\(\[qualms"
    with pytest.raises(TypeError, match=said):
        compare(results)


def test_files_may_be_texts_and_a_single_one_needs_no_list(tmp_path):
    path = str(predictions.write(tmp_path / "p.npz", binary()))
    val = str(predictions.write(tmp_path / "v.npz", binary(seed=4)))
    single = score_files(path, val=val, names="mine", options=QUICK)
    (result,) = single.results
    assert result.name == "mine"
    assert result.row("ece", recalibration="temperature").value >= 0
    both = score_files([path, path], options=QUICK)
    assert len(both.results) == 2
    with pytest.raises(TypeError, match="files must be paths of predictions files, go"):
        score_files([result])
    with pytest.raises(ValueError, match="files must name at least one predictions f"):
        score_files([])


def shuffled(arrays, seed=0):
    order = np.random.default_rng(seed).permutation(len(arrays["target"]))
    return {name: np.asarray(array)[order] for name, array in arrays.items()}


def written(folder, **files):
    return [
        predictions.write(folder / f"{name}.npz", arrays, header=header)
        for name, (arrays, header) in files.items()
    ]


def differences(scored):
    return {
        (each.key, name): (gap.value, gap.low, gap.high)
        for each in scored.comparison.contrasts
        for name, gap in each.difference.items()
    }


def test_items_with_the_same_names_are_paired_in_any_order(tmp_path):
    marks = {"item": [f"scan {i}" for i in range(200)], "shifted": np.arange(200) < 80}
    a, b = (binary(noise=n, **marks) for n in (1.0, 1.6))
    as_they_are = score_files(written(tmp_path, a=(a, None), b=(b, None)))
    expected = differences(as_they_are)
    paths = written(tmp_path, a=(a, None), b=(shuffled(b), None))
    scored = score_files(paths)
    found = differences(scored)
    assert found.keys() == expected.keys()
    assert len(found) > 50
    for key, value in expected.items():
        assert found[key] == pytest.approx(value, nan_ok=True), key
    assert any("b.npz has the items of" in note for note in scored.results[1].notes)
    # Scored one by one, they are not paired, and it is said why.
    comparison = compare([qualms.score(path, name=path.stem) for path in paths])
    assert comparison.contrasts == ()
    assert "the same items in another order" in comparison.notes[0]


def test_segmented_items_are_paired_in_any_order(tmp_path):
    def folder(name, rows, draws):
        rng = np.random.default_rng(draws)
        with predictions.SegmentationWriter(tmp_path / name) as writer:
            for row in rows:
                inside = np.hypot(*np.mgrid[-6:6, -6:6]) < 2 + row / 4
                prob = np.clip(0.8 * inside + 0.2 * rng.random((draws, 12, 12)), 0, 1)
                both = np.stack([1 - prob, prob], 1)
                maps = qualms.scores.sufficient_statistics(both)._asdict()
                raters = inside[None].astype(np.uint8)
                writer.add(f"scan {row}", predictions.Maps(**maps, raters=raters))
        return tmp_path / name

    scored = score_files([folder("a", range(12), 3), folder("b", range(12)[::-1], 2)])
    assert any(c.score == "dice" for c in scored.comparison.contrasts)
    assert scored.comparison.notes == ()


def test_validation_files_in_another_order_are_the_same(tmp_path):
    names = {"item": [f"scan {i}" for i in range(400)]}
    paths, vals = [], []
    for number, error in enumerate((1.0, 1.4)):
        arrays = regression(error=error) | names
        val = regression(error=error, seed=5) | {"item": [f"v{i}" for i in range(400)]}
        change = shuffled if number else dict
        paths += written(tmp_path, **{f"p{number}": (change(arrays), None)})
        vals += written(tmp_path, **{f"v{number}": (change(val), None)})
    scored = score_files(paths, val=vals)
    each = contrast(scored.comparison, "coverage", interval="conformal")
    assert each.reason == ""


def test_intervals_of_different_kinds_are_compared_by_coverage_and_length(tmp_path):
    gaussian = regression(width=1.1)
    quantiles = {
        "target": gaussian["target"],
        "mean": gaussian["mean"],
        "lower": gaussian["mean"] - 2.5,
        "upper": gaussian["mean"] + 2.5,
    }
    files = {"a": (gaussian, None), "b": (quantiles, {"alpha": 0.1})}
    scored = score_files(written(tmp_path, **files))
    for score in ("coverage", "interval_length", "interval_score"):
        each = contrast(scored.comparison, score, interval="uncalibrated")
        assert set(each.difference) == {"a", "b"}
        assert each.reason == ""
    length = contrast(scored.comparison, "interval_length", interval="uncalibrated")
    assert (length.best, length.tied) == ("a", ("a",))
    assert any("gaussian in a; as predicted in b" in n for n in scored.results[0].notes)
    # Of one kind, they keep their name.
    same = score_files(written(tmp_path, a=(gaussian, None), c=(gaussian, None)))
    assert contrast(same.comparison, "interval_length", interval="gaussian")


def test_intervals_with_different_aims_are_not_compared(tmp_path):
    arrays = regression()
    files = {f"a{alpha}": (arrays, {"alpha": alpha}) for alpha in (0.1, 0.2)}
    comparison = score_files(written(tmp_path, **files)).comparison
    for score in ("coverage", "interval_length"):
        each = contrast(comparison, score, interval="gaussian")
        assert "aim at different coverages" in each.reason
    assert contrast(comparison, "mae").reason == ""
