"""Signals to outcomes: the count score, the five per-signal outcomes and the headline (METHODS 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seatrial.scoring.weights import EMPHASIS, PRESETS, UNIT

if TYPE_CHECKING:
    from seatrial.scoring.heading import HEADLINES, headline
    from seatrial.scoring.outcomes import episode_outcomes, score

__all__ = ["EMPHASIS", "HEADLINES", "PRESETS", "UNIT", "episode_outcomes", "headline", "score"]

_HOMES = {"HEADLINES": "heading", "headline": "heading", "episode_outcomes": "outcomes", "score": "outcomes"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
