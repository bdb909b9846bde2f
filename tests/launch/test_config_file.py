"""Configs in files: what a search found is what a run takes."""

from dataclasses import replace

import pytest

from launch import searched
from launch.searched import trials_of
from qualms.launch import RunRequest, plans_of
from qualms.launch._config_file import ConfigFile, read_config, write_config
from qualms.launch.tune import search_of
from qualms.shelf import find

CONFIG = ConfigFile(
    name="tuned",
    benchmark="toy",
    method="mc_dropout",
    selection="in_domain",
    options={"lr": 1.5e-05, "method.rate": 0.125, "select_by": "val_auroc"},
    search={"trials": 8, "value": 0.75},
)


@pytest.fixture(autouse=True)
def shelf(monkeypatch):
    searched.on_shelf(monkeypatch)


def written(tmp_path, **changes):
    path = tmp_path / "best.toml"
    write_config(replace(CONFIG, **changes), path)
    return path


def runs_with(path, target="toy/plain", **changes):
    request = RunRequest(config=str(path), **{"methods": ("mc_dropout",), **changes})
    (plan,) = plans_of(target, request)
    return plan


def test_a_config_is_read_as_it_was_written(tmp_path):
    options = {
        **CONFIG.options,
        "method.layers": ["stem", 'a "quoted" one'],
        "dataset.sizes": {"train": 4, "val/shifted": 2},
        "flag": True,
    }
    path = written(tmp_path, options=options)
    assert read_config(path) == replace(CONFIG, options=options)


@pytest.mark.parametrize("variant", ["country", "severity"])
@pytest.mark.parametrize("number", [0, 3])
def test_runs_with_the_config_of_a_trial_are_that_trial(tmp_path, variant, number):
    for method in find("benchmarks", "retina")().search[variant]:
        fixed = {"epochs": 2, "dataset.sizes": {"train": 128}}
        request = RunRequest(methods=(method,), seeds=(5,), options=fixed)
        search = search_of(f"retina/{variant}", request)
        trial = trials_of(search, number + 1)[number]
        path = tmp_path / f"{method}.toml"
        write_config(
            ConfigFile(
                name="tuned",
                benchmark="retina",
                method=method,
                selection=search.selection.name,
                options={**search.config_options, **trial.options},
            ),
            path,
        )
        plan = runs_with(
            path, f"retina/{variant}", methods=(method,), seeds=(5,), preset="demo"
        )
        (run,) = plan.runs
        assert replace(run, splits=trial.spec.splits, sources=()) == replace(
            trial.spec, sources=()
        )


def test_only_runs_of_its_method_take_it(tmp_path):
    plan = runs_with(written(tmp_path), methods=("map", "mc_dropout"))
    by_method = {run.method.name: run for run in plan.runs}
    assert by_method["mc_dropout"].training["lr"] == 1.5e-05
    assert by_method["mc_dropout"].method.options["rate"] == 0.125
    assert "lr" not in by_method["map"].training
    assert plan.changes == ("config tuned",)


def test_options_of_the_command_override_those_of_the_file(tmp_path):
    plan = runs_with(written(tmp_path), options={"lr": 0.5})
    assert {run.training["lr"] for run in plan.runs} == {0.5}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"benchmark": "url"}, "is a config of 'url', got benchmark 'toy'; run url"),
        ({"selection": "jiont"}, r"no selection 'jiont' in toy.* Did you mean 'joint'"),
        ({"selection": "joint"}, r"belongs to selection 'joint', and toy/plain"),
        ({"method": "map"}, r"config 'tuned' is for 'map', which is not among"),
        ({"options": {"lrr": 1.0}}, r"no option 'lrr'.* Did you mean 'lr'"),
        ({"options": {"method.rate": "much"}}, r"'method.rate' of mc_dropout must be"),
        ({"options": {}}, r"must state 'options'; add it"),
    ],
)
def test_a_config_that_does_not_fit_is_refused(tmp_path, changes, said):
    with pytest.raises((ValueError, LookupError), match=said):
        runs_with(written(tmp_path, **changes))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, r"there is no file .*; --config takes a file that ends with .toml"),
        ("name = ", r"is not TOML: .*; correct it"),
        ("nmae = 'a'", r"no key 'nmae' in .* Did you mean 'name'"),
        ("name = 3", r"'name' in .* must be text in quotes, got 3"),
        ("options = 3", r"'options' in .* must be a table, got 3"),
        ("name = 'a'", r"must state 'benchmark', 'method', 'options'; add it"),
    ],
)
def test_a_file_that_holds_no_config_is_refused(tmp_path, text, said):
    path = tmp_path / "best.toml"
    if text is not None:
        path.write_text(text)
    with pytest.raises((ValueError, LookupError), match=said):
        runs_with(path)
