"""The worker, called in this process."""

import pytest

from launch import fakes
from launch.fakes import Channel, spec
from qualms.launch import prepare_datasets
from qualms.launch._worker import (
    Idle,
    Job,
    WorkerSetup,
    serve_launcher,
)
from qualms.launch.data import data_key
from qualms.runs import is_done, run_folder


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return prepare_datasets([spec().dataset], tmp_path_factory.mktemp("cache"))


def serve(out, data, *runs, **setup):
    folders = tuple(run_folder(out, run) for run in runs)
    job = Job(runs, folders, {"": data[data_key(runs[0].dataset)]})
    channel = Channel(job)
    setup = WorkerSetup(device="cpu", threads=1, command=[], work=fakes.work, **setup)
    with pytest.raises(EOFError):
        serve_launcher(channel, setup)
    assert [isinstance(channel.sent[at], Idle) for at in (0, -1)] == [True, True]
    return channel


def test_a_worker_reports_how_each_run_of_a_job_ended(tmp_path, data):
    runs = [spec(0), spec(1)]
    with fakes.working_on(tmp_path, runs[1]):
        channel = serve(tmp_path, data, *runs)
    assert [(end.spec, end.status) for end in channel.ends] == [
        (runs[1], "busy"),
        (runs[0], "done"),
    ]
    assert [e.status for e in serve(tmp_path, data, *runs).ends] == ["skipped", "done"]


def test_locks_that_reach_no_further_than_one_machine_are_noticed(tmp_path, data):
    run = spec(0, behave="taken")
    (end,) = serve(tmp_path, data, run).ends
    assert (end.status, is_done(run_folder(tmp_path, run), run)) == ("failed", False)
    assert end.error.startswith(f"{run_folder(tmp_path, run)} was locked by this proc")
    assert "and process 1 on another works there as well: locks of this" in end.error
    # Whoever comes next, alone, signs the folder anew.
    run = spec(1)
    run_folder(tmp_path, run).mkdir(parents=True)
    (run_folder(tmp_path, run) / "owner.txt").write_text("process 1 on another")
    assert [end.status for end in serve(tmp_path, data, run).ends] == ["done"]
