"""Completion in the shell: names of parts, which are quick to find."""

from collections.abc import Iterable, Iterator

from qualms.documentation import documentation
from qualms.shelf import find, names

SHELVES = (
    "methods",
    "datasets",
    "benchmarks",
    "variants",
    "configs",
    "networks",
    "scores",
    "readers",
    "corruptions",
)
"""Names of shelves that can be listed."""


def complete_benchmarks(incomplete: str) -> list[str]:
    """Complete benchmarks, and after a slash the variants of their presets."""
    name, slash, variants = incomplete.partition("/")
    if not slash:
        return [each for each in names("benchmarks") if each.startswith(name)]
    if name not in names("benchmarks"):
        return []
    presets = find("benchmarks", name)().presets.values()
    every = (v.name for preset in presets for v in preset.every_variant)
    return [f"{name}/{names}" for names in _completed(variants, every)]


def complete_methods(incomplete: str) -> list[str]:
    """Complete methods, separated by commas."""
    return list(_completed(incomplete, (*names("methods"), "deep_ensemble")))


def complete_posthoc(incomplete: str) -> list[str]:
    """Complete the argument of `qualms predict`: "plain", or one method."""
    return [n for n in ("plain", *names("methods")) if n.startswith(incomplete)]


def complete_datasets(incomplete: str) -> list[str]:
    """Complete datasets."""
    return [name for name in names("datasets") if name.startswith(incomplete)]


def complete_pages(incomplete: str) -> list[str]:
    """Complete pages of the documentation."""
    return [name for name in documentation() if name.startswith(incomplete)]


def complete_readers(incomplete: str) -> list[str]:
    """Complete layouts of other programs."""
    return [name for name in names("readers") if name.startswith(incomplete)]


def complete_scores(incomplete: str) -> list[str]:
    """Complete scores, separated by commas."""
    from qualms import scores

    # The other public names are curves and records.
    public = ((name, vars(scores)[name]) for name in scores.__all__)
    builtin = [name for name, function in public if hasattr(function, "__score__")]
    return list(_completed(incomplete, [*builtin, *names("scores")]))


def complete_shelves(incomplete: str) -> list[str]:
    """Complete the argument of `qualms list`."""
    return [shelf for shelf in SHELVES if shelf.startswith(incomplete)]


def complete_filters(incomplete: str) -> list[str]:
    """Complete filters of `qualms runs`: names, and the values of a few of them."""
    name, sign, last = incomplete.partition("=")
    if not sign:
        names_known = ("benchmark", "dataset", "method", "network", "seed", "status")
        return [f"{each}=" for each in names_known if each.startswith(name)]
    from qualms.catalogue import STATUSES

    shelves = {f"{shelf[:-1]}": shelf for shelf in SHELVES}
    known = STATUSES if name == "status" else ()
    values = names(shelves[name]) if name in shelves else known
    return [f"{name}={each}" for each in _completed(last, values)]


def complete_kinds(incomplete: str) -> list[str]:
    """Complete kinds of what `qualms gc` deletes, separated by commas."""
    from qualms.catalogue import KINDS

    return list(_completed(incomplete, KINDS))


def _completed(incomplete: str, choices: Iterable[str]) -> Iterator[str]:
    """Yield `incomplete` with its last name completed, and no name twice."""
    before, comma, last = incomplete.rpartition(",")
    earlier = before.split(",")
    for name in dict.fromkeys(choices):
        if name.startswith(last) and name not in earlier:
            yield f"{before}{comma}{name}"
