"""A benchmark of six short runs."""

from qualms.spec import Part
from qualms.study import Benchmark, Preset, TableRow, Variant

SIZES = {"train": 24, "val": 8, "test": 12}


def tiny_grid() -> Benchmark:
    """Version 1: one small network, six seeds, on simulated cells."""
    variant = Variant(
        name="cells",
        label="Cells",
        dataset=Part(name="cells", options={"sizes": SIZES}),
        simulated=True,
    )
    demo = Preset(
        name="demo",
        variants=(variant,),
        rows=("map",),
        network=Part(name="resnet_small", options={"width": 2}),
        training={"epochs": 6, "batch": 8},
        seeds=tuple(range(6)),
        pools=tuple((seed,) for seed in range(6)),
    )
    return Benchmark(
        name="tiny_grid",
        version=1,
        title="A tiny grid",
        paper="",
        task="regression",
        rows=(TableRow(name="map", label="MAP", method=Part(name="map")),),
        presets={"demo": demo},
    )
