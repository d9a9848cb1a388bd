"""Codex rollout files (JSONL) to traces.

``rollout-<time>-<id>.jsonl`` is one thread. A forked thread replays its parent's records first, and token counts
are running totals: both would be counted twice by adding lines up.
"""

from seatrial.ingest.codex.reader import READER

__all__ = ["READER"]
