"""What the shell offers when Tab is pressed: names of parts, never slow to find."""

from collections.abc import Iterable, Iterator

from qualms.shelf import find, names

SHELVES = ("methods", "datasets", "benchmarks", "configs", "networks", "scores")
"""What can be listed."""


def complete_benchmarks(incomplete: str) -> list[str]:
    """Benchmarks, and after a slash the variants of their presets."""
    name, slash, variants = incomplete.partition("/")
    if not slash:
        return [each for each in names("benchmarks") if each.startswith(name)]
    if name not in names("benchmarks"):
        return []
    presets = find("benchmarks", name)().presets.values()
    known = (v.name for preset in presets for v in (*preset.variants, *preset.further))
    return [f"{name}/{found}" for found in _listed(variants, known)]


def complete_methods(incomplete: str) -> list[str]:
    """Methods, several of them with commas between."""
    return list(_listed(incomplete, (*names("methods"), "deep_ensemble")))


def complete_posthoc(incomplete: str) -> list[str]:
    """What `qualms predict` takes: the model as it is, or one method."""
    return [n for n in ("plain", *names("methods")) if n.startswith(incomplete)]


def complete_datasets(incomplete: str) -> list[str]:
    """Datasets."""
    return [name for name in names("datasets") if name.startswith(incomplete)]


def complete_scores(incomplete: str) -> list[str]:
    """Scores, several of them with commas between."""
    from qualms import scores

    # The others are curves, records and plans of resampling.
    found = ((name, vars(scores)[name]) for name in scores.__all__)
    known = [name for name, function in found if hasattr(function, "__score__")]
    return list(_listed(incomplete, [*known, *names("scores")]))


def complete_shelves(incomplete: str) -> list[str]:
    """What `qualms list` takes."""
    return [shelf for shelf in SHELVES if shelf.startswith(incomplete)]


def _listed(incomplete: str, known: Iterable[str]) -> Iterator[str]:
    """`incomplete` with its last name completed; those before it are not repeated."""
    before, comma, last = incomplete.rpartition(",")
    taken = before.split(",")
    for name in dict.fromkeys(known):
        if name.startswith(last) and name not in taken:
            yield f"{before}{comma}{name}"
