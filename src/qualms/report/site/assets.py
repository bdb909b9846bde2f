"""The script and the style sheet that all pages share, joined of the files in `assets`.

They are classic scripts, one small file for each chart, so that a page opens from disk.
`base.js` comes first, and defines `qualms`.
"""

import re
from functools import cache
from importlib.resources import files

FIRST = "base.js"
_TEXT = re.compile(r'("(?:\\.|[^"\\])*")')


@cache
def script() -> str:
    """Return the script of all pages."""
    folder = files("qualms.report.site") / "assets"
    names = sorted(path.name for path in folder.iterdir() if path.name.endswith(".js"))
    names.sort(key=lambda name: name != FIRST)
    return "".join(_shortened((folder / name).read_text("utf-8")) for name in names)


@cache
def style() -> str:
    """Return the style sheet of all pages."""
    folder = files("qualms.report.site") / "assets"
    names = sorted(path.name for path in folder.iterdir() if path.name.endswith(".css"))
    return "".join((folder / name).read_text("utf-8") for name in names)


def _shortened(text: str) -> str:
    """Return a script without comment lines and spaces, which readers need."""
    lines = (line.strip() for line in text.splitlines())
    kept = (_tight(line) for line in lines if line and not line.startswith("//"))
    return re.sub(r"/\*.*?\*/\n?", "", "\n".join(kept), flags=re.DOTALL) + "\n"


def _tight(line: str) -> str:
    """Return a line without spaces at its signs, but for those in texts.

    A line with a pattern or with a text in other quotes stays as it is.
    """
    if any(sign in line for sign in "'`/"):
        return line
    parts = _TEXT.split(line)  # code and texts in turn
    parts[::2] = (re.sub(r" *([=,;:{}()?&|]) *", r"\1", part) for part in parts[::2])
    return "".join(parts)
