"""The processes of a team: started for one run, listened to, and ended with it."""

import copyreg
import io
import mmap
import os
import pickle
import socket
import threading
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any, NamedTuple

import numpy as np

from qualms.spec import RunSpec
from qualms.training._error import TrainingError
from qualms.training.watch import Watch

Work = Callable[..., None]
"""What every process does, told who watches; importable by name."""


class _Member(NamedTuple):
    process: SpawnProcess
    pipe: Connection


def work_together(work: Work, size: int, watch: Watch) -> None:
    """Do `work` in `size` processes, a team; all of them end when one fails.

    Raises:
        TrainingError: What the first of them that failed said.
    """
    spawn, port, packed = get_context("spawn"), _free_port(), _packed(work)
    members = []
    try:
        for rank in range(size):
            here, there = spawn.Pipe()
            place = {"LOCAL_RANK": rank, "NODE_RANK": 0, "MASTER_PORT": port}
            told = (there, place, packed)
            process = spawn.Process(target=_serve, args=told, daemon=True)
            process.start()
            there.close()
            members.append(_Member(process, here))
        _listen(members, watch)
    finally:
        for member in members:
            member.process.kill()
            member.process.join()
            member.pipe.close()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _packed(work: Work) -> bytes:
    """`work` as bytes; memory-mapped arrays by the name of their file."""
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer)
    pickler.dispatch_table = {**copyreg.dispatch_table, np.memmap: _by_name}
    pickler.dump(work)
    return buffer.getvalue()


def _by_name(array: np.memmap[Any, Any]) -> Any:
    whole: Any = array.base
    if not isinstance(whole, mmap.mmap):
        return np.asarray(array).__reduce__()  # a part of a file travels by value
    order = "C" if array.flags.c_contiguous else "F"
    place = (str(array.filename), array.dtype, "r", array.offset, array.shape, order)
    return np.memmap, place


def _listen(members: Sequence[_Member], watch: Watch) -> None:
    """Pass on what is heard until every process is done."""
    left = {member.pipe: member.process for member in members}
    while left:
        for pipe in wait(list(left)):
            assert isinstance(pipe, Connection)
            match _heard(pipe, left[pipe]):
                case ("done",):
                    del left[pipe]
                case ("failed", str(why)):
                    raise TrainingError(why)
                case ("epoch", spec, *values):
                    watch.epoch(spec, *values)
                case ("message", spec, text):
                    watch.message(spec, text)


def _heard(pipe: Connection, process: SpawnProcess) -> Any:
    try:
        return pipe.recv()
    except (EOFError, OSError):  # killed between messages, or within one
        process.join()
        why = f"a process of the team ended with exit code {process.exitcode}; run"
        return "failed", f"{why} again to go on from the last checkpoint"


def _serve(pipe: Connection, place: dict[str, int], packed: bytes) -> None:
    """Be one of the team: who and where is in the environment, for Fabric to read."""
    threading.Thread(target=_follow_parent, daemon=True).start()
    os.environ.update({name: str(value) for name, value in place.items()})
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    try:
        pickle.loads(packed)(watch=_Relay(pipe))
        pipe.send(("done",))
    except Exception as error:
        traceback.print_exc()
        with suppress(OSError):
            pipe.send(("failed", str(error)))
    # Whoever listens ends all at once: leaving would tear connections that others use.
    threading.Event().wait()


def _follow_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


class _Relay:
    """A watch that passes everything on."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe

    def epoch(self, spec: RunSpec, *values: Any) -> None:
        self._pipe.send(("epoch", spec, *values))

    def message(self, spec: RunSpec, text: str) -> None:
        self._pipe.send(("message", spec, text))
