"""Listing, filtering, sorting, comparing and exporting runs."""

import csv
import hashlib
import json
import os
import re
import shutil
import signal
import time
from contextlib import contextmanager

import pytest

import qualms
from catalogue.run_folders import make_folder
from qualms.catalogue import _index, find_removable, write_scores
from qualms.runs import (
    judged_files,
    mark_failed,
    read_costs,
    read_losses,
    read_progress,
)

LATER = 1e6


@pytest.fixture
def out(tmp_path):
    folders = {
        (method, seed): make_folder(tmp_path, method=method, seed=seed)
        for method in ("map", "mfvi")
        for seed in (0, 1)
    }
    make_folder(tmp_path, "failed", method="swag")
    make_folder(tmp_path, method="map", benchmark="other")
    results = tmp_path / "small" / "demo"
    results.mkdir()
    values = {folders["map", 0]: 0.91, folders["map", 1]: 0.93}
    values |= {folders["mfvi", 0]: 0.95, folders["mfvi", 1]: float("nan")}
    write_scores(
        results,
        {"preset": "demo"},
        {path.name: {"auroc": value, "nll": 1.0} for path, value in values.items()},
    )
    return tmp_path


def chosen(out, *filters, **options):
    listing = qualms.list_runs(out, filters, **options)
    return [(run.labels["method"], run.labels["seed"]) for run in listing]


@pytest.mark.parametrize(
    ("filters", "runs"),
    [
        (["method=mfvi"], [("mfvi", 0), ("mfvi", 1)]),
        (["benchmark=other"], [("map", 0)]),
        (["auroc>0.9", "auroc < 0.94"], [("map", 0), ("map", 1)]),
        (["auroc>=0.95"], [("mfvi", 0)]),
        (["status=failed"], [("swag", 0)]),
        (["method=m*", "seed=1"], [("map", 1), ("mfvi", 1)]),
        (["method!=map,mfvi"], [("swag", 0)]),
        (["method.rate=0.1", "lr=0.05", "seed=1"], [("map", 1), ("mfvi", 1)]),
        (["error=*nan*"], [("swag", 0)]),
        (["seconds>6"], []),
    ],
)
def test_filters_choose_by_labels_options_and_scores(out, filters, runs):
    assert sorted(chosen(out, *filters)) == runs


def test_runs_are_sorted_with_missing_values_last(out):
    found = chosen(out, "benchmark=small", sort="-auroc")
    assert found[:3] == [("mfvi", 0), ("map", 1), ("map", 0)]
    assert chosen(out, "auroc>0", sort=["method", "-seed"]) == [
        ("map", 1),
        ("map", 0),
        ("mfvi", 0),
    ]


@pytest.mark.parametrize(
    ("filters", "sort", "sentence"),
    [
        (
            ["auorc>0.9"],
            (),
            "no run has a label, option or score 'auorc'. Did you mean",
        ),
        (["method"], (), "a filter must read like method=mfvi"),
        (["method="], (), "a filter must read like"),
        (["method>map"], (), "method > must be followed by a number, got 'map'"),
        (["status=faild"], (), "no status 'faild'. Did you mean 'failed'"),
        ([], ["-sed"], "score 'sed'. Did you mean 'seed'"),
    ],
)
def test_wrong_filters_are_refused_with_near_names(out, filters, sort, sentence):
    with pytest.raises((LookupError, ValueError), match=re.escape(sentence)):
        qualms.list_runs(out, filters, sort=sort)


def test_a_missing_folder_is_named(tmp_path):
    (tmp_path / "runs").mkdir()
    with pytest.raises(ValueError, match=r"there is no folder .* Did you mean 'runs'"):
        qualms.list_runs(tmp_path / "rums")
    assert len(qualms.list_runs(tmp_path / "runs", sort="auroc")) == 0


def test_the_index_is_never_the_truth(out):
    before = [run.to_json() for run in qualms.list_runs(out)]
    (index,) = out.glob(f"{_index.INDEX}*")
    index.unlink()
    assert [run.to_json() for run in qualms.list_runs(out)] == before
    folder = next((out / "small").glob("*/done.json")).parent
    shutil.rmtree(folder)
    assert len(qualms.list_runs(out)) == len(before) - 1


def test_only_changed_folders_are_read_again(out, monkeypatch):
    qualms.list_runs(out)
    reads = []
    recorded_run = _index.recorded_run

    def read(folder, name):
        reads.append(folder.name)
        return recorded_run(folder, name)

    monkeypatch.setattr(_index, "recorded_run", read)
    new = make_folder(out, method="sngp")
    (failed,) = qualms.list_runs(out, "status=failed")
    assert set(reads) == {new.name, failed.run}  # a failed run may be started again


def test_a_changed_run_is_shown_as_it_is_now(out):
    folder = make_folder(out, "stopped", method="sngp")
    assert [r.status for r in qualms.list_runs(out, "method=sngp")] == ["running"]
    past = time.time() - LATER
    for path in folder.rglob("*"):
        os.utime(path, (past, past))
    assert [r.status for r in qualms.list_runs(out, "method=sngp")] == ["stopped"]
    mark_failed(
        folder, next(iter(qualms.list_runs(out))) and _spec(folder), "no memory"
    )
    (record,) = qualms.list_runs(out, "method=sngp")
    assert (record.status, record.error) == ("failed", "no memory")


def _spec(folder):
    from qualms.spec import RunSpec

    return RunSpec.from_json((folder / "spec.json").read_text())


def test_a_damaged_index_is_made_again(out):
    before = list(qualms.list_runs(out))
    (index,) = out.glob(f"{_index.INDEX}*")
    content = index.read_bytes()
    index.write_bytes(b"no index at all" * 100)
    assert list(qualms.list_runs(out)) == before
    assert index.read_bytes() == content


def test_an_index_of_somebody_else_is_not_believed(out):
    before = list(qualms.list_runs(out))
    (index,) = out.glob(f"{_index.INDEX}*")
    changed = index.read_bytes().replace(b"mfvi", b"mfvy")
    seal = hashlib.sha256(changed[32:]).digest()
    index.write_bytes(seal + changed[32:])
    assert list(qualms.list_runs(out)) == before


def test_a_folder_without_a_writable_index_is_listed(out, monkeypatch):
    def refuse(_):
        raise OSError("read-only file system")

    monkeypatch.setattr("qualms.caches.replacing", refuse)
    assert len(qualms.list_runs(out)) == 6
    assert not list(out.glob(f"{_index.INDEX}*"))


def test_a_damaged_run_folder_is_listed_as_such(out):
    folder = make_folder(out, method="sngp")
    (folder / "spec.json").write_text("{")
    (record,) = qualms.list_runs(out, "status=damaged")
    assert record.run == folder.name
    assert record.labels == {"benchmark": "small"}


def test_one_benchmark_is_listed_with_its_scores(out):
    listing = qualms.list_runs(out / "small", "auroc>0.9")
    assert len(listing) == 3
    assert repr(listing) == "<RunListing: 3 of 5 runs>"


def test_runs_are_exported_with_all_names(out, tmp_path):
    listing = qualms.list_runs(out, "benchmark=small", sort="-auroc")
    text = listing.write(tmp_path / "all.csv").read_text()
    rows = list(csv.DictReader(text.splitlines()))
    assert (rows[0]["method"], rows[0]["auroc"], rows[0]["lr"]) == (
        "mfvi",
        "0.95",
        "0.05",
    )
    records = json.loads(listing.write(tmp_path / "all.json").read_text())
    assert [r["run"] for r in records] == [r["run"] for r in rows]
    frame = listing.to_frame()
    assert list(frame["method"]) == [r["method"] for r in rows]
    listing.write(tmp_path / "all.parquet")
    with pytest.raises(ValueError, match=r"exported to .csv, .json, .parquet"):
        listing.write(tmp_path / "all.cvs")


def test_what_differs_between_runs_is_found(out):
    listing = qualms.list_runs(out, ["benchmark=small", "seed=0", "status=done"])
    differing = listing.differing()
    assert differing["method"] == tuple(run.labels["method"] for run in listing)
    assert set(differing["auroc"]) == {0.91, 0.95}
    assert "lr" not in differing


RECORDS = ("spec.json", "done.json", "failed.json", "losses.json", "log.jsonl")


@contextmanager
def at_most(seconds):
    """Fail instead of waiting for ever."""

    def ring(*_):
        raise AssertionError("it waits for a file that nobody writes to")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "loop"])
@pytest.mark.parametrize("name", RECORDS)
def test_what_stands_in_place_of_a_record_is_not_waited_for(out, name, kind):
    folder = make_folder(out, method="sngp")
    path = folder / name
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero" if kind == "device" else name)
    with at_most(60):
        listing = qualms.list_runs(out, "method=sngp")
        assert len(qualms.list_runs(out)) == 7
        find_removable(out)
        assert read_progress(folder) is None or name != "spec.json"
        assert read_losses(folder, since=0.0).lost == 0
        read_costs(folder)
    assert [run.status for run in listing] == {
        "spec.json": [],
        "done.json": ["running"],
    }.get(name, ["done"])


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "{",
            "3",
            "null",
            "[]",
            "[" * 100_000,
            '{"a":' * 100_000,
            "\0",
            "\ufeff{}",
        ),
        '{"hash": NaN}',
        '{"hash": "HASH", "seconds": "long", "pace": 3}',
        '{"hash": "HASH", "seconds": [1], "pace": {"test": {"seconds_per_item": "x"}}}',
        '{"hash": "HASH", "seconds": 1' + "0" * 400 + "}",
        '{"error": {"a": 1}, "when": "late", "lost": "x", "killed": []}',
    ],
)
@pytest.mark.parametrize("name", RECORDS)
def test_records_of_any_content_are_listed(out, name, text):
    folder = make_folder(out, method="sngp")
    (folder / name).write_text(text.replace("HASH", folder.name))
    assert len(qualms.list_runs(out)) == 7
    find_removable(out)
    read_progress(folder)
    assert read_losses(folder, since=0.0).lost == 0
    costs = read_costs(folder)
    assert costs.training in (None, 6.0)
    assert costs.per_item is None


def test_a_pipe_among_predictions_is_not_read(out):
    folder = make_folder(out, method="sngp")
    os.mkfifo(folder / "predictions" / "val.csv")
    with at_most(60):
        names = [file.name for file in judged_files(folder)]
    assert names == ["done.json", "predictions/test.csv"]


def test_exported_runs_hold_no_formulas(out):
    folder = make_folder(out, "failed", method="sngp")
    mark_failed(folder, _spec(folder), "=cmd|'/C calc'!A0")
    path = qualms.list_runs(out).write(out / "runs.csv")
    with path.open(newline="") as file:
        errors = {row["error"] for row in csv.DictReader(file)}
    assert "'=cmd|'/C calc'!A0" in errors
