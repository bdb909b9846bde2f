"""Options of a part: the keyword arguments of its function.

Users set them as `name=value`. There is no other configuration.
"""

import ast
import inspect
import json
import math
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from qualms.spec import Part
from qualms.wording import suggest

PASSED = {"datasets": "root", "networks": "channels"}
"""Arguments that the program passes to the parts of a shelf; users cannot set them."""


class Option(NamedTuple):
    """An option of a part as its signature states it."""

    default: Any
    hint: Any


def options_of(function: Callable[..., Any], *, shelf: str = "") -> dict[str, Option]:
    """Return the options of a part by name, in the order of its signature."""
    hints = _hints(function)
    return {
        name: Option(parameter.default, hints.get(name, Any))
        for name, parameter in inspect.signature(function).parameters.items()
        if name != PASSED.get(shelf)
    }


def parse_options(texts: list[str]) -> dict[str, Any]:
    """Parse `name=value` texts; values are JSON, Python literals, or text.

    >>> parse_options(["epochs=3", "method.select=['gmm4']", "variant=tails"])
    {'epochs': 3, 'method.select': ['gmm4'], 'variant': 'tails'}
    """
    options: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals or not name:
            raise ValueError(f"an option must read name=value, got {text!r}")
        if name in options:
            raise ValueError(f"option {name!r} must be given once, got it twice")
        options[name] = _value(value.strip())
    return options


def option_texts(options: Mapping[str, Any]) -> list[str]:
    """Write options as texts, which `parse_options` reads."""
    texts = []
    for name, value in options.items():
        plain = isinstance(value, str) and _value(value) == value
        texts.append(f"{name}={value if plain else json.dumps(value)}")
    return texts


def check_options(
    part: str,
    options: Mapping[str, Any],
    available: Mapping[str, Option],
    *,
    prefix: str = "",
) -> dict[str, Any]:
    """Return options in the types of a part; raise unless it has them and they fit.

    A number is taken for a text where the option is a text, as in positive=1 or
    scenario=1.
    """
    checked = {}
    for name, value in options.items():
        if name not in available:
            listed = ", ".join(f"{prefix}{key}" for key in available) or "none"
            raise LookupError(
                f"no option {prefix + name!r} for {part}."
                f"{_suggest(name, available, prefix)} Known: {listed}."
            )
        hint = available[name].hint
        typed = json.dumps(value)
        texts = [text for text in _literals(hint) if text == typed]
        if hint is str and isinstance(value, int):
            texts = [typed]
        if not texts and not _fits(value, hint):
            raise ValueError(
                f"option {prefix + name!r} of {part} must be {hint_text(hint)},"
                f" got {value!r}.{_nearest(value, hint)}"
            )
        checked[name] = value if _fits(value, hint) else texts[0]
    return checked


def changed_part(
    part: Part, changes: Mapping[str, Mapping[str, Any]], together: Sequence[Part] = ()
) -> Part:
    """Return a part with its options among `changes`, which are by the part's name.

    Parts that are used `together` share a user's options. Of a mapping, such as the
    sizes of splits, each of them takes the names that it declares, and keeps its other
    values.

    >>> first = Part(name="a", options={"sizes": {"train": 9, "test": 9}})
    >>> other = Part(name="a", options={"sizes": {"val": 9, "test": 9}})
    >>> changes = {"a": {"sizes": {"val": 3, "test": 2}}}
    >>> changed_part(first, changes, [first, other]).options
    {'sizes': {'train': 9, 'test': 2}}
    """
    changed = changes.get(part.name, {})
    options = {**part.options, **changed}
    for name, value in changed.items():
        current = part.options.get(name)
        if len(together) > 1 and isinstance(current, Mapping):
            declared = (other.options.get(name) or {} for other in together)
            of_others = {key for each in declared for key in each} - current.keys()
            new = {key: value[key] for key in value if key not in of_others}
            options[name] = {**current, **new}
    return replace(part, options=options)


def hint_text(hint: Any) -> str:
    """Describe a type annotation in words for users of the command line."""
    if get_origin(hint) is Literal:
        return " or ".join(str(value) for value in get_args(hint))
    if get_origin(hint) in (Union, types.UnionType):
        # Containers come last: what follows one would read as one of its values.
        choices = sorted(get_args(hint), key=_is_container)
        return " or ".join(hint_text(choice) for choice in choices)
    inner = get_args(hint)
    if inner and _is_list(get_origin(hint)):
        return f"a list in JSON in which each is {hint_text(inner[0])}"
    if inner and _is_mapping(get_origin(hint)):
        return f"a mapping in JSON in which each value is {hint_text(inner[-1])}"
    names = {int: "a whole number", float: "a number", bool: "true or false"}
    names |= {str: "text", type(None): "null"}
    return names.get(hint, str(hint).replace("collections.abc.", ""))


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(function)
    except NameError:  # annotations that exist for type checkers only
        return {}


def _value(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=str)
    except ValueError:
        pass
    try:
        value = ast.literal_eval(text)
        return json.loads(json.dumps(value, allow_nan=False))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text


def _literals(hint: Any) -> list[Any]:
    choices = [hint, *get_args(hint)]
    return [c for h in choices if get_origin(h) is Literal for c in get_args(h)]


def _suggest(name: str, available: Mapping[str, Option], prefix: str) -> str:
    return suggest(prefix + name, [prefix + key for key in available])


def _nearest(value: Any, hint: Any) -> str:
    literals = _literals(hint)
    parts = value if isinstance(value, list) else [value]
    wrong = [part for part in parts if part not in literals]
    return suggest(str(wrong[0]), map(str, literals)) if wrong else ""


def _fits(value: Any, hint: Any) -> bool:
    """Return whether a JSON value fits an annotation; True if that is unclear."""
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return any(_fits(value, choice) for choice in get_args(hint))
    if origin is Literal:
        return any(value == c and type(value) is type(c) for c in get_args(hint))
    if hint is bool or isinstance(value, bool):
        return hint in (bool, Any) and (hint is Any or isinstance(value, bool))
    if hint is float:
        return isinstance(value, (int, float)) and abs(value) < math.inf
    if hint in (int, str):
        return isinstance(value, hint)
    if hint is type(None) or value is None:
        return hint in (type(None), Any) and (hint is Any or value is None)
    return _fits_container(value, origin or hint, get_args(hint))


def _fits_container(value: Any, origin: Any, inner: tuple[Any, ...]) -> bool:
    if _is_mapping(origin):
        return isinstance(value, Mapping) and _all_fit([*value.values()], inner[1:])
    if not _is_list(origin):
        return True
    fixed = origin is tuple and ... not in inner  # one hint for each place
    return isinstance(value, list) and _all_fit(value, inner if fixed else inner[:1])


def _all_fit(values: list[Any], hints: tuple[Any, ...]) -> bool:
    """Return whether each value fits its hint; a single hint is for all of them."""
    each = hints * len(values) if len(hints) == 1 else hints
    return not hints or (len(each) == len(values) and all(map(_fits, values, each)))


def _is_container(hint: Any) -> bool:
    return _is_mapping(get_origin(hint)) or _is_list(get_origin(hint))


def _is_mapping(origin: Any) -> bool:
    return isinstance(origin, type) and issubclass(origin, Mapping)


def _is_list(origin: Any) -> bool:
    return isinstance(origin, type) and (
        issubclass(origin, (list, tuple)) or origin.__name__ == "Sequence"
    )
