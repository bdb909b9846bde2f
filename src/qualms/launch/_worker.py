"""A worker: a process of its own that trains one job after another.

Whatever it prints goes to the log of the run it works on. It leaves an interrupt to the
launcher, which tells it to stop with SIGTERM, and it does not outlive the launcher.
"""

import errno
import faulthandler
import gc
import io
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType
from typing import Any

from qualms.datasets import open_dataset
from qualms.launch._events import Ended, Epoch, Free, Job, Message, Status, Work
from qualms.processes import locked
from qualms.runs import (
    describe,
    is_done,
    lock_path,
    log_path,
    mark_failed,
    tidy,
)
from qualms.spec import RunSpec

Runs = list[tuple[RunSpec, Path]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """How a worker is set up; plain data and at most one function named by import."""

    device: str
    threads: int
    command: list[str]
    work: Work | None = None
    """None is `qualms.training.run_together`."""


def serve(pipe: Connection, post: Post) -> None:
    """Carry out jobs from `pipe` until the launcher closes it."""
    _settle()
    with suppress(EOFError, BrokenPipeError, KeyboardInterrupt):
        while True:
            pipe.send(Free())
            _carry_out(pipe.recv(), pipe, post)
            _let_go()


def _settle() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True)
    faulthandler.enable()
    signal.signal(signal.SIGTERM, _stop)
    if sys.platform != "win32":
        os.setpgid(0, 0)  # so that processes started here can be ended with this one
    threading.Thread(target=_follow_parent, daemon=True).start()


def _let_go() -> None:
    """Free what a job held on the device, for the next one and for other workers."""
    gc.collect()
    if "torch" in sys.modules:
        import torch

        torch.cuda.empty_cache()


def _stop(_signal: int, _frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # unwinding is not interrupted
    raise KeyboardInterrupt


def _follow_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    if sys.platform != "win32":
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def _carry_out(job: Job, pipe: Connection, post: Post) -> None:
    """Train the runs of `job` that nobody else has or had, and tell how each ended."""
    started = time.monotonic()

    def end(spec: RunSpec, status: Status, error: str = "") -> None:
        pipe.send(Ended(spec.hash, status, time.monotonic() - started, error))

    with ExitStack() as locks:
        held = _take(job, locks, end)
        if not held:
            return
        error = _train(held, job.data, pipe, post)
        for spec, folder in held:
            if is_done(folder, spec):
                end(spec, "done")
            else:
                _note_failure(folder, spec, error)
                end(spec, "failed", error)


def _note_failure(folder: Path, spec: RunSpec, error: str) -> None:
    with suppress(OSError):  # a full disk must not hide how the run ended
        mark_failed(folder, spec, error)


def _lock(folder: Path) -> AbstractContextManager[bool]:
    folder.mkdir(parents=True, exist_ok=True)
    return locked(lock_path(folder))


def _take(job: Job, locks: ExitStack, end: Callable[..., None]) -> Runs:
    """The runs that are this process's to train, locked."""
    held: Runs = []
    for spec, folder in zip(job.specs, job.folders, strict=True):
        try:
            mine = locks.enter_context(_lock(folder))
        except OSError as error:
            end(spec, "failed", _sentence(error))
            continue
        if not mine:
            end(spec, "busy")
        elif is_done(folder, spec):
            end(spec, "skipped")
        else:
            held.append((spec, folder))
    return held


def _train(held: Runs, data: Path, pipe: Connection, post: Post) -> str:
    """Why runs of `held` may lack a result; the traceback stands in the log."""
    specs, folders = zip(*held, strict=True)
    try:
        with _logged(folders):
            try:
                now = datetime.now().astimezone().isoformat(timespec="seconds")
                sys.stdout.write(f"{now}: starts on {post.device}\n")
                work = post.work or _run_together()
                stated = {"device": post.device, "command": post.command}
                for spec, folder in held:
                    tidy(folder)
                    describe(folder, spec, stated)
                dataset, watch = open_dataset(data), _Relay(pipe=pipe)
                work(specs, dataset, folders, device=post.device, watch=watch)
            except Exception:
                traceback.print_exc()
                raise
    except Exception as error:
        return _sentence(error)
    return "training came to its end without writing done.json"


def _run_together() -> Work:
    from qualms.training import run_together

    return run_together


@contextmanager
def _logged(folders: Sequence[Path]) -> Iterator[None]:
    """Send all that this process and its libraries print to the first folder's log."""
    first, *others = map(log_path, folders)
    for other in others:
        with other.open("a", encoding="utf-8") as log:
            log.write(f"trains together with others; its log is {first}\n")
    saved = os.dup(1), os.dup(2)
    with first.open("ab") as log:
        _redirect(log.fileno(), log.fileno())
    try:
        yield
    finally:
        _redirect(*saved)
        for stream in saved:
            os.close(stream)


def _redirect(out: int, err: int) -> None:
    with suppress(OSError):  # a full disk must not hide how the run ended
        sys.stdout.flush()
        sys.stderr.flush()
    os.dup2(out, 1)
    os.dup2(err, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Relay:
    """A watch that passes everything on to the launcher."""

    pipe: Connection

    def epoch(self, spec: RunSpec, *values: Any) -> None:
        self.pipe.send(Epoch(spec.hash, values))

    def message(self, spec: RunSpec, text: str) -> None:
        sys.stdout.write(f"{spec.hash}: {text}\n")
        self.pipe.send(Message(spec.hash, text))


def _sentence(error: Exception) -> str:
    """The first line of what an error says, with its name where that is not ours."""
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return "the disk is full; free space and run again, what is done is kept"
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"cannot use {error.filename}: {error.strerror}; see to it and run again"
    said = str(error).strip().partition("\n")[0] or "no reason given"
    spoken = isinstance(error, (ValueError, LookupError, OSError))
    ours = type(error).__module__.startswith("qualms.")
    return said if spoken or ours else f"{type(error).__name__}: {said}"
