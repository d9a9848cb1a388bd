"""Weights of the count score without labels: presets, always reported as ``weights: unfitted`` (METHODS 2)."""

from __future__ import annotations

from seatrial.records import Weights

UNIT = Weights(name="unit")
"""Every signal counts 1."""

EMPHASIS = Weights(name="emphasis", praise=2.0, complaint=2.0)
"""Praise and complaint, the stronger statements, count 2."""

PRESETS: tuple[Weights, ...] = (UNIT, EMPHASIS)
"""The order of a board is printed under each of them."""
