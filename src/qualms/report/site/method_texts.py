"""Descriptions of methods from their files, without importing them or torch."""

import ast
import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from qualms.report.site.page import slug
from qualms.shelf import names, outside_parts

_SHELF = "methods"
_PLAIN = re.compile(r"[a-z0-9]+(_[a-z0-9]+)*")
_ARXIV = re.compile(r"arXiv:(\d{4}\.\d{4,5})")
_PAPER = re.compile(r"\(([^()]*\d{4}[^()]*)\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodText:
    """The description of a method, as its file states it."""

    what: str = ""
    """Its first sentence."""
    paragraphs: tuple[str, ...] = ()
    """The other paragraphs of its file."""
    paper: str = ""
    """Authors and year."""
    address: str = ""
    """The paper on arXiv."""
    defaults: tuple[tuple[str, str], ...] = ()
    """Its options with their defaults."""


def method_page(method: str) -> str:
    """Return the slug of the page of a method; no two methods share one.

    >>> method_page("mc_dropout")
    'method-mc-dropout'
    """
    stem = slug(f"method {method}", most=60)
    if _PLAIN.fullmatch(method) and len(stem) < 60:
        return stem
    return f"{stem}-{method.encode('utf-8', 'replace').hex()[:24]}"


def method_text(method: str) -> MethodText:
    """Return what the file of a method says; an empty text where there is none."""
    path = _file(method)
    if path is None:
        return MethodText()
    try:
        tree = ast.parse(path.read_text("utf-8"))
    except (OSError, ValueError, SyntaxError):
        return MethodText()
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef))
    function = next((node for node in functions if node.name == method), None)
    words = ast.get_docstring(tree) or (function and ast.get_docstring(function)) or ""
    first, *more = (" ".join(each.split()) for each in words.split("\n\n"))
    paper, arxiv = _PAPER.search(first), _ARXIV.search(words)
    return MethodText(
        what=first,
        paragraphs=tuple(more),
        paper=paper[1] if paper else "",
        address=f"https://arxiv.org/abs/{arxiv[1]}" if arxiv else "",
        defaults=_defaults(function),
    )


def _defaults(function: ast.FunctionDef | None) -> tuple[tuple[str, str], ...]:
    if function is None:
        return ()
    arguments = zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
    return tuple((each.arg, ast.unparse(value)) for each, value in arguments if value)


def _file(method: str) -> Path | None:
    """Return the file of a method of the package, or of one that was included."""
    outside = outside_parts(_SHELF).get(method)
    if outside is not None:
        path = Path(outside.where)
        return path if path.suffix == ".py" and path.is_file() else None
    package = find_spec(f"qualms.{_SHELF}")
    if method not in names(_SHELF) or package is None:
        return None
    for folder in package.submodule_search_locations or ():
        for path in (
            Path(folder) / f"{method}.py",
            Path(folder) / method / "__init__.py",
        ):
            if path.is_file():
                return path
    return None
