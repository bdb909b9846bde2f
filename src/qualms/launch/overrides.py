"""Options that a user sets for the runs of a benchmark, spread over their parts."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from qualms.benchmarks import Benchmark, Preset, TableRow, Variant
from qualms.launch.guests import methods_of
from qualms.launch.options import changed_part, check_options, options_of
from qualms.shelf import find, names
from qualms.spec import Part
from qualms.wording import suggest

PREFIXES = ("method", "network", "dataset")
"""What options of parts begin with; those of training have none."""


def with_options(
    benchmark: Benchmark, preset: Preset, options: Mapping[str, Any]
) -> tuple[Benchmark, Preset]:
    """The benchmark and preset whose runs have `options`, as of a `Wish`."""
    loop, method, network, dataset = _sorted(options)
    methods = _spread("methods", methods_of(benchmark, preset.rows), method)
    data = [part.name for v in preset.variants for part in data_of(v)]
    datasets = _spread("datasets", data, dataset)
    used = [variant.network or preset.network for variant in preset.variants]
    networks = _spread("networks", [part.name for part in used], network)
    _check_networks(used, networks)
    _check_loop(loop)
    changed = tuple(
        replace(row, method=changed_part(row.method, methods)) for row in benchmark.rows
    )
    variants = tuple(
        replace(
            variant,
            dataset=changed_part(variant.dataset, datasets, data_of(variant)),
            datasets={
                name: changed_part(part, datasets, data_of(variant))
                for name, part in variant.datasets.items()
            },
            network=variant.network and changed_part(variant.network, networks),
            training={n: loop.get(n, value) for n, value in variant.training.items()},
        )
        for variant in preset.variants
    )
    configs = {
        name: replace(config, options=_without(config.options, loop))
        for name, config in benchmark.configs.items()
    }
    _check_methods([row for row in changed if row.name in preset.rows], preset, methods)
    return replace(benchmark, rows=changed, configs=configs), replace(
        preset,
        variants=variants,
        network=changed_part(preset.network, networks),
        networks={n: _without(own, network) for n, own in preset.networks.items()},
        training={**preset.training, **loop},
    )


def _check_loop(loop: Mapping[str, Any]) -> None:
    """Refuse options of training that do not exist, or values that make no sense."""
    if not loop:
        return
    from qualms.training.options import GROUPS, training

    groups = [options_of(group) for group in GROUPS.values()]
    known = {name: option for group in groups for name, option in group.items()}
    check_options("training", loop, known)
    # Runs that take the weights of others train for 0 epochs, which no user sets.
    if "epochs" in loop and loop["epochs"] < 1:
        raise ValueError(
            "training option 'epochs' must be a whole number from 1 on, got"
            f" {loop['epochs']}"
        )
    training(loop)


def _check_methods(
    rows: Iterable[TableRow], preset: Preset, given: Mapping[str, Mapping[str, Any]]
) -> None:
    """Refuse values that a method would refuse, before runs of it are begun."""
    asked = {row.name: row.method for row in rows if given.get(row.method.name)}
    for method in asked.values():
        options = {**preset.methods.get(method.name, {}), **method.options}
        try:
            find("methods", method.name)(**options)
        except ValueError as error:
            raise ValueError(f"{method.name} cannot be made: {error}") from error


def _check_networks(
    used: Iterable[Part], given: Mapping[str, Mapping[str, Any]]
) -> None:
    """Refuse values that a network of the shelf would refuse."""
    checked: list[Part] = []
    for part in (changed_part(part, given) for part in used if given.get(part.name)):
        if part in checked or part.name not in names("networks"):
            continue
        checked.append(part)
        # Only the data say how many channels there are.
        refusals = [_refusal(part, channels) for channels in (1, 3)]
        if all(refusals):
            raise ValueError(f"{part.name} cannot be made: {refusals[-1]}")


def _refusal(part: Part, channels: int) -> str:
    """Why a network refuses its options; '' where it does not."""
    import torch

    from qualms.networks import make_network

    try:
        with torch.device("meta"):  # takes neither memory nor time
            make_network(part, channels=channels)
    except ValueError as error:
        return str(error)
    except Exception:
        # A network may need more than this device can do; its run tells all else.
        return ""
    return ""


def data_of(variant: Variant) -> list[Part]:
    """Every dataset that runs of a variant read."""
    return [variant.dataset, *variant.datasets.values()]


def _without(options: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name not in names}


def _sorted(options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Options of the loop, methods, network and datasets, without their prefixes."""
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
    shelf: str, parts: Iterable[str], given: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """The options among `given` of each part; every option must belong to some part."""
    if not given:
        return {}
    unique = list(dict.fromkeys(parts))
    on_shelf = [part for part in unique if part in names(shelf)]
    options = {part: options_of(find(shelf, part), shelf=shelf) for part in on_shelf}
    everyone = {name: o for known in options.values() for name, o in known.items()}
    # A network from outside the shelf checks its options itself.
    outside = [p for p in unique if p not in on_shelf] if shelf == "networks" else []
    strange = _without(given, everyone) if outside else {}
    taken = check_options(
        " and ".join(on_shelf),
        _without(given, strange),
        everyone,
        prefix=f"{shelf.rstrip('s')}.",
    )
    return {
        **{
            part: {name: value for name, value in taken.items() if name in known}
            for part, known in options.items()
        },
        **dict.fromkeys(outside, strange),
    }
