"""Writing files so that a crash leaves either the old content or the new, never a part."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


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
    temporary = (scratch or path.parent) / f".{os.getpid()}-{secrets.token_hex(8)}.tmp"
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
