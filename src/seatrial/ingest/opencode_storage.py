"""OpenCode's own folder: a session in a file, its messages and their parts in files of their own.

``storage/session/<project>/<session>.json``, ``storage/message/<session>/<message>.json`` and
``storage/part/<message>/<part>.json``; put together they are what ``opencode export`` writes.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal, NamedTuple

from seatrial.canon import digest
from seatrial.ingest.jsontext import BadJSON, kind, loads

Kind = Literal["session", "message", "part", "other"]

_SHAPES: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("session", re.compile(r"session/[^/]+/ses_[^/]+\.json")),
    ("message", re.compile(r"message/ses_[^/]+/msg_[^/]+\.json")),
    ("part", re.compile(r"part/msg_[^/]+/prt_[^/]+\.json")),
    ("other", re.compile(r"(?:todo|session_diff)/ses_[^/]+\.json")),
)


def kind_of(path: Path) -> Kind | None:
    """What a file of the folder holds, by its place; None: it is no file of such a folder."""
    for back in (3, 2):
        place = "/".join(path.parts[-back:])
        for what, shape in _SHAPES:
            if shape.fullmatch(place):
                return what
    return None


def session_of(path: Path) -> Path | None:
    """The session's file that a message's, a part's or another file belongs to; None: it is not there."""
    what = kind_of(path)
    if what == "session":
        return path
    if what in (None, "part"):
        if what is None or not (message := _message_of(path)):
            return None
        path = message
    session = path.parent.name if kind_of(path) == "message" else path.stem
    root = path.parents[2] if kind_of(path) == "message" else path.parents[1]
    return next(iter(sorted((root / "session").glob(f"*/{session}.json"))), None)


def _message_of(part: Path) -> Path | None:
    found = sorted((part.parents[2] / "message").glob(f"*/{part.parent.name}.json"))
    return found[0] if found else None


def companions(path: Path) -> list[Path]:
    """The files that are read with a session's file, in name order: its messages, then their parts."""
    if kind_of(path) != "session":
        return []
    root = path.parents[2]
    messages = sorted((root / "message" / path.stem).glob("msg_*.json"))
    return [*messages, *(p for m in messages for p in sorted((root / "part" / m.stem).glob("prt_*.json")))]


class Gathered(NamedTuple):
    """A session's messages in order, as an export has them; `problems` are files that could not be read, and `hash`
    covers all files together."""

    messages: list[dict[str, Any]]
    problems: list[str]
    hash: str


def gather(path: Path, own_hash: str) -> Gathered:
    """The messages of a session's file and their parts; `own_hash` is the sha256 of that file."""
    problems: list[str] = []
    hashes = [own_hash]
    by_id: dict[str, dict[str, Any]] = {}
    for file in companions(path):
        try:
            data = file.read_bytes()
            hashes.append(digest(data))
            value, _ = loads(data)
        except (OSError, BadJSON) as error:
            problems.append(f"{file.parent.name}/{file.name} cannot be read: {getattr(error, 'why', error)}")
            continue
        if not isinstance(value, dict):
            problems.append(f"{file.parent.name}/{file.name}: expected an object, found {kind(value)}")
        elif kind_of(file) == "message":
            by_id[file.stem] = {"info": value, "parts": []}
        elif file.parent.name in by_id:
            by_id[file.parent.name]["parts"].append(value)
        else:
            problems.append(f"{file.parent.name}/{file.name}: its message could not be read")
    messages = sorted(by_id.items(), key=lambda item: (_created(item[1]["info"]), item[0]))
    return Gathered([m for _, m in messages], problems, digest("".join(hashes).encode()))


def _created(info: dict[str, Any]) -> float:
    time = info.get("time")
    created = time.get("created") if isinstance(time, dict) else None
    return float(created) if isinstance(created, int | float) and abs(created) < 1e300 else 0.0
