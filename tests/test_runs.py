"""The folder of a run: what lies where, and how far the run is."""

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from safetensors.numpy import save_file

from qualms import runs
from qualms.spec import Part, RunSpec

SPEC = RunSpec(
    benchmark="toy",
    dataset=Part(name="cells"),
    network=Part(name="none"),
    method=Part(name="map"),
    seed=0,
    splits=("val", "test/shifted"),
)


@pytest.fixture
def folder(tmp_path):
    return runs.run_folder(tmp_path, SPEC)


def predict(folder):
    for split in SPEC.splits:
        path = runs.split_stem(folder, split).with_suffix(".safetensors")
        path.parent.mkdir(exist_ok=True)
        save_file({"mean": np.zeros(2)}, path)


def test_a_run_lies_below_its_benchmark_under_its_hash(tmp_path):
    assert runs.run_folder(tmp_path, SPEC) == tmp_path / "toy" / SPEC.hash
    assert runs.sibling(Path("a/b"), "c") == Path("a/c")


def test_a_run_is_done_only_at_its_end_and_an_error_is_that_of_the_last_attempt(folder):
    runs.describe(folder, SPEC, {})
    assert not runs.is_done(folder, SPEC)
    assert runs.why_failed(folder) == ""
    runs.mark_failed(folder, SPEC, "the loss became nan")
    assert not runs.is_done(folder, SPEC)
    assert runs.why_failed(folder) == "the loss became nan"
    runs.describe(folder, SPEC, {})  # a new attempt
    assert runs.why_failed(folder) == ""
    predict(folder)
    runs.mark_done(folder, SPEC, {"seconds": 1.5})
    assert runs.is_done(folder, SPEC)
    data = json.loads((folder / "done.json").read_text())
    assert data == {"hash": SPEC.hash, "seconds": 1.5}


def test_a_run_is_done_only_with_all_its_predictions(folder):
    runs.describe(folder, SPEC, {})
    predict(folder)
    runs.mark_done(folder, SPEC, {})
    assert runs.is_done(folder, SPEC)
    assert not runs.is_done(folder, replace(SPEC, splits=(*SPEC.splits, "test")))
    assert not runs.is_done(folder, replace(SPEC, seed=1))
    runs.stored(folder, "val").write_bytes(b"\xff" * 100)
    assert not runs.is_done(folder, SPEC)


def test_the_costs_of_a_run_stand_in_its_folder_or_in_former_headers(folder):
    former = {"seconds": 2.0, "about": {"seconds_per_item": 0.3, "else": 1}}
    runs.describe(folder, SPEC, {})
    assert runs.read_costs(folder) == (None, None, None)
    assert runs.read_costs(folder, {"about": {}}) == (None, None, None)
    assert runs.read_costs(folder, former) == (2.0, 0.3, None)
    runs.mark_done(folder, SPEC, {"seconds": 1.5})  # as former versions did
    assert runs.read_costs(folder, former) == (1.5, 0.3, None)
    pace = {
        "val": {"seconds_per_item": 0.1, "seconds_per_crop": 0.5},
        "test": {"seconds_per_item": 0.2},
    }
    runs.mark_done(folder, SPEC, {"seconds": 1.5, "pace": pace})
    assert runs.read_costs(folder, former) == (1.5, pytest.approx(0.15), 0.5)
    runs.mark_done(folder, replace(SPEC, seed=1), {"seconds": 9.0, "pace": pace})
    assert runs.read_costs(folder, former) == (2.0, 0.3, None)  # of another run


HEADER = {
    "benchmark": "toy",
    "dataset": "cells",
    "method": "map",
    "seed": 0,
    "options": {"run": SPEC.hash},
}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"split": "test"}, "are of split 'test', and not of 'val'"),
        ({"method": "swag"}, "are of method 'swag', and not of 'map'"),
        ({"seed": 1}, "are of seed 1, and not of 0"),
        ({"dataset": "chairs"}, "are of dataset 'chairs'"),
        ({"benchmark": "url"}, "are of benchmark 'url'"),
        ({"options": {"run": "0" * 16}}, "are of run '0000000000000000'"),
    ],
)
@pytest.mark.parametrize("maps", [False, True])
def test_predictions_in_the_place_of_others_do_not_count(folder, changed, said, maps):
    def write(split, header):
        path = runs.split_stem(folder, split)
        path.parent.mkdir(exist_ok=True)
        if maps:
            path.mkdir(exist_ok=True)
            (path / "index.json").write_text(json.dumps({"header": header}))
        else:
            metadata = {"header": json.dumps(header)}
            arrays = {"mean": np.zeros(2)}
            save_file(arrays, path.with_suffix(".safetensors"), metadata=metadata)

    runs.describe(folder, SPEC, {})
    for split in SPEC.splits:
        write(split, {**HEADER, "split": split})
    runs.mark_done(folder, SPEC, {})
    assert runs.is_done(folder, SPEC)
    other = {**HEADER, "split": "val", **changed}
    write("val", other)
    assert not runs.is_done(folder, SPEC)
    assert said in runs.mismatch(SPEC, "val", other)
    assert runs.mismatch(SPEC, "val", {}) == ""  # a file that says nothing


def test_predictions_of_a_further_dataset_say_so():
    spec = replace(SPEC, datasets={"birds": Part(name="cub")}, splits=("birds:test",))
    stated = {"dataset": "cub", "split": "test"}
    assert runs.mismatch(spec, "birds:test", stated) == ""
    assert "'cells'" in runs.mismatch(spec, "birds:test", {"dataset": "cells"})


def test_the_folder_of_another_run_is_refused(folder):
    runs.describe(folder, SPEC, {})
    with pytest.raises(runs.RunFolderError, match=f"another run .{SPEC.hash}.; choose"):
        runs.describe(folder, replace(SPEC, seed=1), {})
    (folder / "spec.json").write_text("{}")
    with pytest.raises(runs.RunFolderError, match="is not the spec of a run"):
        runs.describe(folder, SPEC, {})


def test_a_spec_that_is_not_that_of_its_folder_is_refused(folder):
    runs.describe(folder, SPEC, {})
    (folder / "spec.json").write_text(replace(SPEC, seed=9).to_json())
    message = "its hash must be the name of its folder, and is .*; delete that file and"
    with pytest.raises(runs.RunFolderError, match=message):
        runs.describe(folder, SPEC, {})


def test_options_that_change_no_number_do_not_make_it_another_run(folder):
    runs.describe(folder, SPEC, {})
    logged = replace(SPEC, training={"sinks": ["wandb"]})
    runs.describe(folder, logged, {})
    assert RunSpec.from_json((folder / "spec.json").read_text()) == logged


def test_what_is_known_of_the_environment_adds_up(folder):
    runs.describe(folder, SPEC, {"device": "cpu", "command": ["qualms", "run"]})
    runs.describe(folder, SPEC, {"hardware": "a processor"})
    data = json.loads((folder / "environment.json").read_text())
    assert data["device"] == "cpu"
    assert data["hardware"] == "a processor"
    assert {"qualms", "python", "packages", "started", "command"} <= set(data)


def test_a_commit_says_whether_files_have_changed_since(tmp_path, monkeypatch):
    source = tmp_path / "__init__.py"
    source.write_text("")
    monkeypatch.setattr(
        "qualms.runs._environment.qualms", SimpleNamespace(__file__=str(source))
    )
    assert runs.commit.__wrapped__() is None
    name = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    for words in (["init", "-q"], ["add", "."], [*name, "commit", "-qm", "first"]):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True)
    commit = runs.commit.__wrapped__()
    assert re.fullmatch("[0-9a-f]{40}", commit)
    (tmp_path / "untracked").touch()
    assert runs.commit.__wrapped__() == commit
    source.write_text("changed = 1")
    assert runs.commit.__wrapped__() == f"{commit} with changes"
    monkeypatch.setenv("PATH", "")
    assert runs.commit.__wrapped__() is None


def test_what_a_killed_process_left_is_removed(folder):
    runs.describe(folder, SPEC, {})
    stale = folder / ".qualms-0.tmp"
    stale.touch()
    maps = runs.predictions_folder(folder) / ".qualms-1.tmp"
    (maps / "items").mkdir(parents=True)
    (maps / "items" / ".qualms-2.tmp").touch()
    runs.tidy(folder)
    assert not stale.exists()
    assert not maps.exists()
    assert runs.predictions_folder(folder).is_dir()
    assert (folder / "spec.json").exists()


# The child is killed while it writes the second item of a folder of maps.
KILLED = """
import os, signal, sys
from pathlib import Path
from types import SimpleNamespace
import numpy as np
from qualms.predictions import Header, Maps, SegmentationWriter

maps = Maps(
    mean_probs=np.full((2, 4, 4), 0.5, np.float32),
    expected_entropy=np.zeros((4, 4), np.float32),
    draw_labels=np.zeros((1, 4, 4), np.uint8),
    raters=np.zeros((1, 4, 4), np.uint8),
)
with SegmentationWriter(Path(sys.argv[1]), header=Header()) as writer:
    writer.add("a", maps)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_folder_of_maps_that_a_killed_process_left_is_removed(folder):
    runs.describe(folder, SPEC, {})
    split = runs.split_stem(folder, "val")
    split.parent.mkdir()
    found = subprocess.run([sys.executable, "-c", KILLED, split], check=False)
    assert found.returncode == -9
    (left,) = split.parent.iterdir()
    assert left.is_dir()
    runs.tidy(folder)
    assert list(split.parent.iterdir()) == []


PROBED = """
import os, signal, sys
from pathlib import Path
from qualms import runs
os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL)
runs.check_writable(Path(sys.argv[1]))
"""


@pytest.mark.skipif(os.name != "posix", reason="kills a process")
def test_a_kill_while_the_disk_is_probed_leaves_nothing(tmp_path):
    done = subprocess.run([sys.executable, "-c", PROBED, str(tmp_path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert not list(tmp_path.iterdir())


def test_predictions_of_another_version_of_a_corruption_are_made_again():
    spec = replace(SPEC, splits=(*SPEC.splits, "val+mine-1", "val+fog-1"))
    new = replace(spec, sources={"corruptions/mine": "b" * 16})
    old = {"options": {"corruption": {"name": "mine", "code": "a" * 16}}}
    said = "another version of corruption 'mine': its code has changed since"
    assert said in runs.mismatch(new, "val+mine-1", old)
    same = {"options": {"corruption": {"name": "mine", "code": "b" * 16}}}
    assert runs.mismatch(new, "val+mine-1", same) == ""
    plain = {"options": {"corruption": {"name": "fog", "severity": 1, "code": ""}}}
    assert runs.mismatch(new, "val+fog-1", plain) == ""
