"""Options that a user sets for the runs of a plan, spread over their parts."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from qualms.launch._extra_rows import methods_of
from qualms.launch.options import changed_part, check_options, options_of
from qualms.shelf import PartError, find, names
from qualms.spec import Part
from qualms.study import Overrides, RunPlan, Variant
from qualms.wording import suggest

PREFIXES = ("method", "network", "dataset")
"""Prefixes of the options of parts; those of training have none."""


def with_options(plan: RunPlan, options: Mapping[str, Any]) -> RunPlan:
    """Return the plan whose runs have these options, written as in a `RunRequest`."""
    training, method, network, dataset = _by_part(options)
    methods = _spread("methods", methods_of(plan), method)
    data = [part.name for variant in plan.variants for part in variant.parts]
    datasets = _spread("datasets", data, dataset)
    used = [variant.network or plan.preset.network for variant in plan.variants]
    networks = _spread("networks", [part.name for part in used], network)
    _check_networks(used, networks)
    _check_training(training, plan.benchmark.task)
    _check_methods(plan, methods)
    return replace(
        plan,
        variants=tuple(_with_data(variant, datasets) for variant in plan.variants),
        overrides=Overrides(
            training=training,
            methods=methods,
            networks=networks,
            config=plan.overrides.config,
        ),
    )


def _with_data(variant: Variant, options: Mapping[str, Mapping[str, Any]]) -> Variant:
    """Return a variant whose datasets have these options, by the dataset's name."""
    if not options:
        return variant
    return replace(
        variant,
        dataset=changed_part(variant.dataset, options, variant.parts),
        datasets={
            name: changed_part(part, options, variant.parts)
            for name, part in variant.datasets.items()
        },
    )


def _check_training(options: Mapping[str, Any], task: str) -> None:
    """Raise if options of training do not exist, make no sense, or fit another task."""
    if not options:
        return
    from qualms.training.options import GROUPS, task_refusal, training

    groups = [options_of(group) for group in GROUPS.values()]
    available = {name: option for group in groups for name, option in group.items()}
    check_options("training", options, available)
    # Runs that take the weights of others train for 0 epochs, which no user sets.
    if "epochs" in options and options["epochs"] < 1:
        raise ValueError(
            "training option 'epochs' must be a whole number from 1 on, got"
            f" {options['epochs']}"
        )
    if options.get("lr") == 0:
        raise ValueError(
            "training option 'lr' must be above 0, got 0: nothing would be trained"
        )
    if refusal := task_refusal(training(options), task):
        raise ValueError(refusal)


def _check_methods(plan: RunPlan, changes: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise if a method refuses its options, before runs of it are begun."""
    for row in plan.rows:
        method = row.method
        if not changes.get(method.name):
            continue
        declared = {**plan.preset.methods.get(method.name, {}), **method.options}
        try:
            find("methods", method.name)(**{**declared, **changes[method.name]})
        except ValueError as error:
            raise ValueError(f"{method.name} cannot be made: {error}") from error


def _check_networks(
    networks: Iterable[Part], changes: Mapping[str, Mapping[str, Any]]
) -> None:
    """Raise if a network of the shelf refuses its options."""
    checked: list[Part] = []
    for network in networks:
        part = changed_part(network, changes)
        on_shelf = part.name in names("networks")
        if not changes.get(part.name) or part in checked or not on_shelf:
            continue
        checked.append(part)
        # Only the data say how many channels there are.
        refusals = [_refusal(part, channels) for channels in (1, 3)]
        if all(refusals):
            raise ValueError(f"{part.name} cannot be made: {refusals[-1]}")


def _refusal(part: Part, channels: int) -> str:
    """Return why a network refuses its options; '' where it does not."""
    import torch

    from qualms.networks import make_network

    try:
        with torch.device("meta"):  # takes neither memory nor time
            make_network(part, channels=channels)
    except ValueError as error:
        return "" if isinstance(error, PartError) else str(error)
    except Exception:
        # A network may need more than this device can do; its run reports all else.
        return ""
    return ""


def _without(options: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name not in names}


def _by_part(options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return options of training, methods, networks and datasets without prefixes."""
    kinds: dict[str, dict[str, Any]] = {kind: {} for kind in ("", *PREFIXES)}
    for name, value in options.items():
        kind, dot, rest = name.rpartition(".")
        if dot and kind not in PREFIXES:
            raise LookupError(
                f"no part {kind!r} has options.{suggest(kind, PREFIXES)} Known:"
                f" {', '.join(PREFIXES)}, or no prefix for options of training."
            )
        kinds[kind][rest] = value
    return list(kinds.values())


def _spread(
    shelf: str, parts: Iterable[str], options: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Return the options of each part; every option must belong to some part."""
    if not options:
        return {}
    unique = list(dict.fromkeys(parts))
    on_shelf = [part for part in unique if part in names(shelf)]
    by_part = {part: options_of(find(shelf, part), shelf=shelf) for part in on_shelf}
    every = {name: option for each in by_part.values() for name, option in each.items()}
    # A network from outside the shelf checks its options itself.
    outside = [p for p in unique if p not in on_shelf] if shelf == "networks" else []
    unchecked = _without(options, every) if outside else {}
    checked = check_options(
        " and ".join(on_shelf),
        _without(options, unchecked),
        every,
        prefix=f"{shelf.rstrip('s')}.",
    )
    return {
        **{
            part: {name: value for name, value in checked.items() if name in each}
            for part, each in by_part.items()
        },
        **dict.fromkeys(outside, unchecked),
    }
