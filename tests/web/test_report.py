"""The report page in a real browser: it shows, loads nothing, fits a phone, is accessible, and stays inert."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seatrial.records import Ranking
from seatrial.report.page import ranking_page

pytestmark = pytest.mark.web
FULL = pytest.mark.full
NAMES = (
    "observational",
    "refusals",
    "hostile",
    *(pytest.param(name, marks=FULL) for name in ("crossed", "randomised", "not_identified", "one_user")),
)
AXE = ("one_user", *(pytest.param(name, marks=FULL) for name in ("observational", "randomised", "hostile")))
Rankings = dict[str, Callable[[], Ranking]]


OUTSIDE_OR_OVER = """() => { const out = []; for (const svg of document.querySelectorAll('svg.chart')) {
    const box = svg.getBoundingClientRect(); if (!box.width) continue;
    const texts = [...svg.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()])
        .filter(([s, b]) => b.width && s);
    texts.forEach(([s, a], i) => {
        if (a.left < box.left - 1 || a.right > box.right + 1 || a.bottom > box.bottom + 1) out.push('outside: ' + s);
        if (a.height < 9) out.push('small: ' + s);
        for (const [t, b] of texts.slice(i + 1))
            if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
                Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4) out.push('over: ' + s + ' | ' + t); }); }
    return out; }"""


@pytest.mark.parametrize("name", NAMES)
def test_shows_whole_at_every_width_and_asks_nobody(visit: Any, rankings: Rankings, name: str) -> None:
    """No error, no request, no sideways scrolling from 360 to 1440 px, chart text inside, readable and apart."""
    seen = visit(ranking_page(rankings[name]()))
    page = seen.page
    assert page.locator("h1").is_visible()
    assert page.locator("section.verdict").is_visible()
    assert page.evaluate("getComputedStyle(document.body).margin") == "0px", "the style sheet applies"
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    for width in (1440, 1120, 768, 360):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate("document.body.scrollWidth") <= width
        assert page.evaluate(OUTSIDE_OR_OVER) == [], width
    assert seen.logged == []
    assert seen.dialogs == []
    assert [url for url in seen.requested if not url.startswith(("file:", "data:"))] == []


def test_one_drawing_of_each_chart_is_visible_at_every_width(visit: Any, rankings: Rankings) -> None:
    text = ranking_page(rankings["observational"]())
    for width, shown, hidden in ((1440, ".wide", ".narrow"), (360, ".narrow", ".wide")):
        page = visit(text, width=width).page
        assert page.locator(f"#models {shown} svg").is_visible()
        assert not page.locator(f"#models {hidden} svg").is_visible()


@pytest.mark.parametrize("name", AXE)
def test_accessible(visit: Any, rankings: Rankings, name: str) -> None:
    """axe-core finds nothing, in light and dark: names, roles, landmarks, heading order, contrast, keyboard reach."""
    if importlib.util.find_spec("axe_playwright_python") is None:
        pytest.skip("axe-playwright-python is not installed (dev extra)")
    from axe_playwright_python.sync_playwright import Axe

    page = visit(ranking_page(rankings[name]()), width=1000).page
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        # Colours are all that changes with the scheme; where a rule found nothing need not be listed.
        only = {} if scheme == "light" else {"runOnly": ["color-contrast"]}
        options = {"resultTypes": ["violations"], **only}
        found = Axe().run(page, options=options).response["violations"]
        assert [(rule["id"], rule["nodes"][0]["html"]) for rule in found] == [], scheme


def test_hostile_names_are_inert_text(visit: Any, rankings: Rankings) -> None:
    page = visit(ranking_page(rankings["hostile"]())).page
    assert page.locator("script").count() == 0
    assert page.locator("img").count() == 0
    assert page.locator("main a").count() == 0
    assert "<script>alert(1)</script>" in page.locator("#models tbody").first.inner_text()


def test_works_without_scripts_and_by_keyboard(visit: Any, rankings: Rankings) -> None:
    page = visit(ranking_page(rankings["observational"]()), scripts=False).page
    page.keyboard.press("Tab")
    assert page.locator(".skip").is_visible()
    summary = page.locator("#signals summary").first
    summary.focus()
    page.keyboard.press("Enter")
    assert page.locator("#signals table").first.is_visible()


def test_prints_the_tables_that_are_folded_on_screen(visit: Any, rankings: Rankings) -> None:
    page = visit(ranking_page(rankings["observational"]())).page
    page.emulate_media(media="print")
    assert not page.locator("nav.toc").is_visible()
    assert page.locator("#models .wide svg").is_visible()
    height = page.evaluate("document.querySelector('#signals table').getBoundingClientRect().height")
    assert height > 50


def test_the_policy_blocks_what_gets_in_anyway(visit: Any, rankings: Rankings, tmp_path: Path) -> None:
    """Even if markup were injected, neither its script nor its picture would load."""
    text = ranking_page(rankings["one_user"]())
    broken = text.replace("</main>", "<script>document.title='owned'</script><img src='http://127.0.0.1:9/x'></main>")
    assert broken != text
    seen = visit(broken)
    assert seen.page.title() != "owned"
    assert any("Content Security Policy" in line for line in seen.logged)
