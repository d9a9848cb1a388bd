"""What a reader showed against the right answer: passed, failed with the difference, or not stated."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from seatrial.ingest.traps.kit import Expected, Trap
from seatrial.ingest.traps.shown import Shown, ShownResult, ShownTurn


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """One trap's verdict. `why` says what differs, or what the reader did not state; empty when it passed.

    `peak_mb` is the peak resident memory of a reader that ran as a program of its own; None: it did not.
    """

    format: str
    trap: str
    verdict: Literal["passed", "failed", "not stated"]
    why: str = ""
    seconds: float | None = None
    peak_mb: float | None = None


def judge(trap: Trap, shown: Shown) -> Verdict:
    """Compare everything that the trap asks for."""
    found = _found(shown, trap.expect)
    wrong, unstated = [], []
    for name in Expected.__struct_fields__:
        wanted = getattr(trap.expect, name)
        if wanted is None:
            continue
        got = found[name]
        if got is None:
            unstated.append(name)
        elif got != wanted:
            wrong.append(f"{name}: expected {_brief(wanted)}, found {_brief(got)}")
    if wrong:
        return Verdict(format=trap.format, trap=trap.name, verdict="failed", why="; ".join(wrong))
    if unstated:
        why = f"the reader does not state {', '.join(unstated)}"
        return Verdict(format=trap.format, trap=trap.name, verdict="not stated", why=why)
    return Verdict(format=trap.format, trap=trap.name, verdict="passed")


def _found(shown: Shown, asked: Expected) -> dict[str, Any]:
    main = [t for t in shown.turns if t.parent is None and not t.copied]
    subs = [t for t in shown.turns if t.parent is not None and not t.copied]
    agents = [t for t in main if t.event == "agent"]
    human = [t.text.strip() for t in main if t.event == "human"]
    results = [r for t in main for r in t.results]
    by_call = {r.call_id: r for r in results if r.call_id is not None}
    return {
        "human": human,
        "human_turns": len(human),
        "interrupted": sum(t.event == "interrupted" for t in main),
        "agent": [t.text.strip() for t in agents],
        "agent_turns": len(agents),
        "calls": [call.id for t in agents for call in t.tool_calls],
        "outcomes": _by_call(by_call, asked.outcomes, "outcome"),
        "exit_codes": _by_call(by_call, asked.exit_codes, "exit_code"),
        "result_text": _by_call(by_call, asked.result_text, "text"),
        "models": sorted({t.model for t in agents if t.model is not None}),
        "input_tokens": _tokens(agents, "input_tokens"),
        "output_tokens": _tokens(agents, "output_tokens"),
        "sessions": len({t.trace for t in shown.turns if t.parent is None}),
        "sub_agents": len({t.trace for t in subs}),
        "sub_agent_text": [t.text.strip() for t in subs if t.event == "agent"],
        "lost_lines": None if not shown.reports else sorted(n for r in shown.reports for n in r.lost_lines),
        "model_errors": _model_errors(results),
    }


def _by_call(found: dict[str, ShownResult], asked: dict[str, Any] | None, field: str) -> dict[str, Any] | None:
    """The field for each call that is asked for; None where the reader states it for no result at all."""
    if asked is None:
        return {}
    values = {call: getattr(found[call], field) if call in found else "no result" for call in asked}
    if found and all(value is msgspec.UNSET for value in values.values()):
        return None
    return {call: None if value is msgspec.UNSET else value for call, value in values.items()}


def _tokens(turns: Iterable[ShownTurn], field: str) -> int | None:
    known = [v for t in turns if t.usage is not None and (v := getattr(t.usage, field)) is not None]
    return sum(known) if known else None


def _model_errors(results: list[ShownResult]) -> list[str] | None:
    if results and all(r.cause is msgspec.UNSET for r in results):
        return None
    return [r.call_id for r in results if r.cause == "model" and r.call_id is not None]


def _brief(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 160 else f"{text[:150]}… ({len(text)} characters)"
