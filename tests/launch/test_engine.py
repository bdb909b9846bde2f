"""Which machines make runs, and what is refused before any is asked."""

import os
import socket
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

from launch.fakes import spec
from qualms.launch import Engine, _ray, run_all
from qualms.launch._devices import device_here
from qualms.launch._parcel import unpack_parts
from qualms.launch._ray import Luggage, _gpus_for, _refusal, _room
from qualms.processes import locked
from qualms.shelf import included_paths

PART = "from qualms_sharing import method\n"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"launcher": "rai"}, "must be local or ray, got 'rai'. Did you mean 'ray'"),
        ({"launcher": "ray", "cpus": 0}, "cpus must be above 0, got 0"),
        ({"launcher": "ray", "cpus": float("nan")}, "cpus must be above 0, got nan"),
        ({"launcher": "ray", "gpus": -1}, "gpus must be at least 0, got -1"),
        ({"launcher": "ray", "gpus": 1.5}, "share of one GPU or a whole number, got 1"),
        ({"retries": -1}, "retries must be at least 0, got -1"),
        ({"address": "10.0.0.1:6379"}, "are for the launcher ray; add --launcher ray"),
        ({"gpus": 0.5}, "are for the launcher ray; add --launcher ray"),
    ],
)
def test_impossible_engines_are_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        Engine(**options)


@pytest.fixture
def launched(tmp_path, monkeypatch):
    """Launch a run on a cluster at an address."""
    monkeypatch.setattr(_ray, "find_spec", lambda _: object())

    def launch(address):
        engine = Engine(launcher="ray", address=address)
        places = {"out": tmp_path / "runs", "data": tmp_path / "data"}
        return run_all([spec()], **places, device="cpu", engine=engine)

    return launch


def test_ray_must_be_installed(launched, monkeypatch):
    monkeypatch.setattr(_ray, "find_spec", lambda _: None)
    with pytest.raises(LookupError, match=r"install it with pip install 'qualms-bench"):
        launched("")


@pytest.mark.parametrize("address", ["auto", "10.0.0.1", "ray://head:10001", ":6379"])
def test_an_address_is_a_host_and_a_port(launched, address):
    with pytest.raises(ValueError, match="must be HOST:PORT of the head of a Ray clu"):
        launched(address)


def test_an_address_where_nobody_answers_is_refused_at_once(launched):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(ConnectionError, match=f"answers at {address}"):
            launched(address)


@pytest.mark.skipif(find_spec("ray") is None, reason="needs the extra scale")
def test_a_cluster_that_happens_to_be_connected_is_not_used(launched, monkeypatch):
    import ray

    monkeypatch.setattr(ray, "is_initialized", lambda: True)
    monkeypatch.setattr(ray, "shutdown", lambda: pytest.fail("it is not ours"))
    with pytest.raises(ValueError, match=r"call ray\.shutdown\(\) first"):
        launched("")


NODES = [{"CPU": 8.0, "GPU": 2.0}, {"CPU": 5.0}, {"memory": 1.0}]


@pytest.mark.parametrize(
    ("cpus", "gpus", "room"),
    [(1, 0, 13), (3, 0, 3), (0.1, 0, 130), (1, 1, 2), (1, 0.2, 8), (0.5, 0.25, 8)],
)
def test_a_cluster_has_room_for_so_many_processes(cpus, gpus, room):
    assert _room(NODES, cpus, gpus) == room


def test_a_cluster_without_room_says_what_was_asked_for():
    with pytest.raises(ValueError, match="have 1 CPU and 4 GPU for a process, and"):
        _room(NODES, 1, 4)
    with pytest.raises(ValueError, match="must have 1 CPU for a process, and none"):
        _room([], 1, 0)


def test_gpus_are_those_of_the_cluster():
    engine = Engine(launcher="ray")
    assert _gpus_for(engine, "auto", NODES) == 1
    assert _gpus_for(engine, "auto", NODES[1:]) == 0
    assert _gpus_for(engine, "cpu", NODES) == 0
    assert _gpus_for(engine, "cuda:0,1", NODES) == 2
    assert _gpus_for(Engine(launcher="ray", gpus=0.5), "auto", []) == 0.5
    with pytest.raises(ValueError, match="have GPUs for device 'cuda', and no node"):
        _gpus_for(engine, "cuda", NODES[1:])


@pytest.mark.parametrize(("count", "device"), [(0, "cpu"), (1, "cuda:0")])
def test_a_run_uses_the_devices_that_its_process_sees(count, device, monkeypatch):
    cuda = SimpleNamespace(is_available=lambda: count > 0, device_count=lambda: count)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    assert device_here("auto") == device
    cuda.device_count, cuda.is_available = (lambda: 3), (lambda: True)
    assert device_here("cuda") == "cuda:0,1,2"
    assert device_here("cuda:1") == "cuda:1"


def test_a_node_says_why_it_cannot_work(tmp_path):
    mark = tmp_path / "mark"
    with locked(mark):
        right = Luggage(_ray.__version__, mark, (), str(tmp_path))
        assert _refusal(right) == ""
        assert "and the launcher has 0; install the same" in _refusal(
            right._replace(version="0")
        )
        elsewhere = right._replace(mark=tmp_path / "absent" / "mark")
        assert _refusal(elsewhere) == (
            f"it does not see {tmp_path / 'absent'}; choose a folder that all nodes"
            " share with --out"
        )
    # A lock that the launcher has, and that this machine can have as well.
    assert "have no effect on other machines; mount it with locks" in _refusal(right)


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_included_parts_travel_with_what_they_import(tmp_path, monkeypatch, kind):
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "qualms_travelling.py").write_text(PART)
    (folder / "qualms_sharing.py").write_text("method = 1\n")
    (folder / "qualms_unrelated.csv").touch()
    path = folder / "qualms_travelling.py" if kind == "file" else folder
    monkeypatch.setenv("QUALMS_INCLUDE", str(path))
    (part,) = included_paths()
    assert set(part.files) == {"qualms_travelling.py", "qualms_sharing.py"}
    other = tmp_path / "other"
    # The same files are used where they are, others are written.
    assert unpack_parts([part], other) == {"QUALMS_INCLUDE": str(path)}
    (folder / "qualms_sharing.py").write_text("changed")
    (variable,) = unpack_parts([part], other).values()
    assert Path(variable).is_relative_to(other)
    assert Path(variable).is_file() == (kind == "file")
    assert (other / "0" / "qualms_sharing.py").read_bytes() == (
        part.files["qualms_sharing.py"]
    )


def test_nothing_travels_where_nothing_is_included(tmp_path, monkeypatch):
    monkeypatch.delenv("QUALMS_INCLUDE", raising=False)
    assert included_paths() == ()
    assert unpack_parts((), tmp_path) == {"QUALMS_INCLUDE": ""}


def test_the_environment_of_a_cluster_of_its_own_is_put_back(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    monkeypatch.delenv("RAY_USAGE_STATS_ENABLED", raising=False)
    with _ray._own_cluster_environment():
        assert os.environ["RAY_AUTH_MODE"] == "token"
        assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"
    assert os.environ["RAY_AUTH_MODE"] == "disabled"
    assert "RAY_USAGE_STATS_ENABLED" not in os.environ
