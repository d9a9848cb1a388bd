"""A folder as a value: its files, links and empty folders, read, written and kept inside their root."""

from __future__ import annotations

import base64
import os
import stat
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from seatrial import canon
from seatrial.errors import InputError

LARGE = 1_000_000
"""Bytes above which a file appears in the state by size and sha256 alone."""

Files = dict[str, Any]
"""Path (with ``/``) to: text; ``{"text", "executable"}``; ``{"base64"}`` where the bytes are not UTF-8;
``{"sha256", "size"}`` where large; ``{"link"}`` for a symbolic link; ``{}`` for an empty folder (``/`` at its end)."""


class Entry(msgspec.Struct, frozen=True):
    """One thing in a saved folder. `kind` is file, link or folder; `data` the bytes, or the link's target."""

    path: str
    kind: str
    data: bytes
    executable: bool


class Outside(Exception):
    """A path that leads out of the folder."""


def inside(root: Path, name: str) -> Path:
    """The path of `name` below `root`, links followed.

    Raises:
        Outside: it leads out of the folder, or into a folder above it.
    """
    if "\x00" in name:
        raise Outside(name)
    base = root.resolve()
    path = (base / name).resolve()
    if not path.is_relative_to(base):
        raise Outside(name)
    return path


def entries(root: Path, ignored: tuple[str, ...] = ()) -> list[Entry]:
    """Everything below `root`, in path order; names that fit a pattern of `ignored` are left out, with what they
    hold. Sockets, pipes and devices are left out, too."""
    found: list[Entry] = []
    _gather(root, "", ignored, found)
    return sorted(found, key=lambda e: e.path)


def _gather(folder: Path, prefix: str, ignored: tuple[str, ...], found: list[Entry]) -> None:
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        folder.chmod(0o700)  # a command took its own permission away; modes of folders are no part of the state
    with os.scandir(folder) as listing:
        children = [c for c in listing if not any(fnmatch(c.name, pattern) for pattern in ignored)]
    if not children and prefix:
        found.append(Entry(prefix, "folder", b"", False))
    for child in children:
        path = prefix + child.name
        if child.is_symlink():
            found.append(Entry(path, "link", os.fsencode(os.readlink(child.path)), False))
        elif child.is_dir(follow_symlinks=False):
            _gather(Path(child.path), path + "/", ignored, found)
        elif child.is_file(follow_symlinks=False):
            executable = bool(child.stat(follow_symlinks=False).st_mode & stat.S_IXUSR)
            if not os.access(child.path, os.R_OK):
                os.chmod(child.path, 0o600)
            found.append(Entry(path, "file", Path(child.path).read_bytes(), executable))


def plain(found: list[Entry]) -> Files:
    """Entries as a plain JSON value."""
    return {e.path: _plain(e) for e in found}


def _plain(entry: Entry) -> Any:
    if entry.kind == "link":
        return {"link": os.fsdecode(entry.data)}
    if entry.kind == "folder":
        return {}
    if len(entry.data) > LARGE:
        return {"sha256": canon.digest(entry.data), "size": len(entry.data), "executable": entry.executable}
    try:
        text = entry.data.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(entry.data).decode(), "executable": entry.executable}
    return {"text": text, "executable": True} if entry.executable else text


def parse(files: Files) -> list[Entry]:
    """Entries from a plain value.

    Raises:
        InputError: a path that leads out, or a file that is known by its hash alone.
    """
    out = []
    for path, value in files.items():
        if path.startswith("/") or ".." in path.split("/") or "\x00" in path or not path:
            raise InputError(f"start state: {path!r} is no path below the folder", hint="use relative paths")
        if isinstance(value, str):
            out.append(Entry(path, "file", value.encode(), False))
        elif value == {} and path.endswith("/"):
            out.append(Entry(path, "folder", b"", False))
        elif isinstance(value, dict) and isinstance(value.get("link"), str):
            out.append(Entry(path, "link", os.fsencode(value["link"]), False))
        elif isinstance(value, dict) and ("text" in value or "base64" in value):
            data = value["text"].encode() if "text" in value else base64.b64decode(value["base64"])
            out.append(Entry(path, "file", data, bool(value.get("executable"))))
        else:
            hint = 'give its text, or {"base64": ...}; a file above 1 MB cannot be part of a start state'
            raise InputError(f"start state: the content of {path} is not known", hint=hint)
    return out


def write(root: Path, wanted: list[Entry]) -> None:
    """Make `root` hold exactly `wanted`; what is right already is left alone."""
    wanted_by = {e.path: e for e in wanted}
    right = {e.path for e in entries(root) if wanted_by.get(e.path) == e}
    folders = {str(parent) for path in wanted_by for parent in PurePosixPath(path).parents}
    folders |= {e.path.rstrip("/") for e in wanted if e.kind == "folder"}
    for place, below, names in os.walk(root, topdown=False):
        prefix = "" if place == str(root) else os.path.relpath(place, root) + "/"
        for name in [*names, *(n for n in below if os.path.islink(os.path.join(place, n)))]:
            if prefix + name not in right:
                os.unlink(os.path.join(place, name))
        if prefix and prefix[:-1] not in folders:
            os.rmdir(place)
    # Links last: nothing is written through one.
    for entry in sorted(wanted, key=lambda e: e.kind == "link"):
        if entry.path in right:
            continue
        path = root / entry.path
        if entry.kind == "folder":
            path.mkdir(parents=True, exist_ok=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        if entry.kind == "link":
            os.symlink(os.fsdecode(entry.data), path)
        else:
            path.write_bytes(entry.data)
            path.chmod(0o755 if entry.executable else 0o644)
