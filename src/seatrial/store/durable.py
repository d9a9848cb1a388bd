"""Writing files so that a crash leaves either the old content or the new, never a part."""

from __future__ import annotations

import os
import re
import secrets
import time
from pathlib import Path

UNFINISHED_S = 60.0
"""Older scratch files are nobody's any more, seconds: writing one takes moments."""
_SCRATCH = re.compile(r"\.(\d{1,9})-[0-9a-f]{16}\.tmp")


def sync_path(path: Path) -> None:
    """Force a file or folder to disk. A folder that the platform cannot open is left to it."""
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError:
        if path.is_dir():
            return
        raise
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_atomic(
    path: Path, data: bytes, *, mode: int = 0o644, scratch: Path | None = None, durable: bool = True
) -> None:
    """Write `data` beside `path` (or in `scratch`, on the same disk), force it to disk, rename it into place.

    The folder is not forced: the caller does that once for many files, with `sync_path`. With `durable` False the
    file is not forced either: it survives a killed process, not a power cut, until the caller syncs.
    """
    try:
        _write(scratch_file(scratch or path.parent), path, data, mode, durable)
    except FileNotFoundError:
        # A machine that cannot see this process took its scratch file for one left behind: once more.
        _write(scratch_file(scratch or path.parent), path, data, mode, durable)


def scratch_file(folder: Path) -> Path:
    """A new name for a file that is being written, which tells whose it is."""
    return folder / f".{os.getpid()}-{secrets.token_hex(8)}.tmp"


def clear_scratch(root: Path) -> int:
    """Remove what killed writers left half written anywhere under `root`; how many files.

    A scratch file was left if the process that it names does not run on this machine, or if it is older than a minute.
    """
    removed = 0
    for folder, _, names in os.walk(root):
        for name in names:
            whose = _SCRATCH.fullmatch(name)
            if whose is None:
                continue
            path = Path(folder) / name
            try:
                if not _runs(int(whose[1])) or time.time() - path.stat().st_mtime > UNFINISHED_S:
                    path.unlink()
                    removed += 1
            except FileNotFoundError:
                continue  # its writer was there, and has ended it
        if any(map(_SCRATCH.fullmatch, names)):
            sync_path(Path(folder))
    return removed


def _runs(process: int) -> bool:
    """Whether a process may be running here; where that cannot be asked without harm, it may."""
    if os.name != "posix":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True


def _write(temporary: Path, path: Path, data: bytes, mode: int, durable: bool) -> None:
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(fd, "wb") as out:
            out.write(data)
            out.flush()
            if durable:
                os.fsync(out.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
