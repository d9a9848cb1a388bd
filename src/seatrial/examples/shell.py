"""The workspace's shell: words in, text and an exit code out, over the state; nothing is executed."""

from __future__ import annotations

import random
import shlex
from collections.abc import Callable
from typing import Any

from seatrial.examples.repository import failures
from seatrial.world import Output

State = dict[str, Any]


def words(command: str) -> list[str]:
    """The command's words; a command with unbalanced quotes is one word."""
    try:
        return shlex.split(command)
    except ValueError:
        return [command]


def touch(state: State, path: str) -> None:
    """Note that a file differs from the last commit."""
    changed = state["git"]["changed"]
    if path not in changed:
        changed.append(path)
        changed.sort()


def run(state: State, command: str, draws: random.Random) -> Output:
    """Interpret one command. Exit codes are those of the real programs: grep and diff use 1 for 'no'."""
    parts = words(command)
    if not parts:
        return Output(exit_code=0)
    program = _PROGRAMS.get(parts[0])
    if program is None:
        return _fail(127, f"bash: {parts[0]}: command not found")
    out = program(state, parts[1:])
    slow = 4.0 if parts[0] in ("pytest", "svc") else 0.4
    return Output(
        text=out.text,
        outcome=out.outcome,
        exit_code=out.exit_code,
        cause=out.cause,
        seconds=slow * (0.5 + draws.random()),
    )


def _ok(text: str = "") -> Output:
    return Output(text=text, exit_code=0)


def _fail(code: int, text: str) -> Output:
    return Output(text=text, outcome="error", exit_code=code, cause="model")


def _no(text: str = "") -> Output:
    """Exit 1 that means 'no', not an error of the caller (METHODS 1.3)."""
    return Output(text=text, outcome="error", exit_code=1, cause="benign")


def _options(args: list[str], allowed: tuple[str, ...]) -> tuple[list[str], dict[str, str], str | None]:
    """Positional words, options with their values, and the first option that is not allowed."""
    plain: list[str] = []
    options: dict[str, str] = {}
    rest = list(args)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--"):
            plain.append(word)
        elif word not in allowed or not rest:
            return plain, options, word
        else:
            options[word] = rest.pop(0)
    return plain, options, None


def _ls(state: State, args: list[str]) -> Output:
    prefix = (args[0].rstrip("/") + "/") if args else ""
    found = [path for path in state["files"] if path.startswith(prefix)]
    return (
        _ok("\n".join(sorted(found))) if found else _fail(2, f"ls: cannot access '{prefix}': No such file or directory")
    )


def _cat(state: State, args: list[str]) -> Output:
    for path in args:
        if path not in state["files"]:
            return _fail(1, f"cat: {path}: No such file or directory")
    return _ok("".join(state["files"][path] for path in args))


def _grep(state: State, args: list[str]) -> Output:
    flags = "".join(a for a in args if a.startswith("-"))
    plain = [a for a in args if not a.startswith("-")]
    if len(plain) < 2:
        return _fail(2, "usage: grep [-rnlc] PATTERN PATH...")
    pattern, places = plain[0], plain[1:]
    hits: list[str] = []
    for path, text in sorted(state["files"].items()):
        if not any(path == place or path.startswith(place.rstrip("/") + "/") for place in places):
            continue
        lines = [(i, line) for i, line in enumerate(text.splitlines(), 1) if pattern in line]
        if lines and "l" in flags:
            hits.append(path)
        else:
            hits += [f"{path}:{i}:{line}" for i, line in lines]
    return _ok("\n".join(hits)) if hits else _no()


def _diff(state: State, args: list[str]) -> Output:
    plain = [a for a in args if not a.startswith("-")]
    missing = [path for path in plain if path not in state["files"]]
    if len(plain) != 2 or missing:
        return _fail(2, f"diff: {missing[0]}: No such file or directory" if missing else "diff: need two files")
    one, two = (state["files"][path].splitlines() for path in plain)
    lines = [f"< {line}" for line in one if line not in two] + [f"> {line}" for line in two if line not in one]
    return _no("\n".join(lines)) if lines else _ok()


def _test(state: State, args: list[str]) -> Output:
    return _ok() if args[-1:] and args[-1] in state["files"] else _no()


def _pytest(state: State, args: list[str]) -> Output:
    failing = failures(state)
    chosen = [a for a in args if a in state["tests"]]
    bad = {test: why for test, why in failing.items() if not chosen or test in chosen}
    total = len(chosen) or len(state["tests"])
    if not bad:
        return _ok(f"{total} passed in 0.31s")
    lines = [f"FAILED tests/test_app.py::{test} - {why}" for test, why in bad.items()]
    text = "\n".join([*lines, f"{len(bad)} failed, {total - len(bad)} passed in 0.34s"])
    # A test that fails before anything was changed reproduces a bug; after a change it shows a mistake.
    touched = any(path.endswith(".py") for path in state["git"]["changed"])
    return Output(text=text, outcome="error", exit_code=1, cause="model" if touched else "benign")


def _desk(state: State, args: list[str]) -> Output:
    verb, rest = (args[0], args[1:]) if args else ("", [])
    if verb == "list":
        return _desk_list(state, rest)
    if verb not in ("show", "set", "note"):
        return _fail(2, f"desk: unknown command '{verb}' (list, show, set, note)")
    plain, options, unknown = _options(rest, ("--priority", "--assignee", "--status") if verb == "set" else ())
    if unknown:
        return _fail(2, f"desk {verb}: unknown option {unknown}")
    ticket = state["tickets"].get(plain[0]) if plain else None
    if ticket is None:
        return _fail(1, f"desk: no ticket '{plain[0] if plain else ''}'")
    if verb == "show":
        lines = [f"{key}: {value}" for key, value in ticket.items() if key not in ("notes", "updated")]
        return _ok("\n".join([plain[0], *lines, *(f"note: {note}" for note in ticket["notes"])]))
    if verb == "note":
        ticket["notes"].append(" ".join(plain[1:]))
    else:
        ticket.update({option.removeprefix("--"): value for option, value in options.items()})
    ticket["updated"] = state["clock"]
    return _ok(f"{plain[0]} updated")


def _desk_list(state: State, args: list[str]) -> Output:
    _, options, unknown = _options(args, ("--label", "--priority", "--status"))
    if unknown:
        return _fail(2, f"desk list: unknown option {unknown}")
    lines = []
    for name, ticket in state["tickets"].items():
        if options.get("--label") not in (None, *ticket["labels"]):
            continue
        if options.get("--priority") not in (None, ticket["priority"]) or options.get("--status") not in (
            None,
            ticket["status"],
        ):
            continue
        lines.append(f"{name} {ticket['status']} {ticket['priority']} {ticket['assignee']}: {ticket['title']}")
    return _ok("\n".join(lines) or "no tickets")


def _svc(state: State, args: list[str]) -> Output:
    verb, rest = (args[0], args[1:]) if args else ("", [])
    service = state["services"].get(rest[0]) if rest else None
    if verb not in ("status", "deploy", "scale"):
        return _fail(2, f"svc: unknown command '{verb}' (status, deploy, scale)")
    if service is None:
        return _fail(1, f"svc: no service '{rest[0] if rest else ''}'")
    if verb == "status":
        return _ok(f"{rest[0]}: version {service['version']}, {service['replicas']} replicas")
    if len(rest) != 2:
        return _fail(2, f"usage: svc {verb} SERVICE VALUE")
    if verb == "deploy":
        service["version"] = rest[1]
    elif not rest[1].isdigit():
        return _fail(2, f"svc scale: '{rest[1]}' is not a number")
    else:
        service["replicas"] = int(rest[1])
    return _ok(f"{rest[0]}: version {service['version']}, {service['replicas']} replicas")


def _git(state: State, args: list[str]) -> Output:
    git = state["git"]
    verb = args[0] if args else ""
    if verb == "status":
        return _ok("\n".join(f" M {path}" for path in git["changed"]) or "nothing to commit, working tree clean")
    if verb == "commit":
        if not git["changed"]:
            return _fail(1, "nothing to commit, working tree clean")
        n = len(git["changed"])
        git["commits"].append({"message": args[-1], "files": list(git["changed"])})
        git["changed"] = []
        return _ok(f"[main] {args[-1]}\n {n} file{'s' if n > 1 else ''} changed")
    if verb == "push":
        git["pushed"] = len(git["commits"])
        return _ok("To origin\n   main -> main")
    return _fail(1, f"git: '{verb}' is not a git command. See 'git --help'.")


_PROGRAMS: dict[str, Callable[[State, list[str]], Output]] = {
    "ls": _ls,
    "cat": _cat,
    "grep": _grep,
    "diff": _diff,
    "test": _test,
    "pytest": _pytest,
    "desk": _desk,
    "svc": _svc,
    "git": _git,
}
