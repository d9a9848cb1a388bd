"""One trace to everything that it shows: signals kept and dropped, episodes, call facts, correction episodes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import cast

import msgspec
from msgspec.structs import replace

from seatrial import plugins
from seatrial.records import CallFact, CorrectionFact, Episode, Signal, SignalKind, Span, Trace
from seatrial.signals import behaviour, columns, commands, denoise, difficulty, episodes, language, task_type, turns
from seatrial.signals.settings import SignalSettings

DEFAULTS = SignalSettings()


class Extraction(msgspec.Struct, frozen=True, kw_only=True):
    """What was found in one session.

    `signals` holds every detected signal in session order; `dropped_by` tells which do not count, and why.
    `task_type_by` and `difficulty_by` are ``recorded`` or the classifier's version.
    """

    session: str
    signals: tuple[Signal, ...]
    episodes: tuple[Episode, ...]
    calls: tuple[CallFact, ...]
    corrections: tuple[CorrectionFact, ...]
    task_type: str
    task_type_by: str
    difficulty: str
    difficulty_by: str

    @property
    def kept(self) -> tuple[Signal, ...]:
        """The signals that count."""
        return tuple(s for s in self.signals if s.dropped_by is None)


def versions() -> dict[str, str]:
    """Version of every detector and classifier; a comparison across versions is refused (METHODS 0.6)."""
    return {
        language.NAME: language.version(),
        commands.NAME: commands.VERSION,
        behaviour.NAME: behaviour.VERSION,
        "denoise": denoise.VERSION,
        "episodes": episodes.VERSION,
        "task_type": task_type.VERSION,
        "difficulty": difficulty.VERSION,
    } | {p.name: str(p.value.version) for p in plugins.plugins("seatrial.detectors").found}


def extract(trace: Trace, settings: SignalSettings = DEFAULTS) -> Extraction:
    """Everything that one trace shows (METHODS 1, 2). Pure: the same trace gives the same extraction."""
    return extract_many([trace], settings)[0]


def extract_many(
    traces: Sequence[Trace], settings: SignalSettings = DEFAULTS, *, many: bool = False
) -> list[Extraction]:
    """`extract` over many traces: their human turns are read together, which is much faster. A trace's extraction
    never depends on the others. `many`: tens of thousands of turns are still to come in this process."""
    talks = [turns.read(trace) for trace in traces]
    judged = [[t for t in talk.turns if t.worked and t.agent is not None] for talk in talks]
    heard = [language.Heard(t.step.text, t.before, t.interrupted, t.refused) for own in judged for t in own]
    read = iter(columns.read_many(heard, learned=settings.classifier, many=many))
    out = []
    for trace, talk, own in zip(traces, talks, judged, strict=True):
        out.append(_extract(trace, talk, [(turn, next(read)) for turn in own], settings))
    return out


def _extract(
    trace: Trace,
    talk: turns.Conversation,
    judged: Sequence[tuple[turns.Turn, language.Reading]],
    settings: SignalSettings,
) -> Extraction:
    """Everything that a trace shows, given how its human turns read."""
    found = _said(trace, judged)
    readings = {turn.step.index: reading for turn, reading in judged}
    tools = commands.detect(trace)
    found.extend(tools.signals)
    found.extend(behaviour.retries(trace, talk.turns))
    found.extend(behaviour.transfers(trace, tools.calls, settings))
    found.extend(behaviour.abandonment(trace, talk, settings))
    found.extend(behaviour.feedback(trace))
    for plugin in plugins.plugins("seatrial.detectors").found:
        found.extend(_judging(signal, trace, talk.agent_steps) for signal in plugin.value.detect(trace))
    unhappy = frozenset(
        s.step
        for s in found
        if (s.kind == "correction" and s.confidence >= settings.correction_threshold and s.cause is None)
        or s.kind == "retry_request"
    )
    found.extend(behaviour.upgrades(trace, talk.turns, unhappy))
    signals = denoise.denoise(found, talk.agent_steps, settings)
    kinds: dict[int, set[str]] = {}
    for signal in signals:
        merged = signal.dropped_by is not None and signal.dropped_by.startswith("merged_into")
        if signal.dropped_by is None or merged:
            kinds.setdefault(signal.step, set()).add(signal.kind)
    tasks = episodes.split(trace, talk.turns, {i: frozenset(k) for i, k in kinds.items()}, readings)
    return Extraction(
        session=trace.id,
        signals=signals,
        episodes=tasks,
        calls=tuple(tools.calls),
        corrections=episodes.corrections(
            trace, talk, signals, tasks, accept_implicit=settings.accept_implicit_confirms
        ),
        task_type=trace.task.type or (tasks[0].task_type if tasks else None) or task_type.classify(""),
        task_type_by="recorded" if trace.task.type else task_type.VERSION,
        difficulty=trace.task.difficulty or difficulty.classify(trace.steps),
        difficulty_by="recorded" if trace.task.difficulty else difficulty.VERSION,
    )


def _judging(signal: Signal, trace: Trace, agent_steps: Sequence[int]) -> Signal:
    """A plugin's signal that says nothing of what it judges: the last agent turn up to it, as everywhere (METHODS 1),
    since a signal without a model counts for none."""
    at = bisect_right(agent_steps, signal.step)
    if signal.model is not None or signal.judges_step is not None or not at:
        return signal
    judged = next(s for s in trace.steps if s.index == agent_steps[at - 1])
    return replace(signal, model=turns.model_of(judged, trace), judges_step=judged.index)


def _said(trace: Trace, judged: Sequence[tuple[turns.Turn, language.Reading]]) -> list[Signal]:
    """Signals of the human turns, none dropped. Without agent work: no verdict."""
    found: list[Signal] = []
    version = language.version()
    for turn, reading in judged:
        text = turn.step.text
        for verdict in language.verdicts(reading, len(text)):
            start, end = verdict.start, verdict.end
            found.append(
                Signal(
                    kind=cast(SignalKind, verdict.kind),
                    session=trace.id,
                    step=turn.step.index,
                    detector=language.NAME,
                    version=version,
                    confidence=verdict.confidence,
                    span=Span(start=start, end=end) if end > start else None,
                    quote=text[start:end],
                    time=turn.step.time,
                    model=turns.model_of(turn.agent, trace),
                    judges_step=turn.agent.index if turn.agent is not None else None,
                    why=verdict.why,
                )
            )
    return found
