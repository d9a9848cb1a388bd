"""Traces to signals: what humans said and did about an agent's work, and what its tools reported (METHODS 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seatrial.signals.settings import SignalSettings

if TYPE_CHECKING:
    from seatrial.signals.accuracy import Accuracy, evaluate, read_labels
    from seatrial.signals.explanation import Explanation, explain
    from seatrial.signals.extraction import Extraction, extract, extract_many, versions
    from seatrial.signals.seen import seen_form
    from seatrial.signals.tables import frames

__all__ = [
    "Accuracy",
    "Explanation",
    "Extraction",
    "SignalSettings",
    "evaluate",
    "explain",
    "extract",
    "extract_many",
    "frames",
    "read_labels",
    "seen_form",
    "versions",
]

_HOMES = {
    "Accuracy": "accuracy",
    "evaluate": "accuracy",
    "read_labels": "accuracy",
    "Explanation": "explanation",
    "explain": "explanation",
    "Extraction": "extraction",
    "extract": "extraction",
    "extract_many": "extraction",
    "versions": "extraction",
    "frames": "tables",
    "seen_form": "seen",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
