"""Words that messages share: plurals, suggestions, and texts of foreign code.

Texts of foreign code and files are cut to one line of plain text.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import ParamSpec, TypeVar

_ESCAPE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, and moves of the cursor
    r"|\x1b[\]P^_X].*?(?:\x07|\x1b\\|$)"  # texts for the terminal, such as its title
    r"|\x1b[ -/]*[0-~]"
)
_CLUSTER = re.compile(
    r"(?:id_?)?(?:patient|subject|participant|person|donor|animal|mouse|lesion|slide|"
    r"video|recording)s?(?:_?(?:id|no|nr|num|number|name|key|code))?"
    r"|(?:case|study|exam|scan|series|eye)_?id|pid|mrn"
)
"""Names that others give to what several items belong to, in lower case."""
_LONGEST = 4_000
"""Most characters of a message; its end has the remedy."""
P = ParamSpec("P")
R = TypeVar("R")
_LINE = 200
"""Longest message of foreign code, in characters."""


def suggest(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """Return ' Did you mean ...?' if something in `known` is close to `name`, else ''.

    >>> suggest("mcdropout", ["map", "mc_dropout"])
    " Did you mean 'mc_dropout'?"
    """
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=cutoff)
    return f" Did you mean {close[0]!r}?" if close else ""


def names_cluster(name: str) -> bool:
    """Return whether `name` is what others call a cluster, such as a patient.

    >>> names_cluster("PatientID"), names_cluster("subject-id"), names_cluster("age")
    (True, True, False)
    """
    return _CLUSTER.fullmatch(re.sub(r"[ .-]", "_", name.lower())) is not None


def cluster_hint(names: Iterable[str]) -> str:
    """Return what to do with the first name that others give to a cluster, else ''.

    >>> cluster_hint(["age", "patient_id"])
    "; call 'patient_id' 'cluster' if its items belong together: intervals allow for it"
    """
    name = next(filter(names_cluster, names), "")
    words = "if its items belong together: intervals allow for it"
    return f"; call {name!r} 'cluster' {words}" if name else ""


def plural(count: int, noun: str) -> str:
    """Return `noun`, in the plural unless `count` is 1.

    >>> plural(1, "run"), plural(2, "run")
    ('run', 'runs')
    """
    return noun if count == 1 else f"{noun}s"


def listed_words(words: Sequence[str]) -> str:
    """Return words as a list in a sentence.

    >>> listed_words(["a"]), listed_words(["a", "b"]), listed_words(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def message_line(text: str) -> str:
    r"""Return a message in one line of bounded length, without control characters.

    Names come from files: none of them may break the line or steer the terminal.

    >>> message_line("no array '\x1b[2J'")
    "no array '\\x1b[2J'"
    """
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST // 2]}[...]{text[-_LONGEST // 2 :]}"
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text.strip())


def in_one_line(function: Callable[P, R]) -> Callable[P, R]:
    """Wrap a public function: messages of its errors are those of the command line."""

    @wraps(function)
    def call(*arguments: P.args, **options: P.kwargs) -> R:
        try:
            return function(*arguments, **options)
        except (ValueError, LookupError, TypeError) as error:
            if len(error.args) == 1 and isinstance(error.args[0], str):
                error.args = (message_line(error.args[0]),)
            raise

    return call


def plain_line(text: str, length: int = _LINE) -> str:
    r"""Return the first line of `text`, without escape sequences, cut to `length`.

    >>> plain_line("\x1b[31mred\x1b[0m and more")
    'red and more'
    """
    lines = _ESCAPE.sub("", text).strip().splitlines()
    line = "".join(c for c in (lines[0] if lines else "") if c.isprintable())
    return line if len(line) <= length else f"{line[: length - 5]}[...]"


def error_words(error: BaseException) -> str:
    """Return the class and the message of an error that foreign code raised.

    >>> error_words(KeyError("x")), error_words(OSError("disk")), error_words(OSError())
    ("KeyError 'x'", 'OSError: disk', 'OSError')
    """
    kind = type(error).__name__
    try:
        message = plain_line(str(error))
    except Exception:  # its class may define `__str__` in any way
        message = ""
    if not message:
        return kind
    return f"{kind} {message}" if isinstance(error, KeyError) else f"{kind}: {message}"
