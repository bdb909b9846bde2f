"""Texts of strangers in pages: escaped, isolated, and never markup."""

import pytest

from qualms.report.site.markup import Html, element, html_of, link, name
from report.site.made_site import HOSTILE


@pytest.mark.parametrize("words", HOSTILE)
def test_no_name_becomes_markup(words):
    page = element("p", name(words), title=words).text
    inside = page.removeprefix("<p ").removesuffix("</p>")
    assert inside.count("<") == 2  # of bdi alone
    assert "<bdi" in inside
    assert inside.count('"') == 2 * inside.count('="')
    assert "'" not in inside
    page.encode("utf-8")


def test_a_long_name_is_cut_and_its_title_has_it_all():
    text = name("x" * 300).text
    assert f'title="{"x" * 300}"' in text
    assert f">{'x' * 79}…</bdi>" in text
    assert "title" not in name("x" * 80).text
    assert 'class="name long"' in name("x" * 30).text
    assert 'class="name"' in name("two words").text


@pytest.mark.parametrize("words", ["", " ", "\u2028\u2029", "\u200b", "\x00\n"])
def test_a_name_that_cannot_be_seen_is_said_to_be_none(words):
    assert ">(no name)</bdi>" in name(words).text


@pytest.mark.parametrize("attribute", ["onclick", "style", "onerror", "ONLOAD"])
def test_attributes_that_the_policy_forbids_are_refused(attribute):
    with pytest.raises(ValueError, match="its policy forbids it"):
        element("p", **{attribute: "alert(1)"})


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        " javascript:alert(1)",
        "data:text/html,<script>alert(1)</script>",
        "data:image/svg+xml,<svg/>",
        "vbscript:x",
        "file:///etc/passwd",
        "/etc/passwd",
        "//evil.example",
        "../up.html",
        'x" onclick="y',
        "a\nb",
    ],
)
def test_links_lead_to_the_site_or_the_web(address):
    with pytest.raises(ValueError, match="must lead to a file of the site"):
        link(address, "here")


@pytest.mark.parametrize(
    "address",
    ["index.html", "cells.html#cells-roc", "#main", "files/a.csv", "https://a.org/b"],
)
def test_safe_links_are_written(address):
    assert link(address, "here").text == f'<a href="{address}">here</a>'


def test_pieces_are_put_together_in_order():
    pieces = ["<", None, Html("<br>"), ["a", [element("b", "c")]]]
    assert html_of(pieces).text == "&lt;<br>a<b>c</b>"
    assert not Html()
    assert Html("a") + Html("b") == Html("ab")


def test_empty_elements_have_no_end():
    shown = element("input", type="search", disabled=True, value=None, hidden=False)
    assert shown.text == '<input type="search" disabled>'
