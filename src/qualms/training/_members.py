"""The processes of a team: one for each device of a run, ended with the run."""

import socket
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from qualms.processes import (
    Channel,
    Epoch,
    LocalCrew,
    Lost,
    Message,
    Relay,
    tell,
)
from qualms.training._error import TrainingError
from qualms.training.watch import Watch

Work = Callable[..., None]
"""What every process does, called with `watch`; a function that can be imported."""


class _MemberDone(NamedTuple):
    """A process has done its work."""

    error: str = ""
    """Why it could not be done; '' where it was."""


def work_together(work: Work, size: int, watch: Watch) -> None:
    """Do `work` in `size` processes, a team; all of them end when one fails.

    Raises:
        TrainingError: With what the first process that failed said.
    """
    # Launchers end a worker with its group, and so the team that a worker starts.
    crew, port = LocalCrew(group=False), _free_port()
    try:
        for rank in range(size):
            place = {"LOCAL_RANK": rank, "NODE_RANK": 0, "MASTER_PORT": port}
            environment = {name: str(value) for name, value in place.items()}
            environment["MASTER_ADDR"] = "127.0.0.1"
            crew.start(_serve, work, environment=environment)
        _listen(crew, size, watch)
    finally:
        crew.end(at_once=True)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _listen(crew: LocalCrew, size: int, watch: Watch) -> None:
    """Pass on what is heard until every process is done."""
    done = 0
    while done < size:
        for _, said in crew.hear():
            if isinstance(said, Lost):
                raise TrainingError(
                    f"a process of the team {said.how}; run again to go on from the"
                    " last checkpoint"
                )
            if isinstance(said, _MemberDone) and said.error:
                raise TrainingError(said.error)
            if isinstance(said, _MemberDone):
                done += 1
            if isinstance(said, Epoch | Message):
                tell(watch, said)


def _serve(channel: Channel, work: Work) -> None:
    """Be one of the team; who and where is in the environment."""
    try:
        work(watch=Relay(channel.send))
        channel.send(_MemberDone())
    except Exception as error:
        traceback.print_exc()
        with suppress(OSError):
            channel.send(_MemberDone(str(error) or type(error).__name__))
    # Whoever listens ends all at once: leaving would tear connections that others use.
    threading.Event().wait()
