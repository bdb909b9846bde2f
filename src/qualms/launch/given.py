"""Benchmarks about data that a user brings: those whose function takes `given`."""

import inspect
from collections.abc import Callable

from qualms.benchmarks import Benchmark, GivenData
from qualms.shelf import find, names

Declared = Callable[..., Benchmark]


def takes_data(function: Declared) -> bool:
    """Whether a benchmark is about data that a user brings."""
    return "given" in inspect.signature(function).parameters


def check_data(function: Declared, *, given: bool) -> None:
    """Raise if a benchmark takes data and none are given, or the reverse."""
    takes, name = takes_data(function), function.__name__
    if takes and not given:
        raise ValueError(
            f"{name} is about your own data: name a folder, a table in CSV or a TOML"
            " file with --from (docs/own_data.md)"
        )
    if given and not takes:
        shelf = names("benchmarks")
        own = [other for other in shelf if takes_data(find("benchmarks", other))]
        raise ValueError(
            f"{name} has data of its own: leave out --from, or run {' or '.join(own)}"
        )


def declared_benchmark(function: Declared, given: GivenData | None) -> Benchmark:
    """What `function` declares, of the data that are given where it takes them."""
    check_data(function, given=given is not None)
    return function() if given is None else function(given=given)
