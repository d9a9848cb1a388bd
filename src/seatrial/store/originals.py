"""The files that sessions came from, as they were: encrypted, beside the store, and never part of an export.

AES-256-GCM in pieces (the STREAM construction): every file has a key of its own, derived from the store's ``raw.key``
and a random salt, and every piece is bound to its place, the last one to being the last, so that pieces cannot be
changed, swapped, or cut off unseen. Beside each file lies a note of what it is and which sessions came from it, sealed
by a hash under the same key.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Container, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from seatrial.canon import canonical
from seatrial.errors import InputError, MissingExtra, StoreError
from seatrial.store.durable import scratch_file, sync_path, write_atomic

FOLDER = "raw"
KEY = "raw.key"
MAGIC = b"seatrial original 1\n"
PIECE = 1024 * 1024
"""Bytes of plain text in a piece."""

_SALT = 32
_TAG = 16
_OVERLAP = 512
_NOTE = ".json"
_SEALED = ".aes"


class Original(msgspec.Struct, frozen=True, kw_only=True):
    """One kept file: `id` (the sha256 of its bytes), where it was read from, its length, and its sessions."""

    id: str
    file: str
    size: int
    sessions: tuple[str, ...]


class _Note(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What stands beside a kept file: what it is, under a keyed hash, so that no word of it changes unseen."""

    original: Original
    seal: str


class Originals:
    """The folder ``raw/`` of a store, and its key. Writers hold the store's lock."""

    def __init__(self, store: Path) -> None:
        self._root = store / FOLDER
        self._key = store / KEY

    def all(self) -> list[Original]:
        """What is kept, in order of ids; a note that cannot be read or was changed is left out
        (`problems` names it)."""
        return [note for path in self._notes() if (note := self._read(path)) is not None]

    def of(self, session: str) -> list[Original]:
        """The files that a session came from."""
        return [note for note in self.all() if session in note.sessions]

    def keep(self, source: Path, shown: str, sessions: Sequence[str]) -> Original:
        """Encrypt a file into the store; `shown` is its path as the store knows it. The same bytes are kept once.

        An earlier state of the same file goes, when nothing came from it that does not come from this one.

        Raises:
            InputError: the file cannot be read.
            MissingExtra: there is no cryptography.
        """
        _library()
        self._root.mkdir(mode=0o700, exist_ok=True)
        there = {note.id: note for note in self.all()}
        try:
            with open(source, "rb") as stream:
                same = there.get(hashlib.file_digest(stream, "sha256").hexdigest())
        except OSError as error:
            raise _unkept(source, error) from error
        if same is not None and set(sessions) <= set(same.sessions) and self._sealed(same.id).exists():
            return same
        scratch = scratch_file(self._root)
        try:
            with open(source, "rb") as plain, open(scratch, "xb", opener=_owner_only) as sealed:
                name, size = _seal(self._file_key, plain, sealed)
                sealed.flush()
                os.fsync(sealed.fileno())
        except OSError as error:
            scratch.unlink(missing_ok=True)
            raise _unkept(source, error) from error
        known = there.get(name)
        everyone = tuple(sorted({*sessions, *(known.sessions if known is not None else ())}))
        note = Original(id=name, file=shown, size=size, sessions=everyone)
        try:
            os.replace(scratch, self._sealed(name))
        except OSError as error:
            raise _unkept(source, error) from error
        write_atomic(self._root / f"{name}{_NOTE}", self._sealed_note(note), mode=0o600)
        for old in there.values():
            if old.id != name and old.file == shown and set(old.sessions) <= set(everyone):
                self._remove(old.id)
        sync_path(self._root)
        return note

    def ready(self) -> None:
        """See to it that what is kept can be read.

        Raises:
            MissingExtra: something is kept, and there is no cryptography.
            StoreError: nothing of it opens with the key that is there.
        """
        notes = self._notes()
        if not notes:
            return
        _library()
        if any(self._read(path) is not None for path in notes):
            return
        # Either every note was changed or the key was: only a file that opens tells.
        for path in notes:
            try:
                with open(self._sealed(path.name.removesuffix(_NOTE)), "rb") as sealed:
                    next(_opened(self._file_key, sealed, path))
            except (StoreError, OSError):
                continue
            return
        raise StoreError("no original opens with the key of the originals", file=str(self._key), hint="restore it")

    def plain(self, original: Original) -> Iterator[bytes]:
        """A file's bytes as they were, in pieces.

        Raises:
            MissingExtra: there is no cryptography.
            StoreError: it is missing or damaged, or the key is not the one that it was encrypted with.
        """
        seal = hashlib.sha256()
        path = self._sealed(original.id)
        try:
            with open(path, "rb") as sealed:
                for piece in _opened(self._file_key, sealed, path):
                    seal.update(piece)
                    yield piece
        except OSError as error:
            raise StoreError(f"an original cannot be read: {error.strerror or error}", file=str(path)) from error
        if seal.hexdigest() != original.id:
            raise StoreError("an original holds other bytes than its name says", file=str(path))

    def texts(self) -> Iterator[tuple[str, bytes]]:
        """Everything that is kept, decrypted, for a scan: named pieces that overlap.

        Raises:
            MissingExtra: there is no cryptography.
            StoreError: one is damaged.
        """
        for original in self.all():
            tail = b""
            for piece in self.plain(original):
                yield f"{FOLDER}/{original.id}{_SEALED} (decrypted)", tail + piece
                tail = piece[-_OVERLAP:]

    def strike(self, sessions: Sequence[str]) -> int:
        """Remove the files that one of these sessions came from, whoever else is in them; how many.

        The key goes with the last file, and what a crash left half written goes too.
        """
        if not self._root.is_dir():
            return 0
        gone = frozenset(sessions)
        struck = 0
        for path in self._notes():
            note = self._read(path)
            if note is None or gone.intersection(note.sessions):
                self._remove(path.name.removesuffix(_NOTE))
                struck += 1
        named = {path.name.removesuffix(_NOTE) for path in self._notes()}
        for path in self._root.iterdir():
            if path.name.removesuffix(_NOTE).removesuffix(_SEALED) not in named:
                path.unlink(missing_ok=True)
        sync_path(self._root)
        if not named:
            self._key.unlink(missing_ok=True)
            sync_path(self._key.parent)
        return struck

    def problems(self, known: Container[str] | None = None) -> list[str]:
        """What is wrong: files that do not decrypt to what their names say, files and notes without each other, notes
        that were changed or name a session that is not among the `known`, an open key."""
        notes = self._notes()
        wrong = [f"original {name[:12]}: it has no note, so nobody can say whose it is" for name in self.orphans()]
        if not notes:
            return wrong
        try:
            _library()
        except MissingExtra as error:
            return [*wrong, f"the originals cannot be verified: {error}"]
        if self._key.exists() and os.name == "posix" and self._key.stat().st_mode & 0o077:
            wrong.append(f"the file {KEY} can be read by others than its owner")
        for path in notes:
            note = self._read(path)
            if note is None:
                wrong.append(f"original {path.name}: its note was changed, or cannot be read")
                continue
            strangers = [] if known is None else [s for s in note.sessions if s not in known]
            wrong += [f"original {note.id[:12]}: its session {s!r} is not in the store" for s in strangers]
            try:
                size = sum(len(piece) for piece in self.plain(note))
            except StoreError as error:
                wrong.append(f"original {note.id[:12]} of {note.file}: {error}")
                continue
            if size != note.size:
                wrong.append(f"original {note.id[:12]} of {note.file}: {size} bytes instead of {note.size}")
        return wrong

    def orphans(self) -> list[str]:
        """Kept files without a note, by name: whose they are nobody can say."""
        if not self._root.is_dir():
            return []
        named = {path.name.removesuffix(_NOTE) for path in self._notes()}
        sealed = (p.name.removesuffix(_SEALED) for p in self._root.iterdir() if p.name.endswith(_SEALED))
        return sorted(name for name in sealed if name not in named)

    def _sealed_note(self, note: Original) -> bytes:
        return canonical(_Note(original=note, seal=self._seal_of(note)))

    def _seal_of(self, note: Original) -> str:
        key = hmac.digest(self._master(), b"seatrial note of an original", "sha256")
        return hmac.new(key, canonical(note), hashlib.sha256).hexdigest()

    def _read(self, path: Path) -> Original | None:
        """What a note says; None when it cannot be read, was changed, or stands beside another file."""
        try:
            note = msgspec.json.decode(path.read_bytes(), type=_Note)
            true = hmac.compare_digest(note.seal.encode(), self._seal_of(note.original).encode())
        except (OSError, msgspec.DecodeError, StoreError):
            return None
        return note.original if true and note.original.id == path.name.removesuffix(_NOTE) else None

    def _notes(self) -> list[Path]:
        if not self._root.is_dir():
            return []
        return sorted(p for p in self._root.iterdir() if p.name.endswith(_NOTE))

    def _sealed(self, name: str) -> Path:
        return self._root / f"{name}{_SEALED}"

    def _remove(self, name: str) -> None:
        self._sealed(name).unlink(missing_ok=True)
        (self._root / f"{name}{_NOTE}").unlink(missing_ok=True)

    def _file_key(self, salt: bytes, *, make: bool = False) -> Any:
        """The cipher of one file."""
        aead, hkdf, hashes = _library()
        if make and not self._key.exists():
            write_atomic(self._key, secrets.token_hex(32).encode() + b"\n", mode=0o600)
            sync_path(self._key.parent)
        derived = hkdf(algorithm=hashes.SHA256(), length=32, salt=salt, info=MAGIC).derive(self._master())
        return aead(derived)

    def _master(self) -> bytes:
        try:
            return bytes.fromhex(self._key.read_text("ascii").strip())
        except (OSError, ValueError) as error:
            raise StoreError(
                f"the key of the originals cannot be read: {error}", file=str(self._key), hint="restore it"
            ) from error


def _unkept(source: Path, error: OSError) -> InputError:
    return InputError(f"its original cannot be kept: {error.strerror or error}", file=str(source))


def _library() -> tuple[Any, Any, Any]:
    try:
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF
    except ImportError:
        raise MissingExtra("raw", "keeping originals") from None
    return AESGCM, HKDF, hashes


def _owner_only(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _nonce(number: int, last: bool) -> bytes:
    return number.to_bytes(11, "big") + bytes([last])


def _seal(key_of: Any, plain: BinaryIO, sealed: BinaryIO) -> tuple[str, int]:
    """Encrypt a stream; the sha256 of its plain bytes and how many there were."""
    salt = secrets.token_bytes(_SALT)
    cipher = key_of(salt, make=True)
    sealed.write(MAGIC + salt)
    seal, size, number = hashlib.sha256(), 0, 0
    piece = plain.read(PIECE)
    while True:
        following = plain.read(PIECE) if len(piece) == PIECE else b""
        seal.update(piece)
        size += len(piece)
        sealed.write(cipher.encrypt(_nonce(number, not following), piece, MAGIC))
        if not following:
            return seal.hexdigest(), size
        piece, number = following, number + 1


def _opened(key_of: Any, sealed: BinaryIO, path: Path) -> Iterator[bytes]:
    from cryptography.exceptions import InvalidTag

    if sealed.read(len(MAGIC)) != MAGIC:
        raise StoreError("this is no kept original", file=str(path))
    cipher = key_of(sealed.read(_SALT))
    number = 0
    piece = sealed.read(PIECE + _TAG)
    while True:
        following = sealed.read(PIECE + _TAG) if len(piece) == PIECE + _TAG else b""
        try:
            yield cipher.decrypt(_nonce(number, not following), piece, MAGIC)
        except InvalidTag:
            raise StoreError(
                "an original is damaged, or was encrypted with another key", file=str(path), hint="keep it anew"
            ) from None
        if not following:
            return
        piece, number = following, number + 1
