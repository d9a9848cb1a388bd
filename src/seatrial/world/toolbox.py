"""Tools over any kind of state: validation of arguments, refusals, and the call to the function behind."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Generic, TypeVar

import jsonschema
import msgspec

from seatrial.errors import InputError, UsageError
from seatrial.records import Gate, Snapshot, ToolCall, ToolResult, ToolSpec
from seatrial.records.trace import ResultOutcome

S = TypeVar("S")
"""What the world's functions are given: a dictionary, a database connection, a folder."""


class Output(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool function returns. `cause` is why it is an error (METHODS 1.3), known to the world alone.

    `refused` ``policy``: the world's own rules forbid the call, and it changed nothing.
    """

    text: str = ""
    outcome: ResultOutcome = "ok"
    exit_code: int | None = None
    cause: str | None = None
    seconds: float = 0.0
    refused: str | None = None


class Tool(Generic[S]):
    """A tool and the function that carries it out by changing the state in place.

    `gate` looks at the state and the arguments of a proposed call and changes nothing.
    """

    def __init__(
        self,
        spec: ToolSpec,
        run: Callable[[S, dict[str, Any], random.Random], Output],
        gate: Callable[[S, dict[str, Any]], Gate | None] | None = None,
    ) -> None:
        self.spec = spec
        self.run = run
        self.gate = gate

    @cached_property
    def validator(self) -> jsonschema.Draft202012Validator:
        """The compiled schema of the arguments."""
        jsonschema.Draft202012Validator.check_schema(self.spec.parameters)
        return jsonschema.Draft202012Validator(self.spec.parameters)


class Toolbox(Generic[S]):
    """A world's tools. Draws are keyed by (seed, number of the call), so two branches see the same luck.

    Raises:
        UsageError: two tools have the same name.
    """

    def __init__(self, world: str, tools: Sequence[Tool[S]]) -> None:
        self._tools = {tool.spec.name: tool for tool in tools}
        if len(self._tools) != len(tools):
            raise UsageError(f"world {world}: two tools have the same name")
        self.specs = tuple(tool.spec for tool in self._tools.values())

    def gate(self, state: S, call: ToolCall) -> Gate | None:
        """The gate that the proposed call would trigger; None for an unknown tool or invalid arguments."""
        tool = self._tools.get(call.name)
        if tool is None or tool.gate is None or not tool.validator.is_valid(call.arguments):
            return None
        return tool.gate(state, call.arguments)

    def call(self, state: S, call: ToolCall, seed: int, number: int) -> ToolResult:
        """Execute one call. Unknown tools and schema violations are refused and change nothing.

        `extra` holds what the world knows and a log would not: `cause`, `seconds`, `refused` and the failing
        `field`.
        """
        tool = self._tools.get(call.name)
        if tool is None:
            text = f"<tool_use_error>Error: No such tool available: {call.name}</tool_use_error>"
            return _refused(call, text, "unknown_tool", None)
        problem = None if call.validity == "invalid" else next(tool.validator.iter_errors(call.arguments), None)
        if problem is not None or call.validity == "invalid":
            field = "/".join(map(str, problem.absolute_path)) if problem else ""
            why = problem.message if problem else "the arguments are not a JSON object"
            text = f"<tool_use_error>InputValidationError: {call.name} failed: {why}</tool_use_error>"
            return _refused(call, text, "schema", field)
        out = tool.run(state, call.arguments, random.Random(f"{seed}:{number}"))
        extra: dict[str, Any] = {"seconds": out.seconds}
        if out.cause is not None:
            extra["cause"] = out.cause
        if out.refused is not None:
            extra["refused"] = out.refused
        return ToolResult(call_id=call.id, outcome=out.outcome, exit_code=out.exit_code, text=out.text, extra=extra)


def check_origin(snapshot: Snapshot, name: str, version: str) -> None:
    """Refuse a snapshot of another world.

    Raises:
        InputError: the snapshot is of another world or version.
    """
    if (snapshot.world, snapshot.version) != (name, version):
        raise InputError(
            f"snapshot of {snapshot.world} {snapshot.version} cannot be restored in {name} {version}",
            hint="take the snapshot again in this world",
        )


def _refused(call: ToolCall, text: str, refused: str, field: str | None) -> ToolResult:
    extra: dict[str, Any] = {"refused": refused, "cause": "model", "seconds": 0.0}
    if field is not None:
        extra["field"] = field
    return ToolResult(call_id=call.id, outcome="error", text=text, extra=extra)


def parameters(properties: Mapping[str, str | dict[str, Any]]) -> dict[str, Any]:
    """A JSON Schema of an object that allows these properties alone: a type's name (a trailing ``?`` makes it
    optional) or a schema (required)."""
    return {
        "type": "object",
        "properties": {k: {"type": v.rstrip("?")} if isinstance(v, str) else v for k, v in properties.items()},
        "required": [k for k, v in properties.items() if not (isinstance(v, str) and v.endswith("?"))],
        "additionalProperties": False,
    }
