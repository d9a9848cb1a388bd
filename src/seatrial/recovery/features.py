"""A history to numbers known before the decision: repetition, no-ops, novelty, consistency, progress, budget (4.4).

Only what a harness itself sees is used: the agent's turns and the results as they were shown. The same function serves
the branches that a router is fitted on and the running agent that it watches. Every value is a finite number.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence

from seatrial.records import AgentTurn, Exchange, ToolCall, ToolResult

VERSION = "1"
"""Raised when the same history would give other numbers: routers fitted before are then not comparable."""

RECENT = 4
"""Exchanges that count as recent."""

NAMES = (
    "action_repeated",
    "action_repeat_share",
    "action_repeat_recent",
    "reasoning_overlap",
    "reasoning_overlap_max",
    "noop_share",
    "noop_recent",
    "noop_run",
    "novelty",
    "novelty_min",
    "observation_seen",
    "observation_length",
    "consistency",
    "consistency_min",
    "consistency_drop",
    "progress",
    "progress_recent",
    "budget_left",
    "context_used",
)

_WORD = re.compile(r"[a-z0-9]+(?:[-'][a-z0-9]+)*")
_TYPICAL_LENGTH = 200.0


def features(history: Sequence[Exchange], *, max_actions: int, max_context: int | None = None) -> dict[str, float]:
    """The features of the moment that `history` ends in, by name; every name of `NAMES`, always finite.

    `max_actions` is the agent's limit of environment actions, `max_context` that of its context in characters (None:
    4,000 per action). An empty history has the value 0 for all but the budget left. A no-op is a result that is an
    error or says what an earlier result of the same call has said. Novelty is 1 minus the largest overlap (Jaccard, of
    words) with an earlier observation. Consistency is the share of the words of an action's arguments that its
    observation contains.
    """
    calls, texts, failed = _flat(history)
    n = len(calls)
    out = dict.fromkeys(NAMES, 0.0)
    out["budget_left"] = _share(max_actions - n, max_actions)
    if not n:
        return out
    keys = [_key(c) for c in calls]
    words = [frozenset(_WORD.findall(t.lower())) for t in texts]
    repeated = [key in keys[:i] for i, key in enumerate(keys)]
    out["action_repeated"] = float(n > 1 and keys[-1] == keys[-2])
    out["action_repeat_share"] = _mean(repeated)
    out["action_repeat_recent"] = _mean(repeated[-RECENT:])
    _reasoning(history, out)
    noops = _noops(keys, texts, failed)
    out["noop_share"], out["noop_recent"] = _mean(noops), _mean(noops[-RECENT:])
    out["noop_run"] = float(next((i for i, noop in enumerate(reversed(noops)) if not noop), n))
    novelty = [1.0 - max((_overlap(w, e) for e in words[:i]), default=0.0) for i, w in enumerate(words)]
    out["novelty"], out["novelty_min"] = novelty[-1], min(novelty[-RECENT:])
    out["observation_seen"] = float(texts[-1] in texts[:-1])
    out["observation_length"] = math.log1p(len(texts[-1])) / math.log1p(_TYPICAL_LENGTH)
    fits = [_consistency(c, w) for c, w in zip(calls, words, strict=True)]
    out["consistency"], out["consistency_min"] = fits[-1], min(fits[-RECENT:])
    out["consistency_drop"] = _mean(fits) - min(fits[-RECENT:])
    fresh = [not noop and text not in texts[:i] for i, (noop, text) in enumerate(zip(noops, texts, strict=True))]
    out["progress"], out["progress_recent"] = _mean(fresh), _mean(fresh[-RECENT:])
    used = sum(len(t) for t in texts) + sum(len(e.turn.text) + len(e.turn.reasoning or "") for e in history)
    out["context_used"] = min(1.0, used / (max_context or 4_000 * max_actions))
    return out


def exchange(action: str, observation: str, reasoning: str = "", *, failed: bool = False) -> Exchange:
    """An exchange from plain words, for a harness that keeps no records: one action, what was shown, and why."""
    call = ToolCall(id="", name="act", arguments={"command": action})
    result = ToolResult(call_id="", outcome="error" if failed else "ok", text=observation)
    return Exchange(turn=AgentTurn(calls=(call,), reasoning=reasoning or None), results=(result,))


def _flat(history: Sequence[Exchange]) -> tuple[list[ToolCall], list[str], list[bool]]:
    """Calls with what was shown for each, in order; a call without a result has an empty text."""
    calls, texts, failed = [], [], []
    for e in history:
        shown = {r.call_id: r for r in e.results}
        for i, call in enumerate(e.turn.calls):
            result = shown.get(call.id) or (e.results[i] if i < len(e.results) else None)
            calls.append(call)
            texts.append(result.text if result is not None else "")
            failed.append(result is not None and result.outcome in ("error", "rejected", "interrupted"))
    return calls, texts, failed


def _key(call: ToolCall) -> str:
    return call.name + json.dumps(call.arguments, sort_keys=True, default=str) + (call.raw_arguments or "")


def _reasoning(history: Sequence[Exchange], out: dict[str, float]) -> None:
    """Overlap of the latest reasoning with the one before and, at most, with any recent one."""
    said = [frozenset(_WORD.findall((e.turn.reasoning or e.turn.text).lower())) for e in history]
    said = [s for s in said if s]
    if len(said) > 1:
        out["reasoning_overlap"] = _overlap(said[-1], said[-2])
        out["reasoning_overlap_max"] = max(_overlap(said[-1], s) for s in said[-1 - RECENT : -1])


def _noops(keys: Sequence[str], texts: Sequence[str], failed: Sequence[bool]) -> list[bool]:
    seen: set[tuple[str, str]] = set()
    noops = []
    for key, text, bad in zip(keys, texts, failed, strict=True):
        noops.append(bad or (key, text) in seen)
        seen.add((key, text))
    return noops


def _consistency(call: ToolCall, shown: frozenset[str]) -> float:
    """1 where the call has no words in its arguments."""
    asked = set(_WORD.findall(" ".join(str(v) for v in call.arguments.values()).lower()))
    return len(asked & shown) / len(asked) if asked else 1.0


def _overlap(a: frozenset[str], b: frozenset[str]) -> float:
    union = len(a | b)
    return len(a & b) / union if union else 1.0


def _share(part: float, whole: float) -> float:
    return min(1.0, max(0.0, part / whole)) if whole > 0 else 0.0


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
