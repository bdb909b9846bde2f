"""Epochs chosen by retrieval on further datasets, few-shot runs, and crops."""

import json
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
import torch

from qualms import predictions, scores
from qualms.spec import ItemRule, Part, Task
from qualms.training import TrainingError, _build, _loop, run_alone, run_together
from qualms.training._shared_training import TrainingJob, training_rounds
from qualms.training.selection import (
    RetrievedSplit,
    predicted_split,
    selection_score,
    stated_uncertainty,
)
from training import made

SMALL = Part(name="resnet_small", options={"width": 4, "blocks": [1]})


def embedded(classes, *, count=24, votes=False, val=True):
    dataset = made.dataset(train=40, val=count, test=count, kind="classification")

    def with_classes(split):
        target = (np.arange(len(split)) % classes).astype(np.int64)
        extra = {"votes": np.ones((len(split), 2))} if votes else {}
        return replace(split, target=target, extra=extra)

    splits = {name: with_classes(part) for name, part in dataset.splits.items()}
    splits["test/even"] = splits["test"]
    if not val:
        del splits["val"]
    task = Task(name="embedding", classes=classes)
    return replace(dataset, task=task, splits=splits)


def spec_of(method="map", *, splits=("test", "birds:test"), start=None, **training):
    chosen = {"epochs": 2, "normalise": "none", **training}
    names = ("birds", "cars", "votes")
    return replace(
        made.spec(splits=(), start=start, **chosen),
        method=Part(name=method, options={"width": 8} if method == "losspred" else {}),
        network=SMALL,
        datasets={name: Part(name="made") for name in names},
        splits=splits,
    )


def data():
    return {
        "": embedded(3, val=False),
        "birds": embedded(5),
        "cars": embedded(4, count=30),
        "votes": embedded(2, votes=True),
    }


def found_in(folder, split):
    path = folder / "predictions" / (split.replace(":", "@") + ".safetensors")
    return predictions.read(path).arrays


def test_the_score_is_the_mean_over_splits_and_needs_some_recall():
    rng = np.random.default_rng(0)
    splits = [
        RetrievedSplit((rng.random(50) < share).astype(float), rng.random(50))
        for share in (0.5, 0.3)
    ]
    wanted = np.mean([scores.auroc(score=u, positive=hits == 0) for hits, u in splits])
    assert selection_score("val_r_auroc", splits) == pytest.approx(wanted, rel=1e-12)
    recall = np.mean([hits.mean() for hits, _ in splits])
    assert selection_score("val_recall", splits) == pytest.approx(recall, rel=1e-12)
    few = [RetrievedSplit((np.arange(50) < 4) * 1.0, rng.random(50))] * 2
    assert np.isnan(selection_score("val_r_auroc", few))
    assert selection_score("val_recall", few) == pytest.approx(0.08)


@pytest.mark.parametrize("by", ["val_r_auroc", "val_recall"])
def test_the_epoch_that_is_kept_is_the_best_by_the_rule(tmp_path, by):
    """Every epoch is scored again from predictions."""
    spec = spec_of("losspred", splits=("birds:val", "cars:val"), lr=0.03, epochs=5)
    values = []
    for epochs in range(1, 6):
        whole = {**spec.training, "schedule": "constant", "epochs": epochs}
        one = replace(spec, training=whole)
        run_alone(one, data(), tmp_path / str(epochs))
        judged = [
            predicted_split(by, found_in(tmp_path / str(epochs), split))
            for split in spec.splits
        ]
        values.append(selection_score(by, judged))
    assert np.nanmax(values) > np.nanmin(values)
    best = int(np.nanargmax(values)) + 1
    chosen = replace(spec, training={**spec.training, "select_by": by})
    run_alone(chosen, data(), tmp_path / "chosen")
    for split in spec.splits:
        np.testing.assert_allclose(
            found_in(tmp_path / "chosen", split)["embedding"],
            found_in(tmp_path / str(best), split)["embedding"],
            rtol=1e-5,
            atol=1e-6,
        )


RULES = ("val_r_auroc", "val_recall")


def twins(**options):
    made_alike = {"lr": 0.03, "epochs": 5, **options}
    return [spec_of("losspred", select_by=by, **made_alike) for by in RULES]


@contextmanager
def stopped_after(monkeypatch, epochs):
    with monkeypatch.context() as patched:
        made.stop_after(patched, epochs, KeyboardInterrupt)
        with pytest.raises(KeyboardInterrupt):
            yield


def same_predictions(one, other):
    for split in ("test", "birds:test"):
        mine, theirs = found_in(one, split), found_in(other, split)
        assert all(np.array_equal(mine[name], theirs[name]) for name in mine)


def test_runs_that_differ_in_the_rule_alone_are_trained_once(tmp_path):
    specs, callbacks = twins(), made.CallbackLog()
    folders = [tmp_path / by for by in RULES]
    run_together(specs, data(), folders, callbacks=callbacks)
    assert len(callbacks.epochs) == 5
    for spec, folder in zip(specs, folders, strict=True):
        alone = tmp_path / "alone" / folder.name
        run_alone(spec, data(), alone)
        same_predictions(folder, alone)
        lines = (folder / "log.jsonl").read_text().splitlines()
        assert [json.loads(line)["epoch"] for line in lines] == [*range(5)]
    embedding = [found_in(folder, "test")["embedding"] for folder in folders]
    assert not np.array_equal(*embedding)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
def test_several_seeds_on_a_gpu_are_trained_once_for_both_rules(tmp_path):
    specs = [replace(spec, seed=seed) for spec in twins() for seed in range(2)]
    folders, callbacks = [tmp_path / spec.hash for spec in specs], made.CallbackLog()
    run_together(specs, data(), folders, device="cuda", callbacks=callbacks)
    assert len(callbacks.epochs) == 2 * 5
    assert callbacks.messages == []
    # Which epoch is the best may differ between trainings: a GPU adds in any order.
    for folder in folders:
        assert np.isfinite(found_in(folder, "birds:test")["embedding"]).all()


def test_runs_that_are_trained_once_go_on_after_a_stop(tmp_path, monkeypatch):
    specs, callbacks = twins(), made.CallbackLog()
    folders = [tmp_path / by for by in RULES]
    with stopped_after(monkeypatch, 3):
        run_together(specs, data(), folders)
    run_together(specs, data(), folders, callbacks=callbacks)
    assert len(callbacks.epochs) == 2
    for spec, folder in zip(specs, folders, strict=True):
        run_alone(spec, data(), tmp_path / "alone" / folder.name)
        same_predictions(folder, tmp_path / "alone" / folder.name)


def test_the_other_order_after_a_stop_trains_no_more(tmp_path, monkeypatch):
    specs, callbacks = twins(), made.CallbackLog()
    folders = [tmp_path / by for by in RULES]
    with stopped_after(monkeypatch, 3):
        run_together(specs, data(), folders)
    run_together(specs[::-1], data(), folders[::-1], callbacks=callbacks)
    assert len(callbacks.epochs) == 2


def test_who_follows_a_run_that_fails_is_not_trained(tmp_path, monkeypatch):
    class BrokenError(Exception):
        pass

    callbacks, folders = made.CallbackLog(), [tmp_path / by for by in RULES]
    made.stop_after(monkeypatch, 3, BrokenError)
    with pytest.raises(TrainingError, match="2 of 2 runs failed"):
        run_together(twins(), data(), folders, callbacks=callbacks)
    assert len(callbacks.epochs) == 3


def test_who_follows_goes_on_where_only_predicting_failed(tmp_path, monkeypatch):
    specs, callbacks = twins(), made.CallbackLog()
    folders = [tmp_path / by for by in RULES]
    predict = _loop._predict

    def broken(run, split):
        if run.spec.hash == specs[0].hash:
            raise OSError("no space is left")
        predict(run, split)

    monkeypatch.setattr(_loop, "_predict", broken)
    with pytest.raises(TrainingError, match=r"1 of 2 runs failed .* no space is left"):
        run_together(specs, data(), folders, callbacks=callbacks)
    assert len(callbacks.epochs) == 5
    assert "embedding" in found_in(folders[1], "test")


def test_as_many_seeds_train_at_once_as_were_asked_for(tmp_path):
    specs = [replace(spec, seed=seed) for spec in twins() for seed in range(3)]
    jobs = [TrainingJob(spec, tmp_path / spec.hash) for spec in specs]
    assert [len(turn) for turn in training_rounds(jobs)] == [3, 3]
    for job in jobs:
        job.folder.mkdir()
        (job.folder / "checkpoint.pt").touch()
    assert [len(turn) for turn in training_rounds(jobs)] == [3, 3]
    assert not any(job.dependents for turn in training_rounds(jobs) for job in turn)


def test_methods_that_keep_the_last_epoch_are_trained_once_too(tmp_path, monkeypatch):
    make = _build.make_learner

    def keeping(*given):
        learner = make(*given)
        return replace(learner, method=replace(learner.method, selects=False))

    monkeypatch.setattr(_build, "make_learner", keeping)
    callbacks, folders = made.CallbackLog(), [tmp_path / by for by in RULES]
    run_together(twins(), data(), folders, callbacks=callbacks)
    assert len(callbacks.epochs) == 5
    same_predictions(*folders)


def test_a_rule_that_comes_too_late_is_trained_by_itself(tmp_path, monkeypatch):
    specs, callbacks = twins(), made.CallbackLog()
    folders = [tmp_path / by for by in RULES]
    with stopped_after(monkeypatch, 3):
        run_alone(specs[0], data(), folders[0])
    run_together(specs, data(), folders, callbacks=callbacks)
    assert len(callbacks.epochs) == 2 + 5
    run_alone(specs[1], data(), tmp_path / "alone")
    same_predictions(folders[1], tmp_path / "alone")


def test_a_method_is_known_by_its_head_whatever_the_order_of_arrays():
    names = ("entropy", "head", "variance")
    arrays = {f"uncertainty/{name}": name for name in names}
    assert stated_uncertainty(arrays) == "head"
    del arrays["uncertainty/head"]
    assert stated_uncertainty(dict(reversed(arrays.items()))) == "entropy"
    assert stated_uncertainty(arrays, "variance") == "variance"
    assert stated_uncertainty({"uncertainty/inverse_norm": 1}) == 1


def test_a_split_and_an_uncertainty_can_be_named(tmp_path):
    options = {"select_by": "val_r_auroc", "select_on": ("cars:val",)}
    run_alone(spec_of(**options, select_uncertainty="entropy"), data(), tmp_path / "a")
    cases = (
        ({"select_on": ("cars:vla",)}, "needs the split 'cars:vla'"),
        ({"select_uncertainty": "head"}, "must be one of entropy, which this method"),
    )
    for number, (changed, said) in enumerate(cases):
        with pytest.raises(TrainingError, match=said):
            run_alone(spec_of(**{**options, **changed}), data(), tmp_path / str(number))
    with pytest.raises(TrainingError, match=r"select_on=.* is for rules by retrieval"):
        run_alone(spec_of(select_on=("cars:val",)), data(), tmp_path / "b")
    alone = {name: data()[name] for name in ("", "votes")}
    asked = replace(spec_of(select_by="val_recall"), splits=("test",))
    with pytest.raises(TrainingError, match="name splits in 'select_on'"):
        run_alone(asked, alone, tmp_path / "c")


def test_the_last_weights_are_kept_where_no_epoch_counts(tmp_path, monkeypatch):
    monkeypatch.setattr("qualms.training.selection.LEAST_RECALL", 1.1)
    callbacks = made.CallbackLog()
    run_alone(spec_of(select_by="val_r_auroc"), data(), tmp_path, callbacks=callbacks)
    assert callbacks.messages == [
        "no epoch counts for select_by='val_r_auroc'; the weights of the last one are"
        " kept"
    ]


def test_cached_features_of_further_datasets_are_validated_on(tmp_path):
    spec = spec_of("losspred", select_by="val_recall", features="cached")
    run_alone(spec, data(), tmp_path)
    assert found_in(tmp_path, "birds:test")["uncertainty/head"].shape == (24,)


def test_a_few_shot_run_learns_the_classes_of_a_further_dataset(tmp_path):
    first = spec_of("losspred")
    run_alone(first, data(), tmp_path / first.hash)
    rule = ItemRule(name="few_shot", split="birds:test/even", options={"k": 2})
    again = replace(
        spec_of(
            "losspred",
            start=first.hash,
            lr=0.0,
            select_by="val_r_auroc",
            batch=16,  # more than there are
            partial=False,
        ),
        items=rule,
        splits=("birds:test",),
    )
    callbacks = made.CallbackLog()
    run_alone(again, data(), tmp_path / again.hash, callbacks=callbacks)
    one, other = (
        torch.load(tmp_path / run / "checkpoint.pt", weights_only=True)["network"]
        for run in (first.hash, again.hash)
    )
    assert one["head.last.weight"].shape[0] == 3
    assert other["head.last.weight"].shape[0] == 5
    for kept in ("head.beside.layers.0.weight", "backbone.stem.0.weight"):
        assert torch.equal(one[kept], other[kept])
    assert "head.last.weight" in callbacks.messages[0]
    listed = json.loads((tmp_path / again.hash / "items.json").read_text())["items"]
    assert len(listed["birds:test/even"]) == 10
    logged = (tmp_path / again.hash / "log.jsonl").read_text().splitlines()
    assert [json.loads(line)["steps"] for line in logged] == [1, 1]
    assert found_in(tmp_path / again.hash, "birds:test")["predicted"].max() < 5


def test_a_batch_that_a_whole_split_does_not_fill_is_refused(tmp_path):
    with pytest.raises(TrainingError, match="partial=false leaves no step: one takes"):
        run_alone(spec_of(batch=64, partial=False), data(), tmp_path)


def test_items_of_datasets_with_other_classes_are_not_mixed(tmp_path):
    options = {"k": 2, "keep": ["train"]}
    rule = ItemRule(name="few_shot", split="birds:test/even", options=options)
    with pytest.raises(TrainingError, match="cannot be trained on together"):
        run_alone(replace(spec_of(), items=rule), data(), tmp_path)


def test_the_centre_of_each_image_has_an_uncertainty_of_its_own(tmp_path):
    run_alone(spec_of(crop_pass=True), data(), tmp_path / "a")
    found = found_in(tmp_path / "a", "birds:test")
    whole, cropped = (
        found[f"{name}/entropy"] for name in ("uncertainty", "uncertainty_cropped")
    )
    assert cropped.shape == whole.shape
    assert not np.array_equal(cropped, whole)
    done = json.loads((tmp_path / "a" / "done.json").read_text())
    for split in spec_of().splits:
        assert min(done["pace"][split].values()) > 0
        assert set(done["pace"][split]) == {"seconds_per_item", "seconds_per_crop"}
    run_alone(spec_of(crop_pass=True, predict_batch=5), data(), tmp_path / "b")
    again = found_in(tmp_path / "b", "birds:test")
    np.testing.assert_allclose(again["uncertainty_cropped/entropy"], cropped, rtol=1e-5)
    assert not any("cropped" in name for name in found_in_plain(tmp_path))
    with pytest.raises(TrainingError, match="crop_pass=true is for embedding"):
        run_alone(made.spec(crop_pass=True), made.dataset(), tmp_path / "c")


def found_in_plain(folder):
    run_alone(spec_of(), data(), folder / "plain")
    return found_in(folder / "plain", "birds:test")


def test_upstream_classes_are_predicted(tmp_path):
    run_alone(spec_of(), data(), tmp_path)
    found = found_in(tmp_path, "test")
    assert found["predicted"].shape == found["target"].shape
    assert set(found["predicted"]) <= {0, 1, 2}
