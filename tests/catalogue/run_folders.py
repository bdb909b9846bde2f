"""Folders of runs as training leaves them: done, failed, stopped."""

from qualms import runs
from qualms.spec import Part, RunSpec


def spec_of(method="map", seed=0, rate=0.1, benchmark="small"):
    return RunSpec(
        benchmark=benchmark,
        dataset=Part(name="cells", options={"seed": 1}),
        network=Part(name="resnet_small"),
        method=Part(name=method, options={"rate": rate}),
        seed=seed,
        training={"epochs": 2, "lr": 0.05, "betas": [0.9, 0.99]},
    )


def make_folder(out, status="done", **options):
    """Make the folder of a run, and return it."""
    spec = spec_of(**options)
    folder = runs.run_folder(out, spec)
    runs.describe(folder, spec, {})
    runs.predictions_folder(folder).mkdir()
    (runs.predictions_folder(folder) / "test.csv").write_text("target,mean\n1,2\n")
    runs.checkpoint_paths(folder)[0].write_bytes(bytes(1000))
    if status == "done":
        runs.mark_done(folder, spec, {"seconds": 6.0})
    if status == "failed":
        runs.mark_failed(folder, spec, "the loss is nan in epoch 2")
    return folder
