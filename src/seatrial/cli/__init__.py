"""Arguments to results on the screen: one file per command group; exit codes as in DESIGN 5."""

from __future__ import annotations

from seatrial.cli.app import main

__all__ = ["main"]
