"""Pruning: Optuna's pruners decide, runs end cleanly, and a search goes on alike."""

import json
from functools import partial

import optuna
import pytest

from launch import searched
from qualms.launch import RunOutcome, RunRequest, prepare_datasets, run_all
from qualms.launch.tune import proposals_of, search_of, trials_of, tune
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


def search(pruner="median", sampler="sobol", **options):
    options = {"epochs": EPOCHS, **options}
    wish = RunRequest(methods=("map",), seeds=(0,), options=options)
    return search_of("toy/plain", wish, sampler=sampler, pruner=pruner)


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
    proposals = proposals_of(matches, count, out=out)
    tried = tune(matches, proposals, launch=partial(launch, out=out, **how), out=out)
    return sorted(tried, key=lambda one: one.trial.number)


def pruned_at(tried):
    """Return the number of epochs of each trial that was pruned, by its number."""
    return {
        one.trial.number: len(searched.log_lines(one.outcome.folder))
        for one in tried
        if one.is_pruned
    }


def pruned_by_optuna(pruner, specs, name):
    """Return the same of a study of Optuna that makes the trials itself."""
    study = optuna.create_study(study_name=name, direction="minimize", pruner=pruner)
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


@pytest.mark.parametrize(
    ("name", "pruner"),
    [
        ("median", optuna.pruners.MedianPruner()),
        ("hyperband", optuna.pruners.HyperbandPruner(max_resource=EPOCHS)),
    ],
)
def test_trials_are_pruned_as_optuna_prunes_them(tmp_path, name, pruner):
    matches = search(name, momentum=0.9, final_factor=0.1)
    specs = [trial.spec for trial in trials_of(matches, 16)]
    tried = carry_out(matches, 16, tmp_path)
    expected = pruned_by_optuna(pruner, specs, matches.folder(tmp_path).name)
    assert expected
    assert pruned_at(tried) == expected
    assert all(one.value is None for one in tried if one.is_pruned)
    best = max(tried, key=lambda one: one.value or 0.0)
    assert not best.is_pruned


@pytest.mark.parametrize("sampler", ["sobol", "tpe"])
def test_a_search_with_a_pruner_is_repeated_alike(tmp_path, sampler):
    matches = search("median", sampler, momentum=0.9, final_factor=0.1)
    tried = carry_out(matches, 10, tmp_path)
    stopped = pruned_at(tried)
    assert stopped
    again = carry_out(matches, 10, tmp_path)
    assert pruned_at(again) == stopped
    assert [one.error for one in again] == [one.error for one in tried]
    assert [one.value for one in again] == [one.value for one in tried]


def test_a_search_without_a_pruner_goes_on_with_what_was_pruned(tmp_path):
    stopped = pruned_at(carry_out(search(), 10, tmp_path))
    assert stopped
    plain = search("none")
    assert plain.folder(tmp_path) != search().folder(tmp_path)
    tried = carry_out(plain, 10, tmp_path)
    assert not pruned_at(tried)
    for number in stopped:
        folder = tried[number].outcome.folder
        assert len(searched.log_lines(folder)) == EPOCHS
        assert not (folder / "pruned.json").exists()


def test_a_trial_whose_losses_are_not_numbers_is_pruned(tmp_path):
    matches = search(momentum=0.9, final_factor=0.1)
    bad = trials_of(matches, 8)[7].spec.hash

    def losses(spec):
        return [float("nan") if spec.hash == bad else 1.0] * EPOCHS

    tried = carry_out(matches, 8, tmp_path, losses=losses)
    assert pruned_at(tried) == {7: 1}
    assert tried[7].error.endswith("after epoch 1 of 9, with a loss of nan on val")


@pytest.mark.parametrize("pruner", ["median", "hyperband"])
def test_constant_losses_prune_nothing(tmp_path, pruner):
    tried = carry_out(search(pruner), 8, tmp_path, losses=lambda _: [1.0] * EPOCHS)
    assert not pruned_at(tried)


@pytest.mark.parametrize("pruner", ["median", "hyperband"])
def test_a_single_trial_is_not_pruned(tmp_path, pruner):
    (one,) = carry_out(search(pruner, lr=0.02), 1, tmp_path)
    assert one.value is not None


@pytest.mark.parametrize("pruner", ["median", "hyperband"])
def test_runs_without_losses_on_val_are_not_pruned(tmp_path, pruner):
    tried = carry_out(search(pruner), 8, tmp_path, losses=lambda _: [None] * EPOCHS)
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
    proposals = proposals_of(matches, 10, out=tmp_path)
    tried = list(tune(matches, proposals, launch=make, out=tmp_path))
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
    path = matches.folder(tmp_path) / "study.db"
    study = optuna.load_study(study_name=matches.title, storage=f"sqlite:///{path}")
    states = {t.user_attrs["trial"]: t for t in study.trials}
    assert study.user_attrs["pruner"] == "median"
    for one in tried:
        stored = states[one.trial.number]
        assert (stored.state.name == "PRUNED") == one.is_pruned
        lines = searched.log_lines(one.outcome.folder)
        values = [json.loads(line)["val"] for line in lines]
        assert [*stored.intermediate_values.values()] == pytest.approx(values)
    best = json.loads((matches.folder(tmp_path) / "best.json").read_text())
    assert (best["pruner"], best["pruned"]) == ("median", len(pruned))


@pytest.mark.slow
def test_a_run_that_trains_is_pruned_and_goes_on_from_its_checkpoint(tmp_path):
    sizes = {"train": 64, "val": 32, "val/shifted": 8, "test": 8, "test/shifted": 8}
    options = {"epochs": 4, "dataset.sizes": sizes}
    wish = RunRequest(methods=("map",), seeds=(0,), options=options)
    places = {"out": tmp_path / "runs", "data": tmp_path / "cache"}

    def carried_out(pruner):
        matches = search_of("retina/country", wish, pruner=pruner)
        proposals = proposals_of(matches, 8, out=places["out"])
        make = partial(run_all, **places, device="cpu")
        return list(tune(matches, proposals, launch=make, out=places["out"]))

    stopped = {o.trial.spec.hash for o in carried_out("hyperband") if o.is_pruned}
    assert stopped
    for one in carried_out("none"):
        ends = "done" if one.trial.spec.hash in stopped else "skipped"
        assert one.outcome.status == ends
        lines = searched.log_lines(one.outcome.folder)
        assert [json.loads(line)["epoch"] for line in lines] == [0, 1, 2, 3]
