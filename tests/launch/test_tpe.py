"""A search by TPE: repeatable, resumable, shared, and better than an even one."""

import json
from functools import partial

import numpy as np
import pytest

from launch import searched
from qualms.launch import RunOutcome, RunRequest, _proposals, _trials
from qualms.launch import tune as tuning
from qualms.launch.tune import proposals_of, search_of, trials_of, tune
from qualms.runs import is_done, log_path, run_folder


@pytest.fixture(autouse=True)
def shelf(monkeypatch):
    searched.on_shelf(monkeypatch)


def search(sampler="tpe", seed=0, **options):
    wish = RunRequest(methods=("map",), seeds=(seed,), options=options)
    return search_of("toy/plain", wish, sampler=sampler)


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
    proposals = proposals_of(found, count, out=out, at_once=at_once)
    return tune(found, proposals, launch=partial(launch, out=out, **how), out=out)


def carry_out(found, count, out, **how):
    tried = list(started(found, count, out, **how))
    return sorted(tried, key=lambda one: one.trial.number)


def points(tried):
    return [one.trial.options for one in tried]


def test_trials_follow_from_the_seed_alone(tmp_path):
    first = carry_out(search(), 9, tmp_path / "first")
    again = carry_out(search(), 9, tmp_path / "again")
    assert [one.trial for one in first] == [one.trial for one in again]
    assert [one.trial.number for one in first] == list(range(9))
    other = carry_out(search(seed=1), 9, tmp_path / "other")
    assert points(other) != points(first)


def test_it_begins_with_the_points_of_an_even_search(tmp_path):
    tried = carry_out(search(), 6, tmp_path)
    even = [trial.options for trial in trials_of(search("sobol"), 6)]
    assert points(tried)[: _proposals.START] == even[: _proposals.START]
    assert points(tried)[4:] != even[4:]
    assert search().folder(tmp_path) != search("sobol").folder(tmp_path)


def test_a_search_that_was_stopped_goes_on_as_if_it_had_not_been(tmp_path):
    whole = carry_out(search(), 9, tmp_path / "whole")
    for stop in (2, 6):
        out = tmp_path / f"stopped{stop}"
        coming = started(search(), 9, out)
        for _ in range(stop):
            next(coming)
        coming.close()
        assert points(carry_out(search(), 9, out)) == points(whole)
    # A longer search begins like a shorter one, whose runs are kept.
    assert points(carry_out(search(), 12, tmp_path / "whole"))[:9] == points(whole)
    begun = run_folder(tmp_path / "whole", whole[8].trial.spec) / "begun"
    assert begun.read_text() == "begun\n"


def test_proposals_come_closer_to_the_best_than_even_points(tmp_path):
    def off(sampler, seed):
        matches = search(sampler, seed=seed, momentum=0.9, final_factor=0.1)
        tried = carry_out(matches, 24, tmp_path / f"{sampler}{seed}")
        late = [one.trial.options["lr"] for one in tried[8:]]
        return np.abs(np.log(np.array(late) / searched.BEST_LR["val"])).mean()

    for seed in range(3):
        assert off("tpe", seed) < 0.7 * off("sobol", seed)


def test_trials_of_a_round_do_not_see_each_other(tmp_path):
    rounds = []

    def watched(specs, *, out, judge):
        rounds.append(len(specs))
        yield from launch(specs, out=out)

    matches = search()
    proposals = proposals_of(matches, 10, out=tmp_path, at_once=3)
    tried = list(
        tune(matches, proposals, launch=partial(watched, out=tmp_path), out=tmp_path)
    )
    assert rounds == [4, 3, 3]
    assert len({one.trial.spec.hash for one in tried}) == 10
    one_by_one = carry_out(matches, 10, tmp_path / "other")
    assert points(one_by_one)[:5] == points(sorted(tried, key=number))[:5]


def number(tried):
    return tried.trial.number


def test_a_trial_of_another_process_is_left_to_it_and_the_search_goes_on(tmp_path):
    matches = search()
    busy = carry_out(matches, 5, tmp_path / "planned")[4].trial
    mine = carry_out(matches, 7, tmp_path, busy=[busy.spec.hash])
    assert mine[4].trial == busy
    assert mine[4].error == "another process makes it; run again to see it"
    assert [one.is_busy for one in mine] == [n == 4 for n in range(7)]
    # The other process finds what was proposed meanwhile, and makes no number twice.
    theirs = carry_out(matches, 7, tmp_path)
    assert points(theirs) == points(mine)
    assert not any(one.is_busy for one in theirs)


def test_what_was_proposed_stays_when_a_failed_trial_is_repaired(tmp_path):
    matches = search()
    bad = trials_of(matches, 2)[1]
    first = carry_out(matches, 8, tmp_path, refused=[bad.spec.hash])
    assert first[1].value is None
    again = carry_out(matches, 8, tmp_path)
    assert again[1].value is not None
    assert points(again) == points(first)


def test_a_trial_that_the_rule_leaves_out_counts_as_the_worst(tmp_path, monkeypatch):
    real = tuning._values

    def picky(found, trial, folder):
        values = real(found, trial, folder)
        return (float("nan"),) if trial.spec == slow.spec else values

    found = search(momentum=0.9, final_factor=0.1)
    slow = trials_of(found, 1)[0]
    monkeypatch.setattr(tuning, "_values", picky)
    tried = carry_out(found, 6, tmp_path)
    assert tried[0].value is None
    assert tried[0].error == "val_auroc is not defined for it"
    told = _proposals._frozen(found, slow, tried[0], [-np.inf])
    assert (told.state.name, told.value) == ("COMPLETE", -np.inf)
    assert tried[5].value is not None


def test_a_search_whose_trials_all_failed_goes_on(tmp_path):
    tried = carry_out(search(lr=0.4), 6, tmp_path)
    assert all(one.error.startswith("the loss became nan") for one in tried)
    assert len(tried) == 6


def test_choices_are_kept_as_they_are(tmp_path):
    matches = search(lr=0.02, momentum=0.9)
    tried = carry_out(matches, 6, tmp_path)
    plan = json.loads((matches.folder(tmp_path) / "plan.json").read_text())
    assert [row["final_factor"] for row in plan] == [
        one.trial.options["final_factor"] for one in tried
    ]


def test_a_plan_that_was_damaged_is_answered_with_a_sentence(tmp_path):
    matches = search()
    carry_out(matches, 5, tmp_path)
    path = matches.folder(tmp_path) / "plan.json"
    for text in ("[{", '[{"lr": 1}]', "[3]"):
        path.write_text(text)
        with pytest.raises(ValueError, match=r"plan.json cannot be read .*delete it"):
            carry_out(matches, 5, tmp_path)
    path.unlink()
    assert len(carry_out(matches, 5, tmp_path)) == 5


def test_mistakes_are_answered(tmp_path, monkeypatch):
    with pytest.raises(LookupError, match=r"no sampler 'tpa'\. Did you mean 'tpe'"):
        search("tpa")
    with pytest.raises(ValueError, match="at_once must be at least 1, got 0"):
        proposals_of(search(), 2, out=tmp_path, at_once=0)
    with pytest.raises(ValueError, match="trials must be at least 1, got 0"):
        proposals_of(search(), 0, out=tmp_path)
    monkeypatch.setattr(_trials, "find_spec", lambda _: None)
    with pytest.raises(LookupError, match=r"install 'qualms-bench\[tune\]'"):
        proposals_of(search(), 2, out=tmp_path)
