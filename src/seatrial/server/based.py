"""What the page of a form showed when it was made: a stamp that the form carries, and the refusal of one overtaken."""

from __future__ import annotations

from typing import Any

from seatrial.canon import content_hash
from seatrial.errors import UsageError


class Overtaken(UsageError):
    """Somebody else, or the same person in another tab, changed meanwhile what a form is about."""

    code = "overtaken"


def stamp(shown: Any) -> str:
    """A short name for what was shown; "" for nothing."""
    return content_hash(shown)[:16] if shown else ""
