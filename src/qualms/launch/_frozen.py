"""Another network for the runs of a plan, and networks that stay as they are.

A frozen network is judged by the rows whose methods train nothing, with the weights
that it starts from.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from qualms.launch._extra_rows import default_method
from qualms.shelf import traits
from qualms.spec import Part
from qualms.study import RunPlan

FROZEN = "frozen"
"""Method that every benchmark of embeddings can judge a frozen network by."""
_TIMM = "timm:"
_WEIGHTS = "weights"
"""Option of networks that says which weights they start from."""


def with_network(plan: RunPlan, name: str, *, frozen: bool) -> RunPlan:
    """Return the plan whose runs have the network `name`.

    A frozen network of timm has its own weights, unless options name others.
    """
    pretrained = frozen and name.startswith(_TIMM)
    network = Part(name=name, options={_WEIGHTS: "pretrained"} if pretrained else {})
    return replace(
        plan,
        preset=replace(plan.preset, network=network, networks={}),
        variants=tuple(replace(each, network=None) for each in plan.variants),
    )


def with_frozen_rows(
    plan: RunPlan, methods: Sequence[str], options: Mapping[str, Any]
) -> RunPlan:
    """Return the plan in which rows that train nothing are judged on every variant.

    Args:
        plan: The plan.
        methods: Methods and rows that are asked for.
        options: Options that the user sets, with the prefix of a part.

    Raises:
        ValueError: If the benchmark is not about embeddings, a method trains, or a
            network has no weights to start from.
    """
    benchmark = plan.benchmark
    if "vectors" not in traits(benchmark.task):
        raise ValueError(
            f"--frozen is for benchmarks of embeddings, such as url, and"
            f" {benchmark.name} is about {benchmark.task}; leave it out"
        )
    rows = [row for row in plan.every_row if not row.trains]
    known = dict.fromkeys([FROZEN, *(row.name for row in rows)])
    for name in methods:
        if name not in known and _row_trains(plan, name):
            raise ValueError(
                f"--frozen trains nothing, and {name!r} is trained; ask for"
                f" {', '.join(known)}, or leave --methods out"
            )
    if options.get(f"network.{_WEIGHTS}", "random") == "random":
        for variant in plan.variants:
            _check_weights(variant.network or plan.preset.network, variant.name)
    names = tuple(row.name for row in rows)
    # A variant that names some of these rows has no others.
    variants = (
        replace(each, rows=(*each.rows, *names))
        if each.rows and not set(names) & set(each.rows)
        else each
        for each in plan.variants
    )
    return replace(plan, variants=tuple(variants))


def _row_trains(plan: RunPlan, name: str) -> bool:
    """Return whether what a user asks for by name is trained."""
    of_rows = [row.trains for row in plan.every_row if row.name == name]
    return any(of_rows) or (not of_rows and default_method(name).trains)


def _check_weights(network: Part, variant: str) -> None:
    """Raise if a network would start from random weights."""
    if network.options.get(_WEIGHTS, "random") == "random":
        raise ValueError(
            f"--frozen needs weights, and {network.name} of {variant} starts from"
            " random ones; name a network with --network timm:NAME, or weights with"
            " -o network.weights=FILE"
        )
