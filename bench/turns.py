"""Measurements one after another, as many as fit into the time that is lent."""

import time
import traceback

import torch

STARTED = time.monotonic()


def all_lines(jobs, limit):
    """What each of `jobs` (expected seconds, function) gives, of those that fit."""
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
    """The least time that `work` takes."""
    synchronise = torch.cuda.synchronize if device == "cuda" else lambda: None
    work()
    found = []
    for _ in range(repeats):
        synchronise()
        since = time.perf_counter()
        work()
        synchronise()
        found.append(time.perf_counter() - since)
    return min(found)
