"""A small store with everything that pages show: two models, people's words, hostile text, a long session, runs."""

from __future__ import annotations

from pathlib import Path

from seatrial.cli.app import run
from seatrial.records import Agent, Consent, Provenance, Step, ToolCall, ToolResult, Trace
from seatrial.store import Store, frames, session_row, set_consent, step_rows

LONG = "long-session-of-many-steps"
HOSTILE = 'hostile "><script>alert(1)</script> \u202eDLROW'
HUGE = "one-line-of-five-megabytes"
SECRET = "withheld-session"
FIVE_MB = 5 * 1024 * 1024
AGENT = Agent(name="claude-code", version="2.1")
ESCAPES = (
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 \u202egnp.exe\u202c \u200bzero <img src=x onerror=alert(2)> <b>bold</b> '\"&"
)


def trace(name: str, steps: list[Step], *, model: str = "model-a", user: str | None = None) -> Trace:
    return Trace(
        id=name,
        agent=AGENT,
        model=model,
        user=user,
        provenance=Provenance(format="made", reader="made", reader_version="1", file=f"{name}.jsonl"),
        steps=tuple(steps),
    )


def said(index: int, text: str, at: float) -> Step:
    return Step(index=index, event_class="human", text=text, time=at, source_ids=(f"{text[:8]}-{at}-{index}",))


def worked(
    index: int, model: str, at: float, *, failed: bool = False, text: str = "Done, the report is written."
) -> Step:
    call = ToolCall(id=f"call-{index}", name="Bash", arguments={"command": "pytest -q"})
    outcome = "error" if failed else "ok"
    result = ToolResult(
        call_id=call.id, outcome=outcome, exit_code=1 if failed else 0,
        text="FAILED tests/test_a.py::test_one - AssertionError" if failed else "3 passed",
    )  # fmt: skip
    return Step(
        index=index, event_class="agent", text=text, model=model, time=at, tool_calls=(call,), results=(result,),
        source_ids=(f"a-{at}-{index}",),
    )  # fmt: skip


def ordinary(n: int, model: str, *, bad: bool, start: float) -> Trace:
    last = "No, that is wrong. You broke the totals, I asked for a list." if bad else "Perfect, thank you, that works!"
    steps = [
        said(0, f"Please write report {n} about the sales of last week.", start),
        worked(1, model, start + 20, failed=bad),
        said(2, last, start + 60),
        worked(3, model, start + 80),
    ]
    return trace(f"{model}-session-{n:03d}-of-this-test", steps, model=model, user=f"user-{n:016d}")


def long_one(start: float, steps: int = 10_000) -> Trace:
    made = [said(0, "Work through the whole backlog.", start)]
    for i in range(1, steps):
        if i % 100 == 0:
            made.append(said(i, f"That is wrong again in part {i}, please fix it.", start + i))
        else:
            made.append(worked(i, "model-a", start + i, text=f"Part {i} of the backlog is done."))
    return trace(LONG, made, user="user-long000000000000")


def fill(path: Path) -> Store:
    """Make the store."""
    store = Store.open(path, create=True, durable=False)
    start = 1_700_000_000.0
    traces = [
        ordinary(n, model, bad=n % 3 == 0 if model == "model-b" else n % 10 == 0, start=start + 3600.0 * n)
        for model in ("model-a", "model-b")
        for n in range(30)
    ]
    traces.append(long_one(start + 500_000))
    hostile = [
        said(0, ESCAPES, start),
        worked(1, "<i>model</i>", start + 1, text=ESCAPES),
        said(2, "wrong! " + ESCAPES, start + 9),
    ]
    traces.append(trace(HOSTILE, hostile, model="model-a", user="user-hostile000000000"))
    line = "x" * (FIVE_MB // 2) + "<script>alert(3)</script>" + "y" * (FIVE_MB // 2)
    traces.append(
        trace(HUGE, [said(0, "Print it.", start), Step(index=1, event_class="agent", text=line, model="model-a")])
    )
    traces.append(trace(SECRET, [said(0, "my secret words", start)], user="user-secret0000000000"))
    rows = [session_row(t, store.put(t, durable=False)) for t in traces]
    store.commit(frames(rows, [r for t in traces for r in step_rows(t)]))
    set_consent(store, [Consent(subject="user-secret0000000000", purposes=("rank",), time=start)])
    return store


def ranked(path: Path) -> Store:
    """Make the store and rank its models, as a person would."""
    store = fill(path)
    assert run(["rank", "--store", str(path), "--draws", "999", "--workers", "1"]) == 0
    return store
