"""Rows of tables: how their runs are trained, and the options that these take."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from qualms.labels import Labels
from qualms.spec import Part
from qualms.study._data import Settings, Variant
from qualms.wording import suggest

Named = TypeVar("Named", Variant, "TableRow")


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A named set of options, such as the one a paper chose for a method."""

    options: Mapping[str, Any] = field(default_factory=dict)
    """Written as for `-o`: `lr` is an option of training, `method.rate` of a part."""
    method: str = ""
    """Whose runs take it; '' for all runs."""
    selection: str = ""
    """The selection by which it was chosen, where no variant that takes it says so."""
    note: str = ""

    def of(self, part: str) -> dict[str, Any]:
        """Return the options of a part without its prefix; those of training for ''.

        >>> Config(options={"lr": 0.1, "method.rate": 0.2}).of("method")
        {'rate': 0.2}
        """
        split = ((*name.rpartition("."), value) for name, value in self.options.items())
        return {name: value for owner, _, name, value in split if owner == part}


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Values of one option that a search tries."""

    option: str
    """As for `-o`: an option of training, or of a part with its prefix."""
    low: float = 0.0
    high: float = 0.0
    log: bool = True
    """True if values are spread evenly in their logarithm."""
    choices: tuple[Any, ...] = ()
    """The values themselves, where they are not an interval."""
    complement: bool = False
    """True if the option is one minus a value between `low` and `high`: a momentum is
    searched by its distance from 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A second training, on items that a rule chooses by the first one's predictions.

    Active learning and few-shot studies are rows with a stage.
    """

    row: str = ""
    """The row whose runs the rule reads; a pool is read as one. '' if the rule reads no
    predictions."""
    rule: str
    """Name of the rule that chooses items, e.g. "most_uncertain"."""
    split: str = "pool"
    """The split whose items are chosen, and whose predictions the rule reads."""
    options: Mapping[str, Any] = field(default_factory=dict)
    seeded: bool = False
    """True to pass the first seed of a pool as the rule's option `seed`, so that all
    runs of the pool train on the same items."""
    splits: tuple[str, ...] = ()
    """The splits that the second runs predict; () for those of the variant."""
    chosen_by: tuple[str, ...] = ()
    """Names of settings of a line that are options of the rule too."""
    continues: bool = False
    """True to train on from the first run's weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """One row of a table: a trained method and how many of its runs are pooled."""

    name: str
    label: str
    """The paper's name for it."""
    method: Part
    network: Mapping[str, Any] = field(default_factory=dict)
    """Options of the network besides those of the preset."""
    pool: int = 1
    """Runs pooled per repeat."""
    labels: Labels = field(default_factory=dict)
    """Further labels of its results, e.g. {"interval": "gaussian"}."""
    settings: Settings = field(default_factory=dict)
    """Facts of this row for the protocol, besides its labels."""
    at: tuple[Labels, ...] = ()
    """Settings at which it is judged, where these are not the variant's."""
    trained_by: tuple[str, ...] = ()
    """Names of settings that are options of the method: each of their values has its
    own runs."""
    stage: Stage | None = None
    """Choice of its training items, where it is a second training."""
    weights_of: str = ""
    """Row whose trained weights this row reuses, seed by seed. Such runs are not
    trained: `start` names the run with the weights, and `epochs` is 0."""
    trains: bool = True
    """False for a row whose runs predict with the weights that their network starts
    from: they have no epochs."""
    beyond: bool = False
    """True for rows the paper does not have."""


GUEST = TableRow(name="{method}", label="{method}", method=Part(name=""))
"""The plain row of a method that a benchmark does not have."""


def named(parts: Iterable[Named], name: str, what: str) -> Named:
    """Return the part `name`, or raise with the closest name; `what` says of what."""
    by_name = {part.name: part for part in parts}
    if name not in by_name:
        raise LookupError(
            f"no {name!r} in the {what}.{suggest(name, by_name)} Known: "
            f"{', '.join(by_name)}."
        )
    return by_name[name]
