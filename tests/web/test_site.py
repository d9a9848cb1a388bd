"""The web application in a real browser: every page, every form, keys, hostile text, phones, the dark, and axe-core."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

pytestmark = pytest.mark.web

LONG = "long-session-of-many-steps"
HOSTILE = 'hostile "><script>alert(1)</script> \u202eDLROW'
HUGE = "one-line-of-five-megabytes"
SECRET = "withheld-session"
WAIT = 60_000
DONE = "tbody tr:first-child .state:has-text('done')"
FULL = pytest.mark.full
PAGES = (
    "/",
    "/why?model=model-b",
    "/sessions",
    "/sessions?with=complaint&order=errors&agents=all",
    f"/session?id={quote(HOSTILE)}",
    f"/session?id={LONG}&step=5000",
    f"/session/text?id={HUGE}&step=1&field=text",
    "/suites",
    "/scorecard",
    "/recovery",
    "/judges",
    "/drift",
    "/triage",
    "/label",
    "/jobs",
    "/audit",
    "/api",
    "/nothing-here",
)
See = Callable[..., Any]


@pytest.mark.parametrize("path", PAGES)
def test_every_page_fits_and_loads_only_its_own(see: See, site: Any, path: str) -> None:
    """No script error, no foreign request, no sideways scrolling at 1440 and 360 px."""
    seen = see(path)
    page = seen.page
    assert page.locator("h1").is_visible()
    for width in (1440, 360):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width, width
    gone = "/nothing-here" in path
    assert [line for line in seen.logged if not (gone and "404" in line)] == []
    assert seen.dialogs == []
    assert [url for url in seen.requested if not url.startswith((site.address, "data:"))] == []


AXE = ("/", "/why?model=model-b", "/sessions", f"/session?id={quote(HOSTILE)}", "/triage", "/label", "/jobs")


@pytest.mark.parametrize("path", [*AXE, *(pytest.param(p, marks=FULL) for p in PAGES[:-1] if p not in AXE)])
def test_accessible_in_light_and_dark(see: See, path: str) -> None:
    """axe-core finds nothing serious: names, roles, landmarks, contrast, keyboard reach."""
    if importlib.util.find_spec("axe_playwright_python") is None:
        pytest.skip("axe-playwright-python is not installed (dev extra)")
    from axe_playwright_python.sync_playwright import Axe

    page = see(path, width=1200).page
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        # Colours are all that changes with the scheme; where a rule found nothing need not be listed.
        only = {} if scheme == "light" else {"runOnly": ["color-contrast"]}
        options = {"resultTypes": ["violations"], **only}
        found = Axe().run(page, options=options).response["violations"]
        bad = [(v["id"], v["impact"], v["nodes"][0]["html"]) for v in found if v["impact"] in ("serious", "critical")]
        assert bad == [], scheme


def test_a_new_user_finds_why_the_second_is_below_the_first(see: See) -> None:
    """From the first screen, by what can be seen: a reason, its numbers, a sentence; then the session, marked."""
    page = see("/").page
    card = page.locator(".card").first
    assert "model-b" in card.locator("h3").inner_text()
    assert "below" in card.locator("h3").inner_text()
    box = card.bounding_box()
    assert box is not None
    assert box["y"] < 900, "the reason begins on the first screen"
    measure = card.locator(".movers a").first
    assert "%" in card.locator(".pair").first.inner_text()
    measure.click()
    assert page.locator("h1").inner_text().startswith("Why is")
    assert page.locator(".measures [aria-current]").count() == 1
    page.locator("#evidence .quotes a").first.click()
    marked = page.locator("article.step.target mark.ev")
    marked.first.wait_for(timeout=WAIT)
    assert "wrong" in page.locator("article.step.target").inner_text().lower()


def test_the_leaderboard_has_intervals_ranks_and_its_caveats(see: See) -> None:
    page = see("/").page
    assert page.locator(".lead .wide svg .interval").count() == 2
    assert page.locator(".lead .wide svg .ranks").count() == 2
    assert "observational" in page.locator(".verdict-line").inner_text().lower()
    assert page.locator("section.verdict .checks li").count() >= 1
    assert page.locator("#r-dimensions, #r-signals").count() == 2


def test_facets_search_and_pages_of_sessions(see: See) -> None:
    page = see("/sessions").page
    assert "63 sessions" in page.locator("h1").inner_text()
    assert SECRET not in page.content()
    assert "1 session without consent" in page.locator(".note").inner_text()
    page.locator("input[name=model][value=model-b]").check()
    page.wait_for_url("**model=model-b**")
    assert "30 sessions" in page.locator("h1").inner_text()
    page.locator("input[name=with][value=error]").check()
    page.wait_for_url("**with=error**")
    assert "10 sessions" in page.locator("h1").inner_text()
    page.goto(page.url.split("?")[0])
    page.locator("a[rel=next]").click()
    assert page.locator("tbody tr").count() == 13
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "q"
    page.keyboard.type("session-007")
    page.keyboard.press("Enter")
    page.wait_for_url("**q=session-007**")
    assert page.locator("tbody tr").count() == 2
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.locator("article.step").first.wait_for(timeout=WAIT)


def test_words_in_the_text_are_found_where_they_may_be_shown(see: See) -> None:
    page = see("/sessions?text=broke+the+totals").page
    assert page.locator("section .quotes mark").first.inner_text() == "broke the totals"
    assert see("/sessions?text=my+secret+words").page.locator(".quotes li").count() == 0


def test_a_session_of_ten_thousand_steps(see: See) -> None:
    """A deep link lands, keys move, few steps are in the page at a time, and what is above loads without a jump."""
    seen = see(f"/session?id={LONG}&step=5000")
    page = seen.page
    page.wait_for_selector("#s5000.target", timeout=WAIT)
    page.wait_for_selector("#s4999", state="attached", timeout=WAIT)
    page.wait_for_timeout(300)
    top = page.evaluate("document.getElementById('s5000').getBoundingClientRect().top")
    assert -5 <= top <= 120, top
    assert page.locator("article.step").count() < 1500
    for key in "jjk":
        page.keyboard.press(key)
        page.wait_for_timeout(150)
    assert page.evaluate("document.activeElement.id") == "s5001"
    for key, ident in (("End", "s9999"), ("Home", "s0")):
        page.keyboard.press(key)
        page.wait_for_selector(f"#{ident}.target", timeout=WAIT)
    page.keyboard.press("g")
    page.keyboard.type("7777")
    page.keyboard.press("Enter")
    page.wait_for_selector("#s7777.target", timeout=WAIT)
    page.keyboard.press("n")
    page.wait_for_selector("#s100.target mark.ev.here", timeout=WAIT)
    page.keyboard.press("e")
    assert seen.logged == []


def test_a_session_without_scripts(see: See) -> None:
    page = see(f"/session?id={LONG}&step=5000", scripts=False).page
    assert page.locator("#s5000").is_visible()
    page.locator("noscript a, a:has-text('Later steps')").last.click()
    assert page.locator("#s5050").is_visible()


def test_hostile_text_is_inert(see: See) -> None:
    """Markup, terminal sequences, direction overrides and names: all of it stands there as text."""
    seen = see(f"/session?id={quote(HOSTILE)}")
    page = seen.page
    assert seen.dialogs == []
    assert page.locator("main img, main script, main i, .text b").count() == 0
    text = page.locator("article.step").first.inner_text()
    assert "<img src=x onerror=alert(2)>" in text
    assert "ESC[31m" in text
    assert "U+202E" in text
    assert "\u202e" not in page.locator("body").inner_text()
    assert "\x1b" not in page.locator("body").inner_text()
    assert "<i>model</i>" in page.locator("article.step").nth(1).inner_text()
    listed = see("/sessions?q=hostile").page
    assert listed.locator("tbody tr").count() == 1
    assert listed.locator("main script").count() == 0


def test_a_line_of_five_megabytes_is_cut_and_the_rest_comes_when_asked(see: See) -> None:
    seen = see(f"/session?id={HUGE}")
    page = seen.page
    assert len(page.content()) < 200_000
    step = page.locator("article.step").nth(1)
    before = len(step.inner_text())
    assert "5.2 M" in step.locator(".rest").inner_text()
    step.locator("[data-rest]").click()
    step.locator(".text").nth(1).wait_for(timeout=WAIT)
    assert len(step.inner_text()) > before + 60_000
    alone = see(f"/session/text?id={HUGE}&step=1&field=text&from=2600000").page
    assert "<script>alert(3)</script>" in alone.locator(".mono .text").inner_text()
    assert seen.dialogs == []


def test_what_may_not_be_shown_is_not_there(site: Any) -> None:
    for path in ("/session", "/session/steps", "/session/text", "/api/session", "/api/session/steps"):
        answer = httpx.get(f"{site.address}{path}", params={"id": SECRET})
        assert answer.status_code == 404, path
        assert "my secret words" not in answer.text
    assert SECRET not in httpx.get(f"{site.address}/api/sessions?limit=500").text


def test_a_job_is_started_watched_and_its_result_shown(see: See, site: Any) -> None:
    page = see("/jobs").page
    page.select_option("#outcome", "steerability")
    page.locator("main form button[type=submit]").click()
    page.locator(DONE).wait_for(timeout=WAIT)
    page.locator("a.button:has-text('Look')").first.click()
    assert "Steerability" in page.locator("main").inner_text()
    assert len(site.store.results("rank")) == 2


def test_a_running_job_can_be_cancelled(see: See, site: Any) -> None:
    page = see("/jobs").page
    page.select_option("#what", "verify")
    page.locator("main form button[type=submit]").click()
    page.on("dialog", lambda d: d.accept())
    page.locator("button.danger").first.click(timeout=WAIT)
    page.locator("tbody .state:has-text('cancelled'), tbody .state:has-text('done')").first.wait_for(timeout=WAIT)


def test_triage_dismisses_drafts_and_approves(see: See, site: Any) -> None:
    page = see("/triage").page
    before = int(page.locator("h1").inner_text().split()[0])
    page.locator("summary:has-text('Dismiss')").first.click()
    page.locator("input[name=reason]").first.fill("the person changed their mind")
    page.locator("button.danger").first.click()
    page.locator(f"h1:has-text('{before - 1} to look at')").wait_for(timeout=WAIT)
    page.goto(f"{site.address}/triage?state=dismissed")
    assert "changed their mind" in page.locator(".triage").inner_text()
    page.goto(f"{site.address}/triage")
    page.fill("#incident", "the agent mailed the wrong customer")
    page.locator("button:has-text('Note it')").click()
    page.locator(".triage:has-text('mailed the wrong customer')").wait_for(timeout=WAIT)
    page.locator("button:has-text('Draft a task')").first.click(timeout=WAIT)
    page.fill("#rubric", "The report lists the sales by day.", timeout=WAIT)
    page.fill("#checks", '{"check_final": [{"path": "answer", "op": "guess", "value": "day"}]}')
    page.set_viewport_size({"width": 360, "height": 780})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.locator("button:has-text('Save as a draft')").click()
    assert "'guess' is not one of" in page.locator("[role=alert]").inner_text(timeout=WAIT)
    assert page.input_value("#rubric") == "The report lists the sales by day."
    page.fill("#checks", page.input_value("#checks").replace("guess", "contains"))
    page.locator("button:has-text('Approve')").click(timeout=WAIT)
    page.wait_for_url("**/triage?state=task", timeout=WAIT)
    (task,) = [json.loads(line) for line in (Path(site.store.path).parent / "suite.jsonl").read_text().splitlines()]
    assert task["rubric"] == "The report lists the sales by day."
    assert task["check_final"] == [{"path": "answer", "op": "contains", "value": "day"}]
    assert "draft" not in task["extra"]


def test_two_people_label_with_keys_blind_to_the_model(see: See, site: Any) -> None:
    page = see("/label").page
    page.fill("#n", "12")
    page.locator("button:has-text('Draw it')").click()
    page.locator(DONE).wait_for(timeout=WAIT)
    page.goto(f"{site.address}/label")
    queue = page.locator("input[name=queue]").first.get_attribute("value")
    for who, keys in (("ana", "xccm"), ("ben", "xccx")):
        page.goto(f"{site.address}/label/item?queue={queue}&annotator={who}")
        assert "model-" not in page.locator("main").inner_text().lower().replace("[model]", "")
        for n, key in enumerate(keys, 1):
            page.keyboard.press(key)
            page.keyboard.press("Enter")
            page.locator(f"progress[value='{n}']").wait_for(timeout=WAIT)
    page.keyboard.press("u")
    page.wait_for_url("**item=**")
    assert page.locator("input[value=correction]").is_checked()
    page.goto(f"{site.address}/label/agreement?queue={queue}")
    assert "ana and ben" in page.locator("tbody").inner_text()
    assert "75.0%" in page.locator("tbody").inner_text()
    assert page.locator("ol.quotes li").count() == 1
    lines = httpx.get(f"{site.address}/label/answers?unit=turn").text.splitlines()
    assert len(lines) == 8
    assert {json.loads(line)["annotator"] for line in lines} == {"ana", "ben"}
    assert site.store.verify().ok


def test_sessions_that_arrive_appear_without_a_reload(see: See, site: Any) -> None:
    page = see("/sessions").page
    page.evaluate("document.activeElement.blur(); window.kept = true")
    message = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "hello there"}]}])
    attributes = {
        "gen_ai.operation.name": "chat", "gen_ai.request.model": "model-live", "gen_ai.input.messages": message,
        "gen_ai.output.messages": message.replace("user", "assistant"), "gen_ai.conversation.id": "live-1",
    }  # fmt: skip
    span = {
        "traceId": "ab" * 16, "spanId": "cd" * 8, "name": "chat", "startTimeUnixNano": str(1_900_000_000 * 10**9),
        "endTimeUnixNano": str(1_900_000_001 * 10**9),
        "attributes": [{"key": k, "value": {"stringValue": v}} for k, v in attributes.items()],
    }  # fmt: skip
    sent = {"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": [{"scope": {}, "spans": [span]}]}]}
    assert httpx.post(f"{site.address}/v1/traces", json=sent).status_code == 200
    page.locator("tbody tr:has-text('model-live')").wait_for(timeout=WAIT)
    assert page.evaluate("window.kept") is True


def test_the_policy_blocks_what_gets_in_anyway(see: See) -> None:
    seen = see("/")
    seen.page.evaluate(
        "() => { const s = document.createElement('script'); s.textContent = 'document.title = 1'; "
        "document.body.append(s); const i = new Image(); i.src = 'http://127.0.0.1:9/x'; }"
    )
    assert seen.page.title() != "1"
    assert any("Content Security Policy" in line for line in seen.logged)


def test_what_was_written_is_kept_when_the_form_comes_too_late(see: See, site: Any) -> None:
    """The server was started anew meanwhile: it cannot tell whose form it is, so it asks, and loses nothing."""
    page = see("/triage").page
    page.fill("#incident", "written before\nthe restart")
    page.context.clear_cookies()
    page.locator("button:has-text('Note it')").click()
    page.locator("h1:has-text('expired')").wait_for(timeout=WAIT)
    assert page.locator("nav#nav a").count() > 5, "a refusal is no dead end"
    page.locator("button:has-text('Send it again')").click()
    page.locator(".triage:has-text('written before the restart')").wait_for(timeout=WAIT)


def test_words_stay_whole_on_a_phone(see: See) -> None:
    """No word of a table is broken where it fits a line, and the head of a short page is no taller than of a long."""
    see(f"/session?id={LONG}")
    page = see("/audit", width=360).page
    lines = page.locator("td:nth-child(2) bdi").first.evaluate("who => who.getClientRects().length")
    assert lines <= 2, "'this machine' stands on two lines, not on four"
    tall = page.locator("header.side").bounding_box()
    short = see("/nothing-here", width=360).page.locator("header.side").bounding_box()
    assert tall is not None
    assert short is not None
    assert short["height"] == tall["height"]


def test_keys_are_listed_and_focus_is_seen(see: See) -> None:
    page = see("/").page
    page.keyboard.press("?")
    assert page.locator("#keys").is_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    assert page.locator(".skip").is_visible()
    page.keyboard.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    narrow = see("/", width=360).page
    assert not narrow.locator("nav#nav").is_visible()
    narrow.locator(".menu").click()
    assert narrow.locator("nav#nav").is_visible()
