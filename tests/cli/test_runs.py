"""`qualms runs` and `qualms gc`."""

import json
import re

import pytest
from typer.testing import CliRunner

from catalogue.run_folders import make_folder
from qualms.catalogue import write_scores
from qualms.cli import app
from qualms.cli._complete import complete_filters, complete_kinds


@pytest.fixture
def out(tmp_path):
    folders = [
        make_folder(tmp_path, method=method, seed=seed)
        for method in ("map", "mfvi")
        for seed in (0, 1)
    ]
    make_folder(tmp_path, "failed", method="swag")
    (tmp_path / "small" / "demo").mkdir()
    scores = {f.name: {"auroc": 0.9 + n / 100} for n, f in enumerate(folders)}
    write_scores(tmp_path / "small" / "demo", {}, scores)
    return tmp_path


def run(*arguments):
    result = CliRunner().invoke(app, list(map(str, arguments)))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def lines(*arguments):
    return run(*arguments).stdout.splitlines()


def test_runs_are_listed_within_80_columns(out):
    printed = lines("runs", out)
    assert printed[0] == "5 runs: 4 done, 1 failed"
    assert printed[1] == "benchmark small; dataset cells; network resnet_small"
    assert printed[2].split() == ["run", "status", "method", "seed", "auroc", "error"]
    assert len(printed) == 8
    assert all(len(line) <= 80 for line in printed)
    assert "the loss is nan" in run("runs", out, "status=failed").stdout


def test_runs_are_chosen_sorted_and_limited(out):
    found = lines("runs", out, "auroc>0.9", "--sort", "-auroc", "--limit", 2)
    assert found[0] == "3 of 5 runs: 3 done"
    assert [line.split()[-1] for line in found[3:5]] == ["0.93", "0.92"]
    assert found[-1] == "... and 1 more (--limit 0 for all)"
    columns = lines("runs", out, "auroc>0.92", "--columns", "method,auroc")
    assert columns[1].split() == ["run", "method", "auroc"]
    assert lines("runs", out, "seed=7") == ["0 of 5 runs"]


def test_runs_are_compared(out):
    printed = lines("runs", out, "seed=0", "status=done", "--compare")
    names = [line.split()[0] for line in printed[2:-1]]
    assert names == ["method", "auroc"]
    with pytest.raises(ValueError, match="can be compared, and 1 fits"):
        run("runs", out, "method=swag", "--compare")


def test_runs_are_exported(out, tmp_path):
    records = json.loads(run("runs", out, "method=map", "--json").stdout)
    assert [record["labels"]["method"] for record in records] == ["map", "map"]
    assert lines("runs", out, "--export", tmp_path / "all.csv") == [
        f"wrote {tmp_path / 'all.csv'} (5 runs)"
    ]
    assert len((tmp_path / "all.csv").read_text().splitlines()) == 6


@pytest.mark.parametrize(
    ("filter_", "sentence"),
    [
        (
            "metod=map",
            "no run has a label, option or score 'metod'. Did you mean 'method'",
        ),
        ("status=don", "no status 'don'. Did you mean 'done'"),
        ("auroc>high", "auroc > must be followed by a number, got 'high'"),
        ("=3", "a filter must read like"),
    ],
)
def test_wrong_filters_end_in_a_sentence(out, filter_, sentence):
    with pytest.raises((LookupError, ValueError), match=re.escape(sentence)):
        run("runs", out, filter_)


def test_gc_lists_and_deletes_only_when_asked(out):
    printed = run("gc", out).stdout
    assert "checkpoints (4)" in printed
    assert "failed (1)" in printed
    assert "nothing was deleted: --delete deletes it" in printed
    assert str(out) in run("gc", out, "--list").stdout
    deleted = run("gc", out, "--only", "failed", "--delete").stdout
    assert "deleted 1, which took" in deleted
    assert "failed (" not in run("gc", out).stdout
    assert lines("runs", out)[0] == "4 runs: 4 done"
    run("gc", out, "--delete")
    assert run("gc", out).stdout == f"nothing in {out} can be deleted\n"
    assert len(list(out.rglob("test.csv"))) == 4


def test_gc_names_what_is_wrong(out):
    with pytest.raises(LookupError, match="nothing called 'checkpoint' can be deleted"):
        run("gc", out, "--only", "checkpoint")
    with pytest.raises(ValueError, match="there is no folder"):
        run("gc", out / "nowhere")


def test_filters_and_kinds_are_completed():
    assert complete_filters("me") == ["method="]
    assert "method=mfvi" in complete_filters("method=mf")
    assert complete_filters("status=d") == ["status=done", "status=damaged"]
    assert complete_filters("seed=") == []
    assert complete_kinds("failed,ch") == ["failed,checkpoints"]
