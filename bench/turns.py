"""Measurements one after another, as many as fit into a time limit."""

import time
import traceback

import torch

STARTED = time.monotonic()


def all_lines(jobs, limit):
    """Return the lines of `jobs` (expected seconds, function) that fit into `limit`."""
    lines = []
    for expected, measure in jobs:
        if time.monotonic() - STARTED + expected > limit:
            continue
        try:
            lines.append(measure())
        except Exception:  # the others are still worth measuring
            traceback.print_exc()
            print(f"failed: {measure}", flush=True)
        else:
            print(f"{time.monotonic() - STARTED:5.0f} s\n{lines[-1]}", flush=True)
    return lines


@torch.no_grad()
def seconds(work, device, repeats=5):
    """Return the least time that `work` takes."""
    synchronise = torch.cuda.synchronize if device == "cuda" else lambda: None
    work()
    times = []
    for _ in range(repeats):
        synchronise()
        since = time.perf_counter()
        work()
        synchronise()
        times.append(time.perf_counter() - since)
    return min(times)
