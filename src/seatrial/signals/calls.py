"""Tool calls to what they were for: the command that a call runs, its head, the file that it is about."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple

from seatrial.records import ToolCall
from seatrial.signals import faults, shell

_COMMAND_TOOL = re.compile(
    r"bash|shell|terminal|exec|run_?command|run_?cmd|command_?line|powershell|console|python|ipython|jupyter|script"
    r"|run_code|code_interpreter|sandbox",
    re.IGNORECASE,
)
_COMMAND_KEYS = ("command", "cmd", "script", "code", "input", "commands")
_TARGET_KEYS = ("file_path", "path", "filename", "notebook_path", "file", "url", "target_file", "absolute_path")


class Read(NamedTuple):
    """A command line as far as results are judged by it: parsed, its head (the last that can have failed), whether it
    prints other files' text, speaks HTTP; `silent`: an output without error says nothing, as one that only prints
    a file's."""

    line: shell.Line
    head: str | None
    reads: bool
    http: bool
    silent: bool


@lru_cache(maxsize=4096)
def read(command: str) -> Read:
    """Parse a command line, and see what kinds of programs it runs."""
    line = shell.parse(command)
    decisive = line.deciders or line.commands
    reads = http = False
    for one in line.commands:
        head, program = one.head, one.program
        reads = reads or head in faults.READERS or program in faults.READERS
        http = http or head in faults.HTTP_PROGRAMS or program in faults.HTTP_PROGRAMS
    silent = reads and not http and len(line.commands) == 1
    return Read(line, decisive[-1].head if decisive else None, reads, http, silent)


@lru_cache(maxsize=1024)
def _runs_commands(name: str) -> bool:
    return _COMMAND_TOOL.search(name) is not None


def command_text(call: ToolCall) -> str | None:
    """The command line of a command-like tool call, None for other tools."""
    if not _runs_commands(call.name):
        return None
    for key in _COMMAND_KEYS:
        value = call.arguments.get(key)
        if isinstance(value, str):
            return value
        if isinstance(value, list) and value and all(isinstance(v, str) for v in value):
            return _from_argv(value)
    return call.raw_arguments


def _from_argv(argv: list[Any]) -> str:
    words = [str(v) for v in argv]
    if len(words) >= 3 and words[0].rsplit("/", 1)[-1] in ("bash", "sh", "zsh") and words[1].endswith("c"):
        return words[2]
    return " ".join(words)


def intent(call: ToolCall, head: str | None) -> str:
    """What the call was for: tool, then command head or target file."""
    if head:
        return f"{call.name}:{head}"
    for key in _TARGET_KEYS:
        value = call.arguments.get(key)
        if isinstance(value, str):
            return f"{call.name}:{value}"
    return call.name
