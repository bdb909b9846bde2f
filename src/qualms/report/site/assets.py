"""The scripts and the style sheet of pages, joined of the files in `assets`.

They are classic scripts, so that a page opens from disk. Those that all pages share are
one file, in which `base.js` comes first and defines `qualms`. A chart is one file of
`assets/charts`, which only pages with such a chart load.
"""

import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

FIRST = "base.js"
_CHART = re.compile(r'data-chart="([a-z]+)"')
_CALLED = re.compile(r"qualms\.charts\.([a-z]+)\(")
_TEXT = re.compile(r'("(?:\\.|[^"\\])*")')


@cache
def script() -> str:
    """Return the script that all pages share."""
    folder = files("qualms.report.site") / "assets"
    names = sorted(path.name for path in folder.iterdir() if path.name.endswith(".js"))
    names.sort(key=lambda name: name != FIRST)
    return "".join(_shortened((folder / name).read_text("utf-8")) for name in names)


@cache
def chart_kinds() -> tuple[str, ...]:
    """Return the kinds of charts that there are."""
    folder = files("qualms.report.site") / "assets" / "charts"
    return tuple(sorted(path.name.removesuffix(".js") for path in folder.iterdir()))


@cache
def chart_script(kind: str) -> str:
    """Return the script of a kind of chart."""
    folder = files("qualms.report.site") / "assets" / "charts"
    return _shortened((folder / f"{kind}.js").read_text("utf-8"))


def charts_of(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the kinds of charts in the texts of pages, and those that these call."""
    kinds = {kind for text in texts for kind in _CHART.findall(text)}
    called = {other for kind in kinds for other in _CALLED.findall(chart_script(kind))}
    return tuple(sorted(kinds | called))


@cache
def style() -> str:
    """Return the style sheet of all pages."""
    folder = files("qualms.report.site") / "assets"
    names = sorted(path.name for path in folder.iterdir() if path.name.endswith(".css"))
    return "".join((folder / name).read_text("utf-8") for name in names)


def _shortened(text: str) -> str:
    """Return a script without comment lines and spaces, which readers need."""
    lines = (line.strip() for line in text.splitlines())
    code = (_tight(line) for line in lines if line and not line.startswith("//"))
    return re.sub(r"/\*.*?\*/\n?", "", "\n".join(code), flags=re.DOTALL) + "\n"


def _tight(line: str) -> str:
    """Return a line without spaces at its signs, but for those in texts.

    A line with a pattern or with a text in other quotes stays as it is.
    """
    if any(sign in line for sign in "'`/"):
        return line
    parts = _TEXT.split(line)  # code and texts in turn
    parts[::2] = (re.sub(r" *([=,;:{}()?&|]) *", r"\1", part) for part in parts[::2])
    return "".join(parts)
