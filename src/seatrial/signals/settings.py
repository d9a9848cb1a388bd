"""What a user may set about signals; every default is METHODS 1."""

from __future__ import annotations

import msgspec

from seatrial.errors import UsageError


class SignalSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Thresholds and windows of extraction (METHODS 1.4).

    `correction_threshold` is the confidence from which a negative construct counts as a correction;
    `threshold` is the same for every other kind. `merge_window` (seconds) merges same-kind signals of one
    session. `abandon_after` (hours) without a human turn makes an open request abandoned, if `observed_until`
    (seconds since the epoch, UTC; None: not known) shows that the window was long enough to see it.
    `escalation_tools` are further tool names that hand the session to a person. `accept_implicit_confirms` counts
    acting on finished work as accepting it (METHODS 1.2). `classifier` False: rules alone.

    Raises:
        UsageError: a threshold outside [0, 1].
    """

    correction_threshold: float = 0.7
    threshold: float = 0.5
    merge_window: float = 30.0
    abandon_after: float = 24.0
    observed_until: float | None = None
    escalation_tools: tuple[str, ...] = ()
    accept_implicit_confirms: bool = False
    classifier: bool = True

    def __post_init__(self) -> None:
        for name, value in (("threshold", self.threshold), ("correction_threshold", self.correction_threshold)):
            if not 0.0 <= value <= 1.0:
                raise UsageError(f"{name} {value:g} is no confidence", hint="a number in [0, 1]")
