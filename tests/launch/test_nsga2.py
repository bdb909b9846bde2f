"""A search by NSGA-II: generation by generation, repeatable, and better than chance."""

import json

import numpy as np
import optuna
import pytest

from launch import searched
from launch.test_tpe import carry_out, points, started
from qualms.launch import RunRequest, _proposals
from qualms.launch.tune import proposals_of, search_of, trials_of

POPULATION = _proposals.POPULATION


@pytest.fixture(autouse=True)
def shelf(monkeypatch):
    searched.on_shelf(monkeypatch)


def search(sampler="nsga2", seed=0, objectives=(), **options):
    wish = RunRequest(methods=("map",), seeds=(seed,), options=options)
    return search_of("toy/plain", wish, sampler=sampler, objectives=objectives)


def test_the_first_generation_is_that_of_an_even_search(tmp_path):
    tried = carry_out(search(), POPULATION + 2, tmp_path)
    even = [trial.options for trial in trials_of(search("sobol"), POPULATION + 2)]
    assert points(tried)[:POPULATION] == even[:POPULATION]
    assert points(tried)[POPULATION:] != even[POPULATION:]
    assert search().folder(tmp_path).name.endswith("-nsga2")


def test_children_have_options_of_their_parents(tmp_path):
    """Crossover takes each option of one of two parents; few are new by mutation."""
    tried = points(carry_out(search(), 2 * POPULATION, tmp_path))
    parents, children = tried[:POPULATION], tried[POPULATION:]
    inherited = [
        child[name] in {parent[name] for parent in parents}
        for child in children
        for name in ("lr", "momentum")
    ]
    assert np.mean(inherited) > 0.4


def test_a_search_that_was_stopped_goes_on_as_if_it_had_not_been(tmp_path):
    whole = carry_out(search(), 20, tmp_path / "whole")
    for stop in (3, POPULATION + 3):
        out = tmp_path / f"stopped{stop}"
        coming = started(search(), 20, out)
        for _ in range(stop):
            next(coming)
        coming.close()
        assert points(carry_out(search(), 20, out)) == points(whole)
    longer = points(carry_out(search(), 26, tmp_path / "whole"))
    assert longer[:20] == points(whole)
    assert points(carry_out(search(), 26, tmp_path / "new")) == longer
    assert points(carry_out(search(seed=1), 20, tmp_path / "other")) != points(whole)


def test_generations_are_those_of_optuna(tmp_path, monkeypatch):
    """Every proposal is of the generation that its number says."""
    generations = {}
    true = optuna.samplers.NSGAIISampler.sample_relative

    def sample(self, study, trial, space):
        options = true(self, study, trial, space)
        attributes = study.get_trials()[-1].system_attrs
        generations[trial.number] = attributes["NSGAIISampler:generation"]
        return options

    monkeypatch.setattr(optuna.samplers.NSGAIISampler, "sample_relative", sample)
    carry_out(search(), 3 * POPULATION + 1, tmp_path)
    numbers = range(POPULATION, 3 * POPULATION + 1)
    assert generations == {number: number // POPULATION for number in numbers}


def test_generations_come_closer_to_the_best_than_even_points(tmp_path):
    def off(sampler, seed):
        found = search(sampler, seed=seed, momentum=0.9, final_factor=0.1)
        tried = carry_out(found, 32, tmp_path / f"{sampler}{seed}")
        late = [one.trial.options["lr"] for one in tried[16:]]
        return np.abs(np.log(np.array(late) / searched.BEST_LR["val"])).mean()

    for seed in range(2):
        assert off("nsga2", seed) < off("sobol", seed)


def test_what_another_process_makes_counts_as_the_worst(tmp_path):
    found = search(momentum=0.9)
    first = proposals_of(found, 12, out=tmp_path).first
    tried = carry_out(found, 12, tmp_path, busy={first[2].spec.hash})
    assert [one.is_busy for one in tried].count(True) == 1
    plan = json.loads((found.folder(tmp_path) / "plan.json").read_text())
    assert len(plan) == 12


@pytest.mark.parametrize("objectives", [(), ("ece",)])
def test_trials_that_all_fail_end_the_search_without_a_value(tmp_path, objectives):
    tried = carry_out(search(objectives=objectives, lr=0.4), 18, tmp_path)
    assert [one.value for one in tried] == [None] * 18
