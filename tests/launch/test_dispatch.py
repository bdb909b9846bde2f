"""Which run begins when, and what becomes of one whose process is lost."""

import json
import random
import sys
import time
from collections import deque
from dataclasses import replace

import pytest
from bench.dispatch import SimulatedCrew, dispatched, simulated_jobs

from launch.fakes import spec, working_on
from qualms.launch._dispatch import run_jobs
from qualms.launch._worker import Idle, Job, RunEnd, WorkerSetup
from qualms.processes import Lost, Message
from qualms.runs import RunLosses, count_loss, read_losses, run_folder, why_failed

KILL = Lost("was killed by SIGKILL")
NODE = Lost("was lost with its machine", with_node=True)


class ScriptedWorker:
    def __init__(self, crew):
        self.crew, self.job, self.messages = crew, None, deque([Idle()])

    def send(self, job):
        if self.messages and isinstance(self.messages[0], Lost):
            return False
        self.crew.begun.append((tuple(s.seed for s in job.specs), self.crew.under_way))
        self.job = job
        self.messages += self.crew.messages_for(job)
        return True


class ScriptedCrew:
    """Workers that are heard in turn; each attempt at a run ends as its script says."""

    def __init__(self, starts=(), **scripts):
        self.scripts = {int(name[1:]): deque(ends) for name, ends in scripts.items()}
        self.starts = deque(starts)
        self.workers, self.begun = [], []

    @property
    def under_way(self):
        """How many workers have a job."""
        return sum(worker.job is not None for worker in self.workers)

    def start(self, *_, **__):
        worker = ScriptedWorker(self)
        if self.starts and (loss := self.starts.popleft()):
            worker.messages = deque([loss])
        self.workers.append(worker)
        return worker

    def messages_for(self, job):
        for run in job.specs:
            script = self.scripts.get(run.seed)
            end = script.popleft() if script else "done"
            if isinstance(end, Lost):
                yield end
                return
            yield RunEnd(run, end, 1.0, "the loss is not finite" * (end == "failed"))
        yield Idle()

    def hear(self):
        worker = next(worker for worker in self.workers if worker.messages)
        self.workers.remove(worker)
        message = worker.messages.popleft()
        if isinstance(message, (Idle, Lost)):
            worker.job = None
        if not isinstance(message, Lost):
            self.workers.append(worker)
        yield worker, message

    def end(self):
        self.workers.clear()


def jobs_of(out, *groups):
    return [
        Job(runs, tuple(run_folder(out, run) for run in runs), {})
        for runs in (tuple(spec(seed) for seed in group) for group in groups)
    ]


def run(jobs, crew, *, workers=1, **options):
    """The ends and the messages of runs, by seed, in order."""
    setups = [WorkerSetup(device="cpu", threads=1, command=[])] * workers
    events = list(run_jobs(jobs, setups, make_crew=lambda: crew, **options))
    ends = [event for event in events if isinstance(event, RunEnd)]
    assert len({end.spec.hash for end in ends}) == len(ends)
    messages = [(e.spec.seed, e.text) for e in events if isinstance(e, Message)]
    return {end.spec.seed: end for end in ends}, messages


def test_a_lost_run_is_the_next_to_begin(tmp_path):
    crew = ScriptedCrew(_0=[KILL])
    jobs = jobs_of(tmp_path, [0], [1], [2])
    ends, messages = run(jobs, crew)
    assert [seeds for seeds, _ in crew.begun] == [(0,), (0,), (1,), (2,)]
    assert {end.status for end in ends.values()} == {"done"}
    assert messages == [(0, "its process was killed by SIGKILL; it is tried again")]


def test_the_runs_of_a_lost_process_that_have_ended_are_not_made_again(tmp_path):
    crew = ScriptedCrew(_1=[KILL])
    ends, messages = run(jobs_of(tmp_path, [0, 1, 2]), crew)
    assert [seeds for seeds, _ in crew.begun] == [(0, 1, 2), (1, 2)]
    assert [seed for seed, _ in messages] == [1, 2]
    assert len(ends) == 3


def test_a_run_that_kills_twice_is_tried_alone_and_then_fails(tmp_path):
    crew = ScriptedCrew(_1=[KILL] * 9)
    jobs = jobs_of(tmp_path, [0, 1, 2], *([seed] for seed in range(3, 9)))
    ends, messages = run(jobs, crew, workers=3)
    assert [seed for seed, end in ends.items() if end.status == "failed"] == [1]
    assert ends[1].error == (
        "its process was killed by SIGKILL, as 2 before it were lost, now with nothing"
        " else under way; its log says what it did last"
    )
    # Those that were trained with it are tried apart from it.
    assert crew.begun[-2:] == [((1,), 0), ((2,), 0)]
    last = "its process was killed by SIGKILL; it is tried again when nothing else is"
    assert (1, f"{last} under way") in messages
    assert why_failed(run_folder(tmp_path, spec(1))) == ends[1].error


def test_a_run_that_was_only_in_bad_company_is_done_alone(tmp_path):
    crew = ScriptedCrew(_0=[KILL, KILL])
    ends, _ = run(jobs_of(tmp_path, [0], [1], [2]), crew, workers=2)
    assert {end.status for end in ends.values()} == {"done"}
    assert crew.begun[-1] == ((0,), 0)


def test_a_lost_machine_is_not_the_fault_of_the_run(tmp_path):
    crew = ScriptedCrew(_0=[NODE] * 3)
    ends, _ = run(jobs_of(tmp_path, [0], [1]), crew)
    assert ends[0].status == "done"
    # It was never tried alone: it came before the others each time.
    assert [seeds for seeds, _ in crew.begun] == [(0,)] * 4 + [(1,)]
    crew = ScriptedCrew(_3=[KILL, NODE, KILL, NODE])
    ends, _ = run(jobs_of(tmp_path, [3]), crew, retries=4)
    assert ends[3].status == "done"


@pytest.mark.parametrize(("retries", "others"), [(0, ""), (1, ", and 1 before it was")])
def test_retries_are_counted(tmp_path, retries, others):
    crew = ScriptedCrew(_0=[NODE] * 9)
    ends, _ = run(jobs_of(tmp_path, [0], [1]), crew, retries=retries)
    assert ends[0].error.startswith(f"its process was lost with its machine{others}")
    assert ends[0].error.endswith("; run again to go on from the last checkpoint")
    assert len(crew.begun) == retries + 2
    assert ends[1].status == "done"


def test_losses_are_counted_in_the_folder_of_the_run(tmp_path):
    folder = run_folder(tmp_path, spec(0))
    before = time.time() - 1
    assert read_losses(folder, since=before) == RunLosses()
    count_loss(folder, RunLosses(2, 2))  # by another launcher
    crew = ScriptedCrew(_0=[KILL])
    ends, _ = run(jobs_of(tmp_path, [0], [1]), crew)
    assert [seeds for seeds, _ in crew.begun] == [(1,), (0,)]
    assert ends[0].error.startswith("its process was killed by SIGKILL, as 2 before")
    assert read_losses(folder, since=before) == RunLosses(3, 3, ends[0].error)
    # Who launches it after it was given up asks for another attempt.
    assert read_losses(folder, since=time.time() + 1) == RunLosses()
    ends, _ = run(jobs_of(tmp_path, [0]), ScriptedCrew(_0=[KILL]))
    assert ends[0].status == "done"


def test_a_run_that_another_launcher_gave_up_meanwhile_is_not_tried(tmp_path):
    folder = run_folder(tmp_path, spec(1))

    class Slow(ScriptedCrew):
        def messages_for(self, job):
            if job.specs[0].seed == 0:
                count_loss(folder, RunLosses(3, 3, "its process was lost thrice"))
            return super().messages_for(job)

    crew = Slow()
    child = replace(spec(2), start=spec(1).hash)
    jobs = jobs_of(tmp_path, [0], [1])
    jobs.append(Job((child,), (run_folder(tmp_path, child),), {}))
    ends, _ = run(jobs, crew)
    assert ends[1].error == "its process was lost thrice"
    assert "which failed: its process was lost thrice" in ends[2].error
    assert [seeds for seeds, _ in crew.begun] == [(0,)]


def test_a_failure_is_not_recorded_over_another_launcher_that_goes_on(tmp_path):
    with working_on(tmp_path, spec(0)):
        run(jobs_of(tmp_path, [0]), ScriptedCrew(_0=[KILL]), retries=0)
    assert why_failed(run_folder(tmp_path, spec(0))) == ""


def test_a_folder_that_cannot_be_written_makes_nothing_endless(tmp_path):
    (tmp_path / "toy").touch()
    crew = ScriptedCrew(_0=[NODE] * 9)
    ends, _ = run(jobs_of(tmp_path, [0], [1]), crew)
    assert ends[0].status == "failed"
    assert len(crew.begun) == 5


def test_a_worker_that_cannot_start_is_started_again_if_another_could(tmp_path):
    crew = ScriptedCrew(starts=[None, KILL, KILL], _0=[KILL], _1=[KILL])
    ends, _ = run(jobs_of(tmp_path, [0], [1]), crew)
    assert {end.status for end in ends.values()} == {"done"}
    crew = ScriptedCrew(starts=[None, KILL, KILL, KILL], _2=[KILL])
    with pytest.raises(ChildProcessError, match="no worker could be started: the proc"):
        run(jobs_of(tmp_path, [2], [3]), crew)
    crew = ScriptedCrew(starts=[NODE] * 9)
    assert run(jobs_of(tmp_path, [4]), crew)[0][4].status == "done"


def test_an_idle_worker_that_is_lost_is_replaced(tmp_path):
    class Brittle(ScriptedCrew):
        """Workers that end after each job."""

        def messages_for(self, job):
            yield from super().messages_for(job)
            yield Lost("ended with exit code 0")

    ends, messages = run(jobs_of(tmp_path, *([i] for i in range(5))), Brittle())
    assert len(ends) == 5
    assert messages == []


@pytest.mark.parametrize(("runs", "together"), [(1, 1), (120, 1), (121, 3)])
def test_every_run_of_a_large_crew_ends_once(tmp_path, runs, together):
    jobs = simulated_jobs(runs, tmp_path, together=together)
    crew = dispatched(jobs, 17, seed=runs)
    assert sum(crew.statuses.values()) == runs
    assert 1 <= crew.most <= 17


def test_giving_out_jobs_takes_no_step_that_grows_with_workers_or_runs(tmp_path):
    """Calls of functions per run, counted and not timed."""

    def calls(runs, workers):
        jobs, count = simulated_jobs(runs, tmp_path / f"{runs}-{workers}"), [0]
        setups = [WorkerSetup(device="cpu", threads=1, command=[])] * workers

        def counting(frame, event, argument):
            count[0] += event in ("call", "c_call")

        crew = SimulatedCrew(random.Random(0))
        events = run_jobs(jobs, setups, make_crew=lambda: crew)
        sys.setprofile(counting)
        try:
            deque(events, maxlen=0)
        finally:
            sys.setprofile(None)
        return count[0] / runs

    few = calls(200, 5)
    assert calls(200, 100) < 1.5 * few
    assert calls(800, 5) < 1.5 * few


def test_losses_survive_damage(tmp_path):
    folder = run_folder(tmp_path, spec(0))
    folder.mkdir(parents=True)
    for text in ("", "[]", json.dumps({"lost": 1})):
        (folder / "losses.json").write_text(text)
        assert read_losses(folder, since=0.0) == RunLosses(1 if "lost" in text else 0)
