"""Detected signals to counted ones (METHODS 1.4). Nothing vanishes: what does not count says why."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from seatrial.records import Signal
from seatrial.signals.settings import SignalSettings
from seatrial.signals.turns import lies_between

VERSION = "1"

_DROPPED_CAUSES = {
    "environment": "environment_fault",
    "rejected": "rejected: the user refused the call",
    "benign": "benign_exit",
    "interrupted": "interrupted",
}


def order(signal: Signal) -> tuple[int, int, str, str, str]:
    """Where a signal stands in a session, so that the answer does not depend on the order of detectors."""
    start = signal.span.start if signal.span else 0
    return (signal.step, start, signal.kind, signal.detector, signal.call_id or "")


def denoise(signals: Sequence[Signal], agent_steps: Sequence[int], settings: SignalSettings) -> tuple[Signal, ...]:
    """The same signals in session order, those that do not count with `dropped_by`.

    In turn: causes that are not the agent's errors, confidence under the threshold, merging of a run. The first of
    a run stands for it; without timestamps a run ends at the next agent turn. `agent_steps` ascending.
    """
    out = []
    first: dict[str, Signal] = {}
    for signal in sorted(signals, key=order):
        dropped = signal.dropped_by or _reason(signal, settings)
        if dropped is None:
            head = first.get(signal.kind)
            if head is not None and _same_run(head, signal, agent_steps, settings.merge_window):
                timed = head.time is not None and signal.time is not None
                how = f"within {settings.merge_window:g} s" if timed else "no timestamps; no agent turn between"
                why = f"{signal.why}; {how}" if signal.why else how
                out.append(replace(signal, dropped_by=f"merged_into: {head.step}", why=why))
                continue
            first[signal.kind] = signal
            out.append(signal)
        else:
            out.append(replace(signal, dropped_by=dropped))
    return tuple(out)


def _reason(signal: Signal, settings: SignalSettings) -> str | None:
    if signal.kind == "execution_error" and signal.cause in _DROPPED_CAUSES:
        return _DROPPED_CAUSES[signal.cause]
    threshold = settings.correction_threshold if signal.kind == "correction" else settings.threshold
    if signal.confidence < threshold:
        return f"below_threshold: {signal.confidence:.2f} < {threshold:g}"
    return None


def _same_run(head: Signal, signal: Signal, agent_steps: Sequence[int], window: float) -> bool:
    if head.time is not None and signal.time is not None:
        return abs(signal.time - head.time) <= window
    return not lies_between(agent_steps, head.step, signal.step)
