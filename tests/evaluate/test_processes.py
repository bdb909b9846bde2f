"""Segmented items that are measured by processes: the numbers of one thread."""

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import qualms
from evaluate.made_maps import disc, made_benchmark, make_map_runs
from qualms import predictions
from qualms.evaluate import ScoreOptions
from qualms.evaluate.benchmark import judge_plan
from qualms.evaluate.protocol import Repeat, protocol_of
from qualms.evaluate.segmented import Reading, _stream, measure_items, validate
from qualms.predictions import PredictionsError, _folder, are_on_disk
from qualms.processes import LostProcessError

BARE = ScoreOptions(resamples=0, workers=1)


def written(folder, seed, items=12, **options):
    rng = np.random.default_rng(seed)
    with predictions.SegmentationWriter(folder, header={"method": "tta"}) as writer:
        for i in range(items):
            writer.add(f"{seed} {i}", disc(rng, 4, i, 0.3), **options)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return written(tmp_path_factory.mktemp("maps") / "test", 0)


@pytest.fixture(scope="module")
def worthwhile():
    """However few the pixels of a file are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_stream, "SMALL", 0)
        patch.setattr(_stream, "WORTHWHILE", 0)
        yield


@pytest.fixture(scope="module")
def shared(folder, worthwhile):
    with _stream.measuring(replace(BARE, workers=2)) as options:
        yield options
        pids = set(_stream.streamed(pid, predictions.read(folder), options))
        assert all(map(alive, pids))
    assert not any(map(alive, pids))


def pid(_maps):
    return os.getpid()


def alive(process):
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def measured(read, options):
    fitted = validate([read, read], options, published=True)[1]
    reading = Reading(fitted=fitted, published=True)
    return fitted, measure_items(read, reading, options)


@pytest.mark.parametrize("pooled", [False, True])
def test_processes_and_threads_give_the_same_bits(folder, tmp_path, shared, pooled):
    read = predictions.read(folder)
    if pooled:
        read = predictions.pool([read, written(tmp_path / "other", 0)])
    fitted, alone = measured(read, BARE)
    for options in (shared, replace(BARE, workers=3)):
        other, found = measured(read, options)
        assert other == fitted
        assert list(found.columns) == list(alone.columns)
        for column, values in alone.columns.items():
            assert found.columns[column].tobytes() == values.tobytes(), column
    pids = set(_stream.streamed(pid, read, shared))
    assert os.getpid() not in pids
    assert len(pids) == 2


def test_an_item_that_cannot_be_read_is_named_as_by_one_thread(tmp_path, shared):
    damaged = written(tmp_path / "test", 1)
    read = predictions.read(damaged)
    for name in ("000003", "000010"):
        (damaged / f"{name}.safetensors").write_bytes(b"nothing")
    message = []
    for options in (BARE, shared, shared):
        with pytest.raises(PredictionsError) as error:
            measure_items(read, Reading(), options)
        message.append(str(error.value))
    assert len(set(message)) == 1
    assert "000003" in message[0]


def test_small_files_and_maps_in_memory_stay_in_this_process(folder, shared):
    read = predictions.read(folder)
    held = predictions.build({"maps": [read.maps[i] for i in range(12)]})
    assert set(_stream.streamed(pid, held, shared)) == {os.getpid()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_stream, "SMALL", 12 * 16 * 16 + 1)
        assert set(_stream.streamed(pid, read, shared)) == {os.getpid()}


class Dying:
    """Processes one of which is killed at its first item."""

    def takes(self, _work, *, workers):
        return workers > 1

    def each(self, _function, _things):
        raise LostProcessError("a process was killed by SIGKILL, perhaps for ...")
        yield


def test_a_killed_process_is_told_with_what_it_read(folder, worthwhile):
    read = predictions.read(folder)
    message = f"{re.escape(str(folder))}: a process was killed .* while more memory is"
    with pytest.raises(LostProcessError, match=message):
        measure_items(read, Reading(), replace(BARE, workforce=Dying()))


def test_a_benchmark_has_the_numbers_of_one_thread(tmp_path, shared):
    plan = made_benchmark().plan("demo")
    rows = (plan.row("ttd"), plan.row("softmax"))
    plan = replace(plan, variants=plan.variants[2:3], rows=rows)
    make_map_runs(plan, tmp_path)
    damaged = plan.runs[0].hash
    folder = tmp_path / "values" / damaged / "predictions" / "test"
    (folder / "000005.safetensors").write_bytes(b"nothing")
    both = [judge_plan(plan, tmp_path, options=options) for options in (BARE, shared)]
    for number, other in zip(*(results.table for results in both), strict=True):
        assert repr(number) == repr(other)
    assert both[0].notes == both[1].notes
    assert any("000005" in note for note in both[0].notes)


SCRIPT = """
import sys
import qualms
from qualms.evaluate.segmented import _stream
from qualms.evaluate import ScoreOptions
_stream.SMALL = _stream.WORTHWHILE = 0
started = _stream.Workforce._start
_stream.Workforce._start = lambda *args: print("start") or started(*args)
options = ScoreOptions(resamples=0, workers=2)
found = qualms.score(sys.argv[1], options=options)
print(repr([row.value for row in found.rows]), "torch" in sys.modules)
print(__file__ == sys.modules["__main__"].__file__)
"""


def test_a_script_without_a_guard_runs_once(tmp_path, folder, worthwhile):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script), str(folder)]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stderr == ""
    lines = result.stdout.splitlines()
    assert set(lines[:-2]) == {"start"}
    values = [row.value for row in qualms.score(folder, options=BARE).rows]
    assert lines[-2:] == [f"{values!r} False", "True"]


def test_splits_that_are_joined_are_not_read(tmp_path, monkeypatch):
    splits = {
        "test": written(tmp_path / "test", 0, items=4),
        "test/shifted": written(tmp_path / "shifted", 1, items=6),
    }
    loads = []
    load = _folder.load_maps
    monkeypatch.setattr(
        _folder, "load_maps", lambda *args: (loads.append(1), load(*args))[1]
    )
    seen = {}

    def judged(read, _val, _options):
        seen.update(read=read, loads=len(loads))

    monkeypatch.setattr("qualms.evaluate.protocol.judge_file", judged)
    benchmark = replace(made_benchmark(), name="mine", protocol=None)
    plan = benchmark.plan("demo")
    variant = replace(plan.variant("lidc"), splits=tuple(splits), test="test")
    rows = (plan.row("ttd"),)
    (line,) = replace(plan, variants=(variant,), rows=rows).lines
    repeat = Repeat(line, lambda split: predictions.read(splits[split]), BARE)
    protocol_of(benchmark).judge(repeat)
    read = seen["read"]
    assert seen["loads"] == 2  # the first of each, when it was opened
    assert are_on_disk(read.maps)
    assert len(read.maps) == read.n == 10
    for row, folder in ((3, "test"), (4, "test/shifted"), (9, "test/shifted")):
        own = predictions.read(splits[folder]).maps[row if row < 4 else row - 4]
        assert np.array_equal(read.maps[row].mean_probs, own.mean_probs)
    assert read.arrays["shifted"].tolist() == [False] * 4 + [True] * 6
