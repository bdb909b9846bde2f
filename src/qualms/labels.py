"""Labels: names and values that describe a run, a result or a published number.

Labels are a small mapping such as `{"variant": "country", "score": "auroc", "alpha":
0.1}`. Things are chosen by their labels and joined on them; no label is written into a
string that another module parses.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

Label = str | int | float | bool
Labels = Mapping[str, Label]
Wanted = Label | None | Collection[Label | None]
"""A required label: a value, None for "no such label", or several accepted values."""
LabelKey = tuple[bool, Label | None]

T = TypeVar("T")


def fits(labels: Labels, wanted: Mapping[str, Wanted]) -> bool:
    """Return whether `labels` have every wanted value.

    >>> fits({"score": "auroc", "alpha": 0.1}, {"score": ("auroc", "ece")})
    True
    >>> fits({"score": "auroc"}, {"alpha": 0.1}), fits({}, {"alpha": None})
    (False, True)
    """
    return _fits(labels, _accepted_keys(wanted))


def label_key(value: Label | None) -> LabelKey:
    """Return a key that equal labels share: 1 equals 1.0, and True differs from 1.

    >>> label_key(1) == label_key(1.0), label_key(1) == label_key(True)
    (True, False)
    """
    return isinstance(value, bool), value


def accepted_keys(wanted: Wanted) -> frozenset[LabelKey]:
    """Return the keys of all accepted values."""
    if wanted is None or isinstance(wanted, (str, int, float, bool)):
        return frozenset((label_key(wanted),))
    return frozenset(map(label_key, wanted))


Accepted = tuple[tuple[str, frozenset[LabelKey]], ...]


def _accepted_keys(wanted: Mapping[str, Wanted]) -> Accepted:
    return tuple((name, accepted_keys(want)) for name, want in wanted.items())


def _fits(labels: Labels, accepted: Accepted) -> bool:
    for name, keys in accepted:  # a loop, since thousands of curves are looked up
        value = labels.get(name)
        if (isinstance(value, bool), value) not in keys:
            return False
    return True


def labels_text(labels: Mapping[str, Wanted]) -> str:
    """Return labels in words, for messages.

    >>> labels_text({"score": "auroc", "alpha": 0.1})
    'score=auroc, alpha=0.1'
    """
    return ", ".join(f"{name}={value}" for name, value in labels.items())


def values_text(labels: Mapping[str, Wanted]) -> str:
    """Return the values of labels in words, without their names.

    >>> values_text({"alpha": 0.1, "uncertainty": "entropy"})
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
        return Labelled(tuple(self._matching(wanted)))

    def get(self, **wanted: Wanted) -> T | None:
        """Return the first thing that has these labels, or None."""
        return next((thing for _, thing in self._matching(wanted)), None)

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

    def _matching(self, wanted: Mapping[str, Wanted]) -> Iterator[tuple[Labels, T]]:
        accepted = _accepted_keys(wanted)
        return (item for item in self.items if _fits(item[0], accepted))

    @property
    def values(self) -> tuple[T, ...]:
        """The things without their labels."""
        return tuple(thing for _, thing in self.items)
