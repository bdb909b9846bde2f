"""How much of this machine may be used."""

import os
import sys


def cores() -> int:
    """The number of cores this process may run on."""
    limited = sys.platform == "linux"
    return len(os.sched_getaffinity(0)) if limited else os.cpu_count() or 1
