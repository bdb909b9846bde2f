"""Pages and their parts: the records that page builders make.

A builder composes `Fragment`s and returns `Page`s. It writes no file: `write_site` puts
the shell around a page, and its data and downloads beside it or into it.
"""

import hashlib
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from qualms.report.figures import Drawing
from qualms.report.site.markup import Child, Html, element, html_of

LONGEST_SLUG = 120
"""Longer slugs end in a digest of their words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """Plain data for a chart or viewer: numbers, texts, lists and mappings.

    Scripts get it by its name. Numbers that are not finite become null.
    """

    name: str
    """Unique in the site, of letters, digits, `_` and `-`: "retina-roc"."""
    value: Any
    """As for JSON. Arrays of NumPy are lists of numbers with six digits."""
    on_demand: bool = False
    """True to load it only when the reader asks for it (a case, a planner)."""

    def __post_init__(self) -> None:
        _check_name(self.name, r"[\w-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Download:
    """A file that readers can save: CSV, LaTeX, PDF."""

    name: str
    """Name of the file, unique in the site: "retina_table_4.csv"."""
    content: bytes | Path | Drawing
    """Its bytes, a file to copy, or a figure to draw as PDF."""

    def __post_init__(self) -> None:
        _check_name(self.name, r"[\w-][\w.-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragment:
    """A piece of a page, with the data and downloads that it needs."""

    html: Html
    data: tuple[DataFile, ...] = ()
    downloads: tuple[Download, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page of the site, without what all pages share."""

    path: str
    """File name: "index.html", or `slug(...) + ".html"`."""
    title: str
    """Heading of the page and title of the window."""
    body: tuple[Fragment, ...]
    """Fragments below the heading."""
    nav: str = ""
    """Its words in the navigation; "" for a page that others link."""
    order: int = 50
    """Pages with a smaller number stand first in the navigation."""
    lead: str = ""
    """A sentence below the heading."""
    chips: tuple[str, ...] = ()
    """A few words each, above the heading."""
    simulated: bool = False
    """True if some of its numbers are of simulated data, which a chip says."""

    @property
    def slug(self) -> str:
        """The path without its ending; ids on the page begin with it."""
        return self.path.removesuffix(".html")

    @property
    def html(self) -> Html:
        """The body."""
        return html_of(fragment.html for fragment in self.body)

    @property
    def data(self) -> tuple[DataFile, ...]:
        """The data of all parts, each once."""
        return tuple(
            {d.name: d for fragment in self.body for d in fragment.data}.values()
        )

    @property
    def downloads(self) -> tuple[Download, ...]:
        """The downloads of all parts, each once."""
        return tuple({d.name: d for p in self.body for d in p.downloads}.values())


def fragment(
    *children: "Child | Fragment", tag: str = "", **attributes: Any
) -> Fragment:
    """Return pieces and parts as one fragment, in an element if `tag` names one."""
    pieces: list[Html] = []
    data: list[DataFile] = []
    downloads: list[Download] = []
    for child in children:
        if isinstance(child, Fragment):
            pieces.append(child.html)
            data += child.data
            downloads += child.downloads
        else:
            pieces.append(html_of(child))
    html = element(tag, *pieces, **attributes) if tag else html_of(pieces)
    return Fragment(html=html, data=tuple(data), downloads=tuple(downloads))


def section(
    anchor: str, title: str, *children: "Child | Fragment", about: str = ""
) -> Fragment:
    """Return a section with a heading.

    Args:
        anchor: Its id, which must begin with the page's slug: "retina-roc".
        title: The heading.
        children: Parts, pieces and texts below it.
        about: A sentence below the heading.
    """
    return fragment(
        element("h2", title),
        element("p", about, class_="about") if about else None,
        *children,
        tag="section",
        id=anchor,
    )


def slug(words: str, taken: Iterable[str] = (), *, most: int = LONGEST_SLUG) -> str:
    """Return words as part of a file name and of ids, other than those `taken`.

    Args:
        words: Words from anywhere.
        taken: Slugs that it must differ from.
        most: Its length at most, but for a number.

    >>> slug("Cells: Tails/Shift"), slug("../..", ("page",)), slug("Cells", ("cells",))
    ('cells-tails-shift', 'page-2', 'cells-2')
    """
    plain = re.sub(r"[^a-z0-9]+", "-", words.lower().encode("ascii", "ignore").decode())
    stem = plain.strip("-") or "page"
    if len(stem) > most:
        digest = hashlib.sha256(words.encode("utf-8", "replace")).hexdigest()[:8]
        stem = f"{stem[: most - 9].strip('-')}-{digest}"
    used = set(taken)
    return next(each for each in _numbered(stem) if each not in used)


def plain_data(value: Any) -> Any:
    """Return a value as JSON can hold it: arrays as lists, what is not finite as None.

    >>> plain_data({"x": np.array([0.1234567, np.nan]), "n": (1, True, None)})
    {'x': [0.123457, None], 'n': [1, True, None]}
    """
    if isinstance(value, np.ndarray):
        return plain_data(value.tolist())
    if isinstance(value, np.generic):
        return plain_data(value.item())
    if isinstance(value, dict):
        return {str(key): plain_data(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_data(each) for each in value]
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value


def _numbered(stem: str) -> Iterator[str]:
    yield stem
    number = 2
    while True:
        yield f"{stem}-{number}"
        number += 1


def _check_name(file: str, pattern: str) -> None:
    if not re.fullmatch(pattern, file, re.ASCII):
        raise ValueError(
            f"a file of the site must have a name of letters, digits and hyphens, got"
            f" {file!r:.80}; make it with `slug`"
        )
