"""Several predictions files at once: what `qualms score A B C` does."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from qualms.evaluate._compare import Comparison, compare
from qualms.evaluate._entry import Settings
from qualms.evaluate._results import Results
from qualms.evaluate._score import score


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """Results of one or more files, and how they compare."""

    results: tuple[Results, ...]
    comparison: Comparison | None = None


def score_files(
    files: Sequence[Path],
    *,
    val: Sequence[Path] | None = None,
    settings: Settings | None = None,
    task: str | None = None,
    logits: bool = False,
) -> Scored:
    """Score each file; `val` is one validation file for all, or one for each."""
    vals = _one_each(val or (), len(files))
    names = _names(files)
    results = tuple(
        score(file, val=known, settings=settings, task=task, logits=logits, name=name)
        for file, known, name in zip(files, vals, names, strict=True)
    )
    comparison = compare(results) if len(results) > 1 else None
    return Scored(results=results, comparison=comparison)


def _one_each(val: Sequence[Path], files: int) -> Sequence[Path | None]:
    if len(val) == 0:
        return [None] * files
    if len(val) == 1:
        return [val[0]] * files
    if len(val) != files:
        raise ValueError(
            f"--val must be given once, or once per file: {files} files, got {len(val)}"
        )
    return val


def _names(files: Sequence[Path]) -> list[str]:
    """Stems where they differ, else as much of the path as tells the files apart."""
    for depth in range(1, 12):
        names = ["/".join(file.with_suffix("").parts[-depth:]) for file in files]
        if len(set(names)) == len(names):
            return names
    return [f"{file} ({i + 1})" for i, file in enumerate(files)]
