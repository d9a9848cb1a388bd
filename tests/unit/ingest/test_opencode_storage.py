"""OpenCode's own folder: the same session as its export, from a file each for session, messages and parts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from seatrial import ingest, intake
from seatrial.ingest import Memory, read_file, scan
from seatrial.records import Trace
from seatrial.store import Store

INFO = {"id": "ses_1", "projectID": "p", "version": "1.0.0", "title": "t", "time": {"created": 1, "updated": 2}}
SAID: list[tuple[dict[str, Any], list[dict[str, Any]]]] = [
    (
        {"id": "msg_b", "role": "user", "time": {"created": 1760000000000}},
        [{"id": "prt_1", "type": "text", "text": "please fix it"}],
    ),
    (
        {"id": "msg_a", "role": "assistant", "modelID": "m", "time": {"created": 1760000001000}},
        [
            {"id": "prt_1", "type": "text", "text": "I look"},
            {
                "id": "prt_2", "type": "tool", "callID": "c", "tool": "bash",
                "state": {"status": "completed", "input": {"command": "ls"}, "output": "x", "metadata": {"exit": 1}},
            },
            {
                "id": "prt_3", "type": "step-finish", "cost": 0.5,
                "tokens": {"input": 5, "output": 2, "cache": {"read": 1}},
            },
        ],
    ),
    (
        {"id": "msg_c", "role": "user", "time": {"created": 1760000002000}},
        [{"id": "prt_1", "type": "text", "text": "no, undo that"}],
    ),
]  # fmt: skip


def stored(root: Path) -> Path:
    """The session as OpenCode keeps it; message ids do not sort by time here."""
    session = root / "session" / "p" / "ses_1.json"
    for path, value in [
        (session, INFO),
        *((root / "message" / "ses_1" / f"{m['id']}.json", {**m, "sessionID": "ses_1"}) for m, _ in SAID),
        *((root / "part" / m["id"] / f"{p['id']}.json", {**p, "messageID": m["id"]}) for m, ps in SAID for p in ps),
        (root / "todo" / "ses_1.json", []),
    ]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value))
    return session


def exported(path: Path) -> Path:
    messages = [
        {"info": {**m, "sessionID": "ses_1"}, "parts": [{**p, "messageID": m["id"]} for p in ps]} for m, ps in SAID
    ]
    path.write_text(json.dumps({"info": INFO, "messages": messages}))
    return path


def one(path: Path) -> Trace:
    (trace,) = read_file(path)
    return trace


def test_the_folder_and_the_export_are_the_same_session(tmp_path: Path) -> None:
    """The same run in two layouts gives the same steps."""
    folder, export = one(stored(tmp_path / "storage")), one(exported(tmp_path / "export.json"))
    assert [s.event_class for s in folder.steps] == ["human", "agent", "human"]
    assert folder.steps == export.steps
    same = msgspec.structs.replace(folder, provenance=export.provenance)
    assert same == export


def test_every_file_is_accounted_for_and_one_session_comes_out(tmp_path: Path) -> None:
    stored(tmp_path / "storage")
    seen = Memory()
    traces, reports = 0, []
    files = scan([tmp_path])
    for file in files:
        reading = read_file(file, seen=seen)
        traces += len(list(reading))
        reports.append(reading.report)
    assert traces == 1
    assert len(files) == 1 + 3 + 5 + 1
    for report in reports:
        assert (report.format, report.status, report.why) == ("opencode", "kept", None)
        assert report.kept_bytes == report.n_bytes == Path(report.file).stat().st_size


def test_what_has_no_session_is_skipped_with_the_reason(tmp_path: Path) -> None:
    stored(tmp_path / "storage").unlink()
    for file in scan([tmp_path]):
        reading = read_file(file)
        assert list(reading) == []
        assert reading.report.status == "skipped"
        assert "without its session's file" in (reading.report.why or "")


def test_one_broken_file_loses_what_it_held_and_says_so(tmp_path: Path) -> None:
    session = stored(tmp_path / "storage")
    (tmp_path / "storage" / "part" / "msg_a" / "prt_2.json").write_text('{"id": ')
    (tmp_path / "storage" / "message" / "ses_1" / "msg_c.json").write_text("[]")
    reading = read_file(session)
    (trace,) = reading
    assert [s.text for s in trace.steps] == ["please fix it", "I look"]
    whys = [s.why for s in reading.report.skipped]
    assert any(w.startswith("msg_a/prt_2.json cannot be read") for w in whys)
    assert "ses_1/msg_c.json: expected an object, found an array" in whys
    assert "msg_c/prt_1.json: its message could not be read" in whys


def test_a_new_message_reads_its_session_anew_and_originals_come_along(tmp_path: Path) -> None:
    """What `ingest --watch` is told of is the message's file alone."""
    session = stored(tmp_path / "storage")
    store = Store.open(tmp_path / "store", create=True)
    first = intake.ingest(store, [session], keep_raw=True)
    assert (first.sessions, first.steps) == (1, 3)
    assert len(store.originals.of("ses_1")) == 1 + 3 + 5
    late = tmp_path / "storage" / "message" / "ses_1" / "msg_d.json"
    late.write_text(json.dumps({"id": "msg_d", "role": "user", "time": {"created": 1760000003000}}))
    part = tmp_path / "storage" / "part" / "msg_d" / "prt_1.json"
    part.parent.mkdir()
    part.write_text(json.dumps({"id": "prt_1", "type": "text", "text": "thanks"}))
    then = intake.ingest(store, [part])
    assert (then.replaced, then.steps) == (1, 4)
    assert store.trace("ses_1").steps[-1].text == "thanks"
    assert ingest.with_main_files([late]) == [late, session]


@pytest.mark.parametrize("name", ["session/p/notes.json", "part/x/prt_1.json", "message/ses_1/x.json"])
def test_other_files_are_not_taken_for_it(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    reading = read_file(path)
    list(reading)
    assert reading.report.format != "opencode"
