"""One extraction and its trace to rows that say why each signal was kept, merged or dropped."""

from __future__ import annotations

import msgspec

from seatrial.records import Trace
from seatrial.signals.extraction import Extraction

CONTEXT = 40


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """One detected signal in plain words.

    `fate` is kept, merged or dropped and `reason` says why; `quote` is the evidence, `left` and `right` the words
    around it, `span` its characters in `field` of the step. `why` names the rules that spoke and their points.
    """

    step: int
    kind: str
    confidence: float
    fate: str
    reason: str
    quote: str
    left: str
    right: str
    field: str | None
    span: tuple[int, int] | None
    detector: str
    version: str
    judges_step: int | None
    model: str | None
    why: str


_WORDS = {
    "environment_fault": "the environment failed, not the agent",
    "benign_exit": "this exit code means no, it is not a failure",
    "interrupted": "the call was stopped before it could succeed or fail",
}


def explain(extraction: Extraction, trace: Trace) -> list[Explanation]:
    """Every detected signal, in session order."""
    steps = {step.index: step for step in trace.steps}
    rows = []
    for signal in extraction.signals:
        text = ""
        step = steps.get(signal.step)
        if signal.span is not None and step is not None:
            if signal.span.field == "text":
                text = step.text
            else:
                text = step.results[int(signal.span.field.split(".")[1])].text
        start, end = (signal.span.start, signal.span.end) if signal.span else (0, 0)
        fate, reason = _fate(signal.dropped_by)
        rows.append(
            Explanation(
                step=signal.step,
                kind=signal.kind,
                confidence=signal.confidence,
                fate=fate,
                reason=reason,
                quote=signal.quote,
                left=text[max(0, start - CONTEXT) : start],
                right=text[end : end + CONTEXT],
                field=signal.span.field if signal.span else None,
                span=(start, end) if signal.span else None,
                detector=signal.detector,
                version=signal.version,
                judges_step=signal.judges_step,
                model=signal.model,
                why=signal.why or "",
            )
        )
    return rows


def _fate(dropped_by: str | None) -> tuple[str, str]:
    if dropped_by is None:
        return "kept", "counts"
    name, _, rest = dropped_by.partition(": ")
    if name == "merged_into":
        return "merged", f"same kind as step {rest}, one signal"
    if name == "below_threshold":
        return "dropped", f"confidence {rest}"
    return "dropped", _WORDS.get(name, rest or name)
