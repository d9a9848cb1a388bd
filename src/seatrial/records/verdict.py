"""What a check or a judge says about one attempt (METHODS 6.2, 6.4)."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Layer = Literal["final", "trajectory", "production"]
"""What a check looks at: the end (answer, world), the way there, or evidence from production."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One check's verdict with its reason. True in a condition exactly when it passed.

    `passed` None: not applicable or not scored, and `reason` says why (METHODS 0.2); it is false in a condition.
    `value` is a share or count in the check's own terms (None where the check has no number), `steps` the indices
    of the steps that carry the evidence, `evidence` further facts by name. `by` and `version` name check or judge:
    verdicts of different versions are never compared (METHODS 0.6).
    """

    metric: str
    passed: bool | None
    reason: str
    by: str
    version: str
    layer: Layer = "trajectory"
    value: float | None = None
    steps: tuple[int, ...] = ()
    evidence: dict[str, Any] = {}

    def __bool__(self) -> bool:
        return self.passed is True
