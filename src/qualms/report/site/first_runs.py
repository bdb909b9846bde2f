"""The runs of a benchmark that pages open: the first seed of each kind."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from qualms.report.site.contents import ShownBenchmark
from qualms.spec import RunSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstRun:
    """A run that stands for all seeds of its kind on one variant."""

    label: str
    """Label of its row, and the name of the run's folder."""
    group: str
    """The benchmark with the variant."""
    spec: RunSpec
    folder: Path
    """The folder of its predictions."""


def first_runs(shown: ShownBenchmark) -> Iterator[FirstRun]:
    """Yield the first run of each kind on each variant of a benchmark."""
    report = shown.report
    variants = {variant.name: variant.label for variant in report.variants}
    rows = {row.method: row.label for row in reversed(report.rows) if row.pool == 1}
    first: dict[tuple[str, str], tuple[RunSpec, Path]] = {}
    for run, folder in report.predictions():
        spec = _spec_of(folder)
        if spec is None:
            continue
        kind = str(run.get("variant", "")), replace(spec, seed=0).to_json()
        if kind not in first or spec.seed < first[kind][0].seed:
            first[kind] = (spec, folder)
    for (variant, _), (spec, folder) in first.items():
        yield FirstRun(
            label=f"{rows.get(spec.method.name, spec.method.name)} ({folder.name})",
            group=", ".join(filter(None, (report.title, variants.get(variant)))),
            spec=spec,
            folder=folder,
        )


def _spec_of(folder: Path) -> RunSpec | None:
    """Return the spec of the run whose predictions are in a folder."""
    try:
        text = (folder.resolve().parent / "spec.json").read_text("utf-8")
        return RunSpec.from_json(text)
    except (OSError, ValueError, KeyError, TypeError):
        return None
