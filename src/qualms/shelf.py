"""The folder is the registry: a part is found by the name of its file.

`methods/swag.py` defines `swag`; nothing else has to be told. A name that is not there
is answered with the closest one that is.
"""

import difflib
import pkgutil
from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from typing import Any


def names(shelf: str) -> tuple[str, ...]:
    """Every part on `shelf`, e.g. `names("methods")`, in alphabetical order.

    The package itself is not imported: a list of methods must not wait for torch.
    """
    package = find_spec(f"qualms.{shelf}")
    if package is None or package.submodule_search_locations is None:
        raise ModuleNotFoundError(f"there is no shelf 'qualms.{shelf}'")
    folders = package.submodule_search_locations
    found = (module.name for module in pkgutil.iter_modules(folders))
    return tuple(sorted(name for name in found if not name.startswith("_")))


def find(shelf: str, name: str) -> Any:
    """The part `name` of `shelf`: the function its file is named after."""
    known = names(shelf)
    if name not in known:
        raise LookupError(
            f"no {name!r} in {shelf}.{suggest(name, known)} Known: {', '.join(known)}."
        )
    return getattr(import_module(f"qualms.{shelf}.{name}"), name)


def suggest(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """' Did you mean ...?' when something in `known` is close to `name`, else ''."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=cutoff)
    return f" Did you mean {close[0]!r}?" if close else ""
