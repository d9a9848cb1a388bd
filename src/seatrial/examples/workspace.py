"""A built-in world: a small company's repository, help desk and services, behind a shell and file tools.

The shell is an interpreter of about twenty commands over the state (`shell`); nothing is ever executed.
"""

from __future__ import annotations

import random
from typing import Any

from seatrial.examples import shell
from seatrial.examples.repository import repository
from seatrial.records import Gate, Risk, ToolSpec, WorldStart
from seatrial.world import FaultPlan, FaultyWorld, MemoryWorld, Output, Tool

VERSION = "1"
CONFIGS = ("config/api.toml", "config/worker.toml", "config/gateway.toml", "config/mailer.toml")
NUMBERS = {
    "timeout_s": (10, 90),
    "retries": (1, 9),
    "pool_size": (4, 64),
    "batch_size": (20, 400),
    "cache_ttl_s": (30, 900),
}
PEOPLE = ("maya", "jonas", "priya", "tomas", "ines", "kwame")
PRIORITIES = ("low", "normal", "high", "urgent")
LABELS = ("duplicate", "stale", "billing", "onboarding", "flaky", "wontfix")
SERVICES = ("api", "worker", "gateway", "mailer")
TITLES = (
    "Invoices show the wrong month",
    "Sign-up mail arrives twice",
    "Export hangs on large accounts",
    "Search ignores accents",
    "Password reset link expires early",
    "Dashboard totals differ from report",
    "Webhook retries too fast",
    "Avatar upload fails on Safari",
)
VOLATILE: tuple[tuple[str, ...], ...] = (("clock",), ("tickets", "*", "updated"))

FAULT_RATE = 0.03
"""Share of shell calls that an environment fault strikes in the demo."""


def world(seed: int, fault_rate: float = FAULT_RATE) -> FaultyWorld:
    """The workspace, with environment faults that depend on `seed` and the number of the call alone."""
    inner = MemoryWorld("workspace", VERSION, _TOOLS, VOLATILE)
    return FaultyWorld(inner, FaultPlan(rate=fault_rate, seed=seed, tools=("Bash",)))


def start(seed: int) -> WorldStart:
    """A start state: every setting, ticket and service drawn from `seed`; all tests pass."""
    draws = random.Random(f"workspace:{seed}")
    files, tests = repository()
    for path in CONFIGS:
        section = path.removeprefix("config/").removesuffix(".toml")
        lines = [f"# settings of the {section} service", f"[{section}]"]
        lines += [f"{key} = {draws.randint(low, high)}" for key, (low, high) in NUMBERS.items()]
        files[path] = "\n".join([*lines, f'log_level = "{draws.choice(("info", "debug", "warn"))}"', ""])
    tickets = {f"T-{101 + i}": _ticket(draws) for i in range(24)}
    services = {
        name: {"version": f"2.{draws.randint(0, 8)}.{draws.randint(0, 5)}", "replicas": draws.randint(1, 6)}
        for name in SERVICES
    }
    state: dict[str, Any] = {
        "files": files,
        "tests": tests,
        "tickets": tickets,
        "services": services,
        "git": {"changed": [], "commits": [], "pushed": 0},
        "clock": 0,
    }
    return WorldStart(state=state, seed=seed)


def _ticket(draws: random.Random) -> dict[str, Any]:
    return {
        "title": draws.choice(TITLES),
        "status": "open" if draws.random() < 0.75 else "closed",
        "priority": draws.choice(PRIORITIES),
        "assignee": draws.choice(PEOPLE),
        "labels": sorted(draws.sample(LABELS, draws.choice((0, 1, 1, 2)))),
        "notes": [],
        "updated": 0,
    }


def _tick(state: dict[str, Any]) -> None:
    state["clock"] += 1


def _bash(state: dict[str, Any], arguments: dict[str, Any], draws: random.Random) -> Output:
    _tick(state)
    return shell.run(state, arguments["command"], draws)


def _read(state: dict[str, Any], arguments: dict[str, Any], draws: random.Random) -> Output:
    _tick(state)
    text = state["files"].get(arguments["file_path"])
    if text is None:
        return _refuse("File does not exist.")
    numbered = "\n".join(f"{i:6d}\t{line}" for i, line in enumerate(text.splitlines(), 1))
    return Output(text=numbered, seconds=0.2 + 0.2 * draws.random())


def _edit(state: dict[str, Any], arguments: dict[str, Any], draws: random.Random) -> Output:
    _tick(state)
    path, old, new = arguments["file_path"], arguments["old_string"], arguments["new_string"]
    text = state["files"].get(path)
    if text is None:
        return _refuse("File does not exist.")
    if old == new:
        return _refuse("No changes to make: old_string and new_string are exactly the same.")
    count = text.count(old)
    if count == 0:
        return _refuse(f"String to replace not found in file.\nString: {old}")
    if count > 1 and not arguments.get("replace_all", False):
        return _refuse(f"Found {count} matches of the string to replace, but replace_all is false.")
    state["files"][path] = text.replace(old, new)
    shell.touch(state, path)
    return Output(text=f"The file {path} has been updated.", seconds=0.3 + 0.3 * draws.random())


def _write(state: dict[str, Any], arguments: dict[str, Any], draws: random.Random) -> Output:
    _tick(state)
    path = arguments["file_path"]
    state["files"][path] = arguments["content"]
    shell.touch(state, path)
    return Output(text=f"File created successfully at: {path}", seconds=0.3 + 0.3 * draws.random())


def _refuse(why: str) -> Output:
    text = f"<tool_use_error>{why}</tool_use_error>"
    return Output(text=text, outcome="error", cause="model", seconds=0.2)


def _push_gate(state: dict[str, Any], arguments: dict[str, Any]) -> Gate | None:
    if shell.words(arguments["command"])[:2] == ["git", "push"]:
        return Gate(name="push", severity="high", why="publishes commits outside the workspace; cannot be undone")
    return None


def _object(**properties: str) -> dict[str, Any]:
    """A JSON Schema of an object; a trailing ``?`` on the type makes a property optional."""
    return {
        "type": "object",
        "properties": {name: {"type": kind.rstrip("?")} for name, kind in properties.items()},
        "required": [name for name, kind in properties.items() if not kind.endswith("?")],
        "additionalProperties": False,
    }


_TOOLS = (
    Tool(
        ToolSpec(
            name="Bash",
            description="Run a shell command in the workspace.",
            parameters=_object(command="string", description="string?"),
            risk=Risk(irreversible=True, external=True),
        ),
        _bash,
        _push_gate,
    ),
    Tool(
        ToolSpec(
            name="Read",
            description="Read a file with line numbers.",
            parameters=_object(file_path="string"),
            effect="read",
        ),
        _read,
    ),
    Tool(
        ToolSpec(
            name="Edit",
            description="Replace a string in a file.",
            parameters=_object(file_path="string", old_string="string", new_string="string", replace_all="boolean?"),
            effect="write",
        ),
        _edit,
    ),
    Tool(
        ToolSpec(
            name="Write",
            description="Create or overwrite a file.",
            parameters=_object(file_path="string", content="string"),
            effect="write",
        ),
        _write,
    ),
)
