"""Words that messages share: the plural of a noun, and the name that was meant."""

import difflib
from collections.abc import Iterable


def suggest(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """Return ' Did you mean ...?' if something in `known` is close to `name`, else ''.

    >>> suggest("mcdropout", ["map", "mc_dropout"])
    " Did you mean 'mc_dropout'?"
    """
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=cutoff)
    return f" Did you mean {close[0]!r}?" if close else ""


def plural(count: int, noun: str) -> str:
    """Return `noun` in the form that `count` of them take.

    >>> plural(1, "run"), plural(2, "run")
    ('run', 'runs')
    """
    return noun if count == 1 else f"{noun}s"
