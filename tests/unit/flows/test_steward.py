"""Requests of people, from the command line: forget, purge, consent, access."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seatrial.cli.app import run
from seatrial.errors import InputError, SettingsError, UsageError
from seatrial.flows import steward
from seatrial.store import Store

Call = Callable[..., tuple[int, Any]]


def session(folder: Path, name: str, user: str, day: int, text: str = "hello there") -> Path:
    """One session as Claude Code writes it, so that it has times and an id."""
    common = {"sessionId": name, "userType": "external", "isSidechain": False, "cwd": "/x", "version": "2.0.0"}
    moment = f"2026-01-{day:02d}T10:00:00.000Z"
    lines = [
        {**common, "type": "user", "uuid": f"{name}-a", "parentUuid": None, "timestamp": moment,
         "message": {"role": "user", "content": text}},
        {**common, "type": "assistant", "uuid": f"{name}-b", "parentUuid": f"{name}-a", "timestamp": moment,
         "requestId": "r1", "message": {"id": "m1", "type": "message", "role": "assistant", "model": "claude-x",
         "content": [{"type": "text", "text": "done"}], "usage": {"input_tokens": 1, "output_tokens": 1}}},
    ]  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


JANES = ("aaaa1111-0000-4000-8000-000000000001", "aaaa2222-0000-4000-8000-000000000002")
BOBS = "bbbb1111-0000-4000-8000-000000000003"


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    monkeypatch.chdir(tmp_path)

    def do(*arguments: str) -> tuple[int, Any]:
        capsys.readouterr()
        status = run([*arguments, "--store", "store", "--json"])
        out, err = capsys.readouterr()
        return status, json.loads(out)["result"] if out else json.loads(err)["error"]

    for n, (name, day) in enumerate(zip(JANES, (5, 25), strict=True)):
        session(tmp_path / "jane", name, "jane", day, text=f"jane says something {n}")
    session(tmp_path / "bob", BOBS, "bob", 15)
    for who in ("jane", "bob"):
        status, _ = do("ingest", who, "--user", who)
        assert status == 0
    return do


def test_forget_a_person(call: Call, tmp_path: Path) -> None:
    status, result = call("forget", "jane", "--yes")
    assert status == 0
    assert (result["sessions"], result["proof"]["ok"], result["proof"]["found"]) == (2, True, [])
    assert result["rows"]["sessions"] == 2
    store = Store.open(tmp_path / "store")
    assert store.session_ids() == [BOBS]
    assert call("verify")[0] == 0
    status, error = call("forget", "jane", "--yes")
    assert (status, error["code"]) == (2, "bad_input")


def test_forget_a_session_by_the_start_of_its_id(call: Call, tmp_path: Path) -> None:
    status, result = call("forget", "--session", "aaaa1111", "--yes")
    assert (status, result["sessions"]) == (0, 1)
    assert Store.open(tmp_path / "store").session_ids() == [JANES[1], BOBS]


def test_a_pseudonym_names_its_person(call: Call, tmp_path: Path) -> None:
    store = Store.open(tmp_path / "store")
    assert call("forget", store.pseudonyms()[0].of("bob"), "--yes")[1]["sessions"] == 1


def test_earlier_versions_say_that_they_were_erased(call: Call, tmp_path: Path) -> None:
    store = Store.open(tmp_path / "store")
    before = store.data_version
    call("forget", "jane", "--yes")
    with pytest.raises(Exception, match=f"data version {before} can no longer be read"):
        store.table("sessions", version=before)


@pytest.mark.parametrize(("options", "left"), [(("--before", "2026-01-10"), 2), (("--older-than", "0"), 0)])
def test_purge(call: Call, tmp_path: Path, options: tuple[str, ...], left: int) -> None:
    status, plan = call("purge", *options, "--dry-run")
    assert (status, plan["sessions"]) == (0, 3 - left)
    assert len(Store.open(tmp_path / "store").session_ids()) == 3
    status, result = call("purge", *options, "--yes")
    assert (status, result["sessions"]) == (0, 3 - left)
    assert result["proof"]["ok"]
    assert len(Store.open(tmp_path / "store").session_ids()) == left


def test_retention_days_is_the_default_and_ingest_keeps_to_it(call: Call, tmp_path: Path) -> None:
    status, error = call("purge", "--yes")
    assert (status, error["code"]) == (2, "bad_settings")
    (tmp_path / "seatrial.toml").write_text("retention_days = 30\n")
    assert call("purge", "--dry-run")[1]["sessions"] >= 0
    (tmp_path / "seatrial.toml").write_text("retention_days = 1\n")
    assert call("ingest", "jane", "--user", "jane")[0] == 0
    assert Store.open(tmp_path / "store").session_ids() == []


def test_consent_is_kept_to_by_rank_and_export(call: Call, tmp_path: Path) -> None:
    assert call("consent", "set", "jane", "--purpose", "rank", "--basis", "form")[1] == {"recorded": 1}
    assert call("consent", "set", "bob", "--purpose", "export")[0] == 0
    status, listed = call("consent", "list")
    assert sorted(c["purposes"] for c in listed["consents"]) == [["export"], ["rank"]]
    assert all(c["subject"].startswith("user-") for c in listed["consents"])
    status, exported = call("export", "out")
    assert (status, exported["written"], exported["left_out"][0]["n"]) == (0, 1, 2)
    assert call("export", "out2", "--session", JANES[0])[0] == 3
    status, error = call("consent", "set", "jane", "--purpose", "sell")
    assert (status, error["code"]) == (2, "usage")


def test_withdrawal_erases_and_is_remembered(call: Call, tmp_path: Path) -> None:
    call("consent", "set", "jane", "--purpose", "rank")
    status, result = call("consent", "withdraw", "jane", "--yes")
    assert (status, result["sessions"], result["proof"]["ok"]) == (0, 2, True)
    (kept,) = call("consent", "list")[1]["consents"]
    assert kept["withdrawn"] is not None
    call("ingest", "jane", "--user", "jane")
    status, exported = call("export", "out")
    assert (exported["written"], exported["left_out"][0]["why"]) == (1, "consent was withdrawn")
    status, result = call("forget", "jane", "--yes")
    assert (result["sessions"], result["rows"]["consents"]) == (2, 1)
    assert call("consent", "list")[1]["consents"] == []
    assert call("consent", "withdraw", "--session", BOBS, "--yes")[1]["proof"]["ok"]


def test_a_consent_file(call: Call, tmp_path: Path) -> None:
    csv = tmp_path / "c.csv"
    csv.write_text(f"user,session,purposes,basis,time\njane,,rank; label,form,2026-01-01\n,{BOBS},rank,,5\n")
    assert call("consent", "set", "--file", "c.csv")[1] == {"recorded": 2}
    lines = tmp_path / "c.jsonl"
    lines.write_text('{"user": "jane", "purposes": ["rank", "label"], "basis": "form", "time": 1767225600}\n')
    store = Store.open(tmp_path / "store")
    version = store.data_version
    assert call("consent", "set", "--file", "c.jsonl")[1] == {"recorded": 1}
    assert store.data_version == version, "the same record again"
    for text, what in (
        ("user,purpose\njane,rank\n", "purposes"),
        ("user,purposes\n,rank\n", "names a user or a session"),
        ("user,purposes,time\njane,rank,noon\n", "no time"),
    ):
        csv.write_text(text)
        with pytest.raises(InputError, match=what):
            steward.consent_file(store, csv)


def test_an_access_request_gets_everything_and_nothing_of_others(call: Call, tmp_path: Path) -> None:
    call("consent", "set", "jane", "--purpose", "rank")
    call("rank")
    status, result = call("export", "answer", "--subject", "jane")
    assert (status, result["sessions"], result["traces"]) == (0, 2, 2)
    assert result["rows"]["sessions"] == result["rows"]["outcomes"] == 2
    assert result["rows"]["consents"] == 1
    texts = {
        p.relative_to(tmp_path / "answer").as_posix(): p.read_text() for p in (tmp_path / "answer").rglob("*.json*")
    }
    assert "jane says something 0" in texts[f"traces/{JANES[0]}.json"]
    assert BOBS not in "".join(texts.values())
    assert texts["tables/steps.jsonl"].count("\n") == result["rows"]["steps"]
    assert json.loads(texts["about.json"])["columns"]["sessions"]["arm"]
    assert call("export", "answer", "--subject", "jane")[1]["code"] == "bad_input"
    assert call("export", "other", "--subject", "nobody")[0] == 2


def test_what_cannot_be_meant_is_refused(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "s", create=True)
    for user, sessions in ((None, []), ("jane", ["x"])):
        with pytest.raises(UsageError):
            steward.subject_of(store, user=user, sessions=sessions)
    with pytest.raises(UsageError, match="not both"):
        steward.cutoff("2026-01-01", 3)
    for bad in ("yesterday", "nan", "inf"):
        with pytest.raises(UsageError, match="no date"):
            steward.cutoff(bad, None)
    assert steward.cutoff("2026-01-01", None) == 1767225600.0
    with pytest.raises(SettingsError):
        steward.cutoff(None, None)


def test_originals_are_kept_encrypted_given_back_and_erased(call: Call, tmp_path: Path) -> None:
    """`--keep-raw`: the bytes as they were, outside every other export, gone with the person and the key with them."""
    source = session(
        tmp_path / "raw", "cccc1111-0000-4000-8000-000000000004", "carol", 9, text="mail carol@example.com"
    )
    before = source.read_bytes()
    status, done = call("ingest", "raw", "--user", "carol", "--keep-raw")
    assert (status, done["originals"]) == (0, 1)
    assert call("ingest", "raw", "--user", "carol", "--keep-raw")[1]["originals"] == 1
    store = Store.open(tmp_path / "store")
    assert len(store.originals.all()) == 1
    assert all(b"carol@example.com" not in p.read_bytes() for p in (tmp_path / "store").rglob("*") if p.is_file())
    assert call("verify")[0] == 0

    assert call("export", "plain")[0] == 0
    assert all(b"carol@example.com" not in p.read_bytes() for p in (tmp_path / "plain").rglob("*"))
    status, given = call("export", "back", "--session", "cccc", "--raw")
    assert status == 0
    back = tmp_path / "back" / given["files"][0]["file"]
    assert back.read_bytes() == before
    assert back.stat().st_mode & 0o077 == 0
    assert call("export", "back", "--session", BOBS, "--raw")[1]["code"] == "no_evidence"
    assert call("export", "back", "--raw")[1]["code"] == "usage"
    call("consent", "set", "--session", "cccc", "--purpose", "rank")
    assert (
        "may be exported (1 sessions without consent to export: consent was given for other purposes"
        in call("export", "back", "--session", "cccc", "--raw")[1]["message"]
    )
    assert call("export", "answer", "--subject", "carol")[1]["originals"] == 1

    status, erased = call("forget", "carol", "--yes")
    assert (status, erased["proof"]["ok"]) == (0, True)
    assert not (tmp_path / "store" / "raw.key").exists()
    assert list((tmp_path / "store" / "raw").iterdir()) == []
    assert call("verify")[0] == 0


def test_purging_takes_originals_that_are_old_enough(call: Call, tmp_path: Path) -> None:
    call("ingest", "jane", "--user", "jane", "--keep-raw")
    assert len(Store.open(tmp_path / "store").originals.all()) == 2
    assert call("purge", "--before", "2026-01-10", "--yes")[0] == 0
    assert [o.sessions for o in Store.open(tmp_path / "store").originals.all()] == [(JANES[1],)]


def test_a_damaged_original_is_found(call: Call, tmp_path: Path) -> None:
    call("ingest", "bob", "--user", "bob", "--keep-raw")
    path = next((tmp_path / "store" / "raw").glob("*.aes"))
    path.write_bytes(path.read_bytes()[:-1] + b"\0")
    assert call("verify")[0] == 1


@pytest.mark.parametrize(
    "command",
    [
        ("forget", "jane"),
        ("forget", "--session", BOBS),
        ("purge", "--older-than", "0"),
        ("consent", "withdraw", "jane"),
    ],
)
def test_nothing_is_erased_unasked(call: Call, tmp_path: Path, command: tuple[str, ...]) -> None:
    before = Store.open(tmp_path / "store").data_version
    status, error = call(*command)
    assert (status, error["code"]) == (2, "usage")
    assert "--yes" in error["hint"]
    assert Store.open(tmp_path / "store").data_version == before


def test_a_purge_of_nothing_does_nothing(call: Call, tmp_path: Path) -> None:
    call("consent", "set", "jane", "--purpose", "rank")
    store = Store.open(tmp_path / "store")
    versions = store.versions.all()
    status, result = call("purge", "--before", "2020-01-01", "--yes")
    assert (status, result["sessions"], result["versions"], result["proof"]["ok"]) == (0, 0, 0, True)
    assert store.versions.all() == versions
    assert store.table("sessions", version=1).collect().height


def test_a_purge_of_nothing_ends_an_erasure_that_was_cut_short(call: Call, tmp_path: Path) -> None:
    store = Store.open(tmp_path / "store")
    store.begin_erasing(b'{"blobs":[]}')
    assert call("verify")[0] == 1
    assert call("purge", "--before", "2020-01-01", "--yes")[0] == 0
    assert call("verify")[0] == 0


@pytest.mark.parametrize("damage", ["other", "short", "no hex"])
def test_a_damaged_pseudonym_key_is_told_and_never_taken_for_nobody(call: Call, tmp_path: Path, damage: str) -> None:
    """One digit of the key changed: everybody would be called something else, and nobody be found."""
    key = tmp_path / "store" / "key"
    whole = key.read_text()
    key.write_text(
        {"other": ("0" if whole[0] != "0" else "1") + whole[1:], "short": whole[:8], "no hex": "x" + whole[1:]}[damage]
    )
    version = Store.open(tmp_path / "store").data_version
    for command in (
        ("forget", "jane", "--yes"),
        ("consent", "withdraw", "jane", "--yes"),
        ("consent", "set", "jane", "--purpose", "rank"),
        ("export", "answer", "--subject", "jane"),
        ("ingest", "jane", "--user", "jane"),
    ):
        status, error = call(*command)
        assert (status, error["code"]) == (4, "store"), command
        assert "pseudonym key" in error["message"]
    status, found = call("verify")
    assert status == 1
    assert any("pseudonym key" in p for p in found["problems"])
    key.write_text(whole)
    assert Store.open(tmp_path / "store").data_version == version
    assert call("verify")[0] == 0
    assert call("forget", "jane", "--yes")[0] == 0


def test_a_store_without_a_key_on_record_gets_it_when_it_is_used(call: Call, tmp_path: Path) -> None:
    marker, key = tmp_path / "store" / "store.json", tmp_path / "store" / "key"
    about = json.loads(marker.read_text())
    on_record = about.pop("key")
    marker.write_text(json.dumps(about))
    assert call("verify")[0] == 0
    assert call("ingest", "jane", "--user", "jane")[0] == 0
    assert json.loads(marker.read_text())["key"] == on_record
    assert key.read_text().strip() not in marker.read_text()
    key.unlink()
    assert call("ingest", "jane", "--user", "jane")[0] == 0, "a key may be deleted: a new one is made"
    assert json.loads(marker.read_text())["key"] != on_record
    assert call("verify")[0] == 0


@pytest.mark.parametrize("damage", ["session", "file", "gone"])
def test_a_changed_note_of_an_original_is_found_and_its_original_forgotten(
    call: Call, tmp_path: Path, damage: str
) -> None:
    """A note that names somebody else would keep a person's original from being erased with that person."""
    call("ingest", "bob", "--user", "bob", "--keep-raw")
    raw = tmp_path / "store" / "raw"
    (note,) = raw.glob("*.json")
    if damage == "gone":
        note.unlink()
    else:
        text = note.read_text()
        old = BOBS if damage == "session" else "bob/"
        assert old in text
        note.write_text(text.replace(old, "c" + old[1:]))
    status, found = call("verify")
    assert status == 1
    assert any("note" in p for p in found["problems"])
    assert call("forget", "bob", "--yes")[0] == 0
    assert list(raw.glob("*.aes")) == []
    assert call("verify")[0] == 0


def test_an_original_of_a_session_that_the_store_does_not_have_is_found(call: Call, tmp_path: Path) -> None:
    store = Store.open(tmp_path / "store")
    store.originals.keep(tmp_path / "bob" / f"{BOBS}.jsonl", "x", ["nobody-has-this-session"])
    status, found = call("verify")
    assert status == 1
    assert any("is not in the store" in p for p in found["problems"])


def test_forgetting_with_another_key_of_the_originals_removes_none(call: Call, tmp_path: Path) -> None:
    call("ingest", "bob", "--user", "bob", "--keep-raw")
    key = tmp_path / "store" / "raw.key"
    key.write_text("00" * 32)
    assert call("forget", "jane", "--yes")[0] == 4
    assert len(list((tmp_path / "store" / "raw").glob("*.aes"))) == 1


def test_a_damaged_original_leaves_no_file(call: Call, tmp_path: Path) -> None:
    call("ingest", "bob", "--user", "bob", "--keep-raw")
    path = next((tmp_path / "store" / "raw").glob("*.aes"))
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    assert call("export", "back", "--session", BOBS, "--raw")[0] == 4
    assert list((tmp_path / "back").iterdir()) == []


@pytest.mark.parametrize("damage", ["no JSON", "flipped digit", "cut"])
def test_verify_reports_whatever_a_damaged_version_log_leaves_to_check(call: Call, tmp_path: Path, damage: str) -> None:
    path = tmp_path / "store" / "versions.jsonl"
    first, *rest = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(
        {
            "no JSON": b"{" + first,
            "flipped digit": first.replace(b'"number":1', b'"number":7'),
            "cut": b"",
        }[damage]
        + b"".join(rest)
    )
    status, found = call("verify")
    assert status == 1
    assert any("version log" in p for p in found["problems"])
    assert found["blobs"] == 3
    assert {c["name"] for c in found["checks"]} >= {"version_log", "blob_hashes"}


def test_every_damaged_byte_of_a_table_is_told_in_one_line(call: Call, tmp_path: Path) -> None:
    """Compiled code that gives up writes to standard error by itself: none of that reaches a person."""
    store = Store.open(tmp_path / "store")
    path = max((tmp_path / "store" / "tables" / "sessions").glob("*.parquet"), key=lambda p: p.stat().st_size)
    whole = path.read_bytes()
    problems: list[str] = []
    kept = os.dup(2)
    try:
        with open(tmp_path / "stderr", "wb") as said:
            os.dup2(said.fileno(), 2)
        for at in range(8, len(whole) - 8, len(whole) // 25):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
            problems += store.verify().problems
    finally:
        os.dup2(kept, 2)
        os.close(kept)
    assert any(p.startswith("table sessions") for p in problems)
    assert not any("\n" in p for p in problems)
    assert (tmp_path / "stderr").read_text() == ""


def test_every_bad_line_of_a_consent_file_is_told(call: Call, tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("user,purposes,time\njane,rank,\n,rank,\nbob,rank,soon\n")
    status, error = call("consent", "set", "--file", "c.csv")
    assert status == 2
    assert "line 3: a line names a user or a session; line 4: time 'soon' is no time" in error["message"]
    assert call("consent", "list")[1]["consents"] == []
