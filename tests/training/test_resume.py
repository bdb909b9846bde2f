"""A run that is killed at random moments ends in the bits of an undisturbed run."""

import subprocess
import sys
from pathlib import Path

import torch

import qualms

# One process loads torch; its children train and are killed. An unhandled signal ends
# them as kill -9 does, after an amount of CPU time, so other processes on the machine
# change nothing.
KILLER = """
import os, random, signal, sys
from pathlib import Path
import pytest, torch
from qualms.training import run_alone
from training import made

out, whole = Path(sys.argv[1]), Path(sys.argv[2])
made.put_on_shelf(pytest.MonkeyPatch())
spec = made.spec(method="dropout", epochs=12, augment=("hflip", "noise"), validate=3,
                 schedule="linear", warmup_epochs=1, select_by="val_loss")
torch.optim.Adam([torch.zeros(1, requires_grad=True)])  # loads what comes with it

def ended(folder, seconds=0.0):
    # Return the exit status of a child with a limit of CPU time, and its CPU time.
    pid = os.fork()
    if pid == 0:
        signal.setitimer(signal.ITIMER_PROF, seconds)  # 0 is for ever
        torch.set_num_threads(1)
        run_alone(spec, made.dataset(train=400), folder, device="cpu")
        os._exit(0)
    _, status, used = os.wait4(pid, 0)
    return os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime

_, whole_seconds = ended(whole)
moments = random.Random(4)
for _ in range(6):
    code, _ = ended(out, whole_seconds * moments.uniform(0.02, 0.12))
    print(-code == signal.SIGPROF, flush=True)
print(ended(out)[0] == 0)
"""


def bits(folder):
    state = torch.load(folder / "checkpoint.pt", weights_only=True)["network"]
    found = {name: part.numpy().tobytes() for name, part in state.items()}
    for split in ("val", "test"):
        found[split] = (folder / f"predictions/{split}.safetensors").read_bytes()
    return found


def test_a_run_killed_at_random_moments_ends_in_the_same_bits(tmp_path):
    tests, source = Path(__file__).parents[1], Path(qualms.__file__).parents[1]
    out = subprocess.run(
        [sys.executable, "-c", KILLER, tmp_path / "killed", tmp_path / "whole"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tests,
        env={"OMP_NUM_THREADS": "1", "PATH": "", "PYTHONPATH": f"{tests}:{source}"},
    )
    *killed, finished = out.stdout.split()
    assert killed.count("True") >= 4
    assert finished == "True"
    mine, theirs = bits(tmp_path / "killed"), bits(tmp_path / "whole")
    assert mine == theirs
