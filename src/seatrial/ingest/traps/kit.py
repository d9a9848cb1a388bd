"""The kit's data: one trap is a few files, why they break readers, and the right answer."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from seatrial.errors import InputError, UsageError

FILES = Path(__file__).resolve().parent / "files"


class Expected(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What must be found. A field that is absent is not asked.

    All but the `sub_agent` fields speak of main conversations only, of turns that are not copies, in file order.
    `outcomes`, `exit_codes` and `result_text` go by call id and ask for the named calls alone. Tokens are sums over
    agent turns; `input_tokens` counts everything read, cached or not. `model_errors` are the calls whose result is
    an error of the model's (METHODS 1.3, 1.4).
    """

    human: list[str] | None = None
    human_turns: int | None = None
    interrupted: int | None = None
    agent: list[str] | None = None
    agent_turns: int | None = None
    calls: list[str] | None = None
    outcomes: dict[str, str] | None = None
    exit_codes: dict[str, int] | None = None
    result_text: dict[str, str] | None = None
    models: list[str] | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    sessions: int | None = None
    sub_agents: int | None = None
    sub_agent_text: list[str] | None = None
    lost_lines: list[int] | None = None
    model_errors: list[str] | None = None


class Generate(msgspec.Struct, frozen=True):
    """A file too big to ship: so many lines, so many of them turns of the person, each with an answer."""

    lines: int
    turns: int


class _Answer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    why: str
    files: list[str]
    expect: Expected
    generate: Generate | None = None


class Trap(msgspec.Struct, frozen=True, kw_only=True):
    """One trap: what is tricky (`why`), its files relative to `folder`, and the right answer."""

    format: str
    name: str
    why: str
    files: tuple[str, ...]
    folder: Path
    expect: Expected
    generate: Generate | None = None


@lru_cache(maxsize=1)
def _all() -> tuple[Trap, ...]:
    found = []
    for answer in sorted(FILES.glob("*/*/answer.json")):
        read = msgspec.json.decode(answer.read_bytes(), type=_Answer)
        found.append(
            Trap(
                format=answer.parent.parent.name,
                name=answer.parent.name,
                why=read.why,
                files=tuple(read.files),
                folder=answer.parent,
                expect=read.expect,
                generate=read.generate,
            )
        )
    return tuple(found)


def formats() -> tuple[str, ...]:
    """Formats that have traps."""
    return tuple(dict.fromkeys(trap.format for trap in _all()))


def traps(*, format: str | None = None, name: str | None = None) -> tuple[Trap, ...]:
    """The traps, all or those of a format or a name.

    Raises:
        UsageError: there is none.
    """
    found = tuple(t for t in _all() if format in (None, t.format) and name in (None, t.name))
    if not found:
        wanted = " ".join(filter(None, (format, name)))
        raise UsageError(
            f"there is no trap {wanted!r}", hint=f"formats with traps: {', '.join(formats())}; --list names all traps"
        )
    return found


def lay_out(trap: Trap, folder: Path) -> list[Path]:
    """Copy a trap's files into `folder`, or generate them there; returns the files in the kit's order.

    Raises:
        InputError: it cannot be written there.
    """
    made = []
    try:
        for name in trap.files:
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if trap.generate is None:
                shutil.copyfile(trap.folder / name, target)
            else:
                with target.open("wb") as stream:
                    stream.writelines(_generated(trap.generate, target.stem))
            made.append(target)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", file=str(folder)) from error
    return made


def _generated(how: Generate, session: str) -> Iterator[bytes]:
    """A Claude Code session whose turns lie far apart between progress records."""
    base = {"sessionId": session, "cwd": "/w", "version": "2.1.201", "isSidechain": False, "userType": "external"}
    last: str | None = None
    every = how.lines // how.turns
    stamp = "2026-09-01T10:00:00.000Z"
    idle = _line({"type": "progress", "data": {"type": "hook_progress"}, "timestamp": stamp, "sessionId": session})
    for n in range(how.lines):
        place = n % every
        if place > 1 or n >= how.turns * every:
            yield idle
            continue
        me, turn = f"00000000-0000-4000-8000-{n:012d}", n // every
        common: dict[str, Any] = {**base, "uuid": me, "parentUuid": last, "timestamp": stamp}
        if place == 0:
            yield _line({"type": "user", **common, "message": {"role": "user", "content": f"Request {turn}"}})
        else:
            usage = {"input_tokens": 100, "output_tokens": 1}
            said = [{"type": "text", "text": f"Answer {turn}"}]
            message = {"id": f"msg_{turn}", "type": "message", "role": "assistant", "model": "claude-opus-4-5"}
            yield _line({"type": "assistant", **common, "message": message | {"content": said, "usage": usage}})
        last = me


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"
