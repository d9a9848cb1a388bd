"""What the human did rather than said: retry, escalation, abandonment, ratings (METHODS 1.2).

* *retry_request*: the same request again after an answer (nine tenths of its words, at least four, in one of the
  last five turns), or a turn that says nothing but "try again".
* *escalation*: the session is handed to a person (a tool call that does so), the human asks for a person, or the
  human repeats or corrects a request and the next agent turn comes from a higher tier of the same model family.
* *abandonment*: the last request is open (unanswered, interrupted, ended by a failed call or by a question to the
  human) and no human turn follows for H hours inside the observed window. Censored where the window is unknown or
  too short, and in benchmarks, whose simulated users never walk away.
* *explicit_feedback*: a rating that the source recorded, mapped to [0, 1] by its scale.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from seatrial.records import CallFact, Signal, Span, Step, Trace
from seatrial.signals import language
from seatrial.signals.settings import SignalSettings
from seatrial.signals.turns import Conversation, Turn, model_of

NAME = "behaviour"
VERSION = "1"

_TRANSFER = re.compile(
    r"transfer_?to_?(?:a_?)?(?:human|person|live|agent|representative|supervisor|support)|escalate|hand_?off_?to_?human"
    r"|human_?handoff|request_?human|contact_?human_?support|talk_?to_?human",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w+")
_PARTED = {code: chr(code).lower() if _WORD.match(chr(code)) else " " for code in range(128)}
_BLANK = frozenset({""})
_TIERS: tuple[tuple[re.Pattern[str], int], ...] = (
    (re.compile(r"nano"), 0),
    (re.compile(r"haiku|mini|flash-lite|lite|small|8b|7b|3b"), 1),
    (re.compile(r"sonnet|flash|turbo|medium|70b"), 2),
    (re.compile(r"opus|pro\b|-pro|ultra|large|max|gpt-4o$|gpt-4\.1$|gpt-5$|405b"), 3),
)
_FAMILIES = ("claude", "gpt", "gemini", "llama", "qwen", "mistral", "grok", "deepseek", "o1", "o3", "o4")


def _signal(trace: Trace, step: Step, kind: Any, confidence: float, why: str, **rest: Any) -> Signal:
    rest.setdefault("time", step.time)
    return Signal(
        kind=kind,
        session=trace.id,
        step=step.index,
        detector=NAME,
        version=VERSION,
        confidence=confidence,
        why=why,
        **rest,
    )


def _said(trace: Trace, turn: Turn, kind: Any, confidence: float, why: str) -> Signal:
    end = min(len(turn.step.text), 200)
    return _signal(
        trace,
        turn.step,
        kind,
        confidence,
        why,
        span=Span(start=0, end=end) if end else None,
        quote=turn.step.text[:end],
        model=model_of(turn.agent, trace),
        judges_step=turn.agent.index if turn.agent else None,
    )


def retries(trace: Trace, turns: Sequence[Turn]) -> list[Signal]:
    """Requests made again after an answer."""
    out = []
    earlier: list[tuple[int, frozenset[str]]] = []
    for turn in turns:
        words = _words(turn.step.text[:2000])
        if turn.agent is not None and len(words) >= 4:
            for block, said in earlier[-5:]:
                if block < turn.block and _alike(words, said):
                    out.append(_said(trace, turn, "retry_request", 0.9, "the same request as before, after an answer"))
                    break
        earlier.append((turn.block, words))
    return out


def _words(text: str) -> frozenset[str]:
    """What `_WORD` finds in a text without regard to case."""
    if text.isascii():
        return frozenset(text.translate(_PARTED).split(" ")) - _BLANK
    return frozenset(_WORD.findall(text.casefold()))


def _alike(words: frozenset[str], said: frozenset[str]) -> bool:
    """Nine tenths of all their words in common; sets of sizes further apart cannot have that many."""
    fewer, more = len(words), len(said)
    if fewer > more:
        fewer, more = more, fewer
    return fewer >= 0.9 * more and len(words & said) >= 0.9 * len(words | said)


@lru_cache(maxsize=1024)
def _hands_over(tool: str) -> bool:
    return _TRANSFER.search(tool) is not None


def transfers(trace: Trace, calls: Sequence[CallFact], settings: SignalSettings) -> list[Signal]:
    """Tool calls that hand the session to a person."""
    out = []
    tools = {fact.tool for fact in calls}
    handing = {tool for tool in tools if tool in settings.escalation_tools or _hands_over(tool)}
    if not handing:
        return []
    steps = {step.index: step for step in trace.steps}
    for fact in calls:
        if fact.tool in handing:
            step = steps[fact.step]
            out.append(
                _signal(
                    trace,
                    step,
                    "escalation",
                    0.95,
                    "a tool call hands the session to a person",
                    model=fact.model,
                    judges_step=step.index,
                    tool=fact.tool,
                    call_id=fact.call_id,
                )
            )
    return out


@lru_cache(maxsize=1024)
def tier(model: str) -> tuple[str, int] | None:
    """Family and tier (0 lowest) of a model name, None where either is not known."""
    name = model.lower()
    family = next((f for f in _FAMILIES if f in name), None)
    level = next((level for pattern, level in _TIERS if pattern.search(name)), None)
    return (family, level) if family is not None and level is not None else None


def upgrades(trace: Trace, turns: Sequence[Turn], unhappy: frozenset[int]) -> list[Signal]:
    """A higher tier of the same family answers a turn that repeats or corrects; `unhappy` are those turns' steps."""
    out: list[Signal] = []
    if not unhappy:
        return out
    agents = [step for step in trace.steps if step.event_class == "agent" and step.model and not step.copied]
    models = {step.model for step in agents} | {turn.agent.model for turn in turns if turn.agent is not None}
    if len(models - {None}) < 2:
        return out
    for turn in turns:
        if turn.step.index not in unhappy or turn.agent is None or not turn.agent.model:
            continue
        answer = next((step for step in agents if step.index > turn.step.index), None)
        if answer is None or answer.model is None or answer.model == turn.agent.model:
            continue
        before, after = tier(turn.agent.model), tier(answer.model)
        if before and after and before[0] == after[0] and after[1] > before[1]:
            why = f"after a retry or correction, {answer.model} takes over from {turn.agent.model}"
            out.append(_said(trace, turn, "escalation", 0.8, why))
    return out


def abandonment(trace: Trace, talk: Conversation, settings: SignalSettings) -> list[Signal]:
    """The end of a session whose last request is open; censored ones carry the reason in `dropped_by`."""
    if not talk.turns or trace.parent is not None:
        return []
    last_turn = talk.turns[-1]
    if last_turn.step.event_class != "human":
        return []
    open_why = _open(trace, last_turn)
    if open_why is None:
        return []
    last = next(step for step in reversed(trace.steps) if not step.copied)
    times = [step.time for step in trace.steps if step.time is not None and not step.copied]
    found = _signal(
        trace, last, "abandonment", 0.6, open_why, model=model_of(last_turn.agent, trace), judges_step=last.index
    )
    if settings.observed_until is None or not times:
        censored = "censored: the end of the observed window is not known"
    elif settings.observed_until - max(times) < settings.abandon_after * 3600:
        censored = f"censored: the window ends within {settings.abandon_after:g} hours"
    else:
        return [found]
    import msgspec

    return [msgspec.structs.replace(found, dropped_by=censored)]


def _open(trace: Trace, turn: Turn) -> str | None:
    """Why the last request is open, None if it was answered or accepted."""
    after = [s for s in trace.steps if s.index > turn.step.index and not s.copied]
    if any(s.event_class == "interrupted" for s in after):
        return "the last request was interrupted and nothing followed"
    agent = next((s for s in reversed(after) if s.event_class == "agent"), None)
    if agent is None:
        kinds = {v.kind for v in language.judge(turn.step.text, turn.before) if v.confidence >= 0.5}
        closing = kinds & {"confirmation", "praise", "accept_implicit"} and "correction" not in kinds
        return None if closing and turn.worked else "the last request was never answered"
    answered = {r.call_id for r in agent.results}
    if any(call.id not in answered for call in agent.tool_calls) and len(agent.results) < len(agent.tool_calls):
        return "the last request ends in a call without a result"
    if agent.results and not agent.text and agent.results[-1].outcome in ("error", "rejected", "interrupted"):
        return "the last request ends in a failed call"
    if agent.text.rstrip().endswith(("?", "？")):
        return "the agent's last words are a question that nobody answered"
    return None


_FEEDBACK_KEYS = (
    "feedback",
    "user_feedback",
    "rating",
    "ratings",
    "user_rating",
    "thumbs",
    "annotations",
    "user_score",
)
_UP = frozenset({"up", "thumbs_up", "thumbsup", "👍", "positive", "like", "liked", "good", "yes", "helpful", "+1"})
_DOWN = frozenset({"down", "thumbs_down", "thumbsdown", "👎", "negative", "dislike", "disliked", "bad", "no", "-1"})


def feedback(trace: Trace) -> list[Signal]:
    """Ratings in the extras of the trace and its steps, and an outcome that a user recorded."""
    out: list[Signal] = []
    if not trace.steps:
        return out
    for step in trace.steps:
        if step.extra and not step.copied:
            out.extend(_ratings(trace, step, step.extra))
    last = next((s for s in reversed(trace.steps) if not s.copied), None)
    if last is None:
        return out
    out.extend(_ratings(trace, last, trace.extra))
    outcome = trace.outcome
    if outcome and outcome.by in ("user", "human", "thumbs") and outcome.bounded and outcome.score is not None:
        out.append(_rated(trace, last, min(1.0, max(0.0, outcome.score)), "outcome recorded by the user"))
    return out


def _ratings(trace: Trace, step: Step, extra: dict[str, Any]) -> list[Signal]:
    out: list[Signal] = []
    if not extra:
        return []
    for key in _FEEDBACK_KEYS:
        if key in extra:
            items = extra[key] if isinstance(extra[key], list) else [extra[key]]
            for item in items:
                value = rating(item)
                if value is not None:
                    out.append(_rated(trace, step, value[0], f"{key}: {value[1]}"))
    return out


def rating(item: Any) -> tuple[float, str] | None:
    """A rating as a value in [0, 1] and how it was read; None if it is not one.

    Understood: booleans, thumbs words, ``{"value"|"score"|"rating": x, "min": a, "max": b}``, and bare numbers:
    0 and 1 as they are, -1 as 0, 2 to 5 as stars out of five.
    """
    if isinstance(item, bool):
        return (1.0 if item else 0.0), "yes or no"
    if isinstance(item, str):
        word = item.strip().lower()
        return ((1.0, "thumbs") if word in _UP else (0.0, "thumbs") if word in _DOWN else None) if word else None
    if isinstance(item, dict):
        inner = next((item[k] for k in ("value", "score", "rating", "thumbs", "label") if k in item), None)
        low, high = item.get("min", 0), item.get("max", item.get("scale"))
        if isinstance(inner, (int, float)) and not isinstance(inner, bool) and isinstance(high, (int, float)):
            low = low if isinstance(low, (int, float)) else 0
            return (min(1.0, max(0.0, (inner - low) / (high - low))), f"{low} to {high}") if high > low else None
        return rating(inner) if inner is not None and not isinstance(inner, dict) else None
    if isinstance(item, (int, float)):
        if item == -1:
            return 0.0, "thumbs"
        if 0 <= item <= 1:
            return float(item), "0 to 1"
        if 1 < item <= 5:
            return (item - 1) / 4, "1 to 5 stars"
    return None


def _rated(trace: Trace, step: Step, value: float, why: str) -> Signal:
    agent = next((s for s in reversed(trace.steps) if s.event_class == "agent" and s.index <= step.index), None)
    return _signal(
        trace,
        step,
        "explicit_feedback",
        1.0,
        why,
        value=value,
        model=model_of(agent, trace),
        judges_step=agent.index if agent else None,
    )
