"""Completion of the shell: it is installed by one option, and knows the parts."""

import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from qualms.cli import app
from qualms.cli._complete import (
    complete_benchmarks,
    complete_datasets,
    complete_methods,
    complete_posthoc,
    complete_scores,
    complete_shelves,
)


def test_commands_and_benchmarks_are_completed_in_a_shell(tmp_path):
    """Bash takes the script as it is printed, and fills in names by it."""
    command = tmp_path / "qualms"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m qualms "$@"\n')
    command.chmod(0o755)
    place = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    script = """
        eval "$(_QUALMS_COMPLETE=source_bash qualms)"
        for line in "qualms sc" "qualms run re" "qualms run regression/cells_t"; do
            COMP_WORDS=($line); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
            _qualms_completion qualms
            echo "${COMPREPLY[*]}"
        done
    """
    done = subprocess.run(
        ["bash", "-c", script], env=place, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[:2] == ["score", "regression retina"]
    assert done.stdout.splitlines()[2].startswith("regression/cells_t")


@pytest.mark.parametrize(
    ("shell", "place"),
    [
        ("bash", ".bash_completions/qualms.sh"),
        ("zsh", ".zfunc/_qualms"),
        ("fish", ".config/fish/completions/qualms.fish"),
    ],
)
def test_one_option_installs_it(shell, place, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("shellingham.detect_shell", lambda: (shell, shell))
    result = CliRunner().invoke(app, ["--install-completion"], prog_name="qualms")
    assert result.exit_code == 0, result.output
    assert f"complete_{shell}" in (tmp_path / place).read_text()


def test_lists_are_completed_at_their_end():
    assert "map,mc_dropout" in complete_methods("map,mc")
    assert "map,map" not in complete_methods("map,m")
    assert complete_posthoc("p") == ["plain"]
    assert complete_posthoc("deep") == []
    assert complete_datasets("fashion") == ["fashion_mnist"]
    assert complete_shelves("sc") == ["scores"]
    assert "ece,aurc" in complete_scores("ece,au")
    assert complete_scores("ec") == ["ece"]


def test_variants_follow_a_slash():
    assert "retina/country" in complete_benchmarks("retina/co")
    assert complete_benchmarks("none/x") == []


def test_names_of_included_parts_are_offered(tmp_path, monkeypatch):
    file = tmp_path / "own_way.py"
    file.write_text(
        "from qualms.methods import Method\n"
        "def own_way() -> Method:\n    return Method()\n"
    )
    monkeypatch.setenv("QUALMS_INCLUDE", str(file))
    assert complete_methods("own") == ["own_way"]
