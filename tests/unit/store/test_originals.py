"""Files that are kept as they were: encrypted, whole, and gone when they must be."""

from __future__ import annotations

import hashlib
import stat
import sys
from pathlib import Path

import pytest

from seatrial.errors import InputError, MissingExtra, StoreError
from seatrial.store import Store
from seatrial.store.originals import MAGIC, PIECE, Original, Originals

NAME = "0123456789abcdef-session"


@pytest.fixture
def kept(tmp_path: Path) -> Originals:
    return Originals(tmp_path)


def keep(originals: Originals, data: bytes, sessions: tuple[str, ...] = (NAME,), file: str = "log.jsonl") -> Original:
    source = originals._root.parent / "source"
    source.write_bytes(data)
    return originals.keep(source, file, sessions)


def sealed(originals: Originals, original: Original) -> Path:
    return originals._root / f"{original.id}.aes"


@pytest.mark.parametrize("size", [0, 1, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 2 * PIECE + 7])
def test_what_was_kept_comes_back(kept: Originals, size: int) -> None:
    data = (b"the quick brown fox " * (size // 20 + 1))[:size]
    original = keep(kept, data)
    assert b"".join(kept.plain(original)) == data
    assert original.id == hashlib.sha256(data).hexdigest()
    assert original.size == size
    assert kept.problems() == []
    whole = sealed(kept, original).read_bytes()
    assert whole.startswith(MAGIC)
    assert b"quick brown" not in whole


def test_it_is_aes_gcm_by_another_route(kept: Originals) -> None:
    """Decrypted here by the construction in the module's words: HKDF of key and salt, a piece number as nonce."""
    import hmac

    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    data = bytes(range(256)) * 5000
    whole = sealed(kept, keep(kept, data)).read_bytes()
    salt, body = whole[len(MAGIC) : len(MAGIC) + 32], whole[len(MAGIC) + 32 :]
    master = bytes.fromhex(kept._key.read_text())
    extracted = hmac.digest(salt, master, "sha256")
    key = hmac.digest(extracted, MAGIC + b"\x01", "sha256")
    out = b""
    pieces = [body[i : i + PIECE + 16] for i in range(0, len(body), PIECE + 16)]
    for number, piece in enumerate(pieces):
        nonce = number.to_bytes(11, "big") + bytes([number == len(pieces) - 1])
        opened = Cipher(algorithms.AES(key), modes.GCM(nonce, piece[-16:])).decryptor()
        opened.authenticate_additional_data(MAGIC)
        out += opened.update(piece[:-16]) + opened.finalize()
    assert out == data


def test_two_files_share_no_stream(kept: Originals) -> None:
    """The same bytes under another salt are other bytes: nothing is told by comparing files."""
    one = keep(kept, b"a" * 1000)
    first = sealed(kept, one).read_bytes()
    kept.strike([NAME])
    assert sealed(kept, keep(kept, b"a" * 1000)).read_bytes()[60:] != first[60:]


@pytest.mark.parametrize("damage", ["flip", "cut", "swap", "extend", "other key", "gone"])
def test_damage_is_noticed(kept: Originals, damage: str) -> None:
    original = keep(kept, b"".join(bytes([n]) * PIECE for n in range(3)))
    path = sealed(kept, original)
    whole = bytearray(path.read_bytes())
    start, piece = len(MAGIC) + 32, PIECE + 16
    if damage == "flip":
        whole[start + 5] ^= 1
    elif damage == "cut":
        del whole[start + 2 * piece :]
    elif damage == "swap":
        whole[start : start + 2 * piece] = whole[start + piece : start + 2 * piece] + whole[start : start + piece]
    elif damage == "extend":
        whole += whole[start : start + piece]
    path.write_bytes(whole)
    if damage == "other key":
        kept._key.write_text("ab" * 32)
    if damage == "gone":
        path.unlink()
    with pytest.raises(StoreError):
        b"".join(kept.plain(original))
    assert len(kept.problems()) == 1


def test_only_the_owner_may_read(kept: Originals) -> None:
    original = keep(kept, b"x")
    for path in (kept._key, sealed(kept, original), kept._root / f"{original.id}.json"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept._root.stat().st_mode) == 0o700
    kept._key.chmod(0o644)
    assert kept.problems() == ["the file raw.key can be read by others than its owner"]


def test_a_file_that_grew_takes_the_place_of_its_earlier_state(kept: Originals) -> None:
    keep(kept, b"one line\n")
    grown = keep(kept, b"one line\nand another\n")
    elsewhere = keep(kept, b"one line\n", ("other",), file="copy.jsonl")
    assert {o.id for o in kept.all()} == {grown.id, elsewhere.id}
    assert kept.of(NAME) == [grown]


def test_the_same_bytes_are_kept_once_for_all_their_sessions(kept: Originals) -> None:
    keep(kept, b"x", ("a",))
    both = keep(kept, b"x", ("b",))
    assert kept.all() == [both]
    assert both.sessions == ("a", "b")
    before = sealed(kept, both).read_bytes()
    keep(kept, b"x", ("a",))
    assert sealed(kept, both).read_bytes() == before


def test_striking_takes_every_file_of_a_session_and_the_key_with_the_last(kept: Originals) -> None:
    keep(kept, b"both", ("a", "b"), file="1")
    left = keep(kept, b"only b", ("b",), file="2")
    (kept._root / ".123-abc.tmp").write_bytes(b"left by a crash")
    (kept._root / ("f" * 64 + ".aes")).write_bytes(b"a crash before its note")
    assert kept.strike(["a"]) == 1
    assert sorted(p.name for p in kept._root.iterdir()) == [f"{left.id}.aes", f"{left.id}.json"]
    assert b"".join(kept.plain(left)) == b"only b"
    assert kept.strike(["b"]) == 1
    assert not kept._key.exists()
    assert list(kept._root.iterdir()) == []


def test_a_scan_looks_inside(kept: Originals) -> None:
    """Also across the edge of two pieces."""
    data = b"." * (PIECE - 5) + NAME.encode() + b"." * 100
    keep(kept, data)
    assert any(NAME.encode() in text for _, text in kept.texts())


def test_without_the_extra(kept: Originals, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(kept, b"x")
    for name in [m for m in sys.modules if m.startswith("cryptography")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(MissingExtra, match=r"\[raw\]"):
        keep(kept, b"y")
    with pytest.raises(MissingExtra):
        kept.ready()
    assert "cannot be verified" in kept.problems()[0]
    # What is kept can still be removed.
    assert kept.strike([NAME]) == 1


def test_a_file_that_cannot_be_read(kept: Originals, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be kept"):
        kept.keep(tmp_path / "absent", "absent", [NAME])


def test_a_new_store_keeps_none(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "s", create=True)
    assert store.originals.all() == []
    assert not (store.path / "raw.key").exists()
    assert store.verify().ok
