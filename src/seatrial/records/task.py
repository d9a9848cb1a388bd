"""What an agent is asked to do (METHODS 6.1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from seatrial.errors import UsageError

TaskSource = Literal["production_failure", "representative", "adversarial", "synthetic"]


class Task(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One task of a suite.

    `setup` prepares the world and `check_final(final_answer, world_state)` judges its end; in files both are
    ``module:function`` or, for `check_final`, a list of assertions ``{"path", "op", "value"}``. `max_turns`
    limits agent turns, `max_tool_calls` tool calls; None means no limit. `order` is None (or ``"none"``),
    ``"subsequence"`` or ``"prefix N"``: the first N of `expected_tools` are ordered. `reference` is a list of calls
    to match, ``{"calls": [{"tool", "arguments"}], "mode", "arguments"}`` (METHODS 6.2). `r_max` is the cost of doing
    the task from scratch (METHODS 5, D4), in the world's unit. `max_cost_usd` and `max_seconds` are what one attempt
    may cost and take (METHODS 6.7).
    """

    id: str
    input: str
    setup: str | Callable[..., Any] | dict[str, Any] | None = None
    expected_tools: list[str] = []
    forbidden_tools: list[str] = []
    max_turns: int | None = None
    check_final: str | Callable[..., Any] | list[dict[str, Any]] | None = None
    rubric: str | dict[str, Any] | None = None
    max_tool_calls: int | None = None
    max_cost_usd: float | None = None
    max_seconds: float | None = None
    order: str | None = None
    reference: dict[str, Any] | None = None
    gates: list[dict[str, Any]] = []
    intent: dict[str, Any] | None = None
    r_max: float | None = None
    tags: list[str] = []
    source: TaskSource | None = None
    type: str | None = None
    difficulty: str | None = None
    must_pass: bool = False
    suite: str | None = None
    extra: dict[str, Any] = {}

    def __post_init__(self) -> None:
        """Raises UsageError for a budget below 1: it would stand for another one."""
        for name in ("max_turns", "max_tool_calls"):
            value = getattr(self, name)
            if isinstance(value, int) and not isinstance(value, bool) and value < 1:
                raise UsageError(f"task {self.id}: {name} must be at least 1, got {value}", hint="None: no budget")
