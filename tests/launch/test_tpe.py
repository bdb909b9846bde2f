"""A search by TPE: repeatable, resumable, shared, and better than chance."""

from functools import partial

import numpy as np
import pytest

from launch import searched
from launch.searched import trials_of
from qualms.launch import RunOutcome, RunRequest
from qualms.launch import tune as tuning
from qualms.launch.tune import START, search_of, tune
from qualms.report.search_report import read_search
from qualms.runs import is_done, log_path, run_folder


@pytest.fixture(autouse=True)
def shelf(monkeypatch):
    searched.on_shelf(monkeypatch)


def search(seed=0, **options):
    wish = RunRequest(methods=("map",), seeds=(seed,), options=options)
    return search_of("toy/plain", wish)


def launch(specs, *, out, judge=None, busy=(), refused=()):
    """Make runs in this process; some are busy elsewhere, and some fail."""
    for spec in {spec.hash: spec for spec in specs}.values():
        folder, status, error = run_folder(out, spec), "done", ""
        if is_done(folder, spec):
            status = "skipped"
        elif spec.hash in busy:
            status = "busy"
        elif spec.hash in refused:
            status, error = "failed", "the machine was switched off"
        else:
            folder.mkdir(parents=True, exist_ok=True)
            try:
                searched.work([spec], None, [folder], device="cpu", callbacks=None)
            except ValueError as wrong:
                status, error = "failed", str(wrong)
        yield RunOutcome(
            spec=spec,
            folder=folder,
            status=status,
            seconds=0.1,
            error=error,
            log=log_path(folder),
        )


def started(found, count, out, *, at_once=1, **how):
    make = partial(launch, out=out, **how)
    return tune(found, count, launch=make, out=out, at_once=at_once)


def carry_out(found, count, out, **how):
    tried = list(started(found, count, out, **how))
    return sorted(tried, key=lambda one: one.trial.number)


def points(found, out):
    return [trial.options for trial in read_search(found.folder(out)).trials]


def test_trials_follow_from_the_seed_alone(tmp_path):
    first = carry_out(search(), 9, tmp_path / "first")
    again = carry_out(search(), 9, tmp_path / "again")
    assert [one.trial for one in first] == [one.trial for one in again]
    assert [one.trial.number for one in first] == list(range(9))
    assert [one.trial for one in first[:START]] == trials_of(search(), START)
    other = carry_out(search(seed=1), 2, tmp_path / "other")
    assert other[0].trial.options != first[0].trial.options


def test_a_search_that_was_stopped_goes_on_as_if_it_had_not_been(tmp_path):
    found = search(momentum=0.9)
    carry_out(found, 9, tmp_path / "whole")
    whole = points(found, tmp_path / "whole")
    for stop in (2, 6):
        out = tmp_path / f"stopped{stop}"
        coming = started(found, 9, out)
        for _ in range(stop):
            next(coming)
        coming.close()
        carry_out(found, 9, out)
        assert points(found, out) == whole
    # A longer search begins like a shorter one.
    carry_out(found, 12, tmp_path / "whole")
    assert points(found, tmp_path / "whole")[:9] == whole


def test_proposals_come_closer_to_the_best_than_chance(tmp_path):
    def off(trials):
        lr = np.array([trial.options["lr"] for trial in trials])
        return np.abs(np.log(lr / searched.BEST_LR["val"])).mean()

    def found(seed):
        return search(seed=seed, momentum=0.9, final_factor=0.1)

    by_chance = off([trials_of(found(seed), 1)[0] for seed in range(40)])
    tried = [carry_out(found(s), 24, tmp_path / str(s))[8:] for s in range(3)]
    assert off([one.trial for each in tried for one in each]) < 0.75 * by_chance


def test_trials_of_a_round_do_not_see_each_other(tmp_path):
    rounds = []

    def watched(specs, *, out, judge):
        rounds.append(len(specs))
        yield from launch(specs, out=out)

    found, make = search(lr=0.02), partial(watched, out=tmp_path)
    tried = list(tune(found, 10, launch=make, out=tmp_path, at_once=3))
    assert rounds == [3, 3, 3, 1]
    assert len({one.trial.spec.hash for one in tried}) == 10


def test_a_trial_of_another_process_is_left_to_it_and_the_search_goes_on(tmp_path):
    found = search(lr=0.02)
    busy = carry_out(found, 5, tmp_path / "planned")[4].trial
    mine = carry_out(found, 7, tmp_path, busy=[busy.spec.hash])
    assert mine[4].trial == busy
    assert mine[4].error == "another process makes it; run again to see it"
    assert [one.is_busy for one in mine] == [n == 4 for n in range(7)]
    # The other process finds what was proposed meanwhile, and makes no number twice.
    (theirs,) = carry_out(found, 7, tmp_path)
    assert theirs.trial == busy
    assert not theirs.is_busy


def test_what_was_proposed_stays_when_a_failed_trial_is_repaired(tmp_path):
    found = search(lr=0.02)
    bad = trials_of(found, 2)[1]
    first = carry_out(found, 8, tmp_path, refused=[bad.spec.hash])
    assert first[1].values == ()
    assert read_search(found.folder(tmp_path)).trials[1].state == "failed"
    before = points(found, tmp_path)
    (again,) = carry_out(found, 8, tmp_path)
    assert again.values
    assert points(found, tmp_path) == before
    assert read_search(found.folder(tmp_path)).trials[1].state == "done"


def test_a_trial_that_the_rule_leaves_out_has_no_value(tmp_path, monkeypatch):
    real = tuning._values

    def picky(found, trial, folder):
        values = real(found, trial, folder)
        return (float("nan"),) if trial.spec == slow.spec else values

    found = search(lr=0.02)
    slow = trials_of(found, 1)[0]
    monkeypatch.setattr(tuning, "_values", picky)
    tried = carry_out(found, 6, tmp_path)
    assert tried[0].values == ()
    assert tried[0].error == "val_auroc is not defined for it"
    assert all(one.values for one in tried[1:])


def test_a_search_whose_trials_all_failed_goes_on(tmp_path):
    tried = carry_out(search(lr=0.4), 6, tmp_path)
    assert all(one.error.startswith("the loss became nan") for one in tried)
    assert len(tried) == 6
