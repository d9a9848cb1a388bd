"""Code and files to one hash: what a suite, an agent or a command line is made of, so that a change of it shows.

A function's own text is not enough: what it calls lies in its file and in the files that this one imports. Followed
are imports, read from the text and nothing run, within the code's own package or folder; libraries are not.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from seatrial.suites.hashing import source_of

OWN = Path(__file__).resolve().parents[1]
_LIBRARIES = ("site-packages", "dist-packages")
MOST = 2_000
"""Files followed at most."""


def code_hash(things: Iterable[Any]) -> str:
    """Hash of the files that these functions and objects (their classes) are written in, with what they import.

    A thing whose file is out of reach counts by the text of its function, or by its name.
    """
    files: set[Path] = set()
    loose: set[str] = set()
    for thing in things:
        file = _file_of(thing)
        if file is None:
            loose.add(source_of(thing))
        else:
            files.add(file)
    return _hash(files, loose)


def command_hash(words: Sequence[str]) -> str | None:
    """Hash of the files that a command line names (a Python program with what it imports from its folder); None where
    it names none: a program found on the path is known by its name alone."""
    files = set(_named(words))
    return _hash(files, set()) if files else None


def _named(words: Sequence[str]) -> Iterator[Path]:
    for before, word in zip(("", *words), words, strict=False):
        tried = [word, word.partition("=")[2]]
        if before == "-m":
            plain = word.replace(".", "/")
            tried += [f"{plain}.py", f"{plain}/__main__.py"]
        for text in tried:
            try:
                if text and (path := Path(text)).is_file():
                    yield path.resolve()
            except (OSError, ValueError):
                continue


def _file_of(thing: Any) -> Path | None:
    target = thing if inspect.isroutine(thing) or inspect.isclass(thing) else None
    if target is None and hasattr(thing, "func"):
        return _file_of(thing.func)
    try:
        found = inspect.getsourcefile(inspect.unwrap(target) if target is not None else type(thing))
    except (TypeError, ValueError, OSError):
        return None
    path = Path(found).resolve() if found else None
    return path if path is not None and path.is_file() else None


def _hash(files: set[Path], loose: set[str]) -> str:
    contents = {_digest(file) for start in files for file in _followed(start)}
    whole = hashlib.sha256()
    for one in sorted(contents | {hashlib.sha256(text.encode()).hexdigest() for text in loose}):
        whole.update(one.encode())
    return whole.hexdigest()[:20]


def _digest(file: Path) -> str:
    """By name and content, not by folder: the same code elsewhere is the same code."""
    try:
        with file.open("rb") as stream:
            content = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        content = "unreadable"
    return hashlib.sha256(f"{file.name}:{content}".encode()).hexdigest()


def _followed(start: Path) -> set[Path]:
    """The file and, where it is Python, what it imports of its own package or folder."""
    base = start.parent
    while (base / "__init__.py").is_file() and base != OWN:
        base = base.parent
    # Of what is installed, the thing's own folder is followed and not everything that lies beside it.
    inside = start.parent if base == OWN or any(part in _LIBRARIES for part in start.parts) else base
    found, waiting = {start}, [start]
    while waiting and len(found) < MOST:
        for file in _imports(waiting.pop(), base):
            if (
                file not in found
                and file.is_relative_to(inside)
                and not set(_LIBRARIES) & set(file.relative_to(inside).parts)
            ):
                found.add(file)
                waiting.append(file)
    return found


def _imports(file: Path, base: Path) -> Iterator[Path]:
    if file.suffix != ".py":
        return
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _modules((base, file.parent), alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            words = node.module.split(".") if node.module else []
            roots = (file.parents[node.level - 1],) if 0 < node.level <= len(file.parents) else (base, file.parent)
            for alias in node.names:
                yield from _modules(roots, [*words, alias.name])


def _modules(roots: Sequence[Path], words: list[str]) -> Iterator[Path]:
    """The files of a dotted name, and of the packages on the way there."""
    for root in roots:
        place = root
        for word in words:
            for file in (place / f"{word}.py", place / word / "__init__.py"):
                if file.is_file():
                    yield file.resolve()
            place = place / word


__all__ = ["code_hash", "command_hash"]
