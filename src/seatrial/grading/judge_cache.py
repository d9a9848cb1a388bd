"""Replies of judges on disk, keyed by the content of the question: nothing is asked, or paid, twice."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from seatrial.errors import InfrastructureError
from seatrial.records.judge import Reply


class Cache:
    """One small JSON file per question under `folder`, made on first use; a damaged file is asked again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, name: str) -> Reply | None:
        """The stored reply; None where there is none that can be read."""
        try:
            return msgspec.json.decode(self._path(name).read_bytes(), type=Reply)
        except (OSError, msgspec.DecodeError):
            return None

    def put(self, name: str, reply: Reply) -> None:
        """Store a reply, whole or not at all.

        Raises:
            InfrastructureError: the folder cannot be written.
        """
        path = self._path(name)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary = path.with_name(f".{path.name}.{os.getpid()}")
            temporary.write_bytes(msgspec.json.encode(reply))
            temporary.replace(path)
        except OSError as error:
            raise InfrastructureError(f"the judge's cache cannot be written: {error.strerror}", file=str(path),
                                      hint="name another folder with --cache") from error  # fmt: skip

    def _path(self, name: str) -> Path:
        return self.folder / name[:2] / f"{name}.json"
