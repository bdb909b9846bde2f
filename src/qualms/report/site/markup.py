"""HTML as values: texts are escaped, and nothing that the policy forbids is written.

`Html` is a piece of a page that needs no further escaping. `element` is the only way to
make one, so a name from a file cannot become markup. Attributes that could run or
style anything (`onclick`, `style`, a link to `javascript:`) are refused.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape, unescape

LONGEST_NAME = 80
"""Most characters of a name that are shown; its title has all of them."""
NAMELESS = "(no name)"
"""Stands for a name of which nothing can be seen."""
_LONGEST_WORD = 24
"""Longer words are broken anywhere, so that no name widens its column."""
_EMPTY_TAGS = frozenset(("input", "img", "br", "hr", "meta", "link"))
_LINKS = ("href", "src", "data-source")
_SAFE_LINK = re.compile(r"(?:\w[\w.-]*/)*[\w.-]*(?:#[\w.-]*)?", re.ASCII)
_SAFE_SCHEME = re.compile(r"https?://[^\s]+|data:image/(?:png|webp|jpeg);base64,")
_TAG = re.compile(r"<[^>]*>")
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Html:
    """A piece of a page, escaped already."""

    text: str = ""

    def __add__(self, other: "Html") -> "Html":
        return Html(self.text + other.text)

    def __bool__(self) -> bool:
        return bool(self.text)


Child = str | Html | None | Iterable["Child"]
"""A text, which is escaped; a piece of a page; nothing; or several of them."""
Attribute = str | int | float | bool | None


def element(tag: str, /, *children: Child, **attributes: Attribute) -> Html:
    """Return an element; texts in it are escaped.

    A last underscore of an attribute's name is dropped, and others become hyphens:
    `class_="lead"`, `data_chart="curves"`. True stands for an attribute without a
    value, None and False leave it out.

    >>> element("p", "a < b ", element("b", "c"), class_="lead").text
    '<p class="lead">a &lt; b <b>c</b></p>'
    """
    opening = "".join(_attribute(name, value) for name, value in attributes.items())
    if tag in _EMPTY_TAGS:
        return Html(f"<{tag}{opening}>")
    return Html(f"<{tag}{opening}>{html_of(children).text}</{tag}>")


def html_of(children: Child) -> Html:
    """Return texts and pieces one after the other.

    >>> html_of(["1 < 2", None, element("br")]).text
    '1 &lt; 2<br>'
    """
    return Html("".join(_texts(children)))


def text_of(children: Child) -> str:
    """Return texts and pieces without their elements, for a terminal.

    >>> text_of(["1 < 2 ", element("b", "and <3>")])
    '1 < 2 and <3>'
    """
    # In texts and attributes < and > are escaped, so these are all elements.
    return unescape(_TAG.sub("", html_of(children).text))


def name(words: str, *, most: int = LONGEST_NAME) -> Html:
    """Return a name from outside: isolated, and cut with all of it in its title.

    It may be written from right to left, contain markup, or be very long.
    """
    if not any(letter.isprintable() and letter != " " for letter in words):
        words = NAMELESS
    shown = words if len(words) <= most else f"{words[: most - 1]}…"
    title = words if shown != words else None
    long = any(len(word) > _LONGEST_WORD for word in shown.split())
    class_ = "name long" if long else "name"
    return element("bdi", shown, class_=class_, title=title)


def link(href: str, *children: Child, **attributes: Attribute) -> Html:
    """Return a link to a page or file of the site, or to an address on the web."""
    return element("a", *children, href=href, **attributes)


def plain(words: str) -> str:
    r"""Return a text without characters that no page may hold, such as "\x00".

    >>> plain("a\x00b\ud800")
    'a�b�'
    """
    return _CONTROLS.sub("�", words)


def _texts(children: Child) -> Iterable[str]:
    if children is None:
        return
    if isinstance(children, Html):
        yield children.text
    elif isinstance(children, str):
        yield escape(plain(children), quote=True)
    else:
        for child in children:
            yield from _texts(child)


def _attribute(key: str, value: Attribute) -> str:
    attribute = key.removesuffix("_").replace("_", "-")
    if value is None or value is False:
        return ""
    if attribute.lower() == "style" or attribute.lower().startswith("on"):
        raise ValueError(
            f"a page must have no attribute {attribute!r}: its policy forbids it; use a"
            " class of site.css, or a script in assets"
        )
    if value is True:
        return f" {attribute}"
    text = plain(str(value))
    if attribute in _LINKS and not _is_safe(text):
        raise ValueError(
            f"a link must lead to a file of the site or to http(s), got {text!r:.80}"
        )
    return f' {attribute}="{escape(text, quote=True)}"'


def _is_safe(address: str) -> bool:
    return bool(_SAFE_LINK.fullmatch(address) or _SAFE_SCHEME.match(address))
