"""What processes do in tests; importable by them."""

import os
import signal
import subprocess
import sys
import time


def double(value):
    return 2 * value


def fail_at_three(value):
    if value == 3:
        raise ValueError("three must not come")
    return value


class OddError(Exception):
    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


def fail_late_at_two(value):
    """Fail at two things, the first of which takes longer."""
    if value == 2:
        time.sleep(0.2)
    if value in (2, 3):
        raise ValueError(f"{value} must not come")
    return value


def nap(value):
    time.sleep(0.02)
    return value


def fail_oddly(value):
    raise OddError("one", value)


def fall(value):
    if value == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return value


def stumble(_):
    os.kill(os.getpid(), signal.SIGILL)


def process_and_setting(_):
    time.sleep(0.05)
    return os.getpid(), os.environ.get("QUALMS_TEST")


def echo(channel, word):
    """Answer every message, until there are no more."""
    channel.send(word)
    while True:
        channel.send((word, channel.recv()))


def poll_twice(channel):
    """Say whether a message waits, before and after one was sent."""
    before = channel.poll()
    channel.send("ready")
    while not channel.poll():
        time.sleep(0.01)
    channel.send((before, channel.recv(), channel.poll()))
    channel.recv()


def leave(channel):
    channel.send("a last word")
    os._exit(3)


def wait_with_child(channel):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    channel.send((os.getpid(), child.pid))
    try:
        time.sleep(600)
    except KeyboardInterrupt:
        channel.send("told")
        raise


def total(channel, array):
    channel.send((type(array).__name__, float(array.sum())))


def as_it_is(value):
    return value
