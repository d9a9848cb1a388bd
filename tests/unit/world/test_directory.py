"""A folder as a world: files, links, tests, and a shell that cannot leave."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from seatrial.errors import InfrastructureError, InputError
from seatrial.records import ToolCall, ToolResult, World, WorldStart
from seatrial.world import confined
from seatrial.world.directory import DirectoryWorld, ShellTool, effects, file_tools

START: dict[str, Any] = {
    "files": {
        "a/one.txt": "one\ntwo\n",
        "run.sh": {"text": "echo hi\n", "executable": True},
        "raw.bin": {"base64": "AP/+", "executable": False},
        "empty/": {},
        "link": {"link": "a/one.txt"},
        "away": {"link": "/etc/passwd"},
    }
}


def passing(root: Path) -> dict[str, bool]:
    one = root / "a" / "one.txt"
    return {"has_one": one.is_file() and "one" in one.read_text(), "has_new": (root / "new.txt").is_file()}


@pytest.fixture
def world() -> DirectoryWorld:
    made = DirectoryWorld("folder", "1", file_tools(), tests=passing)
    made.reset(WorldStart(state=START))
    return made


def do(world: DirectoryWorld, tool: str, **arguments: str) -> ToolResult:
    return world.call(ToolCall(id="c", name=tool, arguments=arguments))


def test_the_state_that_went_in_comes_out(world: DirectoryWorld) -> None:
    assert isinstance(world, World)
    assert world.state() == {**START, "tests": {"has_one": True, "has_new": False}}


def test_file_tools(world: DirectoryWorld) -> None:
    assert do(world, "list_files").text.splitlines() == ["a/one.txt", "raw.bin", "run.sh"]
    assert do(world, "list_files", folder="a").text == "a/one.txt"
    assert do(world, "read_file", path="link").text == "one\ntwo\n"
    assert do(world, "search", text="two").text == "a/one.txt:2: two"
    assert do(world, "edit_file", path="a/one.txt", old="two", new="zwei").outcome == "ok"
    assert do(world, "edit_file", path="a/one.txt", old="e", new="E").outcome == "error", "twice"
    assert do(world, "edit_file", path="a/one.txt", old="", new="E").outcome == "error"
    assert do(world, "write_file", path="b/c/new.txt", text="ü\r\n").outcome == "ok"
    assert do(world, "move_file", path="b/c/new.txt", to="new.txt").outcome == "ok"
    assert do(world, "move_file", path="run.sh", to="new.txt").outcome == "error", "it is there already"
    assert do(world, "delete_file", path="raw.bin").outcome == "ok"
    for tool in ("read_file", "delete_file"):
        assert do(world, tool, path="nowhere").outcome == "error"
    assert do(world, "write_file", path="a", text="x").outcome == "error", "a folder"
    files = world.state()["files"]
    assert (files["a/one.txt"], files["new.txt"], "raw.bin" in files) == ("one\nzwei\n", "ü\r\n", False)


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a/../../x", "away", "link/../../../x", "a\x00b"])
def test_no_path_leads_out(world: DirectoryWorld, path: str) -> None:
    for tool, more in (("read_file", {}), ("write_file", {"text": "x"}), ("delete_file", {})):
        assert do(world, tool, path=path, **more).extra["refused"] == "policy", tool


def test_effects_name_what_was_touched_and_broken(world: DirectoryWorld) -> None:
    before = world.state()
    do(world, "write_file", path="a/one.txt", text="eins")
    do(world, "write_file", path="new.txt", text="")
    do(world, "write_file", path="scratch/x.txt", text="")
    found = effects(before, world.state(), allowed=("a/*", "new.txt"))
    assert found.touched == ("a/one.txt", "new.txt", "scratch/x.txt")
    assert found.unrelated == ("scratch/x.txt",)
    assert (found.newly_failing, found.mended) == (("has_one",), ("has_new",))
    paths = [c.path for c in world.difference(before, world.state())]
    assert ("tests", "has_one") in paths


def test_caches_are_no_state_and_large_files_are_hashes(world: DirectoryWorld) -> None:
    before, saved = world.state_hash(), world.snapshot()
    (world.root / "__pycache__").mkdir()
    (world.root / "__pycache__" / "x.pyc").write_bytes(b"x")
    assert world.state_hash() == before
    (world.root / "large").write_bytes(b"x" * 1_000_001)
    state = world.state()
    assert state["files"]["large"]["size"] == 1_000_001
    with pytest.raises(InputError, match="content of large"):
        world.reset(WorldStart(state={"files": state["files"]}))
    world.restore(saved)
    assert world.state_hash() == before
    assert not (world.root / "__pycache__").exists()


@pytest.mark.parametrize("path", ["/abs", "../up", "a/../../up", ""])
def test_starts_that_lead_out_are_refused(world: DirectoryWorld, path: str) -> None:
    with pytest.raises(InputError, match="no path below"):
        world.reset(WorldStart(state={"files": {path: "x"}}))


def test_the_folder_goes_with_the_world() -> None:
    made = DirectoryWorld("folder", "1", ())
    root = made.root
    assert root.is_dir()
    del made
    assert not root.exists()


def test_without_bubblewrap_a_shell_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    confined.refusal.cache_clear()
    try:
        with pytest.raises(InfrastructureError, match=r"needs bubblewrap.*never run unconfined.*install"):
            DirectoryWorld("folder", "1", (ShellTool(),))
        broken = tmp_path / "bwrap"
        broken.write_text("#!/bin/sh\necho 'no namespaces here' >&2\nexit 1\n")
        broken.chmod(0o755)
        confined.refusal.cache_clear()
        with pytest.raises(InfrastructureError, match="no namespaces here"):
            DirectoryWorld("folder", "1", (ShellTool(),))
    finally:
        confined.refusal.cache_clear()


@pytest.fixture
def shell() -> DirectoryWorld:
    why = confined.refusal()
    if why is not None:
        pytest.skip(why)
    made = DirectoryWorld("folder", "1", (*file_tools(), ShellTool(confined.ShellLimits(seconds=1.5, characters=400))))
    made.reset(WorldStart(state={"files": {"a.txt": "one\n"}}))
    return made


def test_a_shell_works_in_the_folder(shell: DirectoryWorld) -> None:
    done = do(shell, "shell", command="pwd; cat a.txt; echo two > b.txt; exit 3")
    assert (done.text, done.exit_code, done.outcome) == ("/workspace\none\n", 3, "error")
    assert shell.state()["files"] == {"a.txt": "one\n", "b.txt": "two\n"}


def test_a_shell_sees_and_reaches_nothing_else(shell: DirectoryWorld, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("hidden")
    os.environ["SEATRIAL_TEST_SECRET"] = "hidden"
    try:
        seen = do(shell, "shell", command=f"cat {secret}; env; ls -d {Path.home()}/.[a-z]*; cat /etc/passwd")
    finally:
        del os.environ["SEATRIAL_TEST_SECRET"]
    assert "hidden" not in seen.text
    assert "root:" not in seen.text
    assert do(shell, "shell", command="echo x > /usr/x || echo x > /etc/passwd/x").exit_code != 0
    network = "import socket; socket.create_connection(('127.0.0.1', 22), 1)"
    assert do(shell, "shell", command=f'python3 -c "{network}"').exit_code != 0
    assert do(shell, "shell", command="kill -9 1; ls /proc | grep -c '^[0-9]'").text.strip() in "23456"


def test_a_shell_is_stopped_and_its_output_cut(shell: DirectoryWorld) -> None:
    stopped = do(shell, "shell", command="echo begun; sleep 30 & sleep 30")
    assert stopped.exit_code == 124
    assert "begun" in stopped.text
    cut = do(shell, "shell", command="seq 1 1000").text
    assert cut.startswith("1\n2\n")
    assert cut.endswith("999\n1000\n")
    assert "bytes left out" in cut
    assert do(shell, "shell", command="python3 -c 'x = bytearray(3 << 30)'").exit_code != 0


def test_what_a_shell_leaves_behind_is_seen_and_undone(shell: DirectoryWorld) -> None:
    saved = shell.snapshot()
    do(shell, "shell", command="mkdir -p q/r; echo x > q/r/s; chmod 000 q/r/s q/r; chmod 500 q; ln -s /etc/passwd p")
    assert shell.state()["files"]["p"] == {"link": "/etc/passwd"}
    assert shell.state()["files"]["q/r/s"] == "x\n"
    assert do(shell, "write_file", path="p", text="gone").extra["refused"] == "policy"
    shell.restore(saved)
    assert shell.state()["files"] == {"a.txt": "one\n"}
    assert shell.state_hash() == saved.state_hash


@pytest.mark.skipif(confined.refusal() is not None, reason=str(confined.refusal()))
def test_a_python_whose_environment_lies_under_tmp_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Path(tempfile.mkdtemp(dir="/tmp"))
    try:
        (place / "marker").write_text("here")
        monkeypatch.setattr(sys, "prefix", str(place))
        done = confined.run(tmp_path, f"cat {place}/marker; ls /tmp | wc -l")
        assert "here1" in done.text
    finally:
        shutil.rmtree(place)
