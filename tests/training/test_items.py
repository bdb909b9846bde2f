"""Second-stage runs: items chosen from the predictions of earlier runs."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from qualms import predictions, scores
from qualms.predictions import Header, Maps, SegmentationWriter
from qualms.spec import ItemRule
from qualms.training import TrainingError, _items, run_alone
from qualms.training._items import training_items
from qualms.training._splits import Splits
from training import made

PARENTS = ("a" * 16, "b" * 16)


def with_pool(kind="classification", count=12):
    dataset = made.dataset(kind=kind)
    pool = made.split(count, 7, kind=kind)
    return replace(dataset, splits={**dataset.splits, "pool": pool})


def second(name, *, runs=PARENTS, split="pool", seed=0, **options):
    rule = ItemRule(name=name, runs=tuple(runs), split=split, options=options)
    return replace(made.spec(seed, method="noting", epochs=1), items=rule)


def listed(folder):
    return json.loads((folder / "items.json").read_text())["items"]


def probs(dataset, hash_, seed):
    rng = np.random.default_rng(seed)
    split = dataset.splits["pool"]
    found = rng.dirichlet(np.ones(2), (3, len(split))).astype(np.float32)
    return {"probs": found, "target": split.target, "item": split.item}


def put(root, dataset, made_by, split="pool"):
    """Write predictions of both parents; `made_by` makes their arrays."""
    for number, parent in enumerate(PARENTS):
        folder = root / parent / "predictions"
        folder.mkdir(parents=True, exist_ok=True)
        header = Header(task=dataset.task.name, seed=number)
        arrays = made_by(dataset, parent, number)
        predictions.write(folder / f"{split}.safetensors", arrays, header=header)


@pytest.fixture
def noted(shelf):
    """Return the targets of the training items; a run with a rule trains by name."""
    calls = []

    def loss(network, batch, moment):
        calls.append((moment.items, batch.target.clone()))
        return (network(batch.x)[:, 0] - batch.target).square().mean()

    def predict(network, x, task):
        if task.name == "regression":
            return {"mean": network(x)[:, 0][None]}
        return {"prob": network(x)[:, 0].sigmoid()[None]}

    shelf(noting={"loss": loss, "predict": predict, "select": {}})
    return calls


def pooled_entropy(root, split="pool"):
    files = [root / parent / f"predictions/{split}.safetensors" for parent in PARENTS]
    return scores.decompose(predictions.pool(files).arrays["probs"])


@pytest.mark.parametrize(
    ("measure", "part"), [("PE", "total"), ("EE", "aleatoric"), ("MI", "epistemic")]
)
def test_the_most_uncertain_of_a_pool_are_trained_on_besides_train(
    noted, tmp_path, measure, part
):
    dataset = with_pool()
    put(tmp_path, dataset, probs)
    options = {} if measure == "PE" else {"measure": measure}
    spec = second("most_uncertain", share=0.5, keep=["train"], **options)
    run_alone(spec, dataset, tmp_path / "run")
    value = getattr(pooled_entropy(tmp_path), part)
    expected = dataset.splits["pool"].item[np.argsort(-value)[:6]]
    found = listed(tmp_path / "run")
    assert found["train"] == "all"
    assert sorted(found["pool"]) == sorted(expected)
    assert {count for count, _ in noted} == {56}
    assert sum(len(target) for _, target in noted) == 56


def test_joined_splits_are_read_like_one(noted, tmp_path, monkeypatch):
    dataset = with_pool("regression")
    spec = second("random_items", count=4, keep=["train"])
    run_alone(spec, dataset, tmp_path / "resident")
    resident = torch.cat([target for _, target in noted])
    noted.clear()
    monkeypatch.setattr("qualms.training._splits._free_bytes", lambda _: 0.0)
    run_alone(spec, dataset, tmp_path / "read")
    assert torch.equal(torch.cat([target for _, target in noted]), resident)
    names = listed(tmp_path / "read")["pool"]
    pool = dataset.splits["pool"]
    expected = [
        *dataset.splits["train"].target,
        *pool.target[np.isin(pool.item, names)],
    ]
    assert sorted(resident.tolist()) == sorted(map(float, expected))


def test_random_items_are_as_many_and_follow_the_seed(noted, tmp_path):
    dataset = with_pool()
    for name, number in (("a", 0), ("b", 1)):
        spec = second("random_items", runs=(), seed=number, share=0.5)
        run_alone(spec, dataset, tmp_path / name)
    first, other = (listed(tmp_path / name)["pool"] for name in "ab")
    assert len(first) == len(other) == 6
    assert first != other


@pytest.mark.parametrize("spaced", [False, True])
def test_few_shot_takes_k_of_every_class(noted, tmp_path, spaced):
    dataset = with_pool()
    options = {"k": 2, "spaced": True} if spaced else {"k": 2}
    run_alone(second("few_shot", runs=(), **options), dataset, tmp_path / "run")
    pool = dataset.splits["pool"]
    rows = np.flatnonzero(np.isin(pool.item, listed(tmp_path / "run")["pool"]))
    assert np.bincount(pool.target[rows]).tolist() == [2, 2]
    if spaced:  # every third of the six that a class has
        expected = [np.flatnonzero(pool.target == label)[[0, 3]] for label in (0, 1)]
        assert sorted(rows) == sorted(np.concatenate(expected))


def test_regression_goes_by_variance_or_by_a_named_score(noted, tmp_path):
    dataset = with_pool("regression")

    def arrays(dataset, _, seed):
        split, rng = dataset.splits["pool"], np.random.default_rng(seed)
        one = {"mean": rng.normal(size=(2, 12)), "var": rng.uniform(1, 2, (2, 12))}
        return {**one, "target": split.target, "item": split.item}

    put(tmp_path, dataset, arrays)
    run_alone(second("most_uncertain", count=3), dataset, tmp_path / "run")
    both = [arrays(dataset, "", seed) for seed in (0, 1)]
    mean, var = (np.concatenate([one[n] for one in both]) for n in ("mean", "var"))
    value = var.mean(0) + mean.var(0)
    expected = dataset.splits["pool"].item[np.argsort(-value)[:3]]
    assert sorted(listed(tmp_path / "run")["pool"]) == sorted(expected)


def test_an_array_of_the_predictions_may_say_who_is_uncertain(noted, tmp_path):
    dataset = with_pool()

    def arrays(dataset, parent, seed):
        stated = np.random.default_rng(seed).uniform(size=12)
        return {**probs(dataset, parent, seed), "uncertainty/mine": stated}

    put(tmp_path, dataset, arrays)
    spec = second("most_uncertain", count=3, uncertainty="mine")
    run_alone(spec, dataset, tmp_path / "run")
    value = sum(arrays(dataset, "", seed)["uncertainty/mine"] for seed in (0, 1))
    expected = dataset.splits["pool"].item[np.argsort(-value)[:3]]
    assert sorted(listed(tmp_path / "run")["pool"]) == sorted(expected)


def test_embeddings_go_by_the_uncertainty_they_state(noted, tmp_path):
    """Embeddings cannot be pooled; their uncertainties are averaged."""
    dataset = with_pool()
    dataset = replace(dataset, task=replace(dataset.task, name="embedding"))

    def arrays(dataset, _, seed):
        split, rng = dataset.splits["pool"], np.random.default_rng(seed)
        stated = {"uncertainty/u": rng.uniform(size=12)}
        features = {"embedding": rng.normal(size=(12, 4)).astype(np.float32)}
        return {**stated, **features, "target": split.target, "item": split.item}

    put(tmp_path, dataset, arrays)
    splits = Splits({"": dataset}, torch.device("cpu"))
    spec = second("most_uncertain", count=3)
    items = training_items(spec, tmp_path / "run", splits, lists={}, write=False)
    value = sum(arrays(dataset, "", seed)["uncertainty/u"] for seed in (0, 1))
    assert sorted(items.rows.tolist()) == sorted(np.argsort(-value)[:3])
    assert not (tmp_path / "run/items.json").exists()


def test_few_shot_leaves_out_items_of_no_known_class(noted, tmp_path):
    dataset = with_pool()
    target = dataset.splits["pool"].target.copy()
    target[0] = -1
    pool = replace(dataset.splits["pool"], target=target)
    dataset = replace(dataset, splits={**dataset.splits, "pool": pool})
    splits = Splits({"": dataset}, torch.device("cpu"))
    spec = second("few_shot", runs=(), k=12)
    items = training_items(spec, tmp_path / "run", splits, lists={}, write=False)
    assert items.rows.tolist() == [*range(1, 12)]


def test_runs_that_ask_for_the_same_items_choose_once(noted, tmp_path, monkeypatch):
    dataset, asked = with_pool(), []
    monkeypatch.setattr(
        _items, "choose", lambda *a: asked.append(a[0]) or np.arange(4) + len(asked)
    )
    splits, lists = Splits({"": dataset}, torch.device("cpu")), {}

    def rows(name, seed, folder="run"):
        spec = replace(second(name, count=4), seed=seed)
        place = tmp_path / f"{folder}/{name}-{seed}"
        items = training_items(spec, place, splits, lists=lists, write=True)
        return items.rows.tolist()

    assert rows("most_uncertain", 0) == rows("most_uncertain", 1)
    assert rows("random_items", 0) != rows("random_items", 1)
    assert rows("most_uncertain", 1, folder="other") != rows("most_uncertain", 2)
    assert asked == ["most_uncertain", *["random_items"] * 2, "most_uncertain"]


def put_maps(root, dataset, split="pool"):
    for number, parent in enumerate(PARENTS):
        folder = root / parent / "predictions" / split
        folder.parent.mkdir(parents=True, exist_ok=True)
        rng, items = np.random.default_rng(number), dataset.splits[split]
        with SegmentationWriter(folder, header=Header(task="segmentation")) as writer:
            for row, name in enumerate(items.item):
                draws = rng.dirichlet((1, 1), (2, made.SIDE, made.SIDE))
                statistics = scores.sufficient_statistics(np.moveaxis(draws, -1, 1))
                maps = Maps(**statistics._asdict(), raters=items.target[row])
                writer.add(str(name), maps)


@pytest.mark.parametrize(
    "aggregation",
    [
        "image",
        {"name": "patch", "size": 3},
        {"name": "threshold", "threshold": 0.3},
        "threshold",
    ],
)
def test_label_maps_are_aggregated(noted, tmp_path, aggregation):
    dataset = with_pool("segmentation", 6)
    for split in ("pool", "val"):
        put_maps(tmp_path, dataset, split)
    spec = second("most_uncertain", count=2, measure="MI", aggregation=aggregation)
    splits = Splits({"": dataset}, torch.device("cpu"))
    items = training_items(spec, tmp_path / "run", splits, lists={}, write=True)
    folders = [tmp_path / parent / "predictions/pool" for parent in PARENTS]
    pooled = predictions.pool(folders)
    maps = [
        scores.uncertainty_maps(m.mean_probs, m.expected_entropy).epistemic
        for m in pooled.maps
    ]
    by = {
        "image": scores.aggregate_image,
        "patch": lambda m: scores.aggregate_patch(m, size=3),
        "threshold": lambda m: scores.aggregate_threshold(m, threshold=0.3),
    }
    name = aggregation if isinstance(aggregation, str) else aggregation["name"]
    assert len(items.rows) == 2
    if aggregation != "threshold":
        value = np.array([by[name](m) for m in maps])
        assert sorted(items.rows.tolist()) == sorted(np.argsort(-value)[:2])


def test_the_list_is_kept_and_read_again_without_the_parents(noted, tmp_path):
    dataset = with_pool()
    put(tmp_path, dataset, probs)
    spec = second("most_uncertain", count=3)
    run_alone(spec, dataset, tmp_path / "run")
    before = (tmp_path / "run/items.json").read_text()
    for parent in PARENTS:
        (tmp_path / parent / "predictions/pool.safetensors").unlink()
    (tmp_path / "run/done.json").unlink()
    run_alone(spec, dataset, tmp_path / "run")
    assert (tmp_path / "run/items.json").read_text() == before


def test_a_damaged_list_or_one_of_another_run_is_refused(noted, tmp_path):
    dataset, spec = with_pool(), second("random_items", runs=(), count=3)
    path = tmp_path / "run/items.json"
    path.parent.mkdir()
    run_alone(spec, dataset, tmp_path / "other")
    whole = (tmp_path / "other/items.json").read_text()
    for text in ("", "[]", whole[:-20], whole.replace("7-0", "7-1")):
        path.write_text(text)
        with pytest.raises(
            TrainingError, match="damaged or belongs to another run; de"
        ):
            run_alone(spec, dataset, tmp_path / "run")
    path.write_text(whole)
    (tmp_path / "run/spec.json").unlink()
    with pytest.raises(TrainingError, match="damaged or belongs to another run"):
        run_alone(replace(spec, seed=5), dataset, tmp_path / "run")


def test_predictions_that_are_missing_or_of_other_items_are_refused(noted, tmp_path):
    dataset, spec = with_pool(), second("most_uncertain", count=3)
    with pytest.raises(
        TrainingError, match=r"run a{16} predicts for 'pool'.*finish th"
    ):
        run_alone(spec, dataset, tmp_path / "run")
    put(tmp_path, with_pool(count=11), probs)
    with pytest.raises(TrainingError, match="predictions of the split 'pool', and has"):
        run_alone(spec, dataset, tmp_path / "run")
    assert not (tmp_path / "run/items.json").exists()


@pytest.mark.parametrize("stated", [{"split": "test"}, {"options": {"run": "c" * 16}}])
def test_predictions_that_were_put_in_the_place_of_others_are_refused(
    noted, tmp_path, stated
):
    dataset = with_pool()
    put(tmp_path, dataset, probs)
    path = tmp_path / PARENTS[1] / "predictions/pool.safetensors"
    header = Header(task="classification", **stated)
    predictions.write(path, probs(dataset, "", 1), header=header)
    with pytest.raises(
        TrainingError, match=r"must be what run b{16} predicts for 'poo"
    ):
        run_alone(second("most_uncertain", count=3), dataset, tmp_path / "run")


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("most_certain", {}, "no item rule 'most_certain'. Did you mean 'most_uncerta"),
        ("random_items", {"shar": 0.5}, "has no option 'shar'. Did you mean 'share'"),
        ("random_items", {}, "either a share or a count"),
        ("random_items", {"share": 1.5}, "share must be above 0 and at most 1"),
        ("random_items", {"count": 13}, "13 of 12 items cannot be chosen"),
        ("random_items", {"count": 3, "keep": "train"}, "'keep' must be a list of oth"),
        ("few_shot", {"k": 0}, "k must be a whole number from 1 on, got 0"),
        ("most_uncertain", {"count": 3}, "names no runs to read them from"),
    ],
)
def test_a_rule_that_cannot_choose_says_why(noted, tmp_path, name, options, said):
    with pytest.raises(TrainingError, match=said):
        run_alone(second(name, runs=(), **options), with_pool(), tmp_path / "run")


def test_splits_of_different_form_are_not_joined(noted, tmp_path):
    dataset = with_pool()
    colours = made.split(12, 7, channels=3, kind="classification")
    mixed = replace(dataset, splits={**dataset.splits, "pool": colours})
    spec = second("random_items", runs=(), count=3, keep=["train"])
    with pytest.raises(TrainingError, match="must hold items of one shape"):
        run_alone(spec, mixed, tmp_path / "run")
