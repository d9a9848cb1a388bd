"""Runs in a repository: which files were touched that nobody asked for, and which tests fail that passed before."""

from __future__ import annotations

import msgspec

from seatrial.records import Evidence, StateChange


class Touched(msgspec.Struct, frozen=True, kw_only=True):
    """What a run did to a repository: files that its task does not name, and tests that passed before and fail now."""

    task: str
    trial: int
    files: int
    unrelated: tuple[str, ...]
    newly_failing: tuple[str, ...]
    trace: str | None = None


def touched(run: Evidence) -> Touched | None:
    """None where the world is no repository: no change below ``files`` and no results below ``tests``."""
    trace = run.trace
    start = trace.extra.get("start") if trace is not None else None
    if trace is None or not isinstance(start, dict) or not isinstance(start.get("files"), dict):
        return None
    try:
        changes = msgspec.convert(trace.extra.get("changes", []), tuple[StateChange, ...])
    except msgspec.ValidationError:
        return None
    files = list(dict.fromkeys(c.path[1] for c in changes if c.path[0] == "files" and len(c.path) > 1))
    named = _named_files(run)
    broke = [c.path[1] for c in changes if c.path[0] == "tests" and c.before is True and c.after is not True]
    return Touched(
        task=run.attempt.task, trial=run.attempt.trial, files=len(files),
        unrelated=tuple(f for f in files if named is not None and f not in named),
        newly_failing=tuple(broke), trace=run.attempt.trace,
    )  # fmt: skip


def _named_files(run: Evidence) -> set[str] | None:
    """Files below the paths that the task's intent allows to change; None where it has no intent."""
    if run.task is None or not run.task.intent:
        return None
    out = set()
    for effect in run.task.intent.get("allowed", []):
        for path in effect.get("paths", []):
            if path.startswith("/files/"):
                out.add(path.removeprefix("/files/").replace("~1", "/").replace("~0", "~"))
    return out
