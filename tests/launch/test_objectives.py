"""A search by several objectives: a front of trials, its files, and its edges."""

import csv
import tomllib
from functools import partial

import numpy as np
import optuna
import pytest

from launch import searched
from launch.test_tpe import launch
from qualms.launch import RunRequest
from qualms.launch import tune as tuning
from qualms.launch._config_file import read_config
from qualms.launch.tune import front_of, front_path, proposals_of, search_of, tune
from qualms.predictions import read
from qualms.runs import run_folder
from qualms.scores import auroc, ece, nll


@pytest.fixture(autouse=True)
def shelf(monkeypatch):
    searched.on_shelf(monkeypatch)


def search(*objectives, sampler="sobol", **options):
    wish = RunRequest(methods=("map",), seeds=(0,), options=options)
    return search_of("toy/plain", wish, sampler=sampler, objectives=objectives)


def carry_out(matches, count, out):
    proposals = proposals_of(matches, count, out=out)
    tried = tune(matches, proposals, launch=partial(launch, out=out), out=out)
    return sorted(tried, key=lambda one: one.trial.number)


def objectives_are(monkeypatch, values_of):
    """Judge trials by a function of their learning rate."""

    def values(found, trial, folder):
        return values_of(trial.spec.training["lr"])

    monkeypatch.setattr(tuning, "_values", values)


def trade(lr):
    """Return two objectives: the better the one, the worse the other."""
    return lr, lr


def test_objectives_are_scores_of_the_items_that_trials_are_judged_on(tmp_path):
    for one in carry_out(search("nll", "ece", momentum=0.9), 4, tmp_path):
        if one.value is None:
            continue
        path = run_folder(tmp_path, one.trial.spec) / "predictions" / "val.safetensors"
        arrays = read(path).arrays
        mean, target = arrays["probs"].astype(float).mean(0), arrays["target"]
        scores = (
            auroc(score=mean[:, 1], positive=target == 1),
            nll(mean, target),
            ece(mean, target),
        )
        assert one.values == pytest.approx(scores)


def dominated(values, others):
    """Whether a pair is worse than another: the first is maximised, the second not."""
    return any(
        a >= values[0] and b <= values[1] and (a, b) != values for a, b in others
    )


@pytest.mark.parametrize("sampler", ["sobol", "tpe"])
def test_the_front_has_the_trials_that_none_dominates(tmp_path, sampler):
    matches = search("ece", sampler=sampler)
    tried = carry_out(matches, 12, tmp_path)
    valued = [one for one in tried if one.value is not None]
    assert len(valued) < len(tried)
    every = [one.values for one in valued]
    expected = [one for one in valued if not dominated(one.values, every)]
    front = front_of(matches, tried)
    assert front == expected
    assert 0 < len(front) < len(valued)

    folder = matches.folder(tmp_path)
    files = sorted((folder / "front").iterdir())
    assert files == sorted(front_path(folder, one) for one in front)
    for one in front:
        path = front_path(folder, one)
        assert read_config(path).options["lr"] == one.trial.options["lr"]
        about = tomllib.loads(path.read_text())["search"]
        assert (about["value"], about["ece"]) == one.values
    with (folder / "trials.csv").open() as file:
        rows = {int(row["trial"]): row for row in csv.DictReader(file)}
    on_front = {one.trial.number for one in front}
    assert {n for n, row in rows.items() if row["front"] == "1"} == on_front
    opened = f"sqlite:///{folder}/study.db"
    study = optuna.load_study(study_name=matches.title, storage=opened)
    assert [way.name for way in study.directions] == ["MAXIMIZE", "MINIMIZE"]
    assert {t.user_attrs["trial"] for t in study.best_trials} == on_front
    assert study.user_attrs["objectives"] == ["val_auroc", "ece"]


def test_trials_that_trade_one_objective_for_another_are_all_on_the_front(
    tmp_path, monkeypatch
):
    objectives_are(monkeypatch, trade)
    matches = search("nll", momentum=0.9, final_factor=0.1)
    tried = carry_out(matches, 6, tmp_path)
    valued = [one for one in tried if one.value is not None]
    assert front_of(matches, tried) == valued


def test_a_longer_search_forgets_what_is_no_longer_on_the_front(tmp_path, monkeypatch):
    objectives_are(monkeypatch, lambda lr: (-abs(np.log(lr / 0.01)), 0.5))
    matches = search("nll", momentum=0.9, final_factor=0.1)
    (first,) = carry_out(matches, 1, tmp_path)
    folder = matches.folder(tmp_path)
    assert front_path(folder, first).exists()
    (best,) = front_of(matches, carry_out(matches, 8, tmp_path))
    assert [*(folder / "front").iterdir()] == [front_path(folder, best)]
    assert best.trial != first.trial


@pytest.mark.parametrize("sampler", ["sobol", "tpe"])
def test_constant_objectives_put_every_trial_on_the_front(
    tmp_path, monkeypatch, sampler
):
    objectives_are(monkeypatch, lambda _: (0.5, 0.5))
    matches = search("nll", sampler=sampler, momentum=0.9, lr=0.02)
    tried = carry_out(matches, 7, tmp_path)
    assert front_of(matches, tried) == tried
    alone = search(sampler=sampler, momentum=0.9, lr=0.02)
    objectives_are(monkeypatch, lambda _: (0.5,))
    assert [one.value for one in carry_out(alone, 7, tmp_path)] == [0.5] * 7


@pytest.mark.parametrize("sampler", ["sobol", "tpe"])
def test_a_trial_with_an_objective_that_is_nan_has_no_value(
    tmp_path, monkeypatch, sampler
):
    objectives_are(monkeypatch, lambda lr: (0.5, np.nan if lr < 0.02 else lr))
    matches = search("nll", sampler=sampler, momentum=0.9, final_factor=0.1)
    tried = carry_out(matches, 8, tmp_path)
    low = [one for one in tried if one.trial.options["lr"] < 0.02]
    assert low
    assert {one.error for one in low} == {"nll is not defined for it"}
    assert not any(one.values for one in low)
    assert len(front_of(matches, tried)) == 1


@pytest.mark.parametrize("sampler", ["sobol", "tpe"])
def test_a_search_by_objectives_whose_trials_all_failed_has_no_front(tmp_path, sampler):
    matches = search("nll", sampler=sampler, lr=0.4)
    tried = carry_out(matches, 6, tmp_path)
    assert front_of(matches, tried) == []
    assert not (matches.folder(tmp_path) / "front").exists()


def test_mistakes_are_answered():
    with pytest.raises(LookupError, match=r"no objective 'nl'\. Did you mean 'nll'"):
        search("nl")
    with pytest.raises(ValueError, match="named once, got nll twice"):
        search("nll", "nll")
    wish = RunRequest(methods=("mcinfonce",), seeds=(0,))
    with pytest.raises(ValueError, match="scores of predicted classes, and trials of"):
        search_of("url/species", wish, objectives=("nll",))
