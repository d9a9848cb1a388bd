"""The checks there are: one explicit tuple, and whatever other packages bring."""

from __future__ import annotations

from functools import cache

from seatrial import plugins
from seatrial.grading.checks import (
    approval_asked,
    error_recovery,
    final,
    forbidden_absent,
    matches_reference,
    no_verbatim_retries,
    ordered,
    production,
    refusals,
    required_present,
    within_budget,
    within_tool_calls,
)
from seatrial.grading.evidence import TaskCheck

BUILT_IN: tuple[TaskCheck, ...] = (
    final.WORLD_STATE,
    final.FINAL_ANSWER,
    required_present.CHECK,
    forbidden_absent.CHECK,
    ordered.CHECK,
    within_budget.CHECK,
    within_tool_calls.CHECK,
    no_verbatim_retries.CHECK,
    error_recovery.CHECK,
    refusals.NO_INVALID_ARGS,
    refusals.NO_UNKNOWN_TOOLS,
    refusals.NO_POLICY_REFUSALS,
    approval_asked.CHECK,
    matches_reference.CHECK,
    *production.CHECKS,
)
"""In the order of reports: the end first, then the way there, then what production says."""

SIX: tuple[TaskCheck, ...] = (
    required_present.CHECK,
    forbidden_absent.CHECK,
    ordered.CHECK,
    within_budget.CHECK,
    no_verbatim_retries.CHECK,
    refusals.NO_INVALID_ARGS,
)
"""The six of `grade_trajectory`, in its order."""


@cache
def checks(reactions: bool = True) -> tuple[TaskCheck, ...]:
    """Built-in checks, then those of other packages in name order; one whose name is taken is left out.

    Without `reactions`: not the ones about how people took an answer, which a sandbox has not.
    """
    left_out = () if reactions else production.REACTIONS
    found = {c.name: c for c in BUILT_IN if c not in left_out}
    for plugin in plugins.plugins("seatrial.checks").found:
        if isinstance(plugin.value, TaskCheck) and plugin.value.name not in found:
            found[plugin.value.name] = plugin.value
    return tuple(found.values())


def versions() -> dict[str, str]:
    """Check versions by name (METHODS 0.6)."""
    return {c.name: c.version for c in checks()}
