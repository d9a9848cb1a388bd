"""Nothing becomes markup that this room did not build."""

from __future__ import annotations

import pytest

from seatrial.report.html import Markup, document, el, json_block


def test_text_and_attributes_are_escaped() -> None:
    made = str(el("p", {"class": '"><b>'}, "<script>&'\"", ["\u202e", None, el("b", None, "x")]))
    assert made == ('<p class="&quot;&gt;&lt;b&gt;">&lt;script&gt;&amp;&#x27;&quot;&lt;U+202E&gt;<b>x</b></p>')


def test_markup_cannot_be_made_from_a_string() -> None:
    with pytest.raises(TypeError, match="el"):
        Markup(object(), "<script>")


@pytest.mark.parametrize("tag", ["script", "style", "iframe", "img", "object", "form", "input", "foreignObject"])
def test_elements_that_act_are_refused(tag: str) -> None:
    with pytest.raises(ValueError, match="not allowed"):
        el(tag)


@pytest.mark.parametrize("key", ["onclick", "onload", "style", "src", "srcset", "action", "xlink:href", "aria-x y"])
def test_attributes_that_act_are_refused(key: str) -> None:
    with pytest.raises(ValueError, match="not allowed"):
        el("p", {key: "x"})


@pytest.mark.parametrize("target", ["https://evil.example", "javascript:alert(1)", "data:text/html,x", "//x", "a.html"])
def test_links_stay_on_the_page(target: str) -> None:
    with pytest.raises(ValueError, match="itself"):
        el("a", {"href": target}, "x")
    with pytest.raises(ValueError, match="itself"):
        el("link", {"rel": "icon", "href": target})


def test_absent_attributes_are_left_out_and_numbers_are_short() -> None:
    made = str(el("line", {"x1": 1.0, "x2": 2.34567, "class": None, "open": False, "tabindex": "0"}))
    assert made == '<line x1="1" x2="2.35" tabindex="0"></line>'


def test_a_style_sheet_cannot_end_its_element() -> None:
    with pytest.raises(ValueError, match="<"):
        document(title="x", css="</style><script>", icon="data:image/svg+xml,x", body=[])


def test_the_policy_allows_this_style_sheet_alone() -> None:
    made = document(title="<t>", css="p{color:red}", icon="data:image/svg+xml,x", body=[json_block('{"a":"</code>"}')])
    assert "default-src &#x27;none&#x27;; style-src &#x27;sha256-" in made
    assert "unsafe" not in made
    assert "<title>&lt;t&gt;</title>" in made
    assert "&lt;/code&gt;" in made
