"""The `[suites]` table of the settings: how `seatrial run` runs where its options say nothing."""

from __future__ import annotations

import msgspec

from seatrial.errors import SettingsError, UsageError
from seatrial.world import approver_of


class SuiteSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a suite is run.

    `k` attempts per task, `concurrency` of them at the same time, `retries` after infrastructure failed; `timeout` in
    seconds, `turn_limit` (None: twice a task's `max_turns`), `call_limit` and `max_cost` (USD; None: no limit) stop an
    attempt; `approver` decides on gated calls (`world.approver_of`); `budget` is what `--until-decided` may add in
    attempts, both agents together.
    """

    k: int = 5
    concurrency: int = 4
    retries: int = 1
    timeout: float = 600.0
    turn_limit: int | None = None
    call_limit: int = 500
    max_cost: float | None = None
    approver: str = "approve"
    budget: int = 1000


def checked(settings: SuiteSettings) -> SuiteSettings:
    """The settings, if they can mean something.

    Raises:
        SettingsError: a number is out of range, or the approver is unknown.
    """
    least = {"k": 1, "concurrency": 1, "retries": 0, "timeout": 0.01, "turn_limit": 1, "call_limit": 1, "max_cost": 0,
             "budget": 1}  # fmt: skip
    for name, bound in least.items():
        value = getattr(settings, name)
        if value is not None and not bound <= value <= 1e9:
            raise SettingsError(f"setting 'suites.{name}' is {value}, not at least {bound}")
    try:
        approver_of(settings.approver)
    except UsageError as error:
        raise SettingsError(f"setting 'suites.approver': {error.message}", hint=error.hint) from error
    return settings
