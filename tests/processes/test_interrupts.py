import signal
import subprocess
import sys

from qualms.processes._crew import without_interrupts

BLOCKED = """
import signal
print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []))
"""


def is_blocked_in_a_child():
    command = [sys.executable, "-c", BLOCKED]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()


def test_only_processes_started_meanwhile_never_see_interrupts():
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    with without_interrupts():
        inside = is_blocked_in_a_child()
    assert (inside, is_blocked_in_a_child()) == ("True", "False")
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before
