"""Work that takes long is shown in stderr."""

import io
import re
import time

import pytest

from qualms import progress
from qualms.progress import counting, report, showing


@pytest.fixture
def at_once(monkeypatch):
    """Show work as soon as it is begun."""
    for name in ("FIRST", "EVERY", "BAR", "TURN"):
        monkeypatch.setattr(progress, name, 0.002)


def until(stream, words):
    """Wait until a stream has words; a busy machine may need a while."""
    for _ in range(2_000):
        if re.search(words, text := stream.getvalue()):
            return text
        time.sleep(0.005)
    raise AssertionError(stream.getvalue())


def test_lines_say_what_is_done_how_fast_and_how_long_it_takes(at_once, monkeypatch):
    monkeypatch.setattr("sys.stderr", stderr := io.StringIO())
    with showing("embedding") as advance:
        until(stderr, r"embedding: \d+ s so far\n")
        advance(10, 4_000)
        until(stderr, r"embedding: 10 of 4,000 items\n")
        time.sleep(0.01)
        advance(30, 4_000)
        line = r"embedding: 30 of 4,000 items, [\d.e+,]+ items/s, about \d+ \w+ left\n"
        until(stderr, line)
        for _ in counting("abc", 3):
            pass
        until(stderr, "embedding: 3 of 3 items")
    report(5, 5)  # nobody listens any more
    assert "5 of 5" not in stderr.getvalue()


def test_a_terminal_gets_a_bar_that_is_removed(at_once, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr("sys.stderr", stderr := Terminal())
    with showing("scoring", "cases") as advance:
        advance(10, 40)
        time.sleep(0.01)
        advance(20, 40)
        until(stderr, "20/40.* cases/s, about")
    assert stderr.getvalue().endswith("\x1b[2K")


def test_short_work_shows_nothing(capsys):
    with showing("scoring") as advance:
        advance(1, 2)
    assert capsys.readouterr() == ("", "")
