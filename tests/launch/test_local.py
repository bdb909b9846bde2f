"""Many runs on one machine: none twice, none lost, none in the way of another."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from launch import fakes
from launch.fakes import spec, working_on
from qualms.datasets import cores
from qualms.launch import default_workers, pending_runs, prepare_datasets, run_all
from qualms.launch._devices import devices_for, threads_for
from qualms.launch.engine import Engine
from qualms.launch.local import batches
from qualms.runs import run_folder
from qualms.spec import ItemRule, Part, RunSpec

TESTS = Path(__file__).parents[1]
TAILS = Part(name="cells", options={**spec().dataset.options, "variant": "tails"})


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cache")
    prepare_datasets([spec().dataset, TAILS], folder, workers=1)
    return folder


@pytest.fixture
def out(tmp_path):
    return tmp_path / "runs"


class Heard:
    def __init__(self, react=lambda _: None):
        self.epochs, self.messages, self.react = [], [], react

    def epoch(self, spec, *values):
        self.epochs.append((spec.seed, *values))
        self.react(spec)

    def message(self, spec, text):
        self.messages.append((spec.seed, text))


def launch(specs, out, data, **options):
    options = {"device": "cpu", "work": fakes.work} | options
    outcomes = run_all(specs, out=out, data=data, **options)
    return {outcome.spec.seed: outcome for outcome in outcomes}


def statuses(outcomes):
    return {seed: outcome.status for seed, outcome in outcomes.items()}


def begun(out, spec):
    """Process, size of the batch and device of every attempt at a run."""
    file = run_folder(out, spec) / "begun"
    return [tuple(line.split()) for line in file.read_text().splitlines()]


def until(holds, seconds=300):
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "nothing happened"
        time.sleep(0.02)


def alive(pid):
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def gone(child):
    """Wait for the end of a process that was killed, and which nobody waits for."""
    until(lambda: not alive(int(child.read_text())))


def test_a_run_leaves_its_spec_its_environment_and_its_log(out, data):
    run = spec(3, behave="speak", rate=0.5)
    heard = Heard()
    (outcome,) = launch([run], out, data, callbacks=heard).values()
    assert outcome.status == "done"
    assert outcome.error == ""
    assert outcome.folder == out / "toy" / run.hash
    assert outcome.seconds > 0
    assert RunSpec.from_json((outcome.folder / "spec.json").read_text()) == run
    stated = json.loads((outcome.folder / "environment.json").read_text())
    assert stated["device"] == "cpu"
    assert stated["threads"] == os.environ.get("OMP_NUM_THREADS", "1")
    assert {"qualms", "python", "packages", "command"} <= set(stated)
    log = outcome.log.read_text()
    assert "seed 3, 3 splits\n" in log
    assert "to stdout\nto stderr, past Python\n" in log
    assert heard.epochs == [(3, 1, 2, 0.5, 100.0, 3.0)]
    assert heard.messages == [(3, "the batch was halved")]


def test_failed_and_killed_runs_do_not_stop_the_others(out, data):
    behaviours = ["fail", "killed", "", "break", "leave", "forget", "full", ""]
    specs = [spec(i, behave=behave) for i, behave in enumerate(behaviours)]
    outcomes = launch(specs, out, data, workers=2, engine=Engine(retries=0))
    assert [outcomes[i].status for i in range(8)] == [
        "done" if behave == "" else "failed" for behave in behaviours
    ]
    message = {behave: outcomes[i].error for i, behave in enumerate(behaviours)}
    assert message["fail"] == "the loss must be finite, got nan at step 3"
    assert (
        "its process was killed by SIGKILL, perhaps for lack of memory"
        in message["killed"]
    )
    assert message["break"] == "ZeroDivisionError: division by zero"
    assert message["leave"].startswith("its process ended with exit code 3; run again")
    assert "without marking the run as done" in message["forget"]
    assert message["full"].startswith("the disk is full; free space")
    log = outcomes[0].log.read_text()
    assert "Traceback" in log
    assert message["fail"] in log


def test_a_run_whose_folder_cannot_be_used_fails_in_a_sentence(out, data):
    specs = [spec(0), spec(1)]
    folder = run_folder(out, specs[0])
    folder.parent.mkdir(parents=True)
    folder.touch()
    outcomes = launch(specs, out, data)
    assert statuses(outcomes) == {0: "failed", 1: "done"}
    message = f"cannot use {folder}: File exists; make it usable and run again"
    assert outcomes[0].error == message


def test_what_is_done_is_not_done_again(out, data):
    specs = [spec(seed) for seed in range(3)]
    other, broken = specs[1], specs[2]
    assert statuses(launch(specs[:1], out, data)) == {0: "done"}
    for run, text in ((other, json.dumps({"hash": "another"})), (broken, "{")):
        folder = run_folder(out, run)
        folder.mkdir()
        (folder / "done.json").write_text(text)
    again = launch([*specs, specs[1]], out, data)
    assert statuses(again) == {0: "skipped", 1: "done", 2: "done"}
    assert [len(begun(out, run)) for run in specs] == [1, 1, 1]


@pytest.mark.parametrize("damage", ["edited", "cut short"])
def test_the_spec_of_a_finished_run_is_mended_and_that_is_said(out, data, damage):
    run = spec(3)
    (outcome,) = launch([run], out, data).values()
    path = outcome.folder / "spec.json"
    text = path.read_text()
    other = text.replace('"seed":3', '"seed":4') if damage == "edited" else text[:20]
    assert other != text
    path.write_text(other)
    heard = Heard()
    (again,) = launch([run], out, data, callbacks=heard).values()
    assert again.status == "skipped"
    ((seed, told),) = heard.messages
    assert seed == 3
    assert told.startswith(f"{path} was changed after the run was made")
    assert path.read_text() == text
    launch([run], out, data, callbacks=heard)
    assert len(heard.messages) == 1


def test_a_run_whose_predictions_were_removed_is_not_done(out, data):
    run = spec()
    launch([run], out, data)
    (run_folder(out, run) / "predictions/test.safetensors").unlink()
    assert pending_runs([run], out) == [run]
    assert statuses(launch([run], out, data)) == {0: "done"}
    assert statuses(launch([run], out, data)) == {0: "skipped"}


def test_a_run_whose_predictions_were_damaged_is_not_done(out, data):
    run = spec()
    launch([run], out, data)
    file = run_folder(out, run) / "predictions/test.safetensors"
    for damaged in (b"", file.read_bytes()[:-1], b"\xff" * 100):
        file.write_bytes(damaged)
        assert pending_runs([run], out) == [run]
    assert statuses(launch([run], out, data)) == {0: "done"}
    assert pending_runs([run], out) == []


@pytest.mark.parametrize("ending", [".npz", ".csv", ""])
def test_predictions_may_be_of_another_kind_than_training_writes(out, data, ending):
    run = spec()
    launch([run], out, data)
    file = run_folder(out, run) / "predictions/test.safetensors"
    file.rename(file.with_suffix(ending))
    if not ending:
        file.with_suffix("").unlink()
        file.with_suffix("").mkdir()  # as segmentation has
    assert pending_runs([run], out) == []


def test_nothing_is_started_when_all_is_done(out, tmp_path):
    run = spec()
    folder = run_folder(out, run)
    folder.mkdir(parents=True)
    fakes.finish(run, folder)
    assert statuses(launch([run], out, tmp_path / "no cache")) == {0: "skipped"}
    assert not (tmp_path / "no cache").exists()


def test_runs_that_differ_only_in_their_seed_train_together(out, data):
    specs = [spec(seed, method="map") for seed in range(3)]
    specs += [spec(3, method="swag")]
    outcomes = launch(specs, out, data, together=2)
    assert set(statuses(outcomes).values()) == {"done"}
    assert [begun(out, run)[0][1] for run in specs] == ["2", "2", "1", "1"]
    assert len({begun(out, run)[0][0] for run in specs}) == 1
    assert f"its log is {outcomes[0].log}" in outcomes[1].log.read_text()


def test_a_failed_batch_is_taken_apart_so_that_only_the_culprit_fails(out, data):
    specs = [spec(seed, behave="alone") for seed in range(2)]
    heard = Heard()
    assert statuses(launch(specs, out, data, together=2, callbacks=heard)) == {
        0: "done",
        1: "done",
    }
    assert (0, "RuntimeError: too many at once; this run is tried by itself") in (
        heard.messages
    )


def test_a_run_whose_process_is_lost_is_tried_again(out, data):
    specs = [spec(0, behave="killed once"), spec(1)]
    heard = Heard()
    outcomes = launch(specs, out, data, callbacks=heard)
    assert statuses(outcomes) == {0: "done", 1: "done"}
    assert [len(begun(out, run)) for run in specs] == [2, 1]
    ((seed, sentence),) = heard.messages
    assert seed == 0
    assert sentence.startswith("its process was killed by SIGKILL")
    assert sentence.endswith("; it is tried again")
    assert not (run_folder(out, specs[0]) / "losses.json").exists()


def test_a_run_that_starts_from_another_waits_for_it(out, data):
    first = spec(0)
    second = replace(spec(1), start=first.hash)
    third = replace(spec(2), start=second.hash)
    free = spec(3)
    ended = []

    def note(run):
        # What is done when a run begins, which is when it is first heard of.
        done = [r.seed for r in runs if (run_folder(out, r) / "done.json").exists()]
        ended.append((run.seed, done))

    runs = [third, second, first, free]
    outcomes = launch(runs, out, data, workers=2, callbacks=Heard(note))
    assert set(statuses(outcomes).values()) == {"done"}
    before = dict(ended)
    assert 0 in before[1]
    assert {0, 1} <= set(before[2])


def test_a_run_whose_parent_failed_fails_in_a_sentence(out, data):
    first = spec(0, behave="fail")
    second = replace(spec(1), start=first.hash)
    third = replace(spec(2), items=ItemRule(name="any", runs=(second.hash,)))
    outcomes = launch([third, second, first], out, data)
    assert statuses(outcomes) == {0: "failed", 1: "failed", 2: "failed"}
    message = f"this run needs run {first.hash}, which failed: the loss must be finite"
    assert outcomes[1].error.startswith(message)
    assert f"this run needs run {second.hash}, which failed" in outcomes[2].error
    assert not run_folder(out, second).exists()


def test_a_run_that_needs_one_that_nobody_makes_is_told_so(out, data):
    run = replace(spec(0), start="0" * 16)
    outcomes = launch([run, spec(1)], out, data)
    assert statuses(outcomes) == {0: "failed", 1: "done"}
    assert outcomes[0].error == (
        f"this run needs run {'0' * 16}, which is not done in {out / 'toy'} and not"
        " among the runs to make; make it first"
    )
    first = spec(2)
    launch([first], out, data)
    assert statuses(launch([replace(spec(3), start=first.hash)], out, data)) == {
        3: "done"
    }


def test_a_run_that_needs_a_busy_one_is_left_for_later(out, data):
    busy = spec(0)
    run = replace(spec(1), start=busy.hash)
    with working_on(out, busy):
        assert statuses(launch([busy, run], out, data)) == {0: "busy", 1: "busy"}
    assert statuses(launch([busy, run], out, data)) == {0: "done", 1: "done"}


def test_a_run_may_predict_splits_of_several_datasets(out, data):
    splits = ("val", "tails:test")
    run = replace(spec(behave="datasets"), datasets={"tails": TAILS}, splits=splits)
    (outcome,) = launch([run], out, data).values()
    assert outcome.error == ""
    told = (outcome.folder / "datasets").read_text().split()
    assert told == ["=cells", "tails=cells"]
    assert (outcome.folder / "predictions" / "tails@test.safetensors").is_file()
    assert pending_runs([run], out) == []


def test_a_run_that_is_busy_elsewhere_is_left_alone(out, data):
    busy, free = spec(0), spec(1)
    with working_on(out, busy) as mine:
        assert mine
        outcomes = launch([busy, free], out, data)
    assert statuses(outcomes) == {0: "busy", 1: "done"}
    assert not (run_folder(out, busy) / "begun").exists()
    assert statuses(launch([busy], out, data)) == {0: "done"}


def test_a_busy_run_that_ends_meanwhile_is_picked_up(out, data):
    busy, free = spec(0), spec(1)
    heard = Heard(lambda _: fakes.finish(busy, run_folder(out, busy)))
    with working_on(out, busy):
        outcomes = launch([busy, free], out, data, callbacks=heard)
    assert statuses(outcomes) == {0: "skipped", 1: "done"}


def test_what_a_killed_process_left_half_written_is_removed(out, data):
    run = spec()
    stale = run_folder(out, run) / "predictions" / ".qualms-0.tmp"
    stale.parent.mkdir(parents=True)
    stale.touch()
    launch([run], out, data)
    assert not stale.exists()


def test_closing_the_iterator_ends_the_workers(out, data, monkeypatch):
    monkeypatch.setattr("qualms.processes._crew.GRACE", 300.0)
    specs = [spec(0, behave="wait"), spec(1, behave="child")]
    go = run_folder(out, specs[0]) / "go"
    child = run_folder(out, specs[1]) / "child"
    heard = Heard(lambda run: go.touch() if run == specs[1] else None)
    options = {"workers": 2, "device": "cpu", "work": fakes.work, "callbacks": heard}
    outcomes = run_all(specs, out=out, data=data, **options)
    assert next(outcomes).status == "done"
    until(lambda: child.exists() and child.read_text().strip())
    outcomes.close()
    assert (run_folder(out, specs[1]) / "told").exists()
    assert not alive(int(begun(out, specs[1])[0][0]))
    gone(child)


def other_launcher(out, data, *behaviours, workers=2):
    """A launcher in a process of its own, as from a shell; it leads its own group."""
    code = (
        "import signal\n"
        "from launch import fakes\n"
        "if __name__ == '__main__':\n"
        # Whoever is started in the background of a shell is deaf to interrupts.
        "    signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"    fakes.launch({str(out)!r}, {str(data)!r}, workers={workers},"
        f" behaviours={list(behaviours)!r})\n"
    )
    script = out.parent / "launcher.py"
    script.write_text(code)
    return subprocess.Popen(
        [sys.executable, script],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])},
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_an_interrupt_tells_the_workers_and_leaves_nothing_behind(out, data):
    runs = [spec(seed, behave="child") for seed in range(2)]
    children = [run_folder(out, run) / "child" for run in runs]
    launcher = other_launcher(out, data, "child", "child", "child")
    until(lambda: all(c.exists() and c.read_text().strip() for c in children))
    os.killpg(launcher.pid, signal.SIGINT)  # what a terminal does on Ctrl-C
    _, said = launcher.communicate(timeout=300)
    assert launcher.returncode != 0
    assert said.count("Traceback") == 1  # the launcher's own, none of a worker
    assert all((run_folder(out, run) / "told").exists() for run in runs)
    for run, child in zip(runs, children, strict=True):
        assert not alive(int(begun(out, run)[0][0]))
        gone(child)
        (run_folder(out, run) / "go").touch()
    assert statuses(launch(runs, out, data)) == {0: "done", 1: "done"}


def test_a_second_interrupt_kills_workers_that_do_not_stop(out, data):
    run = spec(0, behave="deaf")
    launcher = other_launcher(out, data, "deaf")  # it gives workers ten minutes
    until((run_folder(out, run) / "deaf").exists)
    os.killpg(launcher.pid, signal.SIGINT)
    until((run_folder(out, run) / "told").exists)
    assert launcher.poll() is None
    os.killpg(launcher.pid, signal.SIGINT)
    launcher.communicate(timeout=300)
    assert not alive(int(begun(out, run)[0][0]))


def test_workers_do_not_outlive_a_killed_launcher(out, data):
    run = spec(0, behave="child")
    child = run_folder(out, run) / "child"
    launcher = other_launcher(out, data, "child")
    until(lambda: child.exists() and child.read_text().strip())
    launcher.kill()
    launcher.communicate()
    until(lambda: not alive(int(begun(out, run)[0][0])))
    gone(child)
    with working_on(out, run) as mine:
        assert mine


def test_two_launchers_share_a_folder(out, data):
    launchers = [other_launcher(out, data, *[""] * 12) for _ in range(2)]
    message = [launcher.communicate(timeout=300) for launcher in launchers]
    assert [launcher.returncode for launcher in launchers] == [0, 0], message
    ended = [line.split() for text, _ in message for line in text.splitlines()]
    assert len(ended) == 24
    assert {status for _, status in ended} <= {"done", "skipped", "busy"}
    for seed in range(12):
        assert len(begun(out, spec(seed))) == 1
        assert [str(seed), "done"] in ended


def test_a_folder_that_cannot_be_written_is_told_before_anything_starts(
    tmp_path, data, monkeypatch
):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=r"cannot write runs to .*choose another folder"):
        launch([spec()], tmp_path / "file" / "runs", data)

    def full(_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as without_locks:
        without_locks.setattr(fcntl, "flock", lambda *_: None)
        with pytest.raises(OSError, match=r"by two processes at once.* another disk"):
            launch([spec()], tmp_path / "runs", data)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left on device; free space"):
        launch([spec()], tmp_path / "runs", data)
    assert list((tmp_path / "runs").iterdir()) == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"workers": 0}, "workers must be at least 1, got 0"),
        ({"together": -1}, "together must be at least 1, got -1"),
        ({"device": "cuda"}, "no GPU is visible"),
        ({"device": "cuda:1"}, "got 'cuda:1' and 0 GPUs are visible"),
        ({"device": "cuda:0,1"}, "got 'cuda:0,1' and 0 GPUs are visible"),
        ({"device": "cpu:0,0"}, "each once, got 'cpu:0,0'"),
        ({"device": "gpu"}, "device must be auto, cpu, cuda, .* got 'gpu'"),
        ({"device": "mps"}, "device must be auto, cpu, cuda, .* got 'mps'"),
    ],
)
def test_impossible_requests_are_refused(out, data, options, said, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", with_gpus(0))
    with pytest.raises(ValueError, match=said):
        launch([spec()], out, data, **options)


def with_gpus(count):
    """A stand-in for torch on a machine with so many GPUs."""
    cuda = SimpleNamespace(is_available=lambda: count > 0, device_count=lambda: count)
    return SimpleNamespace(cuda=cuda)


def test_workers_are_shared_out_over_the_gpus(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setitem(sys.modules, "torch", with_gpus(2))
    assert devices_for("auto") == devices_for("cuda") == ["cuda:0", "cuda:1"]
    assert devices_for("cuda:1") == ["cuda:1"]
    assert default_workers("auto") == 2
    assert threads_for("cuda:0", cores()) == cores()
    monkeypatch.setitem(sys.modules, "torch", with_gpus(0))
    assert devices_for("auto") == ["cpu"]
    assert default_workers("auto") == cores()


def test_the_number_of_workers_changes_no_bit_on_a_cpu(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert threads_for("cpu", 1) == threads_for("cpu", 64) == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    assert threads_for("cpu", 1) == threads_for("cpu", 64) == 4


def test_few_runs_are_spread_over_the_workers_rather_than_stacked():
    specs = [spec(seed) for seed in range(6)]
    assert [len(b) for b in batches(specs, together=5, workers=1)] == [5, 1]
    assert [len(b) for b in batches(specs, together=5, workers=3)] == [2, 2, 2]
    assert [len(b) for b in batches(specs, together=5, workers=9)] == [1] * 6


def test_runs_that_differ_in_their_rule_are_in_one_batch():
    first, second = (
        [replace(spec(seed), training={"select_by": rule}) for seed in range(3)]
        for rule in ("val_auroc", "val_referral")
    )
    (whole,) = batches([*first, *second], together=3, workers=1)
    assert {run.hash for run in whole} == {run.hash for run in (*first, *second)}
    parts = batches([*first, *second], together=1, workers=1)
    assert parts == [*zip(first, second, strict=True)]


class Unloadable:
    """Something that ends the process that unpickles it."""

    def __reduce__(self):
        return os._exit, (7,)


def test_a_worker_that_cannot_start_is_not_a_failed_run(out, data):
    with pytest.raises(ChildProcessError, match=r"could be started.*exit code 7"):
        launch([spec()], out, data, work=Unloadable())


def test_real_data_must_be_prepared_before(out, data):
    wanted = Part(name="cell200", options={"variant": "tails"})
    run = replace(spec(), dataset=wanted)
    with pytest.raises(ValueError, match="is not in") as refused:
        launch([run], out, data)
    command = f"qualms prepare cell200 --from FOLDER --data {data} -o variant=tails"
    assert f"`{command}`" in str(refused.value)
