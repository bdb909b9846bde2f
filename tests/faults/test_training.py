"""Faults in training: no finished work is lost, no result is wrong, one sentence."""

import json
import os
import shutil
import subprocess
import time
from dataclasses import replace

import pytest

from faults.drill import (
    EPOCHS,
    after_epoch,
    predictions,
    small_disk,
    spec,
    train,
    trained_epochs,
)
from qualms.datasets import DatasetError
from qualms.datasets._cache import block_checksum, entries, file_hash, fingerprint
from qualms.runs import check_writable, checkpoint_paths, remade, run_folder
from qualms.shelf import include, source_of

pytestmark = pytest.mark.faults


class StopError(Exception):
    """What ends a run in a test, as a kill would."""


def stop(_):
    raise StopError


def resumed(out, runs, cache, undisturbed):
    """Run again and compare the predictions; return what the user is told."""
    ended = train(out, runs, cache)
    assert set(ended.status.values()) <= {"done", "skipped"}, ended.error
    for run in runs:
        assert predictions(out, run) == undisturbed[run.hash]
    return ended


def failure(ended, sentence):
    """The error of the run with seed 0, which alone failed."""
    assert ended.status == dict.fromkeys(ended.status, "done") | {0: "failed"}
    assert sentence in ended.error[0]
    return ended.error[0]


@pytest.mark.slow
def test_a_disk_that_is_full(tmp_path, cache, undisturbed, report):
    done, run = spec(1), spec(0)
    with small_disk(tmp_path / "disk", "4m") as out:
        train(out, [done], cache)

        def fill(_):
            with (out / "ballast").open("wb", buffering=0) as file:
                while True:
                    file.write(bytes(512))

        def fill_up(folder):
            with pytest.raises(OSError, match="No space left"):
                fill(folder)

        ended = train(out, [run], cache, work=after_epoch(2, fill_up))
        sentence = failure(ended, "free space there or choose another folder")
        assert sentence.startswith(f"cannot write to {run_folder(out, run)}: ")
        (out / "ballast").unlink()
        ended = resumed(out, [run, done], cache, undisturbed)
        assert ended.status == {0: "done", 1: "skipped"}
        assert trained_epochs(ended, run) == [3, 4]
    report("disk full", sentence)


@pytest.mark.slow
def test_an_output_that_cannot_be_written_to(tmp_path, cache, undisturbed, report):
    done = spec(1)
    with small_disk(tmp_path / "disk", "32m") as out:
        train(out, [done], cache)
        subprocess.run(["mount", "-o", "remount,ro", str(out)], check=True)
        message = "cannot write runs to .*: Read-only file system; free space there or"
        with pytest.raises(OSError, match=message) as refused:
            check_writable(out)
        ended = train(out, [spec(0)], cache)
        failure(ended, "Read-only file system; make it usable and run again")
        assert predictions(out, done) == undisturbed[done.hash]
        subprocess.run(["mount", "-o", "remount,rw", str(out)], check=True)
        resumed(out, [spec(0), done], cache, undisturbed)
    report("read-only output", str(refused.value))


@pytest.mark.parametrize(
    ("fault", "act", "sentence", "again"),
    [
        (
            "output removed during a run",
            lambda folder: shutil.rmtree(folder.parents[1]),
            "was removed or renamed while the run worked in it",
            [1, 2, 3, 4],
        ),
        (
            "out of memory",
            lambda _: bytearray(1 << 62),
            "this machine has too little memory (",
            [3, 4],
        ),
    ],
)
def test_a_run_that_fails_after_an_epoch(
    tmp_path, cache, undisturbed, report, fault, act, sentence, again
):
    out, runs = tmp_path / "out", [spec(0), spec(1)]
    ended = train(out, runs, cache, work=after_epoch(2, act, runs[0]))
    error = failure(ended, sentence)
    ended = resumed(out, runs, cache, undisturbed)
    assert trained_epochs(ended, runs[0]) == again
    report(fault, error)


@pytest.mark.slow
def test_a_clock_that_jumps(tmp_path, cache, undisturbed, report, monkeypatch):
    out, run = tmp_path / "out", spec(0)
    jumps = iter([0.0, 2e9])

    def jump(_):
        now = next(jumps)
        monkeypatch.setattr("time.time", lambda: now)
        monkeypatch.setattr("time.time_ns", lambda: int(now * 1e9))

    watch = after_epoch(1, lambda f: jump(f))
    ended = train(out, [run], cache, work=watch)
    assert ended.status == {0: "done"}
    assert predictions(out, run) == undisturbed[run.hash]
    seconds = json.loads((run_folder(out, run) / "done.json").read_text())["seconds"]
    assert 0 < seconds < 600
    report("clock jump", "no message, since nothing has to be done")


def damaged(cache, folder, change):
    """Copy the cache, and change the file with the images."""
    shutil.copytree(cache, folder)
    path = next(folder.rglob("train.image.npy"))
    path.write_bytes(change(bytearray(path.read_bytes())))
    return folder


@pytest.mark.parametrize(
    ("fault", "change"),
    [
        ("truncated cache", lambda content: content[:-100]),
        (
            "changed byte in a cache of equal size",
            lambda content: content[:-1] + bytes([content[-1] ^ 1]),
        ),
    ],
)
@pytest.mark.slow
def test_a_damaged_cache(tmp_path, cache, undisturbed, report, fault, change):
    out, runs = tmp_path / "out", [spec(0), spec(1)]
    train(out, runs[:1], cache)
    spoilt = damaged(cache, tmp_path / "spoilt", change)
    with pytest.raises(
        DatasetError, match=r"train\.image\.npy changed after"
    ) as refused:
        train(out, runs, spoilt)
    assert predictions(out, runs[0]) == undisturbed[runs[0].hash]
    (folder,) = spoilt.iterdir()
    assert f"delete {folder} and prepare the dataset again" in str(refused.value)
    shutil.rmtree(folder)
    resumed(out, runs, spoilt, undisturbed)
    report(fault, str(refused.value))


def another_version(cache, folder):
    """Copy the cache, with another image and a record that says so."""
    damaged(cache, folder, lambda content: content[:-1] + bytes([content[-1] ^ 1]))
    (prepared,) = folder.iterdir()
    meta = json.loads((prepared / "meta.json").read_text())
    for _, entry in entries(meta):
        path = prepared / entry["file"]
        entry["sha256"] = file_hash(path)
        entry["crc32"] = [block_checksum(path, i) for i in range(len(entry["crc32"]))]
    before, meta["fingerprint"] = meta["fingerprint"], fingerprint(meta)
    assert meta["fingerprint"] != before
    (prepared / "meta.json").write_text(json.dumps(meta))
    return folder


def test_a_dataset_that_changes_under_a_cache(tmp_path, cache, undisturbed, report):
    """The cache holds another version, which is valid in itself."""
    out, run = tmp_path / "out", spec(0)
    train(out, [run], cache, work=after_epoch(2, stop))
    ended = train(out, [run], another_version(cache, tmp_path / "cache"))
    error = failure(ended, "the dataset cells has changed since this run began")
    again = resumed(out, [run], cache, undisturbed)
    assert trained_epochs(again, run) == [3, 4]
    report("dataset changed under a cache", error)


@pytest.mark.slow
def test_a_damaged_checkpoint(tmp_path, cache, undisturbed, report):
    out, run = tmp_path / "out", spec(0)
    train(out, [run], cache, work=after_epoch(3, stop))
    path, _ = checkpoint_paths(run_folder(out, run))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    ended = resumed(out, [run], cache, undisturbed)
    (message,) = ended.messages
    assert message.startswith(f"{path} is damaged (")
    assert trained_epochs(ended, run) == [3, 4]
    report("damaged checkpoint", message)


@pytest.mark.slow
def test_a_loss_that_is_not_a_number(tmp_path, cache, undisturbed, report):
    out, runs = tmp_path / "out", [spec(0, lr=1e30), spec(1)]
    ended = train(out, runs, cache)
    error = failure(ended, "the loss became nan in epoch 0, step 1; train with a")
    assert not (run_folder(out, runs[0]) / "predictions").exists()
    assert predictions(out, runs[1]) == undisturbed[runs[1].hash]
    report("loss is NaN", error)


@pytest.mark.slow
def test_an_included_part_that_changes(tmp_path, cache, undisturbed, report):
    path = tmp_path / "faulty_part.py"
    code = '"""A method (Nobody, 2026)."""\n\nfrom qualms.methods import Method\n\n\n'
    code += 'def faulty_part() -> Method:\n    """Change nothing."""\n'
    path.write_text(code + "    return Method()\n")
    include([path])
    sources = {"methods/faulty_part": source_of("methods", "faulty_part")}
    out, run = tmp_path / "out", spec(0, method="faulty_part", sources=sources)
    train(out, [run], cache, work=after_epoch(2, stop))
    changed = replace(run, sources={"methods/faulty_part": "0" * 16})
    assert changed.hash != run.hash
    ended = train(out, [changed], cache)
    error = failure(ended, "the code of methods/faulty_part has changed since")
    again = train(out, [run], cache)
    assert again.status == {0: "done"}
    assert trained_epochs(again, run) == [3, 4]
    report("included part changed between start and resume", error)


@pytest.mark.slow
def test_predictions_that_are_swapped(tmp_path, cache, undisturbed, report):
    out, runs = tmp_path / "out", [spec(0), spec(1)]
    train(out, runs, cache)
    first, second = (run_folder(out, run) / "predictions" for run in runs)
    first.rename(tmp_path / "other")
    second.rename(first)
    (tmp_path / "other").rename(second)
    sentences = [each for run in runs for each in remade(run_folder(out, run), run)]
    assert len(sentences) == 2 * len(runs[0].splits)
    assert "they were put in the place of others" in sentences[0]
    ended = resumed(out, runs, cache, undisturbed)
    assert ended.status == {0: "done", 1: "done"}
    assert trained_epochs(ended, runs[0]) == []
    report("predictions swapped between runs", sentences[0])


@pytest.mark.slow
def test_a_file_system_that_is_slow(tmp_path, cache, undisturbed, monkeypatch):
    for name in ("fsync", "replace"):
        monkeypatch.setattr(os, name, after_a_while(getattr(os, name)))
    resumed(tmp_path / "out", [spec(0)], cache, undisturbed)


def after_a_while(call):
    def slow(*args, **options):
        time.sleep(0.05)
        return call(*args, **options)

    return slow


@pytest.mark.slow
def test_epochs_are_counted(tmp_path, cache):
    """The other tests rely on it."""
    run = spec(0)
    assert trained_epochs(train(tmp_path, [run], cache), run) == list(
        range(1, EPOCHS + 1)
    )
