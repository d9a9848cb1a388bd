"""Two runs of the same tasks to a judge's preference, every pair asked in both orders (METHODS 6.4)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from seatrial.errors import EvidenceError, UsageError
from seatrial.flows.judge import Plan, Progress, Work
from seatrial.grading.judge import Judge, Preference, cost, pair_messages, refuse_own_family
from seatrial.grading.judge_cache import Cache
from seatrial.records import Estimate, Usage
from seatrial.records.judge import Complete, JudgeSpec
from seatrial.stats import clustered_mean


class Pair(NamedTuple):
    """One attempt of each run at one task, and what the judge reads of each."""

    task: str
    trial_a: int
    trial_b: int
    a: str
    b: str


class PairRow(msgspec.Struct, frozen=True, kw_only=True):
    """What the judge said of one pair: the winner (None: no verdict, and the reason), and its choices in the order as
    given and swapped."""

    task: str
    trial_a: int
    trial_b: int
    winner: Literal["a", "b", "tie"] | None
    as_given: Literal["a", "b", "tie"] | None
    swapped: Literal["a", "b", "tie"] | None
    reason: str


class Preferences(msgspec.Struct, frozen=True, kw_only=True):
    """Pairs by outcome: `position` where the choice depends on the order, `unscored` where an answer cannot be read.

    `preferred` is the share of scored pairs that B wins, a tie counts half; None where nothing was scored. `moved` is
    the share of pairs answered in both orders whose choice changed with the order, `first` the share of answers other
    than ties that chose the record that was shown first (half: no bias). Intervals by task. `unmatched` attempts have
    no partner. `cost_usd` None: not known.
    """

    pairs: int
    a: int
    b: int
    ties: int
    position: int
    unscored: int
    unmatched: int
    preferred: Estimate | None
    moved: Estimate | None
    first: Estimate | None
    asked: int
    cost_usd: float | None
    rows: tuple[PairRow, ...]


def pairs_of(a: Work, b: Work) -> tuple[list[Pair], int]:
    """Attempts at the same tasks, the first trial with the first and so on; and how many have no partner.

    Raises:
        EvidenceError: no task is in both.
    """
    sides = [_by_task(w) for w in (a, b)]
    found = []
    unmatched = 0
    for task in sorted(set(sides[0]) | set(sides[1])):
        left, right = sides[0].get(task, []), sides[1].get(task, [])
        found += [Pair(task, i, j, x, y) for (i, x), (j, y) in zip(left, right, strict=False)]
        unmatched += abs(len(left) - len(right))
    if not found:
        raise EvidenceError("the two runs share no task, so there is no pair to judge")
    return found, unmatched


def _by_task(work: Work) -> dict[str, list[tuple[int, str]]]:
    out: dict[str, list[tuple[int, str]]] = {}
    for attempt, text in sorted(zip(work.attempts, work.outputs, strict=True), key=lambda w: (w[0].task, w[0].trial)):
        out.setdefault(attempt.task, []).append((attempt.trial, text))
    return out


def plan(spec: JudgeSpec, pairs: Sequence[Pair], cache: Cache | None) -> Plan:
    """What judging these pairs will take: two questions each; four characters a token, an answer of 80 tokens."""
    judge = Judge(spec, _nobody, cache)
    asked = [p for p in pairs if not judge.knows_pair(p.a, p.b, task=p.task)]
    orders = [m for p in asked for x, y in ((p.a, p.b), (p.b, p.a)) for m in pair_messages(spec, x, y, p.task)[0]]
    read = sum(len(m.content) for m in orders) // 4
    usage = Usage(input_tokens=read, output_tokens=2 * len(asked) * 80)
    usage = msgspec.structs.replace(usage, cost_usd=cost(spec, usage))
    return Plan(len(pairs), len(pairs) - len(asked), usage)


def _nobody(messages: object) -> Any:
    raise UsageError("no endpoint was given", hint="--url, or url in the judge's file")


def may_compare(spec: JudgeSpec, a: Work, b: Work, *, allow_own_family: bool = False) -> None:
    """Raises UsageError for a judge of single outputs, and where judge and agent are of one family and that is not
    allowed."""
    if spec.kind != "pairwise":
        raise UsageError(f"judge {spec.name} judges single outputs, and these are pairs", hint="kind = 'pairwise'")
    refuse_own_family(spec, (*a.models, *b.models), allowed=allow_own_family)


def compare(
    spec: JudgeSpec, a: Work, b: Work, complete: Complete, *, cache: Cache | None = None,
    allow_own_family: bool = False, max_cost_usd: float | None = None, level: float = 0.95,
    progress: Progress | None = None,
) -> Preferences:  # fmt: skip
    """Judge every pair in both orders.

    Raises:
        UsageError: judge and agent are of one family and that is not allowed; the judge is not a pairwise one; or
            `max_cost_usd` is given and the price is unknown or the limit is reached.
        EvidenceError: no task is in both.
    """
    may_compare(spec, a, b, allow_own_family=allow_own_family)
    pairs, unmatched = pairs_of(a, b)
    judge = Judge(spec, complete, cache)
    said: list[Preference] = []
    asked, spent = 0, 0.0
    known: float | None = 0.0
    for n, pair in enumerate(pairs, 1):
        found = judge.prefer(pair.a, pair.b, task=pair.task)
        said.append(found)
        if found.asked:
            asked += found.asked
            money = cost(spec, found.usage)
            known = None if known is None or money is None else known + money
            spent = known or 0.0
            if max_cost_usd is not None and (known is None or known > max_cost_usd):
                what = "the price is unknown" if known is None else f"{known:.4f} USD are spent"
                hint = "give prices in the settings, or a higher --max-cost; answers are kept"
                raise UsageError(f"stopped after {asked} questions: {what} and the limit is {max_cost_usd} USD",
                                 hint=hint)  # fmt: skip
        if progress is not None:
            progress(n, len(pairs), f"judging, {spent:.4f} USD" if spent else "judging")
    rows = tuple(
        PairRow(task=p.task, trial_a=p.trial_a, trial_b=p.trial_b, winner=s.winner, as_given=s.orders[0],
                swapped=s.orders[1], reason=s.reason)
        for p, s in zip(pairs, said, strict=True)
    )  # fmt: skip
    return summary(rows, unmatched=unmatched, asked=asked, cost_usd=known, level=level)


def summary(
    rows: Sequence[PairRow], *, unmatched: int = 0, asked: int = 0, cost_usd: float | None = None, level: float = 0.95
) -> Preferences:
    """Pairs by outcome, and the judge's position bias."""
    both = [r for r in rows if r.as_given is not None and r.swapped is not None]
    scored = [r for r in rows if r.winner is not None]
    # The record shown first was A in the order as given, and B in the other.
    shown = [(r.task, float(choice == first)) for r in rows for choice, first in ((r.as_given, "a"), (r.swapped, "b"))
             if choice in ("a", "b")]  # fmt: skip
    value = {"a": 0.0, "tie": 0.5, "b": 1.0}
    return Preferences(
        pairs=len(rows),
        a=sum(r.winner == "a" for r in rows),
        b=sum(r.winner == "b" for r in rows),
        ties=sum(r.winner == "tie" for r in rows),
        position=sum(r.as_given != r.swapped for r in both),
        unscored=len(rows) - len(both),
        unmatched=unmatched,
        preferred=_mean([(r.task, value[r.winner]) for r in scored if r.winner is not None], level),
        moved=_mean([(r.task, float(r.as_given != r.swapped)) for r in both], level),
        first=_mean(shown, level),
        asked=asked,
        cost_usd=cost_usd,
        rows=tuple(rows),
    )


def _mean(values: Sequence[tuple[str, float]], level: float) -> Estimate | None:
    return clustered_mean([v for _, v in values], [t for t, _ in values], level) if values else None


def rows_text(found: Preferences) -> str:
    """The pairs as JSON lines."""
    return "".join(json.dumps(msgspec.to_builtins(r)) + "\n" for r in found.rows)
