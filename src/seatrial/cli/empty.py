"""Empty values of options and arguments: refused in every command, since ``--at ""`` is a variable that was not set,
and a command that took it for an option that is not there would do something else than was asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from seatrial.errors import UsageError


def refuse_empty(command: Any) -> None:
    """Make a command, and all below it, refuse empty values."""
    for parameter in command.params:
        parameter.handle_parse_result = _sure(parameter, parameter.handle_parse_result)
    for child in getattr(command, "commands", {}).values():
        refuse_empty(child)


def _sure(parameter: Any, take: Callable[..., Any]) -> Callable[..., Any]:
    def sure(context: Any, given: Mapping[str, Any], rest: list[str]) -> Any:
        value = given.get(parameter.name)
        if "" in (value if isinstance(value, list | tuple) else [value]):
            options = [name for name in parameter.opts if name.startswith("-")]
            what = max(options, key=len) if options else (parameter.metavar or parameter.name.upper()).strip("[].")
            hint = f"leave it out or give one; see '{context.command_path} --help'"
            raise UsageError(f"{what} was given an empty value", hint=hint)
        return take(context, given, rest)

    return sure


__all__ = ["refuse_empty"]
