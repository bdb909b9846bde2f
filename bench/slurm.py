"""Run the scripts of docs/scale.md on a real Slurm, on one machine.

    apt-get install slurm-wlm munge
    python -m bench.slurm          as root; about ten minutes; Ray needs the extra scale

A controller and a node are started on the loopback interface, with files of their own.
The scripts are taken from docs/scale.md: the array, with three tasks and a tiny grid,
one task of which is requeued in mid-epoch; and the Ray cluster inside an allocation, of
one node. The predictions must be those of one launcher.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from bench.clusters import (
    BENCHMARK,
    GRID,
    LONGEST,
    compare,
    finish,
    launch,
    predictions_in,
    wait_for_epoch,
)

DOCS = Path(__file__).parents[1] / "docs" / "scale.md"
TASKS = 3
CONFIGURATION = """
ClusterName=alone
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort=16817
SlurmdPort=16818
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=1,sched_interval=5
NodeName={host} NodeAddr=127.0.0.1 CPUs={tasks} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", type=Path, help="Folder for all runs.")
    parser.add_argument("scripts", nargs="*", default=["array", "ray"])
    options = parser.parse_args()
    missing = [name for name in ("slurmctld", "munged") if not shutil.which(name)]
    if missing:
        sys.exit(
            f"not installed: {', '.join(missing)}; apt-get install slurm-wlm munge"
        )
    with tempfile.TemporaryDirectory() as temporary:
        root = (options.keep or Path(temporary)).resolve()
        for name in ("munge", "state", "spool"):
            (root / name).mkdir(parents=True, exist_ok=True)
        root.chmod(0o755)
        finish(launch(root / "alone", root / "data", workers=2))
        print("one launcher is done", flush=True)
        alone = predictions_in(root / "alone")
        with slurm(root):
            if "array" in options.scripts:
                restarts = run_array(root)
                print(f"an array of {TASKS} tasks, one of them started {restarts + 1}")
                print(f"times: {said(alone, root / 'runs')}", flush=True)
            if "ray" in options.scripts:
                run_cluster(root)
                print(f"Ray in an allocation: {said(alone, root / 'ray-runs')}")


def said(alone: Mapping[str, Path], out: Path) -> str:
    """Compare the predictions in `out` with those of one launcher."""
    return f"{compare(alone, predictions_in(out))} arrays and their files are equal"


def documented_script(name: str, changes: Mapping[str, str]) -> str:
    """Return a script of docs/scale.md, changed for one machine and a tiny grid."""
    text = DOCS.read_text("utf-8").partition(f"`{name}`")[2]
    script = text.partition("```bash\n")[2].partition("```")[0]
    grid = " ".join(f"'{word}'" for word in GRID)
    request = {"run retina --preset paper": f"run {BENCHMARK} {grid} --device cpu"}
    for before, after in {**request, **changes}.items():
        if script.count(before) != 1:
            sys.exit(f"{name} of {DOCS} must have {before!r} once:\n{script}")
        script = script.replace(before, after)
    return script


ARRAY = {
    "--array=0-7": f"--array=0-{TASKS - 1}",
    "--cpus-per-task=8": "--cpus-per-task=1",
    "#SBATCH --gpus-per-task=1\n": "",
    "--no-judge": "--no-judge --workers 1",
}
CLUSTER = {
    "--nodes=4": "--nodes=1",
    "--cpus-per-task=16": f"--cpus-per-task={TASKS}",
    "#SBATCH --gpus-per-task=4\n": "",
    '--out "$SHARED/runs"': '--no-judge --out "$SHARED/ray-runs"',
    "--cpus 4 --gpus 1 --workers $((4 * SLURM_JOB_NUM_NODES))": "--workers 2",
}


def submit(root: Path, name: str, changes: Mapping[str, str], output: str) -> str:
    """Submit a script of docs/scale.md; return the number of its job."""
    (root / name).write_text(documented_script(name, changes))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "SHARED": str(root), "PATH": path}
    command = ["sbatch", "--parsable", f"--output={root / output}", str(root / name)]
    return call(command, environment).strip()


def run_cluster(root: Path) -> None:
    """Submit the script that starts Ray in its allocation, and wait for its end."""
    job = submit(root, "cluster.sh", CLUSTER, "cluster.log")
    deadline, state = time.monotonic() + LONGEST, ""
    while state not in ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT"):
        if time.monotonic() > deadline:
            sys.exit(f"the job does not end:\n{(root / 'cluster.log').read_text()}")
        time.sleep(2)
        shown = call(["scontrol", "show", "job", job, "--oneliner"])
        words = dict(word.partition("=")[::2] for word in shown.split())
        state = words["JobState"]
    log = (root / "cluster.log").read_text()
    if state != "COMPLETED":
        sys.exit(f"the job ended as {state}:\n{log}")
    print(log.strip().splitlines()[-1], flush=True)


def run_array(root: Path) -> int:
    """Submit the array, requeue its first task, and wait; return its restarts."""
    job = submit(root, "array.sh", ARRAY, "task-%a.log")
    wait_for_epoch(root / "runs", 2)
    call(["scontrol", "requeue", f"{job}_0"])
    print(f"requeued task 0 of job {job}", flush=True)
    deadline, restarts = time.monotonic() + LONGEST, 0
    while shown := call(
        ["scontrol", "show", "job", f"{job}_0", "--oneliner"], quiet=True
    ):
        words = dict(word.partition("=")[::2] for word in shown.split())
        restarts = max(restarts, int(words.get("Restarts", 0)))
        if words.get("JobState") in ("COMPLETED", "FAILED", "CANCELLED"):
            break
        # A requeued task waits for two minutes before it begins again.
        call(["scontrol", "update", f"JobId={job}_0", "StartTime=now"], quiet=True)
        if time.monotonic() > deadline:
            sys.exit(f"the array does not end:\n{call(['squeue'])}")
        time.sleep(2)
    while call(["squeue", "--noheader"]).strip():
        if time.monotonic() > deadline:
            sys.exit(f"the array does not end:\n{call(['squeue'])}")
        time.sleep(2)
    if not restarts:
        sys.exit("the first task must have been started again")
    return restarts


@contextmanager
def slurm(root: Path) -> Iterator[None]:
    """Start munge, a controller and a node; end them by their process ids."""
    host = os.uname().nodename.partition(".")[0]
    user = Path(root).owner()
    words = {"host": host, "folder": root, "user": user, "tasks": TASKS}
    configuration = root / "slurm.conf"
    configuration.write_text(CONFIGURATION.format(**words))
    os.environ["SLURM_CONF"] = str(configuration)
    key = root / "munge" / "key"
    key.touch(mode=0o600)
    key.write_bytes(os.urandom(1024))
    munge = [f"--{name}={root}/munge/{name}" for name in ("socket", "pid-file")]
    munge += [f"--{name}={root}/munge/{name}" for name in ("log-file", "seed-file")]
    with ExitStack() as stack:
        stack.callback(end, root / "munge" / "pid-file")
        call(["munged", "--force", f"--key-file={key}", *munge])
        stack.callback(end, root / "slurmctld.pid")
        call(["slurmctld", "-f", str(configuration)])
        stack.callback(end, root / "slurmd.pid")
        call(["slurmd", "-f", str(configuration), "-N", host])
        deadline = time.monotonic() + 120
        while "idle" not in call(["sinfo", "--noheader"], quiet=True):
            if time.monotonic() > deadline:
                sys.exit(f"the node of Slurm is not idle:\n{call(['sinfo', '-R'])}")
            time.sleep(1)
        print("Slurm has started", flush=True)
        yield


def end(pid_file: Path) -> None:
    with suppress(FileNotFoundError, ValueError, ProcessLookupError):
        os.kill(int(pid_file.read_text()), signal.SIGTERM)


def call(
    command: list[str],
    environment: dict[str, str] | None = None,
    *,
    quiet: bool = False,
) -> str:
    """Return what a command prints; '' if it fails and `quiet` allows that."""
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode and not quiet:
        sys.exit(f"{' '.join(command)} failed: {done.stderr or done.stdout}")
    return "" if done.returncode else done.stdout


if __name__ == "__main__":
    main()
