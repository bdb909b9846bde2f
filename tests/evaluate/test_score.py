"""`qualms.score`: from predictions to results."""

from dataclasses import replace

import numpy as np
import pytest

import qualms
from qualms import predictions, scores
from qualms.evaluate import ScoreOptions, compare, score_files
from qualms.scores.arguments import called_in_order

QUICK = ScoreOptions(resamples=40)
BARE = ScoreOptions(resamples=0)


def binary(n=300, seed=0, **more):
    rng = np.random.default_rng(seed)
    target = (rng.random(n) < 0.4).astype(int)
    prob = 1 / (1 + np.exp(-(-1 + 2 * target + rng.standard_normal(n))))
    return {"target": target, "prob": prob, **more}


def test_each_row_is_the_public_score_of_its_name():
    arrays = binary()
    results = qualms.score(arrays, options=BARE)
    entropy = scores.entropy(np.stack([1 - arrays["prob"], arrays["prob"]], 1))
    risk = 1.0 - scores.correct(arrays["prob"], arrays["target"])
    for name in ("accuracy", "nll", "brier", "ece", "mcc", "smooth_ece"):
        expected = getattr(scores, name)(arrays["prob"], arrays["target"])
        assert results.row(name).value == pytest.approx(expected, rel=1e-9)
    for name in ("auroc", "auprc", "average_precision"):
        pair = {"score": arrays["prob"], "positive": arrays["target"]}
        expected = getattr(scores, name)(**pair)
        assert results.row(name).value == pytest.approx(expected, rel=1e-9)
    for name in ("aurc", "eaurc", "augrc"):
        expected = getattr(scores, name)(risk=risk, uncertainty=entropy)
        assert results.row(name).value == pytest.approx(expected, rel=1e-9)


def test_every_value_lies_beside_a_finite_interval():
    results = qualms.score(binary(500), options=QUICK)
    for row in results.rows:
        assert np.isfinite([row.low, row.high]).all(), row.key
        assert row.low <= row.high


def test_an_interval_says_how_it_was_made_or_why_there_is_none():
    for row in qualms.score(binary(), options=BARE).rows:
        assert np.isfinite(row.low) == bool(row.method)
        assert bool(row.method) != bool(row.no_interval)


def test_one_class_leaves_auroc_undefined_and_says_why():
    arrays = binary() | {"target": np.ones(300, int)}
    row = qualms.score(arrays, options=QUICK).row("auroc")
    assert np.isnan(row.value)
    assert "one class" in row.why


def test_shifted_items_make_subsets_and_detection_rows():
    shifted = np.arange(300) >= 220
    results = qualms.score(binary(shifted=shifted), options=BARE)
    n = {row.subset: row.n for row in results.rows if row.score == "accuracy"}
    assert n == {"all": 300, "in_domain": 220, "shifted": 80, "balanced": 440}
    entropy = results.row("ood_auroc", uncertainty="entropy").value
    arrays = binary()
    expected = scores.ood_auroc(
        uncertainty=scores.entropy(np.stack([1 - arrays["prob"], arrays["prob"]], 1)),
        shifted=shifted,
    )
    assert entropy == pytest.approx(expected)


def test_the_balanced_set_of_equal_parts_is_the_whole_file():
    arrays = binary(shifted=np.arange(300) % 2 == 0)
    results = qualms.score(arrays, options=BARE)
    for name in ("accuracy", "nll", "auroc", "aurc"):
        whole = results.row(name, subset="all").value
        assert results.row(name, subset="balanced").value == pytest.approx(whole)


def test_groups_are_scored_on_request():
    group = np.where(np.arange(300) % 3 == 0, "left", "right")
    full_results = qualms.score(binary(group=group), options=BARE)
    split = qualms.score(
        binary(group=group), options=ScoreOptions(resamples=0, by_group=True)
    )
    assert {row.subset for row in full_results.rows} == {"all"}
    assert {row.subset for row in split.rows} == {"all", "group=left", "group=right"}


def test_validation_recalibrates():
    arrays, val = binary(2000), binary(2000, seed=1)
    for each in (arrays, val):  # overconfident on purpose
        logit = np.log(each["prob"] / (1 - each["prob"]))
        each["prob"] = 1 / (1 + np.exp(-4 * logit))
    results = qualms.score(arrays, val=val, options=BARE)
    plain = results.row("nll").value
    assert results.row("nll", recalibration="temperature").value < plain
    assert results.row("nll", recalibration="isotonic").value < plain
    assert (
        results.row("ece", recalibration="temperature").value < results.row("ece").value
    )


def test_validation_of_another_task_is_refused():
    regression = {"target": np.arange(5.0), "mean": np.arange(5.0)}
    with pytest.raises(ValueError, match=r"val must hold classification predictions"):
        qualms.score(binary(), val=regression, options=BARE)


def test_clusters_widen_the_interval_of_correlated_items():
    arrays = binary(400)
    twice = {k: np.repeat(v, 2) for k, v in arrays.items()}
    settings = ScoreOptions(resamples=300)
    naive = qualms.score(twice, options=settings).row("accuracy")
    honest = qualms.score(
        twice | {"cluster": np.repeat(np.arange(400), 2)}, options=settings
    ).row("accuracy")
    assert honest.high - honest.low > 1.15 * (naive.high - naive.low)


def regression(n=200, seed=0):
    rng = np.random.default_rng(seed)
    target = rng.uniform(0, 100, n)
    return {
        "target": target,
        "mean": target + rng.normal(0, 3, (4, n)),
        "var": np.full((4, n), 9.0),
        "select/distance": rng.random(n),
    }


def test_regression_rows_follow_the_definitions():
    arrays, val = regression(), regression(seed=1)
    results = qualms.score(arrays, val=val, options=QUICK)
    moments = scores.pool_gaussian(mean=arrays["mean"], var=arrays["var"])
    known = scores.pool_gaussian(mean=val["mean"], var=val["var"])
    interval = called_in_order(scores.gaussian_interval, *moments, alpha=0.1)
    known_interval = called_in_order(scores.gaussian_interval, *known, alpha=0.1)
    offset = called_in_order(
        scores.conformal_offset, *known_interval, val["target"], alpha=0.1
    )
    target = arrays["target"]
    assert results.row("mae").value == pytest.approx(scores.mae(moments.mean, target))
    assert results.row("crps_gaussian").value == pytest.approx(
        scores.crps_gaussian(mean=moments.mean, var=moments.var, target=target)
    )
    raw = results.row("coverage", interval="gaussian").value
    assert raw == pytest.approx(called_in_order(scores.coverage, *interval, target))
    calibrated = results.row("coverage", interval="conformal").value
    lower, upper = interval.lower - offset, interval.upper + offset
    assert calibrated == pytest.approx(
        scores.coverage(lower=lower, upper=upper, target=target)
    )
    threshold = scores.selection_threshold(val["select/distance"])
    kept = arrays["select/distance"] <= threshold
    selected = results.row("coverage", interval="conformal", select="distance").value
    assert selected == pytest.approx(
        scores.coverage(lower=lower[kept], upper=upper[kept], target=target[kept])
    )
    rate = results.row("prediction_rate").value
    assert rate == pytest.approx(kept.mean())


def test_point_predictions_get_intervals_only_from_validation():
    arrays = {k: v for k, v in regression().items() if k == "target"}
    arrays["mean"] = arrays["target"] + 1.0
    alone = qualms.score(arrays, options=BARE)
    assert "coverage" not in {row.score for row in alone.rows}
    both = qualms.score(arrays, val=arrays, options=BARE)
    assert both.row("coverage", interval="conformal").value == 1.0
    assert both.row("interval_length", interval="conformal").value == pytest.approx(2.0)


def test_embedding_rows_follow_the_definitions():
    rng = np.random.default_rng(0)
    target = rng.integers(0, 8, 150)
    vectors = rng.standard_normal((8, 16))[target] + 0.9 * rng.standard_normal(
        (150, 16)
    )
    u = rng.random(150)
    arrays = {
        "embedding": vectors,
        "target": target,
        "uncertainty/head": u,
        "uncertainty_cropped/head": u + rng.normal(0, 0.1, 150),
        "votes": rng.multinomial(5, [0.5, 0.3, 0.2], 150),
        "upstream": np.arange(150) < 50,
    }
    results = qualms.score(arrays, options=QUICK)
    down = ~arrays["upstream"]
    vectors = vectors.astype(np.float32)
    expected = scores.recall_at_1(vectors[down], target[down])
    assert results.row("recall_at_1").value == pytest.approx(expected)
    expected = scores.r_auroc(
        embedding=vectors[down], target=target[down], uncertainty=u[down]
    )
    assert results.row("r_auroc").value == pytest.approx(expected)
    expected = scores.mixed_r_auroc(
        embedding=vectors, target=target, uncertainty=u, upstream=arrays["upstream"]
    )
    assert results.row("mixed_r_auroc").value == pytest.approx(expected)
    expected = scores.human_alignment(
        uncertainty=u[down], votes=arrays["votes"][down]
    ).value
    assert results.row("human_alignment").value == pytest.approx(expected)


def segmentation(folder, seed=0, items=6, draws=4, vary="models"):
    rng = np.random.default_rng(seed)
    header = {"method": "punet", "draws": vary}
    with predictions.SegmentationWriter(folder, header=header) as writer:
        for i in range(items):
            logits = rng.normal(0, 1, (draws, 2, 20, 20)) + 1.5 * (np.arange(20) > 9)
            probs = np.stack([logits[:, 0], -logits[:, 0]], 1)
            probs = np.exp(probs) / np.exp(probs).sum(axis=1, keepdims=True)
            statistics = scores.sufficient_statistics(probs.astype(np.float32))
            raters = (rng.random((3, 20, 20)) < 0.4 + 0.2 * (np.arange(20) > 9)).astype(
                np.uint8
            )
            maps = predictions.Maps(**statistics._asdict(), raters=raters)
            writer.add(f"item-{i}", maps, shifted=i >= items // 2)
    return folder


def test_segmentation_folders_are_scored_item_by_item(tmp_path):
    folder = segmentation(tmp_path / "test")
    val = segmentation(tmp_path / "val", seed=1)
    results = qualms.score(folder, val=val, options=QUICK, subset="all")
    read = predictions.read(folder)
    dice = [
        np.mean(
            [
                scores.dice(prediction=m.mean_probs.argmax(0), reference=r)
                for r in m.raters
            ]
        )
        for m in read.maps
    ]
    assert results.row("dice").value == pytest.approx(np.mean(dice))
    ged = [scores.ged(draws=m.draw_labels, raters=m.raters) for m in read.maps]
    assert results.row("ged").value == pytest.approx(np.mean(ged))
    patch = [
        scores.aggregate_patch(
            scores.uncertainty_maps(m.mean_probs, m.expected_entropy).predictive
        )
        for m in read.maps
    ]
    aurc = scores.aurc(risk=1 - np.array(dice), uncertainty=np.array(patch))
    assert results.row(
        "aurc", measure="predictive", aggregation="patch"
    ).value == pytest.approx(aurc)
    assert {"ace", "ncc", "ood_auroc"} <= {row.score for row in results.rows}
    quantile = [
        scores.aggregate_quantile(
            scores.uncertainty_maps(m.mean_probs, m.expected_entropy).epistemic
        )
        for m in read.maps
    ]
    found = results.row("ood_auroc", measure="epistemic", aggregation="quantile")
    expected = scores.ood_auroc(uncertainty=quantile, shifted=read.arrays["shifted"])
    assert found.value == pytest.approx(expected)


def ncc_by_measure(results):
    rows = [r for r in results.rows if (r.score, r.subset) == ("ncc", "all")]
    return {row.settings["measure"]: row.value for row in rows}


def test_measures_are_aleatoric_and_epistemic_by_what_the_draws_vary(tmp_path):
    """Whatever the method is called: the folder is of a probabilistic U-Net."""
    models, labels, unstated = (
        qualms.score(segmentation(tmp_path / str(vary), vary=vary), options=BARE)
        for vary in ("models", "labels", None)
    )
    by_formula = ncc_by_measure(unstated)
    assert set(by_formula) == {"predictive", "expected_entropy", "mutual_information"}
    assert ncc_by_measure(models) == {
        "predictive": by_formula["predictive"],
        "aleatoric": by_formula["expected_entropy"],
        "epistemic": by_formula["mutual_information"],
    }
    assert ncc_by_measure(labels) == {
        "predictive": by_formula["predictive"],
        "aleatoric": by_formula["mutual_information"],
        "epistemic": by_formula["expected_entropy"],
    }
    assert any("aleatoric is mutual information" in n for n in labels.notes)
    assert any("does not say what its draws vary" in n for n in unstated.notes)
    assert not any("draws" in note for note in models.notes)
    said = qualms.score(tmp_path / "None", options=BARE, draws="labels")
    assert ncc_by_measure(said) == ncc_by_measure(labels)
    contradicted = qualms.score(tmp_path / "labels", options=BARE, draws="models")
    assert ncc_by_measure(contradicted) == ncc_by_measure(labels)
    assert any("states draws 'labels', which is used" in n for n in contradicted.notes)
    with pytest.raises(predictions.PredictionsError, match="'draws' must be 'models'"):
        qualms.score(tmp_path / "None", draws="lables")


def test_validation_items_must_have_draws_of_the_same_kind(tmp_path):
    folder = segmentation(tmp_path / "test", vary="labels")
    val = segmentation(tmp_path / "val", seed=1, vary="models")
    with pytest.raises(ValueError, match="the same kind of maps"):
        qualms.score(folder, val=val)


@pytest.mark.parametrize("vary", ["models", "labels", None])
def test_the_epistemic_part_of_classes_follows_what_the_draws_vary(vary):
    probs = np.random.default_rng(0).dirichlet([1, 1, 1], (6, 80))
    arrays = {"probs": probs, "target": np.arange(80) % 3}
    results = qualms.score(arrays, options=BARE, header={"draws": vary})
    parts = scores.decompose(probs)
    risk = 1.0 - scores.correct(probs, arrays["target"])
    name = "epistemic" if vary else "mutual_information"
    value = parts.aleatoric if vary == "labels" else parts.epistemic
    row = results.row("aurc", uncertainty=name)
    assert row.value == pytest.approx(scores.aurc(risk=risk, uncertainty=value))
    asks = [note for note in results.notes if "--draws models" in note]
    assert len(asks) == (vary is None)


def test_draws_are_stated_in_every_kind_of_file(tmp_path):
    probs = np.random.default_rng(0).dirichlet([1, 1], (2, 20))
    arrays = {"probs": probs, "target": np.arange(20) % 2}
    for ending in (".npz", ".safetensors"):
        path = tmp_path / f"file{ending}"
        predictions.write(path, arrays, header={"draws": "labels"})
        assert predictions.read(path).header.draws == "labels"
    path = tmp_path / "file.csv"
    one = {"prob": probs[0, :, 1], "target": arrays["target"]}
    predictions.write(path, one, header={"draws": "models"})
    assert predictions.read(path).header.draws == "models"
    folder = segmentation(tmp_path / "folder", vary="labels")
    assert predictions.read(folder).header.draws == "labels"


def rewritten(folder, source, **changes):
    """The items of `source` but the first, whose arrays are changed."""
    with predictions.SegmentationWriter(folder, header={"ignore": 255}) as writer:
        for row, maps in enumerate(predictions.read(source).maps):
            mine = {} if row else {n: f(getattr(maps, n)) for n, f in changes.items()}
            writer.add(f"item-{row}", replace(maps, **mine))
    return folder


def test_items_without_a_labelled_pixel_are_left_out_and_told(tmp_path):
    source = segmentation(tmp_path / "test")
    bare = {"raters": lambda raters: np.full_like(raters, 255)}
    results = qualms.score(rewritten(tmp_path / "bare", source, **bare), options=BARE)
    dice = [
        np.mean(
            [
                scores.dice(prediction=m.mean_probs.argmax(0), reference=r)
                for r in m.raters
            ]
        )
        for m in predictions.read(source).maps
    ]
    assert results.row("dice").value == pytest.approx(np.mean(dice[1:]))
    assert results.row("dice").n == results.row("ged").n == 5
    assert any("items without a labelled pixel: 1;" in note for note in results.notes)
    one = {
        "raters": lambda raters: np.stack([np.full_like(raters[0], 255), *raters[1:]])
    }
    results = qualms.score(rewritten(tmp_path / "one", source, **one), options=BARE)
    first = predictions.read(source).maps[0]
    own = np.mean(
        [
            scores.dice(prediction=first.mean_probs.argmax(0), reference=r)
            for r in first.raters[1:]
        ]
    )
    assert results.row("dice").value == pytest.approx(np.mean([own, *dice[1:]]))


def test_probabilities_are_judged_as_they_are_stored(tmp_path):
    folder = segmentation(tmp_path / "test")
    results = qualms.score(folder, options=BARE, subset="all")
    sure, gaps = [], []
    for maps in predictions.read(folder).maps:
        right = maps.raters == maps.mean_probs.argmax(axis=0)
        likeliest = np.broadcast_to(maps.mean_probs.max(axis=0), right.shape)
        sure.append(likeliest.ravel())
        gaps.append((right - likeliest).ravel())
    at = np.digitize(np.concatenate(sure), np.linspace(0, 1, 21))
    pooled = [np.concatenate(gaps)[at == b] for b in np.unique(at)]
    missed = [abs(gap.mean()) for gap in pooled if len(gap) >= 30]
    assert results.row("stated_ace").value == pytest.approx(np.mean(missed), abs=1e-6)
    assert results.verdict[1].because.startswith("ACE of its probabilities")


def soft_discs(folder, sharp, items=40):
    """Discs with soft rims, drawn by chance; `sharp` of 1 states the chances."""
    rng = np.random.default_rng(3)
    with predictions.SegmentationWriter(folder) as writer:
        for i in range(items):
            away = rng.uniform(4, 9) - np.hypot(*(np.mgrid[:32, :32] - 16))
            chance, stated = (1 / (1 + np.exp(-k * away / 2)) for k in (1, sharp))
            statistics = scores.sufficient_statistics(
                np.stack([1 - stated, stated])[None]
            )
            drawn = (rng.random((1, 32, 32)) < chance).astype(np.uint8)
            writer.add(
                f"disc {i}", predictions.Maps(**statistics._asdict(), raters=drawn)
            )
    return folder


def test_small_items_do_not_make_a_calibrated_model_look_otherwise(tmp_path):
    honest = qualms.score(soft_discs(tmp_path / "honest", 1.0), options=BARE)
    assert honest.row("stated_ace").low == 0.0
    assert honest.verdict[1].answer == "yes"
    proud = qualms.score(soft_discs(tmp_path / "proud", 4.0), options=BARE)
    assert proud.verdict[1].answer == "no"


def test_files_of_other_raters_are_not_paired_though_names_agree(tmp_path):
    one = segmentation(tmp_path / "one")
    alike = rewritten(tmp_path / "alike", one)
    other = segmentation(tmp_path / "other", seed=5)
    mine, same, unlike = (
        qualms.score(folder, options=BARE, name=name)
        for folder, name in ((one, "a"), (one, "b"), (other, "c"))
    )
    assert compare([mine, same]).contrasts
    assert compare([mine, unlike]).notes
    note = "seems to hold the very items"
    for val, said in ((alike, True), (other, False)):
        results = qualms.score(one, val=val, options=BARE)
        assert any(note in text for text in results.notes) == said


def test_empty_masks_and_equal_errors_are_told(tmp_path):
    source = segmentation(tmp_path / "test", items=1)
    empty = {"raters": np.zeros_like}
    results = qualms.score(rewritten(tmp_path / "empty", source, **empty), options=BARE)
    assert any("no rater marks anything: 1;" in note for note in results.notes)
    assert results.verdict[2].because == "all items are equally wrong"


def test_validation_items_without_any_label_are_refused_by_name(tmp_path):
    source = segmentation(tmp_path / "test", items=1)
    bare = {"raters": lambda raters: np.full_like(raters, 255)}
    val = rewritten(tmp_path / "bare", source, **bare)
    with pytest.raises(ValueError, match=r"all labels in .*bare are 255, which its"):
        qualms.score(source, val=val, options=BARE)


def test_a_mean_entropy_above_that_of_the_mean_is_refused(tmp_path):
    source = segmentation(tmp_path / "test")
    wrong = {"expected_entropy": lambda entropy: np.full_like(entropy, 0.69)}
    folder = rewritten(tmp_path / "wrong", source, **wrong)
    with pytest.raises(ValueError, match=r"item-0 of .* 'expected_entropy' of at"):
        qualms.score(folder, options=BARE)


def test_segmentation_without_validation_says_what_is_missing(tmp_path):
    results = qualms.score(segmentation(tmp_path / "test"), options=BARE)
    assert "ace" not in {row.score for row in results.rows}
    assert any("--val" in note for note in results.notes)


def test_a_pool_of_plain_networks_has_the_measures_of_an_ensemble(tmp_path):
    kinds = []
    for draws in (1, 3):
        folder = segmentation(tmp_path / str(draws), draws=draws)
        rows = qualms.score(folder, options=BARE).rows
        kinds.append({r.settings["measure"] for r in rows if r.score == "ncc"})
    assert kinds == [{"predictive"}, {"predictive", "aleatoric", "epistemic"}]
    read = predictions.read(tmp_path / "3")
    entropies = [scores.entropy(m.mean_probs, class_axis=0) for m in read.maps]
    results = qualms.score(tmp_path / "3", options=BARE)
    expected = scores.ood_auroc(
        uncertainty=[e.sum() for e in entropies], shifted=read.arrays["shifted"]
    )
    row = results.row("ood_auroc", measure="predictive", aggregation="image")
    assert row.value == pytest.approx(expected)


def test_workers_change_no_number(tmp_path):
    folder = segmentation(tmp_path / "test")
    one = qualms.score(folder, options=ScoreOptions(resamples=0, workers=1))
    two = qualms.score(folder, options=ScoreOptions(resamples=0, workers=3))
    assert [row.value for row in one.rows] == [row.value for row in two.rows]


def test_the_same_file_twice_is_one_tie_group():
    results = [qualms.score(binary(), options=QUICK, name=name) for name in ("a", "b")]
    comparison = compare(results)
    assert comparison.contrasts
    for contrast in comparison.contrasts:
        assert contrast.tied == ("a", "b")
        assert contrast.difference["b"].value == 0.0


def test_a_clearly_better_file_stands_alone():
    good, bad = binary(600), binary(600)
    bad["prob"] = np.random.default_rng(3).permutation(bad["prob"])
    settings = ScoreOptions(resamples=200)
    comparison = compare(
        [
            qualms.score(good, options=settings, name="good"),
            qualms.score(bad, options=settings, name="bad"),
        ]
    )
    auroc = next(c for c in comparison.contrasts if c.score == "auroc")
    assert auroc.best == "good"
    assert auroc.tied == ("good",)
    assert auroc.difference["bad"].high < 0


def test_files_with_other_items_are_not_paired():
    comparison = compare(
        [
            qualms.score(binary(), options=QUICK, name="a"),
            qualms.score(binary(seed=5), options=QUICK, name="b"),
        ]
    )
    assert comparison.contrasts == ()
    assert "same items" in comparison.notes[0]


def test_tasks_do_not_compare():
    with pytest.raises(ValueError, match="only within one task"):
        compare(
            [
                qualms.score(binary(), options=BARE),
                qualms.score(regression(), options=BARE),
            ]
        )


def test_results_do_not_depend_on_item_order():
    arrays = binary(250, shifted=np.arange(250) % 3 == 0)
    order = np.random.default_rng(9).permutation(250)
    moved = {name: values[order] for name, values in arrays.items()}
    for a, b in zip(
        qualms.score(arrays, options=BARE).rows,
        qualms.score(moved, options=BARE).rows,
        strict=True,
    ):
        if a.subset != "balanced":  # its remainder is drawn by position
            assert a.value == pytest.approx(b.value, rel=1e-9, abs=1e-12), a.key


def test_files_are_named_by_as_much_of_the_path_as_needed(tmp_path):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        predictions.write(tmp_path / folder / "test.npz", binary())
    files = [tmp_path / "one" / "test.npz", tmp_path / "two" / "test.npz"]
    scored = score_files(files, options=BARE)
    assert [result.name for result in scored.results] == ["one/test", "two/test"]


def test_too_many_validation_files_are_refused(tmp_path):
    file = predictions.write(tmp_path / "a.npz", binary())
    with pytest.raises(ValueError, match="once per file"):
        score_files([file], val=[file, file], options=BARE)


def test_an_unknown_score_is_answered_with_the_known_ones():
    results = qualms.score(binary(), options=BARE)
    with pytest.raises(LookupError, match=r"Did you mean 'accuracy'\? It has accuracy"):
        results.row("acuracy")


def test_results_show_themselves_in_a_notebook():
    page = qualms.score(binary(), options=QUICK)._repr_html_()
    assert page.startswith("<table>")
    assert "AUROC" in page


def test_stated_intervals_are_judged_beside_a_mean():
    target = np.arange(40.0)
    arrays = {
        "target": target,
        "mean": target + 1,
        "lower": target,
        "upper": target + 2,
    }
    both = predictions.build(arrays, header={"alpha": 0.2})
    results = qualms.score(both, options=BARE)
    assert results.row("mae").value == 1.0
    assert results.row("interval_length", interval="as predicted").value == 2.0


def test_a_curve_is_drawn_of_the_items_its_row_is_about():
    arrays = binary(shifted=np.arange(300) >= 210)  # 210 in-domain: a drawn remainder
    for seed in (0, 1):
        results = qualms.score(arrays, options=ScoreOptions(resamples=0, seed=seed))
        (curve,) = [
            c
            for c in results.curves
            if (c.name, c.subset) == ("referral_accuracy", "balanced")
        ]
        row = results.row("accuracy", subset="balanced")
        assert curve.y[0] == pytest.approx(row.value)


def test_the_true_distribution_of_classes_is_used_and_said():
    rng = np.random.default_rng(0)
    true = rng.dirichlet([0.7] * 3, 300)
    target = (rng.random(300)[:, None] > true.cumsum(axis=1)).sum(axis=1).clip(0, 2)
    arrays = {"probs": true**2, "target": target, "target_probs": true}
    arrays["probs"] /= arrays["probs"].sum(axis=1, keepdims=True)
    results = qualms.score(arrays, options=ScoreOptions(resamples=0, by_group=True))
    for name in ("expected_nll", "expected_brier"):
        row = results[name]
        by_hand = getattr(scores, name)(probs=arrays["probs"], target_probs=true)
        assert row.value == pytest.approx(by_hand)
        assert row.low < row.value < row.high
    # Distributions say more than the classes that they draw.
    plain = results["nll"]
    assert results["expected_nll"].high - results["expected_nll"].low < (
        plain.high - plain.low
    )
    assert any("all other scores go by 'target'" in note for note in results.notes)
    assert "expected_nll" not in {
        row.score
        for row in qualms.score({k: arrays[k] for k in ("probs", "target")}).rows
    }
