"""`qualms list`: every part with its options."""

import functools
import inspect
import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from qualms.cli import app, main
from qualms.cli._complete import SHELVES
from qualms.shelf import find, names


@functools.cache
def told(shelf):
    """The lines that the command prints, asked for once."""
    result = CliRunner().invoke(app, ["list", shelf])
    assert result.exit_code == 0, result.output
    return result.output.splitlines()


def listed(shelf):
    """The lines of a listing by their first word."""
    head, *lines = told(shelf)
    assert head.split()[0] == "name"
    return {line.split()[0]: line for line in lines}


@pytest.mark.parametrize(
    "shelf", ["methods", "datasets", "benchmarks", "variants", "networks"]
)
def test_every_part_of_a_shelf_is_listed_on_one_line(shelf):
    shelf_names = names("benchmarks" if shelf == "variants" else shelf)
    assert set(shelf_names) <= set(listed(shelf))


def test_options_stand_with_their_defaults():
    assert "rate=" in listed("methods")["mc_dropout"]
    networks = listed("networks")
    assert "width=16, blocks=[1, 1, 1]" in networks["resnet_small"]
    assert "channels=" not in networks["resnet_small"]
    assert "timm:NAME" in networks


def test_ensembles_and_borrowed_runs_are_listed_among_the_methods():
    methods = listed("methods")
    assert "Runs of map with several seeds, pooled" in methods["deep_ensemble"]
    assert "METHOD_ensemble" in methods
    assert "Takes the runs of map." in methods["temperature"]
    assert "Takes the runs" not in methods["swag"]


def test_datasets_state_their_licence_and_whether_they_are_simulated():
    lines = listed("datasets")
    assert "variant=plain, sizes=null, seed=0" in lines["cells"]
    assert " simulated " in lines["cells"]
    assert " real " in lines["ventricular_volume"]
    assert "Research Use Agreement" in lines["ventricular_volume"]
    assert "root" not in lines["cell200"].split()


def test_without_a_shelf_all_of_them_are_listed():
    result = CliRunner().invoke(app, ["list"])
    head, *lines = result.output.splitlines()
    assert head.startswith("qualms list  what it shows")
    assert [line.split()[0] for line in lines] == [*SHELVES]


def test_a_benchmark_is_one_line_of_80_columns():
    head, *lines = (line.rstrip() for line in told("benchmarks"))
    assert head.endswith("demo/small/paper")
    assert [line.split()[0] for line in lines] == [*names("benchmarks")]
    assert max(map(len, (head, *lines))) <= 80
    assert "24/36/360 runs" in listed("benchmarks")["retina"]


def test_variants_are_listed_for_each_preset():
    lines = told("variants")
    for benchmark, variant in (("regression", "cells_tails"), ("retina", "country")):
        mine = [line for line in lines if line.startswith(benchmark)]
        for preset in ("demo", "small", "paper"):
            (line,) = (line for line in mine if f" {preset} " in line)
            assert variant in line
            assert " runs " in line


def test_variants_that_are_run_only_by_name_are_listed():
    (line,) = (s for s in told("variants") if "retina" in s and " demo " in s)
    assert line.split()[-8:] == [
        "country,",
        "severity",
        "country_joint,",
        "severity_joint,",
        "country_mild,",
        "severity_mild,",
        "country_mild_joint,",
        "severity_mild_joint",
    ]


def test_configs_are_listed_with_their_options():
    lines = listed("configs")
    assert "retina" in lines["map_country_joint"]
    assert "lr=0.026561 momentum=0.954009" in lines["map_country_joint"]
    assert set(find("benchmarks", "retina")().configs) <= set(lines)


def test_scores_state_their_label_direction_and_range():
    lines = listed("scores")
    assert lines["auroc"].split()[-5:] == ["AUROC", "higher", "0", "to", "1"]
    assert lines["aurc"].split()[-4:] == ["lower", "0", "to", "inf"]
    assert "referral_curve" not in lines


def test_an_unknown_shelf_is_answered_with_the_nearest(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["qualms", "list", "dataset"])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    assert "no shelf 'dataset'. Did you mean 'datasets'" in capsys.readouterr().err


@pytest.mark.parametrize("shelf", ["methods", "networks"])
def test_what_is_listed_without_torch_is_what_the_functions_say(shelf):
    code = (
        "import sys; sys.modules['torch'] = None\n"
        f"sys.argv = ['qualms', 'list', {shelf!r}]\n"
        "from qualms.cli import main; main()"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    lines = {line.split()[0]: line for line in result.stdout.splitlines()[1:]}
    assert lines.keys() == listed(shelf).keys()
    for name in names(shelf):
        function, line = find(shelf, name), lines[name]
        assert inspect.getdoc(function).partition("\n")[0] in line
        options = [
            f"{option.name}={_written(option.default)}"
            for option in inspect.signature(function).parameters.values()
            if option.name != "channels"
        ]
        assert line.rstrip().endswith(", ".join(options)), line
        if shelf == "methods":
            lender = function().trained_as
            assert ("Takes the runs of" in line) == bool(lender)
            assert f"Takes the runs of {lender}" in line or not lender


def _written(value):
    return value if isinstance(value, str) else json.dumps(value)
