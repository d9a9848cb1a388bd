"""What a model's tokens cost (METHODS 6.7): the `[prices]` table of the settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec

from seatrial.records.trace import Usage

_Usd = Annotated[float, msgspec.Meta(ge=0.0, le=1e6)]


class Price(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """USD for a million tokens. `cached` None: cached tokens cost what other input costs."""

    input: _Usd
    output: _Usd
    cached: _Usd | None = None

    def cost(self, usage: Usage) -> float | None:
        """USD of a usage; None where its tokens are not known."""
        if usage.input_tokens is None or usage.output_tokens is None:
            return None
        kept = min(usage.cached_tokens or 0, usage.input_tokens)
        cheap = self.cached if self.cached is not None else self.input
        paid = (usage.input_tokens - kept) * self.input + kept * cheap + usage.output_tokens * self.output
        return paid / 1e6


Prices = Mapping[str, Price]
"""By model name. A model that is not in it has no known cost: None, never zero (METHODS 6.7)."""
