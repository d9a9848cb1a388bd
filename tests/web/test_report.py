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
NAMES = ("observational", "crossed", "randomised", "not_identified", "refusals", "one_user", "hostile")
Rankings = dict[str, Callable[[], Ranking]]


@pytest.mark.parametrize("name", NAMES)
def test_shows_without_errors_or_requests(visit: Any, rankings: Rankings, name: str) -> None:
    seen = visit(ranking_page(rankings[name]()))
    assert seen.page.locator("h1").is_visible()
    assert seen.page.locator("section.verdict").is_visible()
    assert seen.page.evaluate("getComputedStyle(document.body).margin") == "0px", "the style sheet applies"
    assert seen.logged == []
    assert seen.dialogs == []
    assert [url for url in seen.requested if not url.startswith(("file:", "data:"))] == []


@pytest.mark.parametrize("width", [360, 768, 1440])
@pytest.mark.parametrize("name", NAMES)
def test_never_scrolls_sideways(visit: Any, rankings: Rankings, name: str, width: int) -> None:
    page = visit(ranking_page(rankings[name]()), width=width).page
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("document.body.scrollWidth") <= width


def test_one_drawing_of_each_chart_is_visible_at_every_width(visit: Any, rankings: Rankings) -> None:
    text = ranking_page(rankings["observational"]())
    for width, shown, hidden in ((1440, ".wide", ".narrow"), (360, ".narrow", ".wide")):
        page = visit(text, width=width).page
        assert page.locator(f"#models {shown} svg").is_visible()
        assert not page.locator(f"#models {hidden} svg").is_visible()


def test_chart_text_stays_in_the_picture_and_is_readable(visit: Any, rankings: Rankings) -> None:
    for width in (360, 1440):
        for name in ("observational", "randomised", "hostile"):
            page = visit(ranking_page(rankings[name]()), width=width).page
            problems = page.evaluate(
                """() => { const out = []; for (const svg of document.querySelectorAll('svg.chart')) {
                const box = svg.getBoundingClientRect(); if (!box.width) continue;
                for (const t of svg.querySelectorAll('text')) { const b = t.getBoundingClientRect();
                if (b.left < box.left - 1 || b.right > box.right + 1 || b.bottom > box.bottom + 1)
                    out.push('outside: ' + t.textContent);
                if (b.height < 9) out.push('small: ' + t.textContent); } } return out; }"""
            )
            assert problems == [], (name, width)


def test_labels_and_values_of_a_chart_do_not_overlap(visit: Any, rankings: Rankings) -> None:
    for width in (360, 1440):
        for name in ("observational", "randomised", "hostile"):
            page = visit(ranking_page(rankings[name]()), width=width).page
            problems = page.evaluate(
                """() => { const out = []; for (const svg of document.querySelectorAll('svg.chart')) {
                const texts = [...svg.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()])
                    .filter(([s, b]) => b.width && s);
                for (let i = 0; i < texts.length; i++) for (let j = i + 1; j < texts.length; j++) {
                const [s, a] = texts[i], [t, b] = texts[j];
                if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
                    Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4) out.push(s + ' | ' + t); } }
                return out; }"""
            )
            assert problems == [], (name, width)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["observational", "randomised", "not_identified", "hostile"])
def test_accessible(visit: Any, rankings: Rankings, name: str, scheme: str) -> None:
    """axe-core finds nothing: names, roles, landmarks, heading order, contrast 4.5:1, keyboard reach."""
    if importlib.util.find_spec("axe_playwright_python") is None:
        pytest.skip("axe-playwright-python is not installed (dev extra)")
    from axe_playwright_python.sync_playwright import Axe

    page = visit(ranking_page(rankings[name]()), width=1000, scheme=scheme).page
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    found = Axe().run(page).response["violations"]
    assert [(rule["id"], rule["nodes"][0]["html"]) for rule in found] == []


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
