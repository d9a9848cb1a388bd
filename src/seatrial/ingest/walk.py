"""Paths to a list of candidate files, in an order that does not depend on the file system."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from seatrial.errors import InputError
from seatrial.ingest.opencode_storage import companions, session_of

NOT_ENTERED = frozenset({".git", ".hg", ".svn", ".venv", "node_modules", "__pycache__", ".seatrial"})
"""Folders that are never entered: they hold other people's files, or our own store."""


def scan(paths: Sequence[Path]) -> list[Path]:
    """Every file under `paths`, each once: folders are walked in name order, hidden ones included.

    A session file brings its side files along: ``<session>.jsonl`` those in ``<session>/``, where Claude Code
    puts its sub-agents. Links to folders are not followed. Nothing is filtered by name: a file that no reader
    knows is refused with a reason, so that every file is accounted for. So is a folder that cannot be listed,
    which is handed on like a file.

    Raises:
        InputError: a path does not exist.
    """
    found: dict[Path, Path] = {}
    for path in paths:
        for file in _files(path):
            found.setdefault(file.resolve(), file)
    return list(found.values())


def beside(path: Path) -> list[Path]:
    """The files that are read with this one, and whose own reading gives no trace: those of OpenCode's storage."""
    return companions(path)


def with_main_files(files: Sequence[Path]) -> list[Path]:
    """Some files, and those that they are read with: a message that has come reads its session anew."""
    listed = dict.fromkeys(files)
    for file in files:
        main = session_of(file)
        if main is not None:
            listed.setdefault(main)
    return list(listed)


def _files(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from _walk(path)
    elif path.exists() or path.is_symlink():
        yield path
        beside = path.with_suffix("")
        if path.suffix == ".jsonl" and beside.is_dir():
            yield from _walk(beside)
    else:
        raise InputError("no such file or folder", hint="check the path", file=str(path))


def _walk(folder: Path) -> Iterator[Path]:
    unlisted: list[Path] = []
    for directory, folders, files in os.walk(folder, onerror=lambda error: unlisted.append(Path(error.filename))):
        folders[:] = sorted(name for name in folders if name not in NOT_ENTERED)
        for name in sorted(files):
            yield Path(directory) / name
    yield from unlisted
