"""What files of segmented items may hold: own maps, no labels, regions, any draws."""

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import qualms
from qualms import predictions, scores
from qualms.cli import app
from qualms.evaluate import ScoreOptions
from qualms.predictions import Maps, SegmentationWriter

SIDE, ITEMS = 16, 24
BARE = ScoreOptions(resamples=0, workers=1)


def disc_maps(row, *, draws=3, classes=2, own=None):
    """A disc at a known place; odd items are predicted too small, and unsurely."""
    rng = np.random.default_rng(row)
    distance = np.hypot(*(np.mgrid[:SIDE, :SIDE] - SIDE / 2))
    truth = distance <= 4 + row % 3
    poor = row % 2
    logit = 1.2 * (4 + row % 3 - 2.5 * poor - distance)
    noise = rng.normal(0, 0.2 + poor, (draws, SIDE, SIDE))
    p = 1 / (1 + np.exp(-logit - noise))
    statistics = scores.sufficient_statistics(np.stack([1 - p, p], 1))
    raters = np.stack([truth, distance <= 4.5 + row % 3]).astype(np.uint8)
    return Maps(
        **statistics._asdict(),
        raters=raters,
        uncertainty={} if own is None else {"mine": own(row, distance)},
    )


def shifted_own(row, distance):
    """Larger on odd items, and largest at the rim; of any sign."""
    return (row % 2) * 3.0 - np.abs(distance - 5.0) - 20.0


def written(folder, items, **columns):
    with SegmentationWriter(folder) as writer:
        for row, maps in enumerate(items):
            about = {name: values[row] for name, values in columns.items()}
            writer.add(f"case {row:02d}", maps, **about)
    return folder


def unlabelled(maps):
    return replace(maps, raters=np.empty(0, np.uint8))


def cli(*words):
    done = CliRunner().invoke(app, list(map(str, words)))
    assert done.exit_code == 0, done.output
    return done.output


def rows_of(results):
    return {row.key: row for row in results.rows}


class TestOwnUncertainties:
    @pytest.fixture
    def folder(self, tmp_path):
        items = [disc_maps(row, own=shifted_own) for row in range(ITEMS)]
        numbers = [{"whole": float(row % 2), "mine": -1.0} for row in range(ITEMS)]
        marks = [row % 2 == 1 for row in range(ITEMS)]
        return written(tmp_path / "p", items, uncertainty=numbers, shifted=marks)

    def test_own_maps_are_judged_beside_the_built_in_ones(self, folder):
        results = qualms.score(folder, options=BARE)
        maps = predictions.read(folder).maps
        dice = [
            np.mean(
                [
                    scores.dice(prediction=m.mean_probs.argmax(0), reference=r)
                    for r in m.raters
                ]
            )
            for m in maps
        ]
        for aggregation, of_map in (
            ("image", scores.aggregate_image),
            ("patch", scores.aggregate_patch),
            ("quantile", scores.aggregate_quantile),
        ):
            values = np.array([of_map(m.uncertainty["mine"]) for m in maps])
            row = results.row(
                "aurc", subset="all", uncertainty="mine", aggregation=aggregation
            )
            assert row.value == pytest.approx(
                scores.aurc(risk=1 - np.array(dice), uncertainty=values)
            )
        ncc = [
            scores.ncc(m.uncertainty["mine"], scores.rater_variance(m.raters))
            for m in maps
        ]
        assert results.row("ncc", uncertainty="mine").value == pytest.approx(
            np.mean(ncc)
        )
        shift = results.row("ood_auroc", uncertainty="mine", aggregation="patch")
        assert shift.value == 1.0
        # The file is judged by its own, and the built-in measures stay as they are.
        assert results.row("aurc").settings["uncertainty"] == "mine"
        (finds_errors,) = (a for a in results.verdict if a.question == "finds_errors")
        assert "by mine, patch; cut" in finds_errors.because
        assert "by predictive" in finds_errors.because
        assert results.row("aurc", measure="predictive").subset == "in_domain"
        assert "MI" not in str(rows_of(results))

    def test_numbers_of_items_are_judged_without_aggregation(self, folder):
        results = qualms.score(folder, options=BARE)
        whole = [
            row for row in results.rows if row.settings == {"uncertainty": "whole"}
        ]
        assert {row.score for row in whole} == {"aurc", "eaurc", "augrc", "ood_auroc"}
        assert results.row("ood_auroc", uncertainty="whole").value == 1.0
        # A map and a number may share their name.
        mine = [r for r in results.rows if r.settings.get("uncertainty") == "mine"]
        assert {"aggregation" in row.settings for row in mine} == {True, False}
        assert any(
            "uncertainty 'mine' (in-domain) is constant" in n for n in results.notes
        )

    def test_validation_gives_own_maps_a_threshold_and_confidences(
        self, folder, tmp_path
    ):
        val = written(
            tmp_path / "val",
            [disc_maps(row, own=shifted_own) for row in range(100, 112)],
        )
        results = qualms.score(folder, val=val, options=BARE)
        maps, val_maps = (predictions.read(f).maps for f in (folder, val))
        labels = [
            np.concatenate([m.draw_labels, m.mean_probs.argmax(0)[None]])
            for m in val_maps
        ]
        own = [m.uncertainty["mine"] for m in val_maps]
        threshold = scores.threshold_from_validation(own, labels)
        values = [
            scores.aggregate_threshold(m.uncertainty["mine"], threshold=threshold)
            for m in maps
        ]
        shifted = predictions.read(folder).arrays["shifted"]
        row = results.row("ood_auroc", uncertainty="mine", aggregation="threshold")
        assert row.value == pytest.approx(
            scores.ood_auroc(uncertainty=values, shifted=shifted)
        )
        agreed = [
            scores.rater_agreement(m.mean_probs.argmax(0), m.raters) for m in val_maps
        ]
        fit = scores.fit_platt(
            uncertainty=np.stack(own),
            correct=np.stack([a.correct for a in agreed]),
            total=np.stack([a.total for a in agreed]),
        )
        errors = []
        for m in maps:
            agreed = scores.rater_agreement(m.mean_probs.argmax(0), m.raters)
            conf = fit.confidence(m.uncertainty["mine"])
            errors.append(
                scores.ace(confidence=conf, correct=agreed.correct, total=agreed.total)
            )
        found = results.row("ace", subset="all", uncertainty="mine").value
        assert found == pytest.approx(np.mean(errors), abs=1e-3)

    def test_validation_without_the_own_map_is_noted(self, folder, tmp_path):
        val = written(tmp_path / "val", map(disc_maps, range(100, 112)))
        results = qualms.score(folder, val=val, options=BARE)
        assert any("uncertainty/mine is not in the val" in n for n in results.notes)
        kinds = [r.settings.get("aggregation") for r in results.rows]
        assert "threshold" in kinds  # of the built-in measures
        with pytest.raises(LookupError):
            results.row("ace", subset="all", uncertainty="mine")

    def test_a_pool_leaves_them_out_and_says_so(self, folder, tmp_path):
        again = written(
            tmp_path / "b",
            [disc_maps(row, own=shifted_own) for row in range(ITEMS)],
            shifted=[row % 2 == 1 for row in range(ITEMS)],
        )
        pooled = predictions.pool([folder, again])
        assert pooled.own_maps == ()
        assert any("own uncertainty maps belong to single" in n for n in pooled.notes)
        results = qualms.score(pooled, options=BARE)
        assert not any("uncertainty" in row.settings for row in results.rows)
        assert (
            predictions.pool([folder, predictions.read(folder)]).get(
                "uncertainty/whole"
            )
            is not None
        )

    def test_arrays_in_python_are_scored_alike(self, folder):
        read = predictions.read(folder)
        arrays = dict(read.arrays) | {"maps": list(read.maps)}
        mine = qualms.score(arrays, options=BARE)
        theirs = qualms.score(folder, options=BARE)
        assert [(r.key, r.value) for r in mine.rows] == [
            (r.key, r.value) for r in theirs.rows
        ]

    def test_the_terminal_the_page_and_json_have_them(self, folder, tmp_path):
        page = tmp_path / "page.html"
        printed = cli("score", folder, "--all", "--html", page)
        assert "mine, patch" in printed
        assert "mine, patch" in page.read_text(encoding="utf-8")
        rows = json.loads(cli("score", folder, "--json"))["files"][0]["scores"]
        settings = [row["settings"] for row in rows]
        assert {"uncertainty": "mine", "aggregation": "patch"} in settings
        assert {"uncertainty": "whole"} in settings

    def test_check_names_them(self, folder):
        printed = cli("check", folder)
        assert "uncertainty/whole 24" in printed
        assert "own uncertainty maps: mine" in printed


class TestDraws:
    def test_any_number_of_draws_is_scored_and_pooled_by_its_weight(self, tmp_path):
        draws = [1, 4, 2, 3, 5, 1]
        items = [disc_maps(row, draws=m) for row, m in enumerate(draws)]
        folder = written(tmp_path / "p", items)
        results = qualms.score(folder, options=BARE, draws="models")
        measures = {row.settings.get("measure") for row in results.rows}
        assert measures >= {"predictive", "aleatoric", "epistemic"}
        patches = [
            scores.aggregate_patch(
                scores.uncertainty_maps(m.mean_probs, m.expected_entropy).epistemic
            )
            for m in predictions.read(folder).maps
        ]
        found = results.row("aurc", measure="epistemic", aggregation="patch")
        np.testing.assert_allclose(found.entry.uncertainty, patches, atol=1e-5)
        assert "draws: 1 to 5 per item" in cli("check", folder)
        other = [disc_maps(row, draws=2) for row in range(6)]
        pooled = predictions.pool([folder, written(tmp_path / "two", other)])
        for row, maps in enumerate(pooled.maps):
            assert len(maps.draw_labels) == draws[row] + 2
            first, second = items[row].mean_probs, other[row].mean_probs
            mean = (draws[row] * first + 2 * second) / (draws[row] + 2)
            np.testing.assert_allclose(maps.mean_probs, mean, atol=1e-6)

    def test_one_draw_for_every_item_has_one_measure(self, tmp_path):
        folder = written(tmp_path / "p", [disc_maps(r, draws=1) for r in range(4)])
        results = qualms.score(folder, options=BARE)
        measures = {r.settings.get("measure") for r in results.rows}
        assert measures == {None, "predictive"}


class TestUnlabelledItems:
    """Items without raters count where no label is needed: in detecting a shift."""

    def marks(self):
        return [row % 2 == 1 for row in range(ITEMS)]

    def test_they_count_in_ood_detection_only(self, tmp_path):
        whole = [disc_maps(row) for row in range(ITEMS)]
        some = [unlabelled(m) if row < 10 else m for row, m in enumerate(whole)]
        folder = written(tmp_path / "p", some, shifted=self.marks())
        found = qualms.score(folder, options=BARE)
        full = written(tmp_path / "full", whole, shifted=self.marks())
        every = qualms.score(full, options=BARE)
        for row in every.rows:
            if row.score == "ood_auroc":
                assert rows_of(found)[row.key].value == row.value
                assert rows_of(found)[row.key].n == ITEMS
        rest = written(tmp_path / "rest", whole[10:], shifted=self.marks()[10:])
        for row in qualms.score(rest, options=BARE).rows:
            if row.score != "ood_auroc":
                mine = rows_of(found)[row.key]
                assert mine.value == pytest.approx(row.value, nan_ok=True), row.key
                assert mine.n == row.n
        assert any("items without a labelled pixel: 10" in n for n in found.notes)
        checked = cli("check", folder)
        assert "raters: 2, and none for 10 items" in checked
        assert f"shifted: {ITEMS // 2} of {ITEMS} items" in checked

    def test_a_file_without_any_label_says_how_well_shift_is_detected(self, tmp_path):
        items = [unlabelled(disc_maps(row)) for row in range(ITEMS)]
        folder = written(tmp_path / "p", items, shifted=self.marks())
        results = qualms.score(folder)
        assert {row.score for row in results.rows} == {"ood_auroc"}
        row = results.row("ood_auroc", measure="predictive", aggregation="patch")
        assert row.low <= row.value <= row.high
        assert {answer.answer for answer in results.verdict} == {"not asked"}
        assert "no item has labels" in results.verdict[0].because
        printed = cli("score", folder)
        assert "OOD AUROC" in printed
        assert "raters: none" in cli("check", folder)
        qualms.evaluate.score_files([folder, folder])

    def test_a_file_with_neither_labels_nor_marks_is_not_scored(self, tmp_path):
        items = [unlabelled(disc_maps(row)) for row in range(3)]
        folder = written(tmp_path / "p", items)
        with pytest.raises(ValueError, match=r"no item of .* has any \(no 'raters'"):
            qualms.score(folder)
        assert "nothing can be scored" in cli("check", folder)

    def test_validation_needs_some_labels(self, tmp_path):
        folder = written(tmp_path / "p", [disc_maps(row) for row in range(4)])
        items = [disc_maps(row) for row in range(100, 106)]
        some = [*map(unlabelled, items[:3]), *items[3:]]
        val = written(tmp_path / "val", some)
        results = qualms.score(folder, val=val, options=BARE)
        rest = written(tmp_path / "rest", items[3:])
        labelled = qualms.score(folder, val=rest, options=BARE)
        assert results.row("ace").value == labelled.row("ace").value
        bare = written(tmp_path / "bare", map(unlabelled, items))
        with pytest.raises(ValueError, match="some pixel of the validation items must"):
            qualms.score(folder, val=bare, options=BARE)

    def test_unlabelled_items_are_pooled(self, tmp_path):
        items = [unlabelled(disc_maps(row)) for row in range(4)]
        folder = written(tmp_path / "p", items)
        pooled = predictions.pool([folder, predictions.read(folder)])
        assert pooled.maps[3].raters.shape == (0, SIDE, SIDE)
        assert len(pooled.maps[3].draw_labels) == 6

    def test_a_file_that_is_its_own_validation_is_noted(self, tmp_path):
        items = [unlabelled(disc_maps(row)) for row in range(4)]
        items[1] = disc_maps(1)
        folder = written(tmp_path / "p", items)
        results = qualms.score(folder, val=folder, options=BARE)
        assert any("seems to hold the very items" in note for note in results.notes)


REGIONS = ("whole", "core")


def region_item(row, *, draws=3):
    """A disc with a core inside; both are predicted too small on odd items."""
    rng = np.random.default_rng(row)
    distance = np.hypot(*(np.mgrid[:SIDE, :SIDE] - SIDE / 2))
    sizes = np.array([6.0, 3.0])[:, None, None]
    poor = row % 2
    logit = 1.2 * (sizes - 2 * poor - distance)
    noise = rng.normal(0, 0.2 + poor, (draws, 2, SIDE, SIDE))
    probs = 1 / (1 + np.exp(-logit - noise))
    statistics = scores.region_statistics(probs)
    raters = np.stack([distance <= sizes, distance <= sizes + 0.5]).astype(np.uint8)
    raters[:, :, 0, 0] = 255
    return Maps(**statistics._asdict(), raters=raters)


def written_regions(folder, items, **columns):
    header = {"regions": REGIONS, "ignore": 255}
    with SegmentationWriter(folder, header=header) as writer:
        for row, maps in enumerate(items):
            about = {name: values[row] for name, values in columns.items()}
            writer.add(f"case {row:02d}", maps, **about)
    return folder


class TestRegions:
    @pytest.fixture
    def folder(self, tmp_path):
        marks = [row % 2 == 1 for row in range(ITEMS)]
        items = [region_item(row) for row in range(ITEMS)]
        return written_regions(tmp_path / "p", items, shifted=marks)

    def test_they_come_back(self, folder):
        found = predictions.read(folder)
        assert found.header.regions == REGIONS
        assert found.classes is None
        maps, made = found.maps[1], region_item(1)
        assert maps.mean_probs.shape == (2, SIDE, SIDE)
        assert maps.draw_labels.shape == (3, 2, SIDE, SIDE)
        np.testing.assert_allclose(maps.mean_probs, made.mean_probs, atol=1e-6)
        np.testing.assert_array_equal(maps.raters, made.raters)

    def test_overlap_is_that_of_each_region_and_their_mean(self, folder):
        results = qualms.score(folder, options=BARE)
        maps = predictions.read(folder).maps
        for score in ("dice", "ged"):
            of_each = []
            for k, region in enumerate(REGIONS):
                values = []
                for m in maps:
                    draws, raters = m.draw_labels[:, k], m.raters[:, k]
                    predicted = (m.mean_probs[k] > 0.5).astype(np.uint8)
                    dice = [
                        scores.dice(prediction=predicted, reference=r, ignore=255)
                        for r in raters
                    ]
                    ged = scores.ged(draws=draws, raters=raters, ignore=255)
                    values.append(np.mean(dice) if score == "dice" else ged)
                of_each.append(np.mean(values))
                row = results.row(score, subset="all", region=region)
                assert row.value == pytest.approx(of_each[-1])
            assert results.row(score, subset="all").value == pytest.approx(
                np.mean(of_each)
            )
            assert results.row(score, subset="all").settings == {}
        assert not any(row.score == "macro_dice" for row in results.rows)

    def test_uncertainty_is_summed_over_regions(self, folder):
        results = qualms.score(folder, options=BARE)
        read = predictions.read(folder)
        patches, ncc, dice = [], [], []
        for m in read.maps:
            p = m.mean_probs.astype(np.float64)
            total = -(p * np.log(p) + (1 - p) * np.log(1 - p)).sum(axis=0)
            patches.append(scores.aggregate_patch(total))
            spread = sum(
                scores.rater_variance(m.raters[:, k], ignore=255) for k in (0, 1)
            )
            ncc.append(
                scores.ncc(total, np.nan_to_num(spread), mask=np.isfinite(spread))
            )
            predicted = (m.mean_probs > 0.5).astype(np.uint8)
            dice.append(
                np.mean(
                    [
                        scores.dice(prediction=predicted[k], reference=r[k], ignore=255)
                        for r in m.raters
                        for k in (0, 1)
                    ]
                )
            )
        ood = scores.ood_auroc(uncertainty=patches, shifted=read.arrays["shifted"])
        at = {"measure": "predictive", "aggregation": "patch"}
        assert results.row("ood_auroc", **at).value == pytest.approx(ood)
        aurc = scores.aurc(risk=1 - np.array(dice), uncertainty=np.array(patches))
        assert results.row("aurc", subset="all", **at).value == pytest.approx(aurc)
        found = results.row("ncc", subset="all", measure="predictive").value
        assert found == pytest.approx(np.mean(ncc), abs=1e-5)

    def test_calibration_is_of_every_sigmoid(self, folder, tmp_path):
        results = qualms.score(folder, options=BARE)
        maps = predictions.read(folder).maps
        probs, correct = [], []
        for m in maps:
            for k in (0, 1):
                for rater in m.raters:
                    counted = rater[k] != 255
                    p = m.mean_probs[k].astype(float)[counted]
                    probs.append(np.stack([1 - p, p]))
                    correct.append((p > 0.5) == rater[k][counted])
        stated = scores.stated_ace(
            mean_probs=np.concatenate(probs, axis=1), correct=np.concatenate(correct)
        )
        assert results.row("stated_ace", subset="all").value == pytest.approx(
            stated, abs=1e-6
        )
        val = written_regions(
            tmp_path / "val", [region_item(row) for row in range(50, 60)]
        )
        fitted = qualms.score(folder, val=val, options=BARE)
        assert 0 < fitted.row("ace", subset="all").value < 0.5
        assert fitted.row("aurc", aggregation="threshold").value > 0

    def test_verdict_terminal_and_page_speak_of_the_mean(self, folder, tmp_path):
        results = qualms.score(folder)
        assert results.verdict[0].because.startswith("Dice ")
        printed = cli("score", folder, "--all", "--html", tmp_path / "page.html")
        assert "whole" in printed
        assert "core" in printed
        checked = cli("check", folder)
        assert "regions: 2 (pixels of each: whole: " in checked
        assert "ignored: 0.4%" in checked

    def test_one_draw_has_the_probability_of_the_likeliest_set(self, tmp_path):
        items = [region_item(row, draws=1) for row in range(4)]
        folder = written_regions(tmp_path / "p", items)
        results = qualms.score(folder, options=BARE)
        maps = predictions.read(folder).maps
        patches = [
            scores.aggregate_patch(
                1 - np.maximum(m.mean_probs, 1 - m.mean_probs).astype(float).prod(0)
            )
            for m in maps
        ]
        dice = 1 - results.row("aurc", aggregation="patch").entry.risk
        found = results.row("aurc", aggregation="patch")
        np.testing.assert_allclose(found.entry.uncertainty, patches, rtol=1e-5)
        assert found.value == pytest.approx(
            scores.aurc(risk=1 - dice, uncertainty=np.array(patches))
        )

    def test_pools_average_sigmoids(self, folder):
        pooled = predictions.pool([folder, predictions.read(folder)])
        assert pooled.maps[0].draw_labels.shape == (6, 2, SIDE, SIDE)
        first = qualms.score(folder, options=BARE)
        assert qualms.score(pooled, options=BARE).row("dice").value == pytest.approx(
            first.row("dice").value
        )

    def test_a_single_region_equals_two_classes(self, tmp_path):
        with SegmentationWriter(tmp_path / "one", header={"regions": ["disc"]}) as one:
            for row in range(6):
                maps = disc_maps(row)
                one.add(
                    str(row),
                    Maps(
                        mean_probs=maps.mean_probs[1:],
                        expected_entropy=maps.expected_entropy,
                        draw_labels=maps.draw_labels[:, None],
                        raters=maps.raters[:, None],
                    ),
                )
        written(tmp_path / "two", [disc_maps(row) for row in range(6)])
        ours, theirs = (
            rows_of(qualms.score(tmp_path / name, options=BARE))
            for name in ("one", "two")
        )
        assert len(theirs) > 40
        for key, row in theirs.items():
            assert ours[key].value == pytest.approx(row.value, abs=1e-5), key

    @pytest.mark.parametrize(
        ("alter", "sentence"),
        [
            (
                lambda m: replace(m, mean_probs=m.mean_probs[:1]),
                "array 'mean_probs' has 1 region (shape (1, 16, 16)), the header "
                "names 2: 'whole', 'core'",
            ),
            (
                lambda m: replace(m, raters=m.raters[:, 0]),
                "array 'raters' must have shape (R, K, 16, 16) to fit "
                "'expected_entropy', got (2, 16, 16); put the rater axis first, then "
                "the regions",
            ),
            (
                lambda m: replace(m, mean_probs=3 * m.mean_probs),
                "; store the sigmoid of each region, averaged over draws",
            ),
            (
                lambda m: replace(m, draw_labels=m.draw_labels + 1),
                "array 'draw_labels' must be 1 inside a region and 0 outside, draw 0, ",
            ),
            (
                lambda m: replace(m, expected_entropy=m.expected_entropy + 1.5),
                "[0, 1.386] (log 2 for each of 2 regions, in nats)",
            ),
        ],
    )
    def test_a_mistake_in_an_item_names_it(self, alter, sentence):
        header = {"regions": REGIONS, "ignore": 255}
        with pytest.raises(predictions.PredictionsError) as error:
            predictions.build({"maps": [alter(region_item(0))]}, header=header)
        assert sentence in str(error.value)

    @pytest.mark.parametrize("regions", ["whole", ["a", "a"], [1, 2], [""]])
    def test_regions_are_different_names(self, regions):
        with pytest.raises(ValueError, match="header 'regions' must be a list of diff"):
            predictions.Header(regions=regions)

    def test_sigmoids_without_the_names_of_regions_get_a_hint(self):
        with pytest.raises(ValueError, match="name these in the header: 'regions'"):
            predictions.build(
                {
                    "maps": [
                        replace(
                            region_item(0),
                            draw_labels=np.zeros((1, SIDE, SIDE), np.uint8),
                            raters=np.zeros((1, SIDE, SIDE), np.uint8),
                        )
                    ]
                }
            )
