"""Failing sessions to tasks: new, made a task, or dismissed with a reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from seatrial.errors import EvidenceError, InputError, UsageError
from seatrial.flows import triage
from seatrial.records import Agent, Provenance, RecordedOutcome, Step, ToolCall, ToolResult, Trace
from seatrial.store import Store, frames, session_row, step_rows


def session(id: str, *said: str, outcome: RecordedOutcome | None = None) -> Trace:
    steps: list[Step] = []
    for text in said:
        steps.append(Step(index=len(steps), event_class="human", text=text, time=float(len(steps) * 100)))
        call = ToolCall(id=f"c{len(steps)}", name="edit", arguments={"n": len(steps)})
        steps.append(
            Step(
                index=len(steps), event_class="agent", text="Done.", time=float(len(steps) * 100), model="m",
                tool_calls=(call,), results=(ToolResult(call_id=call.id, outcome="ok", text="fine"),),
            )
        )  # fmt: skip
    return Trace(
        id=id, agent=Agent(name="a"), model="m", steps=tuple(steps), outcome=outcome,
        provenance=Provenance(format="x", reader="x", reader_version="1"),
    )  # fmt: skip


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store.open(tmp_path / "store", create=True)
    traces = [
        session("bad", "Rename the function.", "No, that's wrong, I said the function and not the class!"),
        session("good", "Add a test for the parser.", "Perfect, thank you, that works great!"),
        session("plain", "What does this file do?"),
        session("lost", "Fix the build.", outcome=RecordedOutcome(status="failed", by="ci")),
    ]
    rows = [(t, made.put(t)) for t in traces]
    made.commit(frames((session_row(t, b) for t, b in rows), (r for t, _ in rows for r in step_rows(t))))
    return made


def states(store: Store) -> dict[str, str]:
    return {i.session: i.state for i in triage.listing(store).items}


def test_failing_sessions_are_new_until_someone_decides(store: Store) -> None:
    found = triage.listing(store)
    assert states(store) == {"bad": "new", "lost": "new"}
    why = {i.session: i.why for i in found.items}
    assert why["bad"].get("correction", 0) >= 1
    assert why["lost"] == {"failed": 1}
    assert found.counts == {"new": 2, "task": 0, "dismissed": 0}


def test_a_dismissal_needs_a_reason_and_keeps_it(store: Store) -> None:
    with pytest.raises(UsageError, match="reason"):
        triage.dismiss(store, "bad", reason=" ")
    triage.dismiss(store, "ba", reason="the user changed their mind", by="ana")
    (item,) = triage.listing(store, state="dismissed").items
    assert (item.session, item.reason) == ("bad", "the user changed their mind")
    assert triage.listing(store).counts == {"new": 1, "task": 0, "dismissed": 1}
    with pytest.raises(InputError):
        triage.dismiss(store, "nobody", reason="x")


def test_an_incident_is_triaged_like_a_session(store: Store) -> None:
    name, _ = triage.incident(store, "mailed the wrong customer", by="ana")
    assert states(store)[name] == "new"
    triage.dismiss(store, name, reason="not ours")
    assert states(store)[name] == "dismissed"
    (item,) = [i for i in triage.listing(store).items if i.session == name]
    assert item.kind == "incident"
    with pytest.raises(UsageError):
        triage.incident(store, "")


def test_the_loop_closes_from_session_to_task(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "suite.jsonl"
    draft = triage.from_session(store, "bad", suite=path)
    assert draft.input == "Rename the function."
    assert states(store)["bad"] == "task"
    assert triage.suite_health(path, store.path)[0].drafts == 1
    raw = json.loads(path.read_text())
    raw["rubric"] = "The function is renamed and the class is not."
    path.write_text(json.dumps(raw) + "\n")
    done = triage.approved(path, draft.id, by="ana", store=store)
    assert done.extra["from_session"] == "bad"
    found, version = triage.suite_health(path, store.path)
    assert (found.tasks, found.drafts, found.days_since_production, found.untriaged) == (1, 0, 0, 1)
    assert version == store.data_version
    assert triage.suite_health(path, tmp_path / "nowhere")[0].untriaged is None


def test_successes_are_drawn_from_sessions_that_went_well(store: Store, tmp_path: Path) -> None:
    assert triage.successes(store, 5, seed=0) == ["good"]
    draft = triage.from_session(store, "good", success=True)
    assert (draft.source, draft.expected_tools) == ("representative", ["edit"])
    with pytest.raises(EvidenceError):
        triage.successes(Store.open(tmp_path / "empty", create=True), 5, seed=0)


def test_the_store_stays_sound(store: Store) -> None:
    triage.incident(store, "x")
    triage.dismiss(store, "bad", reason="y")
    assert store.verify().ok
