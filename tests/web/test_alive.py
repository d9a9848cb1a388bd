"""Pages that stay open: news after a click, a server that is gone, and lists that a keyboard gets past."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

pytestmark = pytest.mark.web
See = Callable[..., Any]
WAIT = 30_000


def told(page: Any, version: str) -> None:
    """From now on the server says that its store is at this version."""
    body = json.dumps({"data_version": version, "sessions": version})
    page.route("**/api/version", lambda route: route.fulfill(body=body, content_type="application/json"))


def refused(status: int, route: Any) -> None:
    """The server answers, and is not well, or does not know who asks."""
    route.fulfill(status=status, body="{}")


def later(page: Any, condition: str) -> None:
    """Let the page's own clock run until something holds."""
    for _ in range(60):
        page.clock.run_for(2_000)
        if page.evaluate(condition):
            return
    raise AssertionError(f"it never holds that {condition}")


@pytest.fixture
def timed(see: See) -> See:
    """Opens a page whose clock runs when the test says so."""

    def opened(path: str) -> Any:
        page = see("/api").page
        page.clock.install()
        page.goto(page.url.removesuffix("/api") + path)
        return page

    return opened


def test_news_comes_after_a_click_and_waits_for_whoever_types(timed: See) -> None:
    page = timed("/sessions")
    fetched: list[str] = []
    page.on("request", lambda r: r.url.endswith("/sessions") and r.resource_type == "fetch" and fetched.append(r.url))
    for n, place in enumerate(("main h1", ".results .legend-line", ".results thead"), 1):
        page.locator(place).first.click()
        assert page.evaluate("document.activeElement !== document.body"), "a click gives the focus to something"
        page.evaluate("document.body.dataset.version = 'old'")
        told(page, f"of {place}")
        later(page, "document.body.dataset.version !== 'old'")
        assert len(fetched) >= n
    page.locator("#q").focus()
    page.evaluate("document.body.dataset.version = 'kept'")
    told(page, "while somebody types")
    later(page, "!document.querySelector('[data-new]').hidden")
    assert page.evaluate("[document.activeElement.id, document.body.dataset.version]") == ["q", "kept"]
    page.locator("#q").evaluate("field => field.blur()")
    later(page, "document.body.dataset.version !== 'kept'")


def test_news_that_arrives_while_somebody_begins_to_type_waits_too(timed: See) -> None:
    page = timed("/sessions")
    page.evaluate(
        """() => {
            const text = Response.prototype.text;
            window.asked = new Promise((asked) => {
                Response.prototype.text = function () {
                    asked();
                    return new Promise((go) => { window.go = go; }).then(() => text.call(this));
                };
            });
            document.body.dataset.version = "kept";
        }"""
    )
    told(page, "of a page on its way")
    page.clock.run_for(2_000)
    page.evaluate("window.asked")
    page.locator("#q").focus()
    page.evaluate("window.go()")
    later(page, "!document.querySelector('[data-new]').hidden")
    assert page.evaluate("[document.activeElement.id, document.body.dataset.version]") == ["q", "kept"]


def test_a_server_that_is_gone_does_not_look_alive(timed: See) -> None:
    page = timed("/sessions")
    colour = "getComputedStyle(document.querySelector('.live'), '::before').backgroundColor"
    said = "document.querySelector('[data-away]').textContent"
    alive = page.evaluate(colour)
    page.route("**/api/version", lambda route: route.abort())
    later(page, f"{said}.includes('has not answered since')")
    assert page.evaluate(colour) != alive
    for status, words in ((503, "something is wrong (503)"), (401, "signed out")):
        page.unroute("**/api/version")
        page.route("**/api/version", partial(refused, status))
        later(page, f"{said}.includes('{words}')")
    page.unroute("**/api/version")
    later(page, f"{said} === ''")
    assert page.evaluate(colour) == alive


def test_steps_that_cannot_be_fetched_say_so_and_come_when_the_server_is_back(timed: See) -> None:
    page = timed("/session?id=long-session-of-many-steps")
    page.route("**/session/steps?**", lambda route: route.abort())
    page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    page.locator("[data-away]:has-text('has not answered')").wait_for(timeout=WAIT)
    page.locator(".chunk[data-said]").last.wait_for(timeout=WAIT)
    page.unroute("**/session/steps?**")
    later(page, "document.querySelector('.chunk:not(.wait) #s9999') !== null")
    assert not page.locator("[data-away]").inner_text()


def test_a_keyboard_gets_past_long_lists_and_decides_in_them(see: See) -> None:
    page = see("/triage").page
    page.locator(".skip-line .skip").focus()
    assert page.locator(".skip-line .skip").bounding_box()["x"] >= 0
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    after = "document.querySelector('#after').compareDocumentPosition(document.activeElement) & 20"
    assert page.evaluate(after), "the next stop is in the pager or below it"
    page.evaluate("document.activeElement.blur()")
    for key in "jjx":
        page.keyboard.press(key)
    row = "document.activeElement.name + ' of ' + document.activeElement.closest('li').querySelector('a').id"
    assert page.evaluate(row) == "reason of i2"
    page.locator("#i2").focus()
    page.keyboard.press("j")
    wanted = page.locator("#i3").inner_text()[:8]
    page.route("**/triage/draft", lambda route: route.abort())
    with page.expect_request("**/triage/draft", timeout=WAIT) as asked:
        page.keyboard.press("t")
    assert wanted in asked.value.post_data
    page = see("/sessions").page
    page.locator(".skip-line .skip").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.querySelector('.results').contains(document.activeElement)")
