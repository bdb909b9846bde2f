"""A crew of processes on the nodes of a Ray cluster.

One actor per process: it starts the process on its node, as `LocalCrew` does on this
machine, and passes messages on. So a process that trains is the same everywhere, and
its end is heard with its reason. A lost actor is a lost node, or was ended by Ray.
"""

import os
import secrets
import socket
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from ipaddress import ip_address
from math import ceil, floor
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from qualms import __version__
from qualms.datasets import cores
from qualms.launch._devices import threads_for
from qualms.launch._parcel import unpack_parts
from qualms.launch._worker import Work, WorkerSetup
from qualms.launch.engine import Engine, Slots, launcher_command
from qualms.processes import LocalCrew, Lost, Worker, locked
from qualms.shelf import IncludedPath, included_paths
from qualms.wording import plain_line

PATIENCE = 5.0
"""Seconds to wait for an answer of an address."""
STORE = 128 * 2**20
"""Bytes of the object store of a cluster of our own: only messages travel by it."""
END = 15.0
"""Seconds for processes on other machines to stop by themselves."""
PAUSE = 1.0
"""Seconds after which an actor that could not be reached is asked again."""


class Luggage(NamedTuple):
    """Files and facts that a process on another machine needs beside its work."""

    version: str
    mark: Path | None
    """A locked file in the output folder, which every machine must see and not lock.
    There is none if runs are stored elsewhere."""
    parts: tuple[IncludedPath, ...]
    place: str
    """The working folder of the launcher: relative paths mean the same everywhere."""


def ray_slots(
    engine: Engine,
    *,
    device: str,
    workers: int | None,
    out: Path | None,
    work: Work | None,
) -> Slots:
    """Connect or start a cluster; return places on it, and the crew for them."""
    if find_spec("ray") is None:
        raise LookupError(
            "the launcher ray needs Ray, which is not installed; install it with pip"
            " install 'qualms-bench[scale]'"
        )
    cpus = 1.0 if engine.cpus is None else engine.cpus
    connection = ExitStack()
    with ExitStack() as undo:
        undo.push(connection)  # until its crew closes it
        connection.enter_context(_connected(engine.address, (workers or 1) * cpus))
        nodes = _node_resources()
        gpus = _gpus_for(engine, device, nodes)
        count = workers or _room(nodes, cpus, gpus)
        mark = connection.enter_context(_marked(out)) if out else None
        undo.pop_all()
    setup = WorkerSetup(
        device="cpu" if gpus == 0 and device == "auto" else device,
        threads=threads_for("cuda" if gpus else "cpu", max(1, int(cpus))),
        command=launcher_command(),
        work=work,
    )
    luggage = Luggage(__version__, mark, included_paths(), os.getcwd())  # noqa: PTH109
    crew = partial(RayCrew, luggage, cpus=cpus, gpus=gpus, connection=connection)
    return Slots([setup] * count, crew, on_gpus=gpus > 0, close=connection.close)


class RayCrew:
    """A crew of processes on the nodes of a cluster, each held by an actor."""

    def __init__(
        self, luggage: Luggage, *, cpus: float, gpus: float, connection: ExitStack
    ) -> None:
        """Make a crew without processes.

        Args:
            luggage: what each process needs.
            cpus: cores of each process.
            gpus: GPUs of each process, or a share of one.
            connection: is closed when the crew ends.
        """
        import ray

        self._luggage = luggage
        self._connection = connection
        # Threads: one waits for messages while another one sends.
        self._host: Any = ray.remote(Host).options(
            num_cpus=cpus, num_gpus=gpus, max_concurrency=3, max_restarts=0
        )
        self._workers: dict[_RayWorker, None] = {}
        self._answers: SimpleQueue[tuple[_RayWorker, Future[Any]]] = SimpleQueue()

    def start(
        self,
        serve: Callable[..., None],
        *args: Any,
        environment: Mapping[str, str] | None = None,
    ) -> Worker:
        """Start a process that calls `serve` with its channel and `args`."""
        host = self._host.remote(serve, args, dict(environment or {}), self._luggage)
        worker = _RayWorker(host)
        self._workers[worker] = None
        self._listen(worker)
        return worker

    def hear(self, timeout: float | None = None) -> Iterator[tuple[Worker, Any]]:
        """Wait for messages; yield those of each process that sent any."""
        with suppress(Empty):
            answer = self._answers.get(timeout=timeout)
            while True:
                yield from self._messages(*answer)
                answer = self._answers.get_nowait()

    def end(self, *, at_once: bool = False) -> None:
        """End all processes, and close the connection to the cluster."""
        import ray

        try:
            if not at_once and self._workers:
                calls = [worker.host.end.remote() for worker in self._workers]
                ray.wait(calls, num_returns=len(calls), timeout=END)
        finally:
            for worker in self._workers:
                ray.kill(worker.host)
            self._workers.clear()
            self._connection.close()

    def _listen(self, worker: "_RayWorker") -> None:
        """Ask for the messages of a process; the answer comes to the queue."""
        # Asking thousands of actors in turn would take longer the more there are.
        answer: Future[Any] = worker.host.hear.remote(worker.received).future()
        answer.add_done_callback(lambda future: self._answers.put((worker, future)))

    def _messages(
        self, worker: "_RayWorker", answer: "Future[Any]"
    ) -> Iterator[tuple[Worker, Any]]:
        from ray.exceptions import ActorUnavailableError, RayError

        if worker not in self._workers:
            return
        try:
            messages = answer.result()
        except ActorUnavailableError:
            threading.Timer(PAUSE, self._listen, [worker]).start()
            return
        except RayError as error:
            messages = [_lost(worker, error)]
        else:
            worker.node = messages.node
            messages = messages.new
            worker.received = len(messages)
        if any(isinstance(message, Lost) for message in messages):
            self._forget(worker)
        else:
            self._listen(worker)
        for message in messages:
            yield worker, message

    def _forget(self, worker: "_RayWorker") -> None:
        import ray

        del self._workers[worker]
        ray.kill(worker.host)


@dataclass(slots=True, eq=False)
class _RayWorker:
    host: Any
    """Its actor."""
    node: str = ""
    """The node of the actor; '' while that is not known."""
    received: int = 0
    """Messages that the actor may forget."""
    sent: int = 0

    def send(self, message: Any) -> bool:
        self.host.send.remote(self.sent, message)  # its messages tell if it is lost
        self.sent += 1
        return True


class Heard(NamedTuple):
    """Messages of a process, and the node that it is on."""

    node: str
    new: list[Any]


class Host:
    """An actor that starts a process on its node, and passes messages on.

    Messages are kept until the driver has them, so that none is lost with a connection.
    """

    def __init__(
        self,
        serve: Callable[..., None],
        args: Sequence[Any],
        environment: Mapping[str, str],
        luggage: Luggage,
    ) -> None:
        import ray

        self._node = ray.get_runtime_context().get_node_id()
        self._kept: deque[Any] = deque()
        self._crew = LocalCrew(script=False)
        self._parts = tempfile.TemporaryDirectory(prefix="qualms-parts-")
        self._worker: Worker | None = None
        self._sending = threading.Lock()
        self._early: dict[int, Any] = {}
        """Messages to the process that came before others, by number."""
        self._next = 0
        refusal = _refusal(luggage)
        if refusal:
            where = ray.util.get_node_ip_address()
            self._kept.append(Lost(f"was not started on node {where}: {refusal}"))
            return
        with suppress(OSError):
            os.chdir(luggage.place)
        parts = unpack_parts(luggage.parts, Path(self._parts.name))
        self._worker = self._crew.start(
            serve, *args, environment={**environment, **parts}
        )

    def hear(self, received: int) -> Heard:
        """Forget so many messages; wait until there are others, and return them."""
        for _ in range(received):
            self._kept.popleft()
        while not self._kept:
            self._kept.extend(message for _, message in self._crew.hear())
        return Heard(self._node, list(self._kept))

    def send(self, number: int, message: Any) -> None:
        """Send the message of this number to the process, after those before it."""
        # Two threads of an actor may begin calls in another order than they were made.
        with self._sending:
            self._early[number] = message
            while self._worker is not None and self._next in self._early:
                self._worker.send(self._early.pop(self._next))
                self._next += 1

    def end(self) -> None:
        """End the process with a little time to stop by itself."""
        self._crew.end()
        self._parts.cleanup()


def _refusal(luggage: Luggage) -> str:
    """Say why this node cannot work for a driver; '' if it can."""
    if luggage.version != __version__:
        return (
            f"it has qualms {__version__}, and the launcher has {luggage.version};"
            " install the same version"
        )
    return "" if luggage.mark is None else _folder_refusal(luggage.mark)


def _folder_refusal(mark: Path) -> str:
    """Say why this node cannot work in the output folder."""
    out = mark.parent
    if not mark.exists():
        return f"it does not see {out}; choose a folder that all nodes share with --out"
    try:
        with locked(mark) as is_locked:
            pass
    except OSError as error:
        return str(error)
    if is_locked:
        return (
            f"locks on files in {out} have no effect on other machines; mount it with"
            " locks, or choose a folder on another disk"
        )
    return ""


def _lost(worker: _RayWorker, error: Exception) -> Lost:
    """Say how an actor was lost, and whether its node was."""
    import ray
    from ray.exceptions import OutOfMemoryError

    node = next((n for n in ray.nodes() if n["NodeID"] == worker.node), None)
    if node is not None and not node["Alive"]:
        return Lost(f"was lost with its node {node['NodeManagerAddress']}", True)
    if isinstance(error, OutOfMemoryError):
        return Lost("was ended by Ray, for lack of memory on its node")
    if node is None:
        return Lost(f"was not started by Ray: {_last_line(error)}")
    return Lost(f"was lost on node {node['NodeManagerAddress']}: its Ray actor ended")


def _last_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or ["no reason given"]
    return plain_line(lines[-1])


@contextmanager
def _marked(out: Path) -> Iterator[Path]:
    """Keep a locked file in the output folder, by which nodes recognise it."""
    out.mkdir(parents=True, exist_ok=True)
    mark = out.resolve() / f".launcher-{secrets.token_hex(4)}"
    try:
        with locked(mark):
            yield mark
    finally:
        mark.unlink(missing_ok=True)


@contextmanager
def _connected(address: str, cpus: float) -> Iterator[None]:
    """Connect to the cluster at `address`, or start one for as long as needed."""
    with ExitStack() as stack:
        if address:
            _check_answers(address)
            where: dict[str, Any] = {"address": address}
        else:
            stack.enter_context(_own_cluster_environment())
            where = {
                "address": "local",
                "num_cpus": max(cores(), ceil(cpus)),
                "include_dashboard": False,
                "object_store_memory": STORE,
            }
        import ray  # it reads the environment

        if ray.is_initialized():
            raise ValueError(
                "this process must not be connected to a Ray cluster yet, and it is;"
                " call ray.shutdown() first"
            )
        stack.callback(ray.shutdown)
        try:
            ray.init(**where, logging_level="ERROR", log_to_driver=True)
        except Exception as error:
            raise ConnectionError(_refused_text(address, error)) from error
        if not address:
            _check_loopback(ray)
        yield


def _refused_text(address: str, error: Exception) -> str:
    line = plain_line(str(error))
    if not address:
        return f"Ray could not start on this machine: {line}"
    return (
        f"the Ray cluster at {address} cannot be joined: {line}; is its token in"
        " ~/.ray/auth_token, or in the file that RAY_AUTH_TOKEN_PATH names, and is its"
        " version of Ray and of Python that of this machine?"
    )


def _check_answers(address: str) -> None:
    """Raise unless something listens at HOST:PORT."""
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdecimal():
        raise ValueError(
            "address must be HOST:PORT of the head of a Ray cluster, as in"
            f" 10.0.0.1:6379, got {address!r}; leave it out for a cluster of its own"
        )
    try:
        with socket.create_connection((host, int(port)), timeout=PATIENCE):
            pass
    except (OSError, OverflowError) as error:
        raise ConnectionError(
            f"no Ray cluster answers at {address} ({plain_line(str(error))}); start one"
            " with `ray start --head`, check the address, or leave it out for a cluster"
            " of its own on this machine"
        ) from error


@contextmanager
def _own_cluster_environment() -> Iterator[None]:
    """Set the environment of a cluster of our own for the context.

    It asks for a token, and listens on this machine's loopback interface alone.
    """
    _make_token()
    variables = {
        "RAY_AUTH_MODE": "token",
        "RAY_USAGE_STATS_ENABLED": "0",
        # Ray reads it when it is imported; its other ways lead to all interfaces.
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    }
    before = {name: os.environ.get(name) for name in variables}
    _set(variables)
    try:
        yield
    finally:
        _set(before)


def _make_token() -> None:
    """Make the token of own clusters where there is none, readable by its owner alone.

    Ray would make the same file, which anybody could read.
    """
    if os.environ.get("RAY_AUTH_TOKEN") or os.environ.get("RAY_AUTH_TOKEN_PATH"):
        return
    path = Path.home() / ".ray" / "auth_token"
    path.parent.mkdir(mode=0o700, exist_ok=True)
    with suppress(FileExistsError):
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(number, "w") as file:
            file.write(secrets.token_hex(32))


def _check_loopback(ray: Any) -> None:
    """Raise unless a cluster of our own listens on the loopback interface alone."""
    if not ip_address(ray.util.get_node_ip_address()).is_loopback:
        raise ValueError(
            "Ray was imported before qualms could say that a cluster of its own is for"
            " this machine alone; set RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=0 before"
            " importing Ray, or give the address of a cluster"
        )


def _set(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _node_resources() -> list[Mapping[str, float]]:
    import ray

    return [node["Resources"] for node in ray.nodes() if node["Alive"]]


def _gpus_for(
    engine: Engine, device: str, nodes: Sequence[Mapping[str, float]]
) -> float:
    """Return the GPUs of a process: those asked for, or one where there are any."""
    if engine.gpus is not None or device == "cpu":
        return 0.0 if device == "cpu" else engine.gpus or 0.0
    present = any(node.get("GPU", 0) for node in nodes)
    if device != "auto" and not present:
        raise ValueError(
            f"the cluster must have GPUs for device {device!r}, and no node has any;"
            " say --gpus where nodes are added later, or --device cpu"
        )
    # "cuda:0,1" are the first two of the GPUs that a process gets.
    return float(max(1, device.count(",") + 1)) if present else 0.0


def _room(nodes: Sequence[Mapping[str, float]], cpus: float, gpus: float) -> int:
    """Return how many processes the nodes have room for."""
    needs = {name: n for name, n in (("CPU", cpus), ("GPU", gpus)) if n}
    rooms = (
        min(floor(node.get(name, 0) / n + 1e-9) for name, n in needs.items())
        for node in nodes
    )
    room = sum(rooms)
    if room:
        return room
    wanted = " and ".join(f"{n:g} {name}" for name, n in needs.items())
    raise ValueError(
        f"a node of the cluster must have {wanted} for a process, and none has; ask for"
        " less with --cpus and --gpus, or say --workers where nodes are added later"
    )
