"""HTML that cannot be injected into: elements are built from names on a list, and text is always escaped.

There is no way to turn a string into markup: `Markup` is made by `el` and `json_block` alone. Hidden and
direction-changing characters become visible codes even where the caller forgot to clean.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Iterable, Mapping

from seatrial.report.text import json_text, visible

_KEY = object()
_VOID = frozenset({"meta", "link", "br", "wbr", "hr"})
_TAGS = _VOID | {
    "figcaption",
    "html", "head", "title", "body", "header", "main", "footer", "nav", "section", "aside", "div", "p", "span",
    "strong", "b", "bdi", "h1", "h2", "h3", "h4", "ul", "ol", "li", "table", "caption", "thead", "tbody", "tr", "th",
    "td", "details", "summary", "pre", "code", "figure", "a", "svg", "g", "line", "rect", "circle", "path", "text",
    "desc",
}  # fmt: skip
_ATTRIBUTES = {
    "class", "id", "lang", "charset", "name", "content", "http-equiv", "rel", "href", "scope", "open", "role",
    "tabindex", "viewBox", "x", "y", "x1", "y1", "x2", "y2", "cx", "cy", "r", "rx", "d", "width", "height",
    "text-anchor", "focusable",
}  # fmt: skip


class Markup:
    """Finished HTML. Made only by this module's builders."""

    __slots__ = ("_text",)

    def __init__(self, key: object, text: str) -> None:
        if key is not _KEY:
            raise TypeError("markup is built with el(), never from a string")
        self._text = text

    def __str__(self) -> str:
        return self._text


Attribute = str | int | float | bool | None
Node = str | Markup | None | Iterable["str | Markup | None"]


def el(tag: str, attributes: Mapping[str, Attribute] | None = None, *children: Node) -> Markup:
    """An element. Strings are text and escaped; None children and None or False attributes are left out.

    Raises:
        ValueError: a tag or attribute that is not on the list, or a link that leaves the page.
    """
    if tag not in _TAGS:
        raise ValueError(f"element {tag!r} is not allowed in a report")
    start = tag + "".join(_attribute(tag, key, value) for key, value in (attributes or {}).items())
    if tag in _VOID:
        return Markup(_KEY, f"<{start}>")
    return Markup(_KEY, f"<{start}>{''.join(_text(child) for child in children)}</{tag}>")


def _attribute(tag: str, key: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    if key not in _ATTRIBUTES and not (key.startswith("aria-") and key[5:].isalpha()):
        raise ValueError(f"attribute {key!r} is not allowed in a report")
    if value is True:
        return f" {key}"
    text = f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
    if key == "href" and not (text.startswith("#") or (tag == "link" and text.startswith("data:image/svg+xml,"))):
        raise ValueError("a report links only to itself")
    return f' {key}="{html.escape(visible(text))}"'


def _text(child: Node) -> str:
    if child is None:
        return ""
    if isinstance(child, Markup):
        return str(child)
    if isinstance(child, str):
        return html.escape(visible(child))
    return "".join(_text(one) for one in child)


def json_block(text: str) -> Markup:
    """JSON text shown as it is, hidden characters as JSON escapes."""
    return Markup(_KEY, f"<code>{html.escape(json_text(text))}</code>")


def document(*, title: str, css: str, icon: str, body: Iterable[Markup], lang: str = "en") -> str:
    """A complete page that needs no network and runs no script; the policy allows this one style sheet.

    Raises:
        ValueError: a style sheet that could end its own element.
    """
    if "<" in css:
        raise ValueError("a style sheet may not contain '<'")
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    head = el(
        "head",
        None,
        el("meta", {"charset": "utf-8"}),
        el("meta", {"http-equiv": "Content-Security-Policy", "content": policy}),
        el("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}),
        el("meta", {"name": "referrer", "content": "no-referrer"}),
        el("meta", {"name": "color-scheme", "content": "light dark"}),
        el("title", None, title),
        el("link", {"rel": "icon", "href": icon}),
        Markup(_KEY, f"<style>{css}</style>"),
    )
    return "<!doctype html>\n" + str(el("html", {"lang": lang}, head, el("body", None, *body))) + "\n"
