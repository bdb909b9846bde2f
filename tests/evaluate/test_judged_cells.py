"""Judged variants that are stored, and judging by several processes."""

import os
import pickle
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from evaluate.made_runs import make_runs
from plans import part_of, run_of
from qualms.benchmarks.regression import regression
from qualms.caches import Cache
from qualms.evaluate import ScoreOptions, _judge_variants, _variant
from qualms.evaluate._cells import CellFolder
from qualms.evaluate._contents import RunContents
from qualms.evaluate._variant import JudgedVariant
from qualms.evaluate.benchmark import judge_plan
from qualms.processes import LocalCrew, RemoteCrew

DEMO = regression().plan("demo")
PLAN = part_of(DEMO, variants=("cells", "cells_tails"), rows=("conformal", "gaussian"))
SIZES = {"val": 60, "test": 90, "test/shifted": 50}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs")
    make_runs(PLAN, out, sizes=SIZES)
    return out


@pytest.fixture
def runs(made, tmp_path):
    return Path(shutil.copytree(made, tmp_path / "runs"))


@pytest.fixture
def judged_names(monkeypatch):
    """The names of the variants that are judged anew."""
    names = []

    def judge(judging, variant):
        names.append(variant.name)
        return _variant.judge_variant(judging, variant)

    monkeypatch.setattr(_judge_variants, "judge_variant", judge)
    return names


def cells_of(out):
    return out / "regression" / ".judged"


def judge(out, plan=PLAN, **options):
    return judge_plan(
        plan, out, options=ScoreOptions(workers=1, **options), cells=cells_of(out)
    )


def everything(results):
    """All that judging found, bit by bit."""
    parts = (
        tuple(results.table),
        tuple(results.curves),
        results.pairs,
        results.missing,
        results.hardware,
        results.seconds,
        dict(results.costs),
        results.notes,
    )
    return repr(parts)


def test_stored_variants_are_equal_and_not_judged_again(runs, judged_names):
    bare = judge_plan(PLAN, runs, options=ScoreOptions(workers=1))
    judged_names.clear()
    first, second = judge(runs), judge(runs)
    assert judged_names == [variant.name for variant in PLAN.variants]
    assert everything(first) == everything(second) == everything(bare)
    assert len(second.table) > 10


def test_an_added_run_makes_only_its_own_variant_anew(runs, judged_names):
    spec = run_of(PLAN, "cells", "gaussian", 1, alpha=0.1)
    away = shutil.move(runs / "regression" / spec.hash, runs / "away")
    without = judge(runs)
    assert spec.hash in {run.hash for run in without.missing}
    judged_names.clear()
    shutil.move(away, runs / "regression" / spec.hash)
    complete = judge(runs)
    assert judged_names == ["cells"]
    assert everything(complete) == everything(judge_plan(PLAN, runs))


def test_a_changed_byte_of_equal_size_and_time_is_noticed(runs, judged_names):
    judge(runs)
    judged_names.clear()
    spec = run_of(PLAN, "cells", "conformal", 0, alpha=0.1)
    path = runs / "regression" / spec.hash / "predictions" / "test.safetensors"
    times = path.stat()
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    changed = judge(runs)
    assert judged_names == ["cells"]
    assert [run.hash for run in changed.missing] == [spec.hash]
    assert "does not match its checksum" in changed.missing[0].reason


@pytest.mark.parametrize("damage", ["cut", "changed", "emptied", "foreign"])
def test_a_damaged_cell_is_judged_anew(runs, judged_names, damage):
    first = judge(runs)
    judged_names.clear()
    (cell, *_) = sorted(
        cell for cell in cells_of(runs).iterdir() if "contents" not in cell.name
    )
    content = cell.read_bytes()
    at = len(content) // 2
    bytes_of = {
        "cut": content[:at],
        "changed": content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :],
        "emptied": b"",
        "foreign": pickle.dumps("another file"),
    }
    cell.write_bytes(bytes_of[damage])
    assert everything(judge(runs)) == everything(first)
    assert len(judged_names) == 1


def test_other_options_and_other_code_are_judged_anew(runs, judged_names, monkeypatch):
    judge(runs)
    judged_names.clear()
    assert judge(runs, level=0.9).level == 0.9
    assert len(judged_names) == len(PLAN.variants)
    judge(runs)
    judged_names.clear()
    monkeypatch.setattr(_judge_variants, "package_digest", lambda: "other code")
    judge(runs)
    assert len(judged_names) == len(PLAN.variants)


def test_numbers_do_not_depend_on_processes(runs, monkeypatch):
    monkeypatch.setattr(_judge_variants, "WORTHWHILE", 2)
    crews = []

    def crew():
        crews.append(LocalCrew(script=False))
        return crews[-1]

    alone = judge_plan(PLAN, runs, options=ScoreOptions(workers=1))
    local = judge_plan(PLAN, runs, options=ScoreOptions(workers=2))
    remote = judge_plan(
        PLAN,
        runs,
        options=ScoreOptions(workers=1),
        cells=cells_of(runs),
        remote=lambda: RemoteCrew(2, crew),
    )
    assert len(crews) == 1
    assert everything(remote) == everything(local) == everything(alone)
    judge_plan(PLAN, runs, cells=cells_of(runs), remote=pytest.fail)


def test_what_is_no_record_of_judging_is_not_stored(tmp_path):
    cells = CellFolder(tmp_path)
    harmful = JudgedVariant(damaged=[os.system])
    cells.put("one", "key", harmful)
    assert list(tmp_path.iterdir()) == []
    cell = JudgedVariant(damaged=["a note"])
    cells.put("one", "key", cell)
    assert cells.get("one", "key") == cell
    assert cells.get("one", "other") is None
    assert cells.get("two", "key") is None


def test_cells_beyond_the_limit_are_removed_oldest_first(tmp_path, monkeypatch):
    cache = Cache(tmp_path)
    for age, name in enumerate("abc"):
        cache.put(name, "key", b"x" * 1000)
        os.utime(cache.path(name), (1e9 - age, 1e9 - age))
    monkeypatch.setattr("qualms.caches.MOST_BYTES", 2500)
    cache.prune()
    assert sorted(path.stem[0] for path in tmp_path.iterdir()) == ["a", "b"]


def test_files_are_read_once(tmp_path, monkeypatch):
    run = tmp_path / "run" / "predictions"
    run.mkdir(parents=True)
    (run / "test.csv").write_text("prob,target\n0.5,1\n")
    os.utime(run / "test.csv", (1e9, 1e9))
    monkeypatch.setattr("qualms.evaluate._contents.SETTLED", -1.0)
    memory = Cache(tmp_path / "memory")
    first = RunContents(tmp_path, memory)
    digest = first.of("run")
    first.save()
    reads = []
    monkeypatch.setattr("qualms.evaluate._contents._file_digest", reads.append)
    assert RunContents(tmp_path, memory).of("run") == digest
    assert reads == []
    memory.path("contents").write_text("{")
    monkeypatch.undo()
    assert RunContents(tmp_path, memory).of("run") == digest
    assert RunContents(tmp_path, None).of("nowhere") == "absent"


def test_a_folder_that_cannot_be_written_to_is_judged_without_cells(runs):
    cells_of(runs).write_text("a file where the folder should be")
    assert everything(judge(runs)) == everything(judge_plan(PLAN, runs))


def test_a_plan_of_some_seeds_does_not_take_the_place_of_the_whole(runs, judged_names):
    judge(runs)
    judged_names.clear()
    judge(runs, replace(PLAN, part="some seeds"))
    judged_names.clear()
    judge(runs)
    assert judged_names == []
