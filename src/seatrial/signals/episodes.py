"""Human turns to task episodes and correction episodes (METHODS 2, 3.8)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from seatrial.records import CorrectionFact, Episode, Signal, Trace
from seatrial.signals import language
from seatrial.signals.lexicon import builtin
from seatrial.signals.task_type import classify
from seatrial.signals.turns import Conversation, Turn

VERSION = "1"

ACCEPTING = frozenset({"confirmation", "praise"})
REJECTING = frozenset({"correction", "complaint"})
_BLOCKING = frozenset({"correction", "complaint", "retry_request", "escalation", "accept_implicit"})
_REQUESTS = frozenset({"new-feature", "move-on", "now-then", "change-request", "remove"})
_MIN_WORDS = 4


def starts_task(turn: Turn, kinds: frozenset[str], reading: language.Reading) -> bool:
    """Whether a later human turn opens a new task.

    It asks for something; it does not correct, complain, repeat, ship what is there or answer the agent's question.
    A turn that first accepts ("works. Now add ...") may open one although the agent had asked.
    """
    if not turn.worked or kinds & _BLOCKING:
        return False
    if len(turn.step.text.split()) < _MIN_WORDS and reading.said.isascii():
        return False
    if "agent-asks" in reading.contexts and not kinds & ACCEPTING:
        return False
    return not _requests().isdisjoint(reading.lead)


@lru_cache(maxsize=1)
def _requests() -> frozenset[int]:
    """Where the lexicon lists the cues that ask for something."""
    return frozenset(c for c, cue in enumerate(builtin().cue) if cue.id in _REQUESTS)


def split(
    trace: Trace, turns: Sequence[Turn], kinds: dict[int, frozenset[str]], readings: dict[int, language.Reading]
) -> tuple[Episode, ...]:
    """Task episodes as step ranges [start, end) that cover the trace.

    A human turn that opens a task belongs to the new range; its verdict judges the turn before and so the old
    task. `kinds` and `readings` are by step index. Copied steps before the first own step belong to episode 0.
    """
    if not trace.steps:
        return ()
    starts = [(trace.steps[0].index, turns[0].step.text if turns else "")]
    for turn in turns[1:]:
        reading = readings.get(turn.step.index)
        if reading is not None and starts_task(turn, kinds.get(turn.step.index, frozenset()), reading):
            starts.append((turn.step.index, turn.step.text))
    ends = [start for start, _ in starts[1:]] + [trace.steps[-1].index + 1]
    return tuple(
        Episode(session=trace.id, index=i, start=start, end=end, task_type=classify(text))
        for i, ((start, text), end) in enumerate(zip(starts, ends, strict=True))
    )


def corrections(
    trace: Trace,
    talk: Conversation,
    signals: Sequence[Signal],
    episodes: Sequence[Episode],
    *,
    accept_implicit: bool = False,
    live: bool | None = None,
) -> tuple[CorrectionFact, ...]:
    """One row per correction episode: agent turns from the first correction to the acceptance.

    A later correction does not restart it; a turn that accepts and corrects does not accept. A new task or the end
    of the session ends it unaccepted; only a log cut while live is censored (`live`; None: read from the trace: its
    last own step waits for the agent).
    """
    accepting = ACCEPTING | {"accept_implicit"} if accept_implicit else ACCEPTING
    kept: dict[int, set[str]] = {}
    for signal in signals:
        if signal.dropped_by is None and signal.kind in accepting | REJECTING:
            kept.setdefault(signal.step, set()).add(signal.kind)
    blocks = {turn.step.index: turn.block for turn in talk.turns}
    models = {s.step: s.model for s in signals if s.kind == "correction"}
    cut = _cut(trace) if live is None else live
    borders = {episode.start for episode in episodes if episode.index}
    out: list[CorrectionFact] = []
    opened: int | None = None

    def close(ended: str, at: int | None) -> None:
        nonlocal opened
        if opened is None:
            return
        base = blocks[opened]
        turns = max(1, blocks[at] - base) if at is not None else None
        out.append(
            CorrectionFact(
                session=trace.id,
                step=opened,
                ended=ended,
                follow_up=max(talk.blocks - base, turns or 0),
                turns=turns,
                model=models.get(opened),
            )
        )
        opened = None

    for turn in talk.turns:
        index = turn.step.index
        kinds = kept.get(index, set())
        if opened is not None and kinds & accepting and not kinds & REJECTING:
            close("accepted", index)
        elif opened is not None and index in borders:
            close("ended", None)
        if opened is None and "correction" in kinds:
            opened = index
    close("censored" if cut else "ended", None)
    return tuple(out)


def _cut(trace: Trace) -> bool:
    """Whether the log stops while the agent still owed something: a human turn or a call is left unanswered."""
    own = [step for step in trace.steps if not step.copied and step.event_class != "harness"]
    if not own:
        return False
    last = own[-1]
    if last.event_class in ("human", "simulated_user"):
        return True
    return last.event_class == "agent" and len(last.results) < len(last.tool_calls)
