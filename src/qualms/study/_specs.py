"""The specs of runs: what a variant, a row and settings make of a plan's options."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from qualms.labels import Labels
from qualms.shelf import source_of
from qualms.spec import CORRUPTIONS, ItemRule, Part, RunSpec, parse_corrupted
from qualms.study._data import Variant
from qualms.study._rows import Config, TableRow

if TYPE_CHECKING:
    from qualms.study._plan import RunPlan

_UNTRAINED: Mapping[str, Any] = {
    **{"epochs": 0, "select_by": "last", "features": "learned", "augment": []},
    **{"schedule": "constant", "partial": True},
}
"""Options of training of runs that train nothing."""


class Place(NamedTuple):
    """Where runs stand: a variant, a row and settings."""

    variant: Variant
    row: TableRow
    at: Labels


class RunSpecs:
    """The runs of a plan, each made once: one run serves many lines."""

    def __init__(self, plan: "RunPlan") -> None:
        self._plan = plan
        self._made: dict[tuple[Any, ...], RunSpec] = {}

    def of(self, place: Place, seed: int) -> RunSpec:
        """Return the training that a number at `place` comes from."""
        key = place.variant.name, place.row.name, tuple(place.at.items()), seed
        if key not in self._made:
            make = self._lent if place.row.weights_of else self._trained
            spec = make(place, seed)
            self._made[key] = replace(spec, sources=_sources(spec))
        return self._made[key]

    def with_parents(self, place: Place, seed: int) -> Iterator[RunSpec]:
        """Yield the run that a number at `place` comes from, after those it needs."""
        for parent, member in self._parents(place, seed):
            yield from self.with_parents(parent, member)
        yield self.of(place, seed)

    def _parents(self, place: Place, seed: int) -> Iterator[tuple[Place, int]]:
        """Yield where the runs stand that this one needs, with their seeds."""
        row = place.row
        if row.weights_of:
            yield place._replace(row=self._plan.row(row.weights_of)), seed
        if row.stage is not None and row.stage.row:
            first = place._replace(row=self._plan.row(row.stage.row))
            for member in self._pool_with(first.row, seed):
                yield first, member

    def _pool_with(self, row: TableRow, seed: int) -> tuple[int, ...]:
        """Return the seeds that are pooled with `seed` in a repeat of `row`."""
        pools = (pool for pool in self._plan.pools_of(row) if seed in pool)
        return next(pools, (seed,))

    def _trained(self, place: Place, seed: int) -> RunSpec:
        """Return a run that is trained."""
        variant, row, _ = place
        preset, config = self._plan.preset, self._config(place)
        network = variant.network or preset.network
        own = preset.networks.get(row.method.name, {})
        changed = self._plan.overrides.networks.get(network.name, {})
        return RunSpec(
            benchmark=self._plan.benchmark.name,
            dataset=variant.dataset,
            datasets=variant.datasets,
            network=Part(
                name=network.name,
                options={**network.options, **own, **changed, **row.network},
            ),
            method=self._method(place),
            seed=seed,
            training={
                **{**preset.training, **variant.training, **config.of("")},
                **self._plan.overrides.training,
                **({} if row.trains else _UNTRAINED),
            },
            version=self._plan.benchmark.version,
            **self._staged(place, seed),
        )

    def _lent(self, place: Place, seed: int) -> RunSpec:
        """Return a run that predicts with the weights of another one."""
        lender = self.of(place._replace(row=self._plan.row(place.row.weights_of)), seed)
        return replace(
            lender,
            method=self._method(place),
            training={**lender.training, "epochs": 0},
            start=lender.hash,
        )

    def _config(self, place: Place) -> Config:
        configs, method = self._plan.benchmark.configs, place.row.method.name
        chosen = self._plan.overrides.config
        if chosen and configs[chosen].method == method:
            return configs[chosen]
        name = place.variant.configs.get(method)
        return Config() if name is None else configs[name]

    def _method(self, place: Place) -> Part:
        row = place.row
        options = {
            **self._plan.preset.methods.get(row.method.name, {}),
            **self._config(place).of("method"),
            **row.method.options,
            **self._plan.overrides.methods.get(row.method.name, {}),
            **{name: place.at[name] for name in row.trained_by},
        }
        return Part(name=row.method.name, options=options)

    def _staged(self, place: Place, seed: int) -> dict[str, Any]:
        """Return the fields of a spec that say what it predicts and trains on."""
        stage = place.row.stage
        if stage is None:
            return {"splits": place.variant.splits}
        parents = [self.of(*parent) for parent in self._parents(place, seed)]
        chosen = {name: place.at[name] for name in stage.chosen_by}
        drawn = {"seed": self._pool_with(place.row, seed)[0]} if stage.seeded else {}
        rule = ItemRule(
            name=stage.rule,
            runs=tuple(spec.hash for spec in parents),
            split=stage.split,
            options={**stage.options, **chosen, **drawn},
        )
        return {
            "splits": stage.splits or place.variant.splits,
            "items": rule,
            "start": parents[0].hash if stage.continues else None,
        }


def _sources(spec: RunSpec) -> dict[str, str]:
    """Return a digest of the code of each part of `spec` from outside the package."""
    parts = [("methods", spec.method.name), ("networks", spec.network.name)]
    parts += [("datasets", part.name) for part in spec.parts.values()]
    corrupted = filter(None, map(parse_corrupted, spec.splits))
    parts += [(CORRUPTIONS, split.corruption) for split in corrupted]
    digests = {f"{shelf}/{name}": source_of(shelf, name) for shelf, name in parts}
    return {name: digest for name, digest in digests.items() if digest}
