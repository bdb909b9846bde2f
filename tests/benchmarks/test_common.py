"""Every benchmark of the shelf names what exists, and each run once."""

import pytest

from qualms.shelf import find, names

BENCHMARKS = [find("benchmarks", name)() for name in names("benchmarks")]
each_benchmark = pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda b: b.name)
of_a_paper = [benchmark for benchmark in BENCHMARKS if benchmark.paper]


@pytest.mark.parametrize("benchmark", of_a_paper, ids=lambda b: b.name)
def test_every_benchmark_of_a_paper_has_the_three_presets(benchmark):
    assert {"demo", "small", "paper"} <= benchmark.presets.keys()


@each_benchmark
def test_rows_and_variants_have_names_of_their_own(benchmark):
    assert len({row.name for row in benchmark.rows}) == len(benchmark.rows)
    for preset in benchmark.presets.values():
        variants = [variant.name for variant in preset.every_variant]
        assert len(set(variants)) == len(variants)
        assert set(preset.rows) <= {row.name for row in benchmark.rows}


@each_benchmark
def test_parts_of_the_demo_exist(benchmark):
    preset = benchmark.presets.get("demo") or next(iter(benchmark.presets.values()))
    for run in benchmark.plan(preset.name).runs:
        assert run.method.name in names("methods")
        assert {part.name for part in run.parts.values()} <= set(names("datasets"))
