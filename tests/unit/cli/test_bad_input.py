"""Bad input is a clear line and the right exit code; nothing is lost and nothing is a traceback."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from seatrial.cli.app import run
from seatrial.store import Store


def line(**fields: Any) -> str:
    return json.dumps(fields)


def session(model: str | None = "model-a", n: int = 2, sid: str = "11111111-1111-4111-8111-111111111111") -> str:
    lines, parent = [], None
    for i in range(n):
        for role in ("user", "assistant"):
            uid = f"{sid[:-6]}{i:03d}{'u' if role == 'user' else 'a'}00"
            message: dict[str, Any] = {"role": role, "content": f"please do thing {i}" if role == "user" else None}
            if role == "assistant":
                message |= {"id": f"msg_{sid[:4]}{i}", "content": [{"type": "text", "text": "done"}]}
                if model is not None:
                    message["model"] = model
            lines.append(
                line(
                    type=role, uuid=uid, parentUuid=parent, sessionId=sid, isSidechain=False, userType="external",
                    cwd="/home/someone/project", version="2.0.0", timestamp=f"2026-03-02T08:00:{2 * i:02d}.000Z",
                    message=message,
                )
            )  # fmt: skip
            parent = uid
    return "\n".join(lines) + "\n"


def call(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    status = run(list(argv))
    out = capsys.readouterr()
    assert "Traceback" not in out.err
    return status, out.out, out.err


@pytest.fixture
def store(tmp_path: Path) -> str:
    return str(tmp_path / "store")


def ingest(capsys: pytest.CaptureFixture[str], path: Path, store: str) -> tuple[int, dict[str, Any], str]:
    status, out, err = call(capsys, "ingest", str(path), "--store", store, "--json")
    return status, json.loads(out)["result"] if out else {}, err


def test_empty_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str], store: str) -> None:
    (tmp_path / "nothing").mkdir()
    status, _, err = call(capsys, "rank", str(tmp_path / "nothing"))
    assert status in (2, 3)
    assert "seatrial:" in err
    status, result, _ = ingest(capsys, tmp_path / "nothing", store)
    assert status == 0
    assert result["files"] == {"read": 0, "kept": 0, "skipped": 0}


def test_missing_path_names_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = call(capsys, "rank", str(tmp_path / "absent.jsonl"), "--json")
    error = json.loads(err)["error"]
    assert status == 2
    assert "absent.jsonl" in (error["file"] or error["message"])


def test_binary_file_is_a_counted_skip(tmp_path: Path, capsys: pytest.CaptureFixture[str], store: str) -> None:
    path = tmp_path / "in" / "noise.jsonl"
    path.parent.mkdir()
    path.write_bytes(os.urandom(4096))
    status, result, _ = ingest(capsys, path, store)
    assert status == 2
    assert result["files"] == {"read": 1, "kept": 0, "skipped": 1}
    assert result["skipped"][0]["why"]


def test_one_torn_line_loses_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], store: str) -> None:
    text = session(n=3)
    (tmp_path / "in").mkdir()
    lines = text.splitlines()
    lines[2] = lines[2][: len(lines[2]) // 2]
    (tmp_path / "in" / "s.jsonl").write_text("\n".join(lines) + "\n")
    status, result, _ = ingest(capsys, tmp_path / "in", store)
    assert status == 0
    assert result["sessions"] == 1
    assert [(s["line"], s.get("noted", False)) for s in result["skipped"]] == [(3, False)]
    assert result["steps"] == 5


def test_mixed_formats_in_one_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str], store: str) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "claude.jsonl").write_text(session())
    (folder / "chat.json").write_text(
        json.dumps({"model": "gpt-x", "messages": [{"role": "user", "content": "hi"},
                                                   {"role": "assistant", "content": "hello"}]})
    )  # fmt: skip
    (folder / "table.csv").write_text("task,trial,passed,model\nt1,1,true,m\nt1,2,false,m\n")
    (folder / "notes.txt").write_text("not a trace\n")
    status, result, _ = ingest(capsys, folder, store)
    assert status == 0
    assert result["files"]["read"] == result["files"]["kept"] + result["files"]["skipped"]
    assert result["files"]["kept"] == 3
    assert result["sessions"] == 4


def test_unreadable_file_is_a_counted_skip(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.jsonl").write_text(session())
    (folder / "b.jsonl").symlink_to(folder / "gone.jsonl")
    status, result, _ = ingest(capsys, folder, store)
    assert status == 0
    assert result["files"]["kept"] == 1
    assert any("b.jsonl" in s["file"] for s in result["skipped"])


def test_session_without_a_model_is_listed_not_ranked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_text(session(model=None))
    status, _, err = call(capsys, "rank", str(tmp_path / "in"))
    assert status == 3
    assert "1 sessions without a model" in err


def test_reading_twice_changes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str], store: str) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_text(session())
    ingest(capsys, tmp_path / "in", store)
    _, first, _ = call(capsys, "sessions", "list", "--store", store, "--json")
    ingest(capsys, tmp_path / "in", store)
    _, second, _ = call(capsys, "sessions", "list", "--store", store, "--json")
    assert json.loads(first) == json.loads(second)
    assert call(capsys, "verify", "--store", store)[0] == 0


def test_usage_errors_are_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(capsys, "rank", "--no-such-option")[0] == 2
    assert call(capsys, "no-such-command")[0] == 2
    status, _, err = call(capsys, "rank", "x", "--where", "nonsense", "--json")
    assert status == 2
    assert json.loads(err)["error"]["code"] == "usage"


def test_a_damaged_store_fails_verification(tmp_path: Path, capsys: pytest.CaptureFixture[str], store: str) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_text(session())
    ingest(capsys, tmp_path / "in", store)
    blob = next(p for p in (Path(store) / "blobs").rglob("*") if p.is_file())
    blob.chmod(0o644)
    blob.write_bytes(blob.read_bytes()[:-3])
    assert call(capsys, "verify", "--store", store)[0] == 1


@pytest.mark.parametrize(
    ("record", "megabytes"),
    [
        ('{"type": "user", "message": {"role": "user", "content": "BIG"}}', 100),
        (
            session(n=1, sid="3" * 8 + "-3333-4333-8333-" + "3" * 12)
            .splitlines()[0]
            .replace("please do thing 0", "BIG"),
            20,
        ),
    ],
    ids=["without-ids", "of-another-session"],
)
def test_a_line_of_up_to_100_megabytes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], store: str, record: str, megabytes: int
) -> None:
    """It is read like any other turn, and kept whole."""
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "a.jsonl"
    before, after = record.split("BIG")
    with path.open("w") as file:
        file.write(session())
        file.write(before)
        for _ in range(megabytes):
            file.write("x " * 500_000)
        file.write(after + "\n")
    status, result, _ = ingest(capsys, path, store)
    assert status == 0
    (report,) = result["reports"]
    assert report["kept_bytes"] + report["skipped_bytes"] == report["n_bytes"] == path.stat().st_size
    assert (result["steps"], result["skipped"], report["skipped_bytes"]) == (5, [], 0)
    steps = Store.open(store).table("steps").collect()
    assert steps["chars"].max() == megabytes * 1_000_000 - 1, "the last space is no text"


@pytest.mark.parametrize("tokens", ["1" + "0" * 30, str(2**63 - 1), "-5", "1e999", "NaN", "-Infinity"])
def test_numbers_beyond_all_measure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], store: str, tokens: str
) -> None:
    """One session with an impossible count; the other one and the ranking are as they would be without it."""
    folder = tmp_path / "in"
    folder.mkdir()
    other = "22222222-2222-4222-8222-222222222222"
    bad = session(n=3).replace('"model": "model-a"', f'"model": "model-a", "usage": {{"output_tokens": {tokens}}}')
    assert tokens in bad
    (folder / "a.jsonl").write_text(bad)
    (folder / "b.jsonl").write_text(session(model="model-b", sid=other))
    status, result, _ = ingest(capsys, folder, store)
    assert (status, result["sessions"], result["skipped"]) == (0, 2, [])
    assert call(capsys, "rank", "--store", store, "--draws", "999", "--workers", "1")[0] in (0, 3)
    assert call(capsys, "sessions", "list", "--store", store, "--json")[0] == 0
    assert call(capsys, "verify", "--store", store)[0] == 0
    if tokens.isdigit():
        assert any("output_tokens" in n["why"] and "a.jsonl" in n["file"] for n in result["notes"])


def test_several_failing_results_in_one_step_are_no_damage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], store: str
) -> None:
    lines = session(n=1).splitlines()
    calls = [{"type": "tool_use", "id": f"t{i}", "name": "Bash", "input": {"command": "make"}} for i in range(3)]
    work = json.loads(lines[1])
    work["message"]["content"] = calls
    back = json.loads(lines[0])
    back |= {"uuid": "back", "parentUuid": work["uuid"]}
    back["message"]["content"] = [
        {"type": "tool_result", "tool_use_id": c["id"], "is_error": True, "content": "Exit code 2\nmake: *** failed"}
        for c in calls
    ]
    (tmp_path / "a.jsonl").write_text("\n".join([lines[0], json.dumps(work), json.dumps(back)]) + "\n")
    assert ingest(capsys, tmp_path / "a.jsonl", store)[0] == 0
    status, out, _ = call(capsys, "signals", "--store", store, "--json")
    assert status == 0
    assert out.count("execution_error") >= 1
    status, out, _ = call(capsys, "verify", "--store", store)
    assert status == 0, out


@pytest.mark.parametrize("damage", ["gone", "garbage", "pages", "log"])
def test_a_damaged_store_is_an_infrastructure_error_everywhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], store: str, damage: str
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_text(session())
    ingest(capsys, tmp_path / "in", store)
    call(capsys, "signals", "--store", store)
    data = next((Path(store) / "tables" / "sessions").glob("*.parquet"))
    whole = data.read_bytes()
    if damage == "gone":
        data.unlink()
    elif damage == "log":
        (Path(store) / "versions.jsonl").write_bytes(b"")
    else:
        data.write_bytes(os.urandom(len(whole)) if damage == "garbage" else whole[:4] + b"\xff" * 300 + whole[304:])
    named = "versions.jsonl" if damage == "log" else "sessions"
    for argv in (["rank"], ["sessions", "list"], ["ingest", str(tmp_path / "in")], ["signals"]):
        status, _, err = call(capsys, *argv, "--store", store, "--json")
        error = json.loads(err.strip().splitlines()[-1])["error"]
        assert (status, error["code"]) == (4, "store"), argv
        assert named in error["file"]
        assert "ingest the sources again" in error["hint"]
    assert call(capsys, "verify", "--store", store)[0] in (1, 4)


def test_a_panic_of_compiled_code_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def panics(*args: object, **kwargs: object) -> None:
        raise pl.exceptions.PanicException("index out of bounds")

    monkeypatch.setattr("seatrial.flows.rank.rank_paths", panics)
    status, _, err = call(capsys, "rank", str(tmp_path), "--json")
    assert (status, json.loads(err)["error"]["code"]) == (4, "infrastructure")
