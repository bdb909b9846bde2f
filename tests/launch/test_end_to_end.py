"""Real training through the launcher: killed or not, one worker or two, same bits."""

from functools import partial

import numpy as np

from launch.fakes import train_until_killed
from qualms.launch import prepare_datasets, run_all
from qualms.launch.engine import Engine
from qualms.predictions import read
from qualms.spec import Part, RunSpec

SIZES = {"train": 24, "val": 8, "test": 8}


def spec(seed, **training):
    return RunSpec(
        benchmark="toy",
        dataset=Part(name="cells", options={"sizes": SIZES}),
        network=Part(name="resnet_small", options={"width": 2}),
        method=Part(name="map"),
        seed=seed,
        training={"epochs": 4, "batch": 8, **training},
    )


class Heard:
    def __init__(self):
        self.epochs = []

    def epoch(self, spec, epoch, *_):
        self.epochs.append((spec.seed, epoch))

    def message(self, spec, text):
        pass


def arrays(outcome, split):
    return read(outcome.folder / "predictions" / f"{split}.safetensors").arrays


def test_a_killed_run_resumes_to_the_same_bits_whatever_the_workers(tmp_path):
    # The one that is killed comes last, so that no other process is needed.
    specs = [spec(1), spec(2, epochs=10**6, lr=-1.0), spec(0)]
    data = tmp_path / "cache"
    prepare_datasets([specs[0].dataset], data, workers=1)

    def launch(out, **options):
        outcomes = run_all(
            specs, out=tmp_path / out, data=data, device="cpu", **options
        )
        return {outcome.spec.seed: outcome for outcome in outcomes}

    whole = launch("whole", workers=2)
    killed = partial(train_until_killed, specs[-1], 2)
    broken = launch("broken", workers=1, work=killed, engine=Engine(retries=0))
    assert [broken[seed].status for seed in range(3)] == ["failed", "done", "failed"]
    assert "SIGKILL" in broken[0].error
    assert "training option 'lr' must be a number" in broken[2].error
    heard = Heard()
    mended = launch("broken", workers=1, callbacks=heard)
    assert [mended[seed].status for seed in range(3)] == ["done", "skipped", "failed"]
    assert [epoch for seed, epoch in heard.epochs if seed == 0] == [3, 4]
    for seed in range(2):
        for split in ("val", "test"):
            ours, theirs = arrays(whole[seed], split), arrays(mended[seed], split)
            assert ours.keys() == theirs.keys()
            for name in ours:
                np.testing.assert_array_equal(ours[name], theirs[name], strict=True)
