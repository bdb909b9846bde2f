"""Labels: what a run, a result, a curve or a published number is of.

Labels are a small mapping such as `{"variant": "country", "score": "auroc", "alpha":
0.1}`. Things are chosen by their labels and joined on them; nothing is written into a
string that somebody else parses.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

Label = str | int | float | bool
Labels = Mapping[str, Label]
Wanted = Label | None | Collection[Label | None]
"""A label, None for none, or several of which any will do."""

T = TypeVar("T")


def fits(labels: Labels, wanted: Mapping[str, Wanted]) -> bool:
    """Return whether `labels` have every wanted value.

    >>> fits({"score": "auroc", "alpha": 0.1}, {"score": ("auroc", "ece")})
    True
    >>> fits({"score": "auroc"}, {"alpha": 0.1}), fits({}, {"alpha": None})
    (False, True)
    """
    return all(labels.get(name) in alternatives(want) for name, want in wanted.items())


def alternatives(wanted: Wanted) -> Collection[Label | None]:
    """Return the values any of which will do."""
    if wanted is None or isinstance(wanted, (str, int, float, bool)):
        return (wanted,)
    return wanted


def labels_text(labels: Mapping[str, Wanted]) -> str:
    """Return labels in words, for messages.

    >>> labels_text({"score": "auroc", "alpha": 0.1})
    'score=auroc, alpha=0.1'
    """
    return ", ".join(f"{name}={value}" for name, value in labels.items())


def values_text(labels: Mapping[str, Wanted]) -> str:
    """Return labels whose names go without saying.

    >>> values_text({"alpha": 0.1, "u": "entropy"})
    '0.1, entropy'
    """
    return ", ".join(map(str, labels.values()))


@dataclass(frozen=True, slots=True)
class Labelled(Generic[T]):
    """Things with labels, in order; chosen as the rows of a results table are."""

    items: tuple[tuple[Labels, T], ...] = ()

    @classmethod
    def of(cls, items: Iterable[tuple[Labels, T]]) -> "Labelled[T]":
        """Collect pairs of labels and things."""
        return cls(tuple(items))

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[tuple[Labels, T]]:
        return iter(self.items)

    def where(self, **wanted: Wanted) -> "Labelled[T]":
        """Return the things that have these labels."""
        return Labelled(tuple(item for item in self.items if fits(item[0], wanted)))

    def get(self, **wanted: Wanted) -> T | None:
        """Return the first thing that has these labels, or None."""
        return next(
            (thing for labels, thing in self.items if fits(labels, wanted)), None
        )

    def at(self, **wanted: Wanted) -> T:
        """Return the one thing that has these labels.

        Raises:
            LookupError: If there is none, or more than one.
        """
        matches = self.where(**wanted).items
        if len(matches) != 1:
            raise LookupError(
                f"{len(matches)} things have {labels_text(wanted)}; name labels that"
                " one of them has"
            )
        return matches[0][1]

    @property
    def values(self) -> tuple[T, ...]:
        """The things without their labels."""
        return tuple(thing for _, thing in self.items)
