"""Running totals of tokens to what each step used: the difference to the total before, nothing counted twice."""

from __future__ import annotations

from typing import Any

from seatrial.ingest.drafts import an_object
from seatrial.ingest.messages import whole
from seatrial.records import Usage

_PLACED = ("input_tokens", "output_tokens", "cached_input_tokens", "total_tokens")


class Tokens:
    """Follows one thread's token counts.

    A repeated total is no usage. A total that went down began anew: what the last response used is taken. The
    first total of a fork includes its parent's, so there too the last response counts, unless the parent's
    counts were replayed and so are known.
    """

    def __init__(self) -> None:
        self._before: dict[str, int] | None = None

    def take(self, info: Any, *, forked: bool) -> Usage | None:
        """The usage since the count before; None when nothing new was used or nothing is recorded."""
        said = an_object(info)
        now, last = _counts(said.get("total_token_usage")), _counts(said.get("last_token_usage"))
        if not now:
            return _usage(last)
        before = self._before
        self._before = now
        if before is None:
            return _usage(last if forked and last else now)
        if any(now.get(name, 0) < count for name, count in before.items() if name in ("input_tokens", "output_tokens")):
            return _usage(last or now)
        return _usage({name: max(count - before.get(name, 0), 0) for name, count in now.items()})


def _counts(usage: Any) -> dict[str, int]:
    return {name: count for name, value in an_object(usage).items() if (count := whole(value)) is not None}


def _usage(counts: dict[str, int]) -> Usage | None:
    if not any(counts.values()):
        return None
    return Usage(
        input_tokens=counts.get("input_tokens"),
        output_tokens=counts.get("output_tokens"),
        cached_tokens=counts.get("cached_input_tokens"),
        extra={name: count for name, count in counts.items() if name not in _PLACED},
    )
