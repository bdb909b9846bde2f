"""Pruning by the median of Optuna: runs end cleanly, and a search goes on alike."""

import json
from functools import partial

import optuna
import pytest

from launch import searched
from qualms.launch import RunOutcome, RunRequest, prepare_datasets, run_all
from qualms.launch.tune import config_path, search_of, tune
from qualms.report.search_report import read_search
from qualms.runs import (
    describe,
    epochs_path,
    is_done,
    log_path,
    mark_failed,
    read_progress,
    run_folder,
    why_failed,
)

EPOCHS = 9


@pytest.fixture(autouse=True)
def shelf(monkeypatch):
    searched.on_shelf(monkeypatch)


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cache")
    prepare_datasets([searched.DATASET], folder, workers=1)
    return folder


def search(pruner="median", **options):
    options = {"epochs": EPOCHS, **options}
    wish = RunRequest(methods=("map",), seeds=(0,), options=options)
    return search_of("toy/plain", wish, pruner=pruner)


def launch(specs, *, judge, out, losses=searched.val_losses):
    """Make runs in this process, as a worker does, with these losses."""
    for spec in specs:
        folder, status, error = run_folder(out, spec), "done", ""
        if is_done(folder, spec):
            yield ended(spec, folder, "skipped", "")
            continue
        stop = judge or (lambda *_: "")
        if not (error := stop(spec, folder)):
            describe(folder, spec, {})
            for epoch in range(len(searched.log_lines(folder)), EPOCHS):
                entry = {"epoch": epoch, "val": losses(spec)[epoch]}
                with epochs_path(folder).open("a") as file:
                    file.write(json.dumps(entry) + "\n")
                if error := stop(spec, folder):
                    break
        if error:
            status = "pruned"
        else:
            try:
                searched.work([spec], None, [folder], device="cpu", callbacks=None)
            except ValueError as wrong:
                status, error = "failed", str(wrong)
                mark_failed(folder, spec, error)
        yield ended(spec, folder, status, error)


def ended(spec, folder, status, error):
    return RunOutcome(
        spec=spec,
        folder=folder,
        status=status,
        seconds=0.1,
        error=error,
        log=log_path(folder),
    )


def carry_out(matches, count, out, **how):
    tried = tune(matches, count, launch=partial(launch, out=out, **how), out=out)
    return sorted(tried, key=lambda one: one.trial.number)


def pruned_at(tried):
    """Return the number of epochs of each trial that was pruned, by its number."""
    return {
        one.trial.number: len(searched.log_lines(one.outcome.folder))
        for one in tried
        if one.is_pruned
    }


def pruned_by_optuna(pruner, specs):
    """Return the same of a study of Optuna that makes the trials itself."""
    study = optuna.create_study(direction="minimize", pruner=pruner)
    stopped = {}
    for number, spec in enumerate(specs):
        trial, curve = study.ask(), searched.val_losses(spec)
        for epoch, loss in enumerate(curve, 1):
            trial.report(loss, epoch)
            if epoch < len(curve) and trial.should_prune():
                stopped[number] = epoch
                study.tell(trial, state=optuna.trial.TrialState.PRUNED)
                break
        else:
            fails = spec.training["lr"] > searched.TOO_FAST
            state = optuna.trial.TrialState.FAIL if fails else None
            study.tell(trial, None if fails else min(curve), state=state)
    return stopped


def test_trials_are_pruned_as_optuna_prunes_them(tmp_path):
    matches = search(momentum=0.9, final_factor=0.1)
    tried = carry_out(matches, 16, tmp_path)
    specs = [one.trial.spec for one in tried]
    expected = pruned_by_optuna(optuna.pruners.MedianPruner(), specs)
    assert expected
    assert pruned_at(tried) == expected
    assert not any(one.values for one in tried if one.is_pruned)
    best = max(tried, key=lambda one: one.values)
    assert not best.is_pruned


def test_a_search_with_a_pruner_is_repeated_alike(tmp_path):
    matches = search(momentum=0.9, final_factor=0.1)
    tried = carry_out(matches, 10, tmp_path / "one")
    assert pruned_at(tried)
    again = carry_out(matches, 10, tmp_path / "other")
    assert pruned_at(again) == pruned_at(tried)
    assert [one.error for one in again] == [one.error for one in tried]
    assert [one.values for one in again] == [one.values for one in tried]
    # What was pruned stays so.
    again = carry_out(matches, 10, tmp_path / "one")
    assert not any(one.is_pruned or one.values for one in again)


def test_a_run_that_was_pruned_is_made_outside_its_search(tmp_path):
    matches = search(momentum=0.9, final_factor=0.1)
    pruned = [one for one in carry_out(matches, 10, tmp_path) if one.is_pruned]
    assert search("none").folder(tmp_path) != search().folder(tmp_path)
    (ended,) = launch([pruned[0].trial.spec], judge=None, out=tmp_path)
    assert len(searched.log_lines(ended.folder)) == EPOCHS
    assert not (ended.folder / "pruned.json").exists()


def test_a_trial_whose_losses_are_not_numbers_is_pruned(tmp_path):
    matches, made = search(lr=0.02), {}

    def losses(spec):
        made.setdefault(spec.hash, len(made))
        return [float("nan") if made[spec.hash] == 7 else 1.0] * EPOCHS

    tried = carry_out(matches, 8, tmp_path, losses=losses)
    assert pruned_at(tried) == {7: 1}
    assert tried[7].error.endswith("after epoch 1 of 9, with a loss of nan on val")


def test_constant_losses_prune_nothing(tmp_path):
    tried = carry_out(search(), 8, tmp_path, losses=lambda _: [1.0] * EPOCHS)
    assert not pruned_at(tried)


def test_a_single_trial_is_not_pruned(tmp_path):
    (one,) = carry_out(search(lr=0.02), 1, tmp_path)
    assert one.values


def test_runs_without_losses_on_val_are_not_pruned(tmp_path):
    tried = carry_out(search(), 8, tmp_path, losses=lambda _: [None] * EPOCHS)
    assert not pruned_at(tried)


def test_where_all_trials_fail_none_is_pruned_by_those(tmp_path):
    tried = carry_out(search(lr=0.4), 7, tmp_path)
    assert [one.outcome.status for one in tried] == ["failed"] * 7
    assert why_failed(tried[6].outcome.folder).startswith("the loss became nan")


def test_an_unknown_pruner_is_answered():
    with pytest.raises(LookupError, match=r"no pruner 'medan'\. Did you mean 'median'"):
        search("medan")


def test_a_worker_ends_a_pruned_run_cleanly(tmp_path, data):
    matches = search(momentum=0.9, final_factor=0.1)
    work = searched.work_by_epochs
    make = partial(run_all, out=tmp_path, data=data, device="cpu", work=work)
    tried = list(tune(matches, 10, launch=make, out=tmp_path))
    pruned = [one for one in tried if one.is_pruned]
    assert pruned
    for one in pruned:
        folder = one.outcome.folder
        assert read_progress(folder).error == ""
        assert not is_done(folder, one.trial.spec)
        assert not (folder / "begun").exists()  # it was not predicted
        log = log_path(folder).read_text()
        assert log.endswith(f"{one.error}\n")
        assert "Traceback" not in log
    report = read_search(matches.folder(tmp_path))
    assert report.pruner == "median"
    states = {trial.number: trial.state for trial in report.trials}
    for one in tried:
        assert (states[one.trial.number] == "pruned") == one.is_pruned
    told = config_path(matches.folder(tmp_path)).read_text()
    assert f'pruner = "median"\ntrials = 10\npruned = {len(pruned)}\n' in told


@pytest.mark.slow
def test_a_run_that_trains_is_pruned_and_goes_on_from_its_checkpoint(tmp_path):
    sizes = {"train": 64, "val": 32, "val/shifted": 8, "test": 8, "test/shifted": 8}
    options = {"epochs": 4, "dataset.sizes": sizes}
    wish = RunRequest(methods=("map",), seeds=(0,), options=options)
    places = {"out": tmp_path / "runs", "data": tmp_path / "cache"}

    def carried_out(pruner):
        matches = search_of("retina/country", wish, pruner=pruner)
        make = partial(run_all, **places, device="cpu")
        return list(tune(matches, 8, launch=make, out=places["out"]))

    stopped = [one.trial.spec for one in carried_out("median") if one.is_pruned]
    assert stopped
    for one in run_all(stopped, **places, device="cpu"):
        assert one.status == "done"
        lines = searched.log_lines(one.folder)
        assert [json.loads(line)["epoch"] for line in lines] == [0, 1, 2, 3]
