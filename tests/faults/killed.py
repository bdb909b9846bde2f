"""Kill a worker at 30 random moments, and compare what is left in the end.

python killed.py FOLDER: prints "kills rounds", or raises. One process loads torch; its
children train and are killed, as in `training/test_resume.py`.
"""

import os
import random
import signal
import sys
from pathlib import Path

import torch

from faults import drill
from qualms.runs import done_path, run_folder

KILLS = 30
RUNS = [drill.spec(seed, epochs=8) for seed in range(2)]


def attempt(out, cache, seconds=0.0):
    """Work on the runs in a process with a limit of CPU time; return code and time."""
    pid = os.fork()
    if pid == 0:
        # An unhandled signal ends a process as SIGKILL does.
        signal.setitimer(signal.ITIMER_PROF, seconds)  # 0 is for ever
        torch.set_num_threads(1)
        drill.train(out, RUNS, cache)
        os._exit(0)
    _, status, used = os.wait4(pid, 0)
    return os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime


def finished(out):
    """When each run that is done was done."""
    paths = [done_path(run_folder(out, run)) for run in RUNS]
    return {path: path.stat().st_mtime_ns for path in paths if path.exists()}


def main(folder):
    cache, whole, rng = folder / "cache", folder / "whole", random.Random(5)
    attempt(whole, cache)
    code, seconds = attempt(folder / "timed", cache)
    assert code == 0
    expected = [drill.predictions(whole, run) for run in RUNS]
    kills = rounds = 0
    while kills < KILLS:
        out, done = folder / str(rounds), {}
        while len(done) < len(RUNS):
            limit = seconds * rng.uniform(0.02, 0.6) if kills < KILLS else 0.0
            code, _ = attempt(out, cache, limit)
            assert code in (0, -signal.SIGPROF), code
            kills += code != 0
            assert done.items() <= finished(out).items(), "finished work was lost"
            done = finished(out)
        assert [drill.predictions(out, run) for run in RUNS] == expected
        rounds += 1
    sys.stdout.write(f"{kills} {rounds}\n")


if __name__ == "__main__":
    torch.optim.Adam([torch.zeros(1, requires_grad=True)])  # loads what comes with it
    main(Path(sys.argv[1]))
