import os
import time
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from processes import work
from qualms.processes import LocalCrew, Lost, LostProcessError, Workforce, each


def alive(pid):
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


@pytest.fixture
def crew():
    crew = LocalCrew()
    yield crew
    crew.end(at_once=True)


def hear(crew, count):
    """The next `count` messages."""
    heard = []
    while len(heard) < count:
        heard += crew.hear()
    return heard


def test_processes_are_sent_messages_and_heard(crew):
    one = crew.start(work.echo, "one")
    two = crew.start(work.echo, "two")
    assert dict(hear(crew, 2)) == {one: "one", two: "two"}
    assert one.send(1)
    assert two.send(2)
    assert dict(hear(crew, 2)) == {one: ("one", 1), two: ("two", 2)}


def test_a_process_that_leaves_is_heard_to_the_end(crew):
    worker = crew.start(work.leave)
    assert hear(crew, 2) == [
        (worker, "a last word"),
        (worker, Lost("ended with exit code 3")),
    ]
    assert not worker.send("more")


def test_hearing_ends_after_its_time_where_nothing_is_sent(crew):
    assert list(crew.hear(timeout=0)) == []
    worker = crew.start(work.poll_twice)
    assert hear(crew, 1) == [(worker, "ready")]
    assert list(crew.hear(timeout=0.01)) == []
    assert worker.send("now")
    assert hear(crew, 1) == [(worker, (False, "now", False))]


def test_a_crew_can_be_used_again_after_its_end(crew):
    for word in ("one", "two"):
        worker = crew.start(work.echo, word)
        assert hear(crew, 1) == [(worker, word)]
        crew.end(at_once=True)
        assert not worker.send("more")


def test_all_that_a_process_started_ends_with_it():
    crew = LocalCrew()
    crew.start(work.wait_with_child)
    ((_, pids),) = hear(crew, 1)
    assert all(map(alive, pids))
    crew.end()
    deadline = time.monotonic() + 300
    while any(map(alive, pids)):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_mapped_arrays_travel_by_the_name_of_their_file(crew, tmp_path):
    values = np.arange(2_000_000, dtype=np.float64).reshape(2, -1)
    np.save(tmp_path / "a.npy", values)
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    crew.start(work.total, mapped)
    crew.start(work.total, mapped[:, ::1000])
    # Both say what they have, and both end.
    kinds = dict(said for _, said in hear(crew, 4) if not isinstance(said, Lost))
    assert kinds == {"memmap": values.sum(), "ndarray": values[:, ::1000].sum()}


@pytest.mark.parametrize("workers", [1, 2])
def test_each_keeps_the_order_of_things(workers):
    assert list(each(work.double, range(70), workers=workers)) == [
        2 * value for value in range(70)
    ]


def test_each_spreads_its_work_over_processes_with_their_environment():
    found = each(
        work.process_and_setting,
        range(12),
        workers=2,
        environment={"QUALMS_TEST": "yes"},
    )
    pids, settings = zip(*found, strict=True)
    assert len(set(pids)) == 2
    assert os.getpid() not in pids
    assert set(settings) == {"yes"}
    assert "QUALMS_TEST" not in os.environ


def test_what_a_function_raises_is_raised_here():
    with pytest.raises(ValueError, match="three must not come"):
        list(each(work.fail_at_three, range(6), workers=2))
    with pytest.raises(RuntimeError, match="OddError: one and"):
        list(each(work.fail_oddly, range(6), workers=2))


def test_a_killed_process_is_told():
    with pytest.raises(LostProcessError, match="was killed by SIGKILL, perhaps for"):
        list(each(work.fall, range(6), workers=2))
    with pytest.raises(LostProcessError, match=r"by SIGILL, .* precision=float32"):
        list(each(work.stumble, range(2), workers=2))


def test_a_workforce_serves_one_call_after_the_other_and_ends():
    with Workforce(2) as workforce:
        pids = {pid for pid, _ in workforce.each(work.process_and_setting, range(12))}
        assert list(workforce.each(work.double, range(70))) == [
            2 * v for v in range(70)
        ]
        # The first of the things in order, although another failed before it.
        for _ in range(2):
            with pytest.raises(ValueError, match="2 must not come"):
                list(workforce.each(work.fail_late_at_two, range(40)))
        again = {pid for pid, _ in workforce.each(work.process_and_setting, range(12))}
        assert again == pids
        assert len(pids) == 2
        early = workforce.each(work.nap, range(100))
        next(early)
        early.close()  # what is under way is given up
        assert not any(map(alive, pids))
        assert list(workforce.each(work.double, range(3))) == [0, 2, 4]
        pids = {pid for pid, _ in workforce.each(work.process_and_setting, range(12))}
    assert not any(map(alive, pids))


def test_a_workforce_that_lost_a_process_or_was_stopped_takes_no_more_work():
    with Workforce(2) as workforce:
        with pytest.raises(LostProcessError, match="was killed by SIGKILL"):
            list(workforce.each(work.fall, range(6)))
        with pytest.raises(LostProcessError, match="was killed by SIGKILL"):
            list(workforce.each(work.double, range(6)))
    message = []
    with Workforce(2) as workforce:

        def wait_for_it():
            try:
                message.extend(workforce.each(work.nap, range(100_000)))
            except LostProcessError as error:
                message.append(str(error))

        thread = Thread(target=wait_for_it)
        thread.start()
        time.sleep(0.5)
        workforce.stop()
        thread.join(20)
        assert message == ["a process was told to stop"]


def test_a_workforce_starts_processes_when_there_has_been_enough_work(monkeypatch):
    started = []
    monkeypatch.setattr(
        LocalCrew, "start", lambda *_args, **_options: started.append(1) or object()
    )
    workforce = Workforce(3, patience=10)
    assert not workforce.takes(4, workers=5)
    assert not workforce.takes(5, workers=5)
    assert started == []
    assert workforce.takes(1, workers=2)
    assert len(started) == 2
    assert workforce.takes(1, workers=5)
    assert len(started) == 3


@pytest.mark.parametrize("reason", [AssertionError, OSError, RuntimeError])
def test_a_workforce_does_without_where_no_process_can_start(monkeypatch, reason):
    def refuse(*_args, **_options):
        raise reason("daemonic processes are not allowed to have children")

    monkeypatch.setattr(LocalCrew, "start", refuse)
    with Workforce(2) as workforce:
        assert not workforce.takes(1, workers=2)
        assert list(workforce.each(work.double, range(3))) == [0, 2, 4]


def test_large_shares_and_large_results_do_not_wait_for_each_other():
    # Larger than what a pipe holds, in both directions at once.
    items = [bytes([number]) * 1_000_000 for number in range(8)]
    assert list(each(work.as_it_is, items, workers=2)) == items
