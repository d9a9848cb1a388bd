"""Text that means harm, in every place of a store that a page shows: it stands there as text and does nothing."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from seatrial.cli.app import run
from seatrial.records import Agent, Provenance, Step, TaskRef, ToolCall, ToolResult, Trace
from seatrial.store import Store, frames, session_row, step_rows

pytestmark = pytest.mark.web

HARM = (
    "\"'><script>window.harmed=1</script><img src=x onerror=window.harmed=2><svg onload=window.harmed=3>"
    "</textarea></title><a href='javascript:window.harmed=4'>go</a><style>body{display:none}</style>"
    "<iframe src=//evil.example></iframe><meta http-equiv=refresh content=0;url=//evil.example>"
    " \x1b[31m\x1b]8;;http://evil.example\x07link\x1b]8;;\x07 \u202egnp.exe\u2066 \x00 \u200b "
    "{{ 7 * 7 }} {% raw %} &lt;b&gt;"
)
SESSION = f"session {HARM} of this test".replace("\x00", "")
MODEL = f"model {HARM}"
SEEN = """() => ({
  harmed: window.harmed ?? null,
  made: document.querySelectorAll('main img, main iframe, main style, main meta, main script, main [onload], '
    + 'main [onerror], main a[href^="javascript:"], body > :not(main) img[src="x"]').length,
  inline: [...document.scripts].filter(s => !s.src && s.type !== 'application/json').length,
  shown: getComputedStyle(document.body).display !== 'none',
  text: document.body.innerText,
  title: document.title,
  values: [...document.querySelectorAll('input:not([type=hidden]), textarea')].map(e => e.value).join(' '),
})"""
ACTING = ("\x1b", "\x00", "\u202e", "\u2066", "\u200b", "\x07")


def trace(n: int) -> Trace:
    """A session whose every text is harmful; a person objects to it."""
    at = 1_700_000_000.0 + n * 1000
    call = ToolCall(id=f"c {HARM}", name=f"tool {HARM}", arguments={f"key {HARM}": HARM, "command": f"rm {HARM}"})
    result = ToolResult(call_id=call.id, outcome="error", exit_code=1, text=f"Error: {HARM}")
    model = MODEL if n % 2 else f"other {HARM}"
    steps = (
        Step(index=0, event_class="human", text=f"Please write the report. {HARM}", time=at, source_ids=(f"h{n}",)),
        Step(index=1, event_class="agent", text=f"Done. {HARM}", reasoning=HARM, model=model, time=at + 9,
             tool_calls=(call,), results=(result,), source_ids=(f"a{n}",)),
        Step(index=2, event_class="human", text=f"No, that is wrong, you broke it. {HARM}" if n % 3 else "Thank you!",
             time=at + 20, source_ids=(f"i{n}",)),
        Step(index=3, event_class="agent", text=HARM, model=model, time=at + 30, source_ids=(f"b{n}",)),
    )  # fmt: skip
    about = Provenance(format="made", reader="made", reader_version="1", file=f"{HARM}.jsonl")
    return Trace(
        id=SESSION if n == 1 else f"{n} {SESSION}", agent=Agent(name=f"agent {HARM}", version=HARM), model=model,
        user=f"user {n} {HARM}", task=TaskRef(id=f"task {HARM}", type=f"type {HARM}", suite=f"suite {HARM}"),
        provenance=about, steps=steps,
    )  # fmt: skip


@pytest.fixture(scope="module")
def harmful(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The store, ranked, with a queue to label, an incident and a result of a harmful name, served."""
    path = tmp_path_factory.mktemp("hostile") / "store"
    store = Store.open(path, create=True, durable=False)
    traces = [trace(n) for n in range(12)]
    rows = [session_row(t, store.put(t, durable=False)) for t in traces]
    store.commit(frames(rows, [r for t in traces for r in step_rows(t)]))
    assert run(["rank", "--store", str(path), "--draws", "999", "--workers", "1"]) == 0
    assert run(["label", "--store", str(path), "--keep-queue", "--n=6"]) == 0
    envelope = {"seatrial": HARM, "command": HARM, "data_version": None, "result": {HARM: HARM}, "warnings": [HARM]}
    for kind in ("verify", "gate", "scorecard", "drift", "recover", "judge"):
        store.save_result(kind, f"name {HARM}", envelope)
    spec = importlib.util.spec_from_file_location("web_serving", Path(__file__).with_name("conftest.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    serving = module.Serving(path)
    yield serving
    serving.stop()


@pytest.fixture
def look(browser: Any, harmful: Any) -> Iterator[Callable[[str], Any]]:
    """Opens an address, and what was asked of the network or shown as a dialog meanwhile."""
    contexts = []

    def opened(path: str) -> Any:
        context = browser.new_context()
        contexts.append(context)
        page = context.new_page()
        page.foreign, page.dialogs, page.errors = [], [], []
        page.on("request", lambda r: r.url.startswith((harmful.address, "data:")) or page.foreign.append(r.url))
        page.on("dialog", lambda d: (page.dialogs.append(d.message), d.dismiss()))
        page.on("pageerror", lambda e: page.errors.append(str(e)))
        page.goto(harmful.address + path)
        return page

    yield opened
    for context in contexts:
        context.close()


def inert(page: Any) -> str:
    """Nothing of the text acted; the visible text."""
    seen = page.evaluate(SEEN)
    assert (seen["harmed"], seen["made"], seen["inline"], seen["shown"]) == (None, 0, 0, True), page.url
    assert (page.foreign, page.dialogs, page.errors) == ([], [], []), page.url
    for character in ACTING:
        assert character not in seen["text"], (page.url, hex(ord(character)))
        assert character not in seen["title"], (page.url, hex(ord(character)))
    assert "49" not in seen["title"]
    return str(seen["text"])


PATHS = {
    "/": True,
    f"/why?model={quote(MODEL)}": True,
    "/sessions": True,
    f"/sessions?q={quote(HARM[:90])}&model={quote(MODEL)}&text={quote('<script>window')}": True,
    f"/session?id={quote(SESSION)}": True,
    f"/session?id={quote(SESSION)}&step=2": True,
    f"/session/text?id={quote(SESSION)}&step=1&field={quote('results.0.text')}": True,
    f"/session/text?id={quote(SESSION)}&step=1&field=calls.0": True,
    f"/session?id={quote(HARM)}": False,
    f"/result?id={quote(HARM)}": False,
    f"/triage/draft?task={quote(HARM)}": False,
    f"/nothing/{quote('<script>window.harmed=1</script>')}": False,
    "/scorecard": False,
    "/recovery": False,
    "/judges": False,
    "/drift": False,
    "/suites": False,
    "/triage": True,
    "/label": False,
    "/audit": True,
}
"""Addresses, and whether harmful text is certain to stand there."""


@pytest.mark.parametrize("path", PATHS, ids=range(len(PATHS)))
def test_no_page_acts_on_it(look: Callable[[str], Any], path: str) -> None:
    if path == "/audit":
        look(f"/session?id={quote(SESSION)}")  # that somebody saw it is what stands there
    text = inert(look(path))
    if PATHS[path]:
        assert "<script>" in text or "<sc" in text, path


def test_every_stored_result_is_shown_or_refused_as_text(look: Callable[[str], Any], harmful: Any) -> None:
    heads = harmful.store.results()
    assert len(heads) >= 7
    for head in heads:
        inert(look(f"/result?id={head.id}"))


def test_what_people_write_into_forms_is_inert(look: Callable[[str], Any], harmful: Any) -> None:
    """A reason, an incident, an annotator's name: said back as text, to whoever looks next."""
    page = look("/triage")
    page.locator("summary:has-text('Dismiss')").first.click()
    page.locator("input[name=reason]").first.fill(f"reason {HARM}")
    page.locator("button.danger").first.click()
    page.fill("#incident", f"incident {HARM}")
    page.locator("button:has-text('Note it')").click()
    assert "incident" in inert(page)
    assert "reason" in inert(look("/triage?state=dismissed"))
    page = look("/label")
    queue = page.locator("input[name=queue]").first.get_attribute("value")
    for who, key in ((f"<img src=x>{HARM}"[:40], "x"), ("<b>ben\u202e", "c")):
        page = look(f"/label/item?queue={queue}&annotator={quote(who)}")
        assert "<script>" in inert(page)
        page.keyboard.press(key)
        page.keyboard.press("Enter")
        page.locator("progress[value='1']").wait_for(timeout=60_000)
        inert(page)
    text = inert(look(f"/label/agreement?queue={queue}"))
    assert "<b>ben" in text
    inert(look("/label"))
    inert(look("/audit"))
