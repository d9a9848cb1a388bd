"""What lies in a store's folder, what a new one begins with, and which layouts this seatrial knows."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import time
from pathlib import Path

import msgspec

from seatrial._version import __version__
from seatrial.errors import InputError, StoreError
from seatrial.records.tables import TABLES
from seatrial.store.audit import FILE as AUDIT
from seatrial.store.durable import sync_path, write_atomic
from seatrial.store.lock import Lock
from seatrial.store.results import FOLDER as RESULTS
from seatrial.store.versions import HEAD, Versions

FORMAT = 1
"""Version of the folder's layout. A store of another version is refused, never guessed at."""

LOCK_TIMEOUT_S = 120.0
MARKER = "store.json"
"""Says of a folder that it is a store, and of what layout."""

MIRROR = "mirror.json"
"""Says of a folder that it follows a bucket (`mirror`)."""

ERASING = "erasing.json"
"""Says what an erasure is about to remove from disk (`erase`)."""

_OURS = frozenset(
    (
        *("blobs", "tables", "versions.jsonl", "lock", "key", MARKER, "spool", "raw", "raw.key", "pull.lock"),
        *("jobs.jsonl", RESULTS, AUDIT, ERASING, HEAD, MIRROR),
    )
)


class _StoreFile(msgspec.Struct, frozen=True, kw_only=True):
    format: int
    by: str
    created: float
    tables: dict[str, int]
    key: str | None = None


class _Follows(msgspec.Struct):
    url: str


def create_layout(folder: Path) -> None:
    """Make an empty store in a folder.

    Raises:
        InputError: it cannot be made there, or the folder holds something else.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        strangers = sorted(p.name for p in folder.iterdir() if p.name not in _OURS and not p.name.endswith(".tmp"))
    except OSError as error:
        raise InputError(f"a store cannot be made here: {error.strerror}", file=str(folder)) from error
    if strangers:
        raise InputError(
            f"this folder is not a store and is not empty (it holds {strangers[0]})",
            file=str(folder),
            hint="give an empty or new folder",
        )
    with Lock(folder / "lock", LOCK_TIMEOUT_S).held():
        if (folder / MARKER).exists():
            return
        for name in ("blobs", "tables"):
            (folder / name).mkdir(exist_ok=True)
        if not (folder / "key").exists():
            write_key(folder / "key")
        Versions(folder / "versions.jsonl").begin()
        about = _StoreFile(
            format=FORMAT,
            by=f"seatrial {__version__}",
            created=time.time(),
            tables={t.name: t.version for t in TABLES},
            key=fingerprint((folder / "key").read_bytes()),
        )
        _write(folder / MARKER, about)


def fingerprint(key: bytes) -> str:
    """What tells a pseudonym key from every other and tells nothing of it: 16 hex digits of a hash under the key."""
    return hmac.new(key.strip(), b"seatrial pseudonym key", hashlib.sha256).hexdigest()[:16]


def key_on_record(marker: Path) -> str | None:
    """The fingerprint of the pseudonym key that ``store.json`` holds; None: the store was made before there was one."""
    return msgspec.json.decode(marker.read_bytes(), type=_StoreFile).key


def record_key(marker: Path, key: bytes | None) -> None:
    """Write down which pseudonym key the store has from now on; None: that is not known yet."""
    about = msgspec.json.decode(marker.read_bytes(), type=_StoreFile)
    _write(marker, msgspec.structs.replace(about, key=None if key is None else fingerprint(key)))


def same_store(one: bytes, other: bytes) -> bool:
    """Whether two states of a ``store.json`` are of one store: only the key on record may differ."""
    if one == other:
        return True
    try:
        a, b = (msgspec.json.decode(text, type=_StoreFile) for text in (one, other))
    except msgspec.DecodeError:
        return False
    return msgspec.structs.replace(a, key=None) == msgspec.structs.replace(b, key=None)


def _write(marker: Path, about: _StoreFile) -> None:
    write_atomic(marker, json.dumps(msgspec.to_builtins(about), indent=1).encode() + b"\n")
    sync_path(marker.parent)


def check_layout(marker: Path) -> None:
    """See whether this seatrial knows the layout that ``store.json`` names.

    Raises:
        StoreError: it does not.
    """
    try:
        about = msgspec.json.decode(marker.read_bytes(), type=_StoreFile)
    except (msgspec.DecodeError, OSError) as error:
        raise StoreError(f"store.json cannot be read: {error}", file=str(marker), hint="restore it") from error
    if about.format != FORMAT:
        raise StoreError(
            f"the store has layout version {about.format}, this seatrial knows {FORMAT}",
            file=str(marker),
            hint=f"it was made by {about.by}: use that version or a newer one",
        )
    for table in TABLES:
        stored = about.tables.get(table.name, table.version)
        if stored != table.version:
            raise StoreError(
                f"table {table.name} has version {stored}, this seatrial knows {table.version}",
                file=str(marker),
                hint="ingest into a new store",
            )


def write_key(path: Path, key: bytes | None = None) -> None:
    write_atomic(path, (key.decode() if key else secrets.token_hex(32)).encode() + b"\n", mode=0o600)
    sync_path(path.parent)


def followed(folder: Path) -> str | None:
    """The bucket that a folder follows; None: it is a store of its own, or none."""
    try:
        return str(msgspec.json.decode((folder / MIRROR).read_bytes(), type=_Follows).url)
    except (OSError, msgspec.DecodeError):
        return None
