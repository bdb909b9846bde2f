"""Pooling: a pool is the file that one run with all the draws would have written."""

import json
import re

import numpy as np
import pytest

from predictions import made
from qualms.predictions import Header, PredictionsError, build, pool, read, write

RULES = {"select": {"gmm": "logmeanexp", "knn": "mean"}}
SEG = {"ignore": 255}


def joined(parts, *names):
    together = dict(parts[0])
    for name in names:
        together[name] = np.concatenate([part[name] for part in parts])
    return together


@pytest.mark.parametrize("draws", [(1, 1), (2, 3, 1)])
def test_draws_are_concatenated(draws):
    parts = [made.classification(m, seed) for seed, m in enumerate(draws)]
    pooled_predictions = pool(build(part) for part in parts)
    whole = build(joined(parts, "probs"))
    assert pooled_predictions.draws == whole.draws == sum(draws)
    np.testing.assert_array_equal(
        pooled_predictions.arrays["probs"], whole.arrays["probs"]
    )
    for name in ("target", "item", "group", "cluster", "shifted", "target_probs"):
        np.testing.assert_array_equal(
            pooled_predictions.arrays[name], whole.arrays[name]
        )


def test_means_and_variances_are_concatenated():
    parts = [made.regression(m, seed) for seed, m in enumerate((2, 3))]
    pooled_predictions = pool([build(part, header=RULES) for part in parts])
    for name in ("mean", "var"):
        np.testing.assert_array_equal(
            pooled_predictions.arrays[name],
            np.concatenate([part[name] for part in parts]),
        )


def test_selection_scores_are_combined_by_their_rule():
    parts = [made.regression(m, seed) for seed, m in enumerate((2, 3))]
    pooled_predictions = pool([build(part, header=RULES) for part in parts])
    logs = np.concatenate([part["select/gmm"] for part in parts]).astype(float)
    assert pooled_predictions.named("select")["gmm"].shape == (1, made.N)
    np.testing.assert_allclose(
        pooled_predictions.named("select")["gmm"][0],
        -np.log(np.exp(-logs).mean(axis=0)),
        rtol=1e-12,
    )
    # One value per item stands for all draws of its run, so runs weigh as their draws.
    knn = [part["select/knn"].astype(float) for part in parts]
    np.testing.assert_allclose(
        pooled_predictions.named("select")["knn"][0],
        (2 * knn[0] + 3 * knn[1]) / 5,
        rtol=1e-12,
    )
    assert pooled_predictions.header.select == RULES["select"]


def test_log_likelihoods_far_below_zero_do_not_vanish():
    part = made.regression(2)
    part["select/gmm"] = np.full((2, made.N), -5000.0)
    pooled_predictions = pool([build(part, header=RULES)])
    np.testing.assert_allclose(pooled_predictions.named("select")["gmm"], -5000.0)


@pytest.mark.parametrize("make", [made.classification, made.regression])
def test_pools_can_be_pooled(make):
    a, b, c = (build(make(m, seed)) for seed, m in enumerate((1, 3, 2)))
    at_once, in_steps = pool([a, b, c]), pool([pool([a, b]), c])
    assert at_once.arrays.keys() == in_steps.arrays.keys()
    for name, array in at_once.arrays.items():
        if array.dtype.kind == "f":
            np.testing.assert_allclose(array, in_steps.arrays[name], rtol=1e-12)
        else:
            np.testing.assert_array_equal(array, in_steps.arrays[name])
    assert at_once.header == in_steps.header


def test_the_order_of_the_runs_changes_only_the_order_of_draws():
    a, b = (build(made.regression(2, seed)) for seed in (0, 1))
    ab, ba = pool([a, b]), pool([b, a])
    np.testing.assert_array_equal(ab.arrays["mean"], ba.arrays["mean"][[2, 3, 0, 1]])
    np.testing.assert_allclose(
        ab.named("select")["gmm"], ba.named("select")["gmm"], rtol=1e-12
    )


def test_a_pool_of_one_is_the_run_itself():
    one = build(made.classification(), header={"seed": 3})
    pooled_predictions = pool([one])
    assert pooled_predictions.arrays.keys() == one.arrays.keys()
    for name, array in one.arrays.items():
        np.testing.assert_array_equal(pooled_predictions.arrays[name], array)
    assert pooled_predictions.header == Header(task="classification", seed=3, pooled=1)


def test_a_pool_can_be_written_and_read(tmp_path):
    paths = [
        write(tmp_path / f"{seed}.safetensors", made.classification(2, seed))
        for seed in range(3)
    ]
    pooled_predictions = pool(paths)
    again = read(write(tmp_path / "pool.safetensors", pooled_predictions))
    np.testing.assert_array_equal(
        pooled_predictions.arrays["probs"], again.arrays["probs"]
    )
    assert again.header.pooled == 3
    assert pooled_predictions.source == f"pool of {', '.join(map(str, paths))}"


def test_the_header_keeps_what_the_runs_share():
    a = build(made.classification(), header=made.HEADER)
    b = build(made.classification(seed=1), header=made.HEADER | {"seed": 4})
    header = pool([a, b]).header
    assert (header.dataset, header.method, header.seed) == (
        "eyepacs",
        "mc_dropout",
        None,
    )
    assert header.options == made.HEADER["options"]
    assert (header.seconds, header.pooled) == (3.0, 2)
    mixed = pool([build(made.classification(seed=1)), a]).header
    assert (mixed.seconds, mixed.seed, mixed.method) == (None, None, None)
    assert (mixed.dataset, mixed.fingerprint) == ("eyepacs", "abc")


@pytest.mark.parametrize(
    ("stated", "draws", "pooled"),
    [
        ((None, None), 1, "models"),  # a plain network, trained twice
        (("models", None), 1, "models"),
        (("models", "models"), 3, "models"),
        (("labels", "labels"), 3, None),  # models that draw labels vary both
        ((None, None), 3, None),
    ],
)
def test_a_pool_says_what_its_draws_vary_if_it_is_one_thing(stated, draws, pooled):
    rng = np.random.default_rng(0)
    runs = [
        build(
            {"probs": rng.dirichlet([1, 1], (draws, 5)), "target": [0, 1, 0, 1, 1]},
            header={"draws": vary},
        )
        for vary in stated
    ]
    assert pool(runs).header.draws == pooled
    assert pool(runs[:1]).header.draws == stated[0]


def test_uncertainties_of_single_runs_are_left_out_with_a_note():
    a, b = made.classification(), made.classification(seed=1)
    shared = {"uncertainty/age": np.arange(made.N), "latitude": [0]}
    pooled_predictions = pool([build(a | shared), build(b | shared)])
    assert set(pooled_predictions.named("uncertainty")) == {"age"}
    assert pooled_predictions.notes == (
        "array 'latitude' is not part of classification predictions and was ignored",
        "array 'uncertainty/entropy' belongs to single runs and was left out of "
        "the pool",
    )
    del b["uncertainty/entropy"]
    assert "is not in all that were pooled" in pool([build(a), build(b)]).notes[0]


def test_what_only_some_runs_know_is_kept():
    plain = {k: made.classification()[k] for k in ("target", "probs")}
    pooled_predictions = pool([build(plain), build(made.classification(seed=1))])
    assert pooled_predictions.arrays["group"].shape == (made.N,)
    np.testing.assert_array_equal(
        pooled_predictions.arrays["probs"][: made.DRAWS], plain["probs"].astype(float)
    )


class TestSegmentation:
    @pytest.fixture
    def folders(self, tmp_path):
        return [
            write(tmp_path / f"{m}", made.segmentation(seed=m, draws=m), header=SEG)
            for m in (1, 3)
        ]

    def test_statistics_are_averaged_by_draws(self, folders):
        found = pool(folders)
        assert (found.n, found.draws, found.classes) == (3, 4, 3)
        a, b = (read(folder) for folder in folders)
        for i, maps in enumerate(found.maps):
            for name in ("mean_probs", "expected_entropy"):
                parts = [getattr(p.maps[i], name).astype(float) for p in (a, b)]
                np.testing.assert_allclose(
                    getattr(maps, name), 0.25 * parts[0] + 0.75 * parts[1], rtol=1e-6
                )
            np.testing.assert_array_equal(
                maps.draw_labels,
                np.concatenate([a.maps[i].draw_labels, b.maps[i].draw_labels]),
            )
            np.testing.assert_array_equal(maps.raters, a.maps[i].raters)
            assert maps.mean_probs.dtype == np.float32

    def test_pools_can_be_pooled_and_written(self, folders, tmp_path):
        a, b = (read(folder) for folder in folders)
        again = read(folders[0])
        at_once, in_steps = pool([a, b, again]), pool([pool([a, b]), again])
        assert any("are equal: one run?" in note for note in at_once.notes)
        for mine, theirs in zip(at_once.maps, in_steps.maps, strict=True):
            np.testing.assert_allclose(mine.mean_probs, theirs.mean_probs, atol=1e-6)
            np.testing.assert_array_equal(mine.draw_labels, theirs.draw_labels)
        again = read(write(tmp_path / "pool", at_once))
        assert again.draws == 5
        assert again.arrays["group"].tolist() == a.arrays["group"].tolist()

    def test_nothing_is_read_before_it_is_asked_for(self, folders):
        a, b = (read(folder) for folder in folders)
        for name in ("000000", "000002"):
            (folders[0] / f"{name}.safetensors").unlink()
        found = pool([a, b])
        assert found.maps[1].draw_labels.shape == (4, 4, 5)
        with pytest.raises(PredictionsError, match="000002"):
            found.maps[2]

    def test_other_raters_or_sizes_are_refused(self):
        arrays = made.segmentation()
        other = made.segmentation(seed=1)
        other["maps"][1] = made.maps(3)
        other["maps"][1].raters[0, 1, 1] ^= 1
        found = pool([build(arrays, header=SEG), build(other, header=SEG)])
        _ = found.maps[0]
        with pytest.raises(
            PredictionsError, match="the raters of item 1 differ between"
        ):
            found.maps[1]
        other["maps"][1] = made.maps(3, space=(3, 3))
        with pytest.raises(
            PredictionsError, match=r"item 1 has mean_probs of shape \(3"
        ):
            found = pool([build(arrays, header=SEG), build(other, header=SEG)]).maps[1]


def cls(header=None, **changes):
    arrays = made.classification(seed=1)
    for name, value in changes.items():
        arrays[name] = value(arrays[name]) if callable(value) else value
    return build({k: v for k, v in arrays.items() if v is not None}, header=header)


REFUSED = [
    (lambda: build(made.regression()), "holds classification and", "regression pred"),
    (lambda: cls({"dataset": "aptos"}), "the dataset of", "is 'eyepacs', that of"),
    (lambda: cls({"split": "val"}), "the split of", "is 'test', that of"),
    (lambda: cls({"fingerprint": "x"}), "the fingerprint of", "is 'abc', that of"),
    (
        lambda: build({"target": [0], "prob": [0.5]}),
        "has 12 items",
        "1; pool only runs on the same items in the same order",
    ),
    (
        lambda: cls(item=lambda a: a[::-1]),
        "the items are the same but ordered differently, row 0 is 'eye 0' in",
        "and 'eye 11' in",
    ),
    (
        lambda: cls(item=[f"ear {i}" for i in range(made.N)]),
        "item 'eye 0' of",
        "is not in",
    ),
    (
        lambda: cls(item=None, target=lambda a: (a + (np.arange(made.N) == 5)) % 4),
        "'target' differs, row 5 is",
        "; pool only runs",
    ),
    (
        lambda: build(
            made.everywhere(np.random.default_rng(7))
            | {"target": np.zeros(made.N), "prob": np.zeros(made.N)}
        ),
        "has 4 classes",
        "2; pool only",
    ),
    (lambda: cls(group=np.arange(made.N)), "'group' differs, row 0 is", "and 0 in"),
]


@pytest.mark.parametrize(("other", "sentence", "more"), REFUSED)
def test_runs_on_different_data_are_not_pooled(other, sentence, more):
    first = build(made.classification(), header=made.HEADER)
    with pytest.raises(PredictionsError, match=re.escape(sentence)) as error:
        pool([first, other()])
    assert more in str(error.value)
    assert str(error.value).startswith(
        "cannot pool 'arrays (number 1)' and 'arrays (number 2)': "
    )


def test_the_files_that_differ_are_named(tmp_path):
    a = write(tmp_path / "a.npz", made.classification(), header={"split": "val"})
    b = write(tmp_path / "b.npz", made.classification(), header={"split": "test"})
    with pytest.raises(PredictionsError) as error:
        pool([a, b])
    assert str(error.value) == (
        f"cannot pool '{a}' and '{b}': the split of '{a}' is 'val', that of '{b}' "
        "'test'; pool only runs on the same items in the same order"
    )


def test_targets_in_single_and_double_precision_are_the_same(tmp_path):
    arrays = {"target": [0.1, 0.2], "mean": [0.1, 0.2]}
    paths = [write(tmp_path / f"p{e}", arrays) for e in (".npz", ".safetensors")]
    assert pool(paths).draws == 2


def test_runs_of_different_kinds_are_not_pooled():
    with_var = made.regression()
    without = {k: v for k, v in with_var.items() if k != "var"}
    with pytest.raises(PredictionsError, match="only the first has 'var'"):
        pool([build(without), build(with_var)])
    a, b = (
        build(with_var, header={"select": {"gmm": r}}) for r in ("mean", "logmeanexp")
    )
    with pytest.raises(PredictionsError, match="'select/gmm' is 'logmeanexp' in one"):
        pool([a, b])


def test_intervals_and_embeddings_are_not_draws():
    interval = build(made.intervals(), header={"alpha": 0.1})
    with pytest.raises(PredictionsError, match="are intervals, not draws"):
        pool([interval, build(made.intervals(), header={"alpha": 0.1})])
    embedding = build(made.embedding())
    with pytest.raises(PredictionsError, match="embeddings of different runs share no"):
        pool([embedding, build(made.embedding())])


def test_a_pool_needs_a_list_of_sources(tmp_path):
    with pytest.raises(PredictionsError, match="there is nothing to pool"):
        pool([])
    path = write(tmp_path / "a.npz", made.classification())
    for single in (path, str(path), read(path)):
        with pytest.raises(PredictionsError, match="pool takes a list of predictions"):
            pool(single)


def test_the_published_ensemble_gmm_is_the_pooled_likelihood(golden):
    case = golden("regression")["cases"]["n2000"]
    scope = {}
    exec(golden("regression")["input_recipe"], scope)
    c = scope["make_case"](**case["params"])
    members = [
        build(
            {
                "target": c["y_val"],
                "mean": c["mu_val"][m],
                "select/gmm": -c["ens_logp_val"][m],
            },
            header={"select": {"gmm": "logmeanexp"}},
        )
        for m in range(5)
    ]
    kappa = np.sort(pool(members).named("select")["gmm"][0])
    published = case["alpha_0.1"]["selective"]["ensemble_gmm"]["tau"]
    np.testing.assert_allclose(kappa[int(0.95 * len(kappa))], published, rtol=1e-9)
    assert json.dumps(pool(members).header.select) == '{"gmm": "logmeanexp"}'
