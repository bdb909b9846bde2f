"""Runs in an object store: claimed once, none lost, equal to those in a folder."""

import json
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from launch import fakes
from launch.fakes import Channel, spec
from launch.stores import age, fake_runs, fake_store, names, on_another_machine
from qualms.launch import _store as store_module
from qualms.launch import prepare_datasets, run_all
from qualms.launch._store import (
    ObjectStore,
    StoreError,
    checked_address,
    connect_s3,
    is_address,
)
from qualms.launch._store_lease import check_lease, leased
from qualms.launch._worker import (
    ClaimLostError,
    Job,
    WorkerSetup,
    serve_launcher,
)
from qualms.launch.data import data_key
from qualms.runs import is_done, run_folder

MISSING = {"Error": {"Code": "NoSuchBucket"}}
PRECONDITION = {"Error": {"Code": "PreconditionFailed"}}


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cache")
    return prepare_datasets([spec().dataset], folder, workers=1)


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(store_module, "FIRST_PAUSE", 0.001)


def launch(runs, specs, data, **options):
    """Make runs as `qualms run` does, in processes of their own."""
    runs.refresh(specs)
    options = {"device": "cpu", "work": fakes.work, "store": runs} | options
    outcomes = run_all(specs, out=runs.mirror, data=data, **options)
    return {outcome.spec.seed: outcome for outcome in outcomes}


def work(runs, specs, data, **setup):
    """Make runs as a worker does, in this process."""
    setup = {"work": fakes.work, "staging": runs.staging} | setup
    jobs = [
        Job((run,), (Path("of another machine"),), {"": data[data_key(run.dataset)]})
        for run in specs
    ]
    channel = Channel(*jobs)
    with pytest.raises(EOFError):
        serve_launcher(
            channel, WorkerSetup(device="cpu", threads=1, command=[], **setup)
        )
    return {end.spec.seed: end for end in channel.ends}


def statuses(outcomes):
    return {seed: outcome.status for seed, outcome in outcomes.items()}


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("s3://bucket/a/b/", "s3://bucket/a/b"),
        (Path("s3://bucket/a"), "s3://bucket/a"),
        ("S3://bucket", "s3://bucket"),
    ],
)
def test_addresses_have_one_form(place, expected):
    assert is_address(place)
    assert checked_address(place) == expected


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("gs://bucket/a", r"stored in a folder or in s3://BUCKET/PREFIX, got 'gs:"),
        ("s3://", r"must read s3://BUCKET/PREFIX, got 's3://'"),
        ("s3://bucket/../a", r"must read s3://BUCKET/PREFIX"),
    ],
)
def test_other_addresses_are_refused(place, message):
    with pytest.raises(ValueError, match=message):
        checked_address(place)


@pytest.mark.parametrize("place", ["runs", "/a/b", "C:/runs", "a:b"])
def test_folders_are_no_addresses(place):
    assert not is_address(place)


def test_runs_are_stored_with_what_they_need(tmp_path, monkeypatch, data):
    runs = fake_runs(monkeypatch, tmp_path)
    runs.check()
    specs = [spec(0), spec(1, behave="fail")]
    outcomes = work(runs, specs, data)
    assert statuses(outcomes) == {0: "done", 1: "failed"}
    done, failed = (f"toy/{run.hash}" for run in specs)
    assert {name for name in names(tmp_path) if name.startswith(done)} == {
        f"{done}/{name}"
        for name in (
            "begun",
            "done.json",
            "environment.json",
            "log.txt",
            "spec.json",
            *(
                f"predictions/{split.replace('/', '~')}.safetensors"
                for split in specs[0].splits
            ),
        )
    }
    assert f"{failed}/failed.json" in names(tmp_path)
    assert not [name for name in names(tmp_path) if "probe" in name]
    assert statuses(launch(runs, specs[:1], tmp_path)) == {0: "skipped"}


def test_another_machine_reads_finished_runs_from_the_store(
    tmp_path, monkeypatch, data
):
    runs, run = fake_runs(monkeypatch, tmp_path), spec(4)
    work(runs, [run], data)
    first = runs.mirror
    on_another_machine(monkeypatch, tmp_path / "other")
    assert runs.mirror != first
    assert statuses(launch(runs, [run], tmp_path / "no data")) == {4: "skipped"}
    folders = [run_folder(mirror, run) for mirror in (first, runs.mirror)]
    contents = [
        (each / "predictions/test.safetensors").read_bytes() for each in folders
    ]
    assert contents[0] == contents[1]


def test_a_run_that_another_machine_makes_is_busy(tmp_path, monkeypatch, data):
    runs, run = fake_runs(monkeypatch, tmp_path), spec()
    with runs.staging.claim(run, tmp_path) as place:
        assert place == run_folder(runs.mirror, run)
        with runs.staging.claim(run, tmp_path) as second:
            assert second is None
        on_another_machine(monkeypatch, tmp_path / "other")
        assert statuses(work(runs, [run], data)) == {0: "busy"}
    assert statuses(work(runs, [run], data)) == {0: "done"}


def test_a_lease_that_ran_out_is_taken_over_by_one_process(tmp_path, monkeypatch):
    fake_runs(monkeypatch, tmp_path)
    store = fake_store()
    with leased(store, "toy/.leases/a", "here", 60.0) as lease:
        assert lease.number == 1
        check_lease(store, "toy/.leases/a", 1)
        with leased(store, "toy/.leases/a", "there", 60.0) as other:
            assert other is None
        age(tmp_path, 62)
        with leased(store, "toy/.leases/a", "there", 60.0) as other:
            assert (other.number, other.before) == (2, 1)
            with leased(store, "toy/.leases/a", "third", 60.0) as third:
                assert third is None
            with pytest.raises(ClaimLostError, match="another process has taken"):
                check_lease(store, "toy/.leases/a", lease.number)
    with leased(store, "toy/.leases/a", "here", 60.0) as lease:
        assert lease.number == 3
    assert list(store.objects("toy/.leases/a")) == ["000003"]


def test_a_lease_is_renewed_while_its_holder_works(tmp_path, monkeypatch):
    fake_runs(monkeypatch, tmp_path)
    store = fake_store()
    with leased(store, "a", "here", 0.1):
        (first,) = store.objects("a").values()
        for _ in range(1000):  # ten seconds, a hundred times the lease
            if store.objects("a")["000001"].changed != first.changed:
                break
            time.sleep(0.01)
        assert store.objects("a")["000001"].changed != first.changed


def test_a_clock_that_jumped_changes_no_lease(tmp_path, monkeypatch):
    """Only the clock of the store counts, whatever machines think of the time."""
    fake_runs(monkeypatch, tmp_path)
    store = fake_store()
    with leased(store, "a", "here", 60.0) as lease:
        for jump in (-1e6, 1e6):
            monkeypatch.setattr("time.time", lambda jump=jump: 1.8e9 + jump)
            with leased(store, "a", "there", 60.0) as other:
                assert other is None
        check_lease(store, "a", lease.number)


def test_the_place_of_a_holder_that_ended_takes_over_at_once(tmp_path, monkeypatch):
    fake_runs(monkeypatch, tmp_path)
    store = fake_store()
    record = {"claim": "1", "holder": "here", "seconds": 60.0, "machine": "a"}
    store.write("a/000007", json.dumps(record).encode())
    with leased(store, "a", "there") as other:
        assert other is None
    with leased(store, "a", "here") as lease:
        assert lease.number == 8
    store.write("b/000001", b"what nobody can read")
    with leased(store, "b", "here") as lease:
        assert lease.number == 2


@pytest.mark.parametrize("number", [2, 9])
def test_of_many_that_claim_at_once_one_has_it(tmp_path, monkeypatch, number):
    fake_runs(monkeypatch, tmp_path, fails=0.1)
    store, leases, barrier = fake_store(), [], threading.Barrier(number)
    done = threading.Barrier(number)

    def claim(holder):
        barrier.wait()
        with leased(store, "a", holder, 60.0) as lease:
            leases.append(lease)
            done.wait()

    threads = [threading.Thread(target=claim, args=(str(i),)) for i in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([lease for lease in leases if lease is not None]) == 1


def test_a_run_goes_on_elsewhere_from_its_last_checkpoint(tmp_path, monkeypatch):
    runs, run = fake_runs(monkeypatch, tmp_path), spec()
    with runs.staging.claim(run, tmp_path) as place:
        (place / "checkpoint.pt").write_text("first")
        runs.staging.store(run, place)
        (place / "checkpoint.pt").rename(place / "checkpoint.previous.pt")
        (place / "checkpoint.pt").write_text("second")
        runs.staging.store(run, place)
    assert [name.partition(run.hash)[2] for name in names(tmp_path)] == [
        "/checkpoint.previous.pt",
        "/checkpoint.pt",
    ]
    on_another_machine(monkeypatch, tmp_path / "other")
    with runs.staging.claim(run, tmp_path) as other:
        assert (other / "checkpoint.pt").read_text() == "second"
        assert (other / "checkpoint.previous.pt").read_text() == "first"
        (other / "checkpoint.previous.pt").unlink()
        (other / "checkpoint.pt").write_text("third")
    on_another_machine(monkeypatch, tmp_path / "scratch")
    with runs.staging.claim(run, tmp_path) as place:
        assert (place / "checkpoint.pt").read_text() == "third"
        assert not (place / "checkpoint.previous.pt").exists()


def test_who_lost_a_run_stores_nothing_of_it(tmp_path, monkeypatch):
    runs, run = fake_runs(monkeypatch, tmp_path), spec()
    claim = runs.staging.claim(run, tmp_path)
    (claim.__enter__() / "checkpoint.pt").write_text("first")
    age(tmp_path, 62)
    with leased(fake_store(), f"toy/.leases/{run.hash}", "there", 60.0) as other:
        assert other.number == 2
        with pytest.raises(ClaimLostError, match="another process has taken this run"):
            claim.__exit__(None, None, None)
    assert names(tmp_path) == []


def test_a_worker_that_lost_a_run_calls_it_busy(tmp_path, monkeypatch, data):
    runs, run = fake_runs(monkeypatch, tmp_path), spec(behave="usurped")
    assert statuses(work(runs, [run], data)) == {0: "busy"}
    assert not [name for name in names(tmp_path) if "done" in name]


@pytest.mark.slow
def test_a_launcher_shares_its_runs_with_another(tmp_path, monkeypatch):
    runs, specs = fake_runs(monkeypatch, tmp_path), [spec(0), spec(1, behave="fail")]
    outcomes = launch(runs, specs, tmp_path / "data", workers=2)
    assert statuses(outcomes) == {0: "done", 1: "failed"}
    on_another_machine(monkeypatch, tmp_path / "other")
    with runs.staging.claim(specs[1], tmp_path):
        on_another_machine(monkeypatch, tmp_path / "scratch")
        outcomes = launch(runs, specs, tmp_path / "data")
        assert statuses(outcomes) == {0: "skipped", 1: "busy"}
        on_another_machine(monkeypatch, tmp_path / "other")


def test_a_store_that_fails_one_call_in_ten_loses_nothing(tmp_path, monkeypatch, data):
    specs = [spec(seed) for seed in range(4)]
    runs = fake_runs(monkeypatch, tmp_path, fails=0.1)
    runs.check()
    outcomes = work(runs, specs, data)
    assert set(statuses(outcomes).values()) == {"done"}
    on_another_machine(monkeypatch, tmp_path / "other")
    runs.refresh(specs)
    assert all(is_done(run_folder(runs.mirror, run), run) for run in specs)
    assert len(names(tmp_path)) == 4 * 7


def test_what_could_not_be_stored_is_stored_the_next_time(tmp_path, monkeypatch, data):
    runs, run = fake_runs(monkeypatch, tmp_path, patience=0.1), spec(behave="down")
    outcome = work(runs, [run], data)[0]
    assert outcome.status == "failed"
    assert outcome.error == (
        "cannot list objects in s3://bucket/runs: TimeoutError: the store does not"
        " answer; check the network and the address, and run again: what is done is"
        " kept"
    )
    assert not [name for name in names(tmp_path) if "done" in name]
    (tmp_path / "store/.down").unlink()
    outcomes = launch(runs, [run], tmp_path / "no data", work=None)
    assert statuses(outcomes) == {0: "skipped"}
    assert f"toy/{run.hash}/done.json" in names(tmp_path)


def test_runs_removed_from_the_store_are_stored_again_without_training(
    tmp_path, monkeypatch, data
):
    runs, run = fake_runs(monkeypatch, tmp_path), spec()
    work(runs, [run], data)
    stored = names(tmp_path)
    for name in stored:
        (tmp_path / "store/bucket/runs" / name).unlink()
    assert statuses(launch(runs, [run], tmp_path / "no data")) == {0: "skipped"}
    assert names(tmp_path) == stored


def test_a_run_finds_the_run_that_it_starts_from_in_the_store(
    tmp_path, monkeypatch, data
):
    runs, first = fake_runs(monkeypatch, tmp_path), spec()
    second = replace(spec(1), start=first.hash)
    work(runs, [first], data)
    on_another_machine(monkeypatch, tmp_path / "other")
    assert statuses(work(runs, [second], data)) == {1: "done"}
    assert is_done(run_folder(runs.mirror, first), first)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            PermissionError("Access Denied"),
            r"cannot use s3://bucket/runs: the store refuses to write objects with"
            r" these credentials \(Access Denied\); use others, or grant them this",
        ),
        (
            type("NoCredentialsError", (Exception,), {})(
                "Unable to locate credentials"
            ),
            "no credentials were found; set AWS_ACCESS_KEY_ID and"
            " AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
        ),
        (
            type("ClientError", (Exception,), {"response": MISSING})("gone"),
            "there is no bucket 'bucket'; create it, or correct the name",
        ),
    ],
)
def test_what_no_attempt_would_change_is_said_at_once(error, message):
    calls = []

    def connect():
        calls.append(1)
        raise error

    store = ObjectStore(address="s3://bucket/runs", connect=connect)
    with pytest.raises(StoreError, match=message):
        store.write("a", b"")
    assert calls == [1]


def test_a_condition_that_did_not_hold_is_known_by_its_code():
    cause = type("ClientError", (Exception,), {"response": PRECONDITION})()

    def refuse(*args, **options):
        raise OSError(5, "At least one of the conditions did not hold") from cause

    system = SimpleNamespace(pipe_file=refuse, cat_file=lambda _: b"of another")
    store = ObjectStore(address="s3://bucket/runs", connect=lambda: system)
    assert not store.create("a", b"mine")


def test_a_store_without_exclusive_creation_is_refused():
    objects = {}
    system = SimpleNamespace(
        pipe_file=lambda path, value, **_: objects.update({path: value}),
        rm_file=objects.pop,
    )
    store = ObjectStore(address="s3://bucket/runs", connect=lambda: system)
    with pytest.raises(StoreError, match="lets two processes create one object"):
        store.check()
    assert objects == {}


def test_without_s3fs_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(StoreError, match=r"need s3fs; install it with"):
        connect_s3()
