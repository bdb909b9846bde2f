"""The header: the run and the data of predictions, and how to read their arrays."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from qualms.predictions._errors import PredictionsError, listed, said_by, shortened
from qualms.shelf import names
from qualms.wording import suggest

FORMAT = 1
# What draws may vary.
DRAWS = ("models", "labels")
# Rules that pool the draws of a `select/<name>` into one value per item.
RULES = ("mean", "logmeanexp")
# Most levels of nested mappings and lists in a header, and in one of its fields. The
# limit of Python itself would end in a traceback.
_DEPTH = 50
_FIELD_DEPTH = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The run and the data of predictions; every field is optional in foreign files.

    `alpha` is the miscoverage of `lower` and `upper` (0.1 for 90 % intervals), `ignore`
    the label of pixels that scores leave out, `classes` the names of the classes in the
    order of their probabilities, `regions` the names of segmented regions
    that may overlap, each with a sigmoid of its own, `fingerprint` a hash of the data,
    `pooled` the number of pooled runs (None for one run), `parameters` their number in
    one network. `select` has the pooling rule of each `select/<name>`: 'mean', or
    'logmeanexp' for negative log-likelihoods, whose pool is minus the logarithm of the
    mean likelihood. `uncertainty` names the `uncertainty/<name>` that scores judge
    first, where there are several. `draws` says what several draws vary: "models" of
    one truth, or plausible "labels", and `background` which class of a segmentation is
    background: its name or number, or "none". `about` holds all other fields of a file.
    `seconds` is for foreign files: runs state it in their folder, so that equal runs
    write equal files.

    >>> Header(dataset="eyepacs", split="test", seed=3).seed
    3
    """

    format: int = FORMAT
    task: str | None = None
    benchmark: str | None = None
    dataset: str | None = None
    split: str | None = None
    method: str | None = None
    seed: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    fingerprint: str | None = None
    version: str | None = None
    commit: str | None = None
    hardware: str | None = None
    seconds: float | None = None
    parameters: int | None = None
    alpha: float | None = None
    ignore: int | None = None
    regions: Sequence[str] = ()
    classes: Sequence[str] = ()
    select: Mapping[str, str] = field(default_factory=dict)
    pooled: int | None = None
    uncertainty: str | None = None
    draws: str | None = None
    background: str | int | None = None
    about: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, (holds, wanted) in _CHECKS.items():
            value = _plain(getattr(self, name))
            object.__setattr__(self, name, value)
            if not holds(value):
                raise PredictionsError(
                    f"header '{name}' must be {_said(wanted)}, got {value!r:.80};"
                    " correct it or leave it out"
                )
        for name in _LISTS:
            object.__setattr__(self, name, tuple(getattr(self, name)))
        # Convert through JSON, so that a header equals itself after a round trip.
        for name in _MAPPINGS:
            object.__setattr__(self, name, _as_json(name, getattr(self, name)))

    def class_name(self, number: int) -> str:
        """Return the name of a class; its number where the header names none.

        >>> Header(classes=["cat", "dog"]).class_name(1), Header().class_name(1)
        ('dog', '1')
        """
        named = 0 <= number < len(self.classes)
        return self.classes[number] if named else str(number)

    def as_mapping(self) -> dict[str, Any]:
        """Return all fields by name; their values are not copied."""
        return {name: getattr(self, name) for name in _NAMES}


class ParsedHeader(NamedTuple):
    """A header, the shapes that it states for arrays, and notes on unknown fields."""

    header: Header
    shapes: dict[str, tuple[int, ...]]
    notes: tuple[str, ...]


def parse_header(mapping: Mapping[str, Any], *, strict: bool = False) -> ParsedHeader:
    """Parse the header in `mapping`; unknown fields are kept under `about`.

    With `strict`, raise on a misspelt field, and on a field that cannot be kept.
    """
    values = {key: value for key, value in mapping.items() if key in _NAMES}
    for name in (*_MAPPINGS, *_LISTS, "format"):
        if name in values and values[name] is None:
            del values[name]
    header = Header(**values)
    about, notes = dict(header.about), []
    for key in mapping:
        if key not in _NAMES and key != "shapes":
            if strict:
                _refuse_lost(str(key), mapping[key])
            entry, note = _unknown(str(key), mapping[key])
            about |= entry
            notes.append(note)
    return ParsedHeader(
        replace(header, about=about), shapes_of(mapping.get("shapes")), tuple(notes)
    )


def _unknown(key: str, value: Any) -> tuple[dict[str, Any], str]:
    """Return the entry of `about` for an unknown field, and a note on it."""
    unknown = f"header field '{shortened(key)}' is not known"
    try:
        entry = _as_json("about", {key: value})
    except PredictionsError:
        return {}, f"{unknown} and does not hold JSON values: left out"
    return entry, f"{unknown} and is kept under 'about'.{_misspelt(key)}"


def _misspelt(key: str) -> str:
    return suggest(key, _NAMES, cutoff=0.8) if len(key) < 40 else ""


def _refuse_lost(key: str, value: Any) -> None:
    """Raise if a field to be written is misspelt, or JSON cannot hold it."""
    if hint := _misspelt(key):
        raise PredictionsError(
            f"header field '{key}' is not known.{hint} Rename it, or write it inside "
            "'about' to keep it"
        )
    _as_json(shortened(key), {key: value})


def version_of(mapping: Mapping[str, Any]) -> int:
    """Return the format version of a header; 1 if it states none."""
    version = mapping.get("format")
    if version is None:
        return 1
    if not _whole(version) or version < 1:
        raise PredictionsError(
            f"header 'format' must be a whole number from 1 on, got {version!r:.80}; "
            f"this qualms writes {FORMAT}"
        )
    if version > FORMAT:
        raise PredictionsError(
            f"was written in format {version} by a newer qualms, this one reads up to "
            f"{FORMAT}; upgrade with pip install -U qualms-bench"
        )
    return int(version)


def as_header(header: Header | Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a header given in Python as the mapping that a file would hold."""
    if header is None:
        return {}
    if isinstance(header, Header):
        return {f.name: getattr(header, f.name) for f in fields(Header)}
    if not isinstance(header, Mapping):
        raise PredictionsError(
            f"header must be a Header or a mapping, got {type(header).__name__}; "
            "pass for example header={'dataset': 'eyepacs', 'split': 'test'}"
        )
    return dict(header)


def dumps(header: Header, shapes: Mapping[str, tuple[int, ...]]) -> str:
    """Return the header as JSON text, with the shapes of its arrays."""
    return json.dumps(as_json(header) | {"shapes": dict(shapes)})


def as_json(header: Header) -> dict[str, Any]:
    """Return the header as JSON values, without fields that are not set."""
    stamped = replace(header, format=FORMAT, version=header.version or _version())
    values = as_header(stamped)
    return {
        name: value for name, value in values.items() if value not in (None, {}, ())
    }


def loads(
    text: str | bytes, where: str, *, form: str = '{"dataset": ..., "split": ...}'
) -> dict[str, Any]:
    """Return the JSON object in `text`; messages name its place and its `form`."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PredictionsError(
            f"{where} must be a JSON object, got {_first_words(text)}"
            f" ({said_by(error)}); correct it"
        ) from error
    if not isinstance(value, dict):
        raise PredictionsError(
            f"{where} must be a JSON object, got {_first_words(text)}; write {form}"
        )
    if _deeper(value, _DEPTH):
        raise PredictionsError(
            f"{where} must not be nested more than {_DEPTH} levels deep; flatten it"
        )
    return value


def _first_words(text: str | bytes) -> str:
    words = text if isinstance(text, str) else text.decode(errors="replace")
    return repr(words[:40])


def check_shapes(
    shapes: Mapping[str, tuple[int, ...]],
    actual: Mapping[str, tuple[int, ...]],
    unread: Collection[str] = (),
) -> None:
    """Raise if a header states other shapes than the arrays have."""
    for name, shape in shapes.items():
        if name in unread:
            continue
        if name not in actual:
            raise PredictionsError(
                f"the header states an array '{shortened(name)}', found only "
                f"{listed(actual)}; the file is incomplete: write it again, or remove "
                "'shapes' from the header"
            )
        if actual[name] != shape:
            raise PredictionsError(
                f"the header states shape {shape} for array '{name}', which has "
                f"{actual[name]}; write the file again, or remove 'shapes' from the "
                "header"
            )


def _version() -> str:
    from qualms import __version__

    return __version__


def shapes_of(shapes: Any) -> dict[str, tuple[int, ...]]:
    """Return the shapes that a header or an entry of the index states."""
    if shapes is None:
        return {}
    if not isinstance(shapes, Mapping) or not all(map(_shape, shapes.values())):
        raise PredictionsError(
            "header 'shapes' must map array names to lists of sizes, got "
            f"{shapes!r:.80}; correct it or leave it out"
        )
    return {str(name): tuple(shape) for name, shape in shapes.items()}


def _shape(sizes: Any) -> bool:
    return isinstance(sizes, list | tuple) and all(map(_whole, sizes))


def _as_json(name: str, value: Mapping[str, Any]) -> Any:
    if not value:
        return {}
    if _deeper(value, _FIELD_DEPTH):
        raise PredictionsError(
            f"header '{name}' must not be nested more than {_FIELD_DEPTH} levels deep; "
            "flatten it"
        )
    try:
        return json.loads(json.dumps(dict(value), allow_nan=False, default=_plain))
    except (TypeError, ValueError, RecursionError) as error:
        raise PredictionsError(
            f"header '{name}' must hold JSON values only ({said_by(error)}); use "
            "finite numbers, text, lists and mappings"
        ) from error


def _deeper(value: Any, levels: int) -> bool:
    """Return whether mappings and lists are nested more than `levels` deep."""
    values = [value]
    for _ in range(levels + 1):
        values = [
            inner
            for outer in values
            if isinstance(outer, Mapping | list | tuple)
            for inner in (outer.values() if isinstance(outer, Mapping) else outer)
        ]
    return bool(values)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _real(value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and abs(value) < 1e300 and isfinite(value)


def _text(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _mapping(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(key, str) for key in value)


def _different_names(value: Any) -> bool:
    if not isinstance(value, Sequence) or isinstance(value, str):
        return False
    named = all(isinstance(n, str) and n and "\0" not in n for n in value)
    return named and len(set(value)) == len(value)


def _rules(value: Any) -> bool:
    return _mapping(value) and all(rule in RULES for rule in value.values())


def _said(wanted: str) -> str:
    return wanted.replace("{tasks}", ", ".join(names("tasks")))


_Check = tuple[Callable[[Any], bool], str]
_TEXT: _Check = (_text, "text or null")
_CHECKS: dict[str, _Check] = {
    "format": (lambda v: _whole(v) and v >= 1, "a whole number from 1 on"),
    "task": (
        lambda v: v is None or v in tuple(names("tasks")),
        "one of {tasks}, or null",  # not known while the package is loaded
    ),
    "benchmark": _TEXT,
    "dataset": _TEXT,
    "split": _TEXT,
    "method": _TEXT,
    "seed": (lambda v: v is None or _whole(v), "a whole number or null"),
    "options": (_mapping, "a mapping of names to JSON values"),
    "fingerprint": _TEXT,
    "version": _TEXT,
    "commit": _TEXT,
    "hardware": _TEXT,
    "seconds": (
        lambda v: v is None or (_real(v) and v >= 0),
        "a finite number from 0 on, or null",
    ),
    "parameters": (
        lambda v: v is None or (_whole(v) and v >= 0),
        "a whole number from 0 on, or null",
    ),
    "alpha": (
        lambda v: v is None or (_real(v) and 0 < v < 1),
        "between 0 and 1 (0.1 for 90 % intervals), or null",
    ),
    "ignore": (
        lambda v: v is None or (_whole(v) and 0 <= v <= 255),
        "a whole number in 0..255, or null",
    ),
    "regions": (
        _different_names,
        "a list of different names, one for each region",
    ),
    "classes": (
        _different_names,
        "a list of different names, one for each class",
    ),
    "select": (_rules, f"a mapping of names to one of {', '.join(RULES)}"),
    "pooled": (
        lambda v: v is None or (_whole(v) and v >= 1),
        "a whole number from 1 on, or null",
    ),
    "uncertainty": _TEXT,
    "draws": (
        lambda v: v is None or v in DRAWS,
        "'models' (an ensemble, dropout), 'labels' (SSN, probabilistic U-Net) or null",
    ),
    "background": (
        lambda v: v is None or (v >= 0 if _whole(v) else isinstance(v, str)),
        "the name or the number of a class, 'none' or null",
    ),
    "about": (_mapping, "a mapping of names to JSON values"),
}
_NAMES = tuple(_CHECKS)
_LISTS = ("regions", "classes")
_MAPPINGS = ("options", "select", "about")
