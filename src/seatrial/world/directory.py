"""A world whose state is a folder of files: file tools, tests, and a confined shell."""

from __future__ import annotations

import random
import shutil
import tempfile
import weakref
from collections.abc import Callable, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Literal

import msgspec

from seatrial import canon
from seatrial.errors import InputError
from seatrial.records import Gate, Risk, Snapshot, StateChange, ToolCall, ToolResult, ToolSpec, WorldStart
from seatrial.world import confined, files
from seatrial.world.difference import Path as StatePath
from seatrial.world.difference import differences, mask
from seatrial.world.files import Entry, Outside
from seatrial.world.toolbox import Output, Tool, Toolbox, check_origin, parameters

State = dict[str, Any]
Tests = Callable[[Path], dict[str, bool]]
IGNORED = ("__pycache__", "*.pyc", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".git")


class _Saved(msgspec.Struct, frozen=True):
    entries: list[Entry]
    seed: int
    calls: int


class DirectoryWorld:
    """Implements `records.World` over a temporary folder, removed with the world.

    The state is ``{"files": {path: content}}`` (`files.Files`) and, where `tests` are given, ``"tests": {name:
    passed}``, run whenever the files have changed. Names that fit `ignored` are no part of the state; a snapshot
    holds them all the same. Times of files are no part of either.

    Raises:
        InfrastructureError: `tools` hold a shell and this machine cannot confine one.
    """

    def __init__(
        self,
        name: str,
        version: str,
        tools: Sequence[Tool[Path]],
        *,
        tests: Tests | None = None,
        volatile: Sequence[StatePath] = (),
        ignored: Sequence[str] = IGNORED,
    ) -> None:
        if any(isinstance(tool, ShellTool) for tool in tools):
            confined.require()
        self.name = name
        self.version = version
        self.volatile = tuple(volatile)
        self._box = Toolbox(name, tools)
        self._tests = tests
        self._ignored = tuple(ignored)
        self.root = Path(tempfile.mkdtemp(prefix="seatrial-world-"))
        weakref.finalize(self, shutil.rmtree, self.root, ignore_errors=True)
        self._seed = 0
        self._calls = 0
        self._tested: tuple[str, dict[str, bool]] | None = None

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """Specifications, in the order given."""
        return self._box.specs

    def reset(self, start: WorldStart) -> None:
        """Make the folder hold the files of `start.state`.

        Raises:
            InputError: the state has no ``files``, or some that cannot be written.
        """
        given = start.state.get("files", {})
        if not isinstance(given, dict):
            raise InputError(f"world {self.name}: the start state needs files", hint='{"files": {"path": "text"}}')
        files.write(self.root, files.parse(given))
        self._seed = start.seed
        self._calls = 0

    def gate(self, call: ToolCall) -> Gate | None:
        """The gate that the proposed call would trigger; None for an unknown tool or invalid arguments."""
        return self._box.gate(self.root, call)

    def call(self, call: ToolCall) -> ToolResult:
        """Execute one call. A path that leads out of the folder is refused by policy."""
        self._calls += 1
        try:
            return self._box.call(self.root, call, self._seed, self._calls)
        except Outside as error:
            text = f"{error} is outside the folder"
            extra = {"refused": "policy", "cause": "model", "seconds": 0.0}
            return ToolResult(call_id=call.id, outcome="error", text=text, extra=extra)
        except OSError as error:
            text = f"{error.strerror or error}"
            return ToolResult(call_id=call.id, outcome="error", text=text, extra={"cause": "model", "seconds": 0.0})

    def state(self) -> State:
        """The files' contents and, where there are tests, which pass."""
        found: State = {"files": files.plain(files.entries(self.root, self._ignored))}
        if self._tests is not None:
            key = canon.content_hash(found)
            if self._tested is None or self._tested[0] != key:
                self._tested = (key, self._tests(self.root))
            found["tests"] = dict(self._tested[1])
        return found

    def state_hash(self) -> str:
        """sha256 of the canonical state without its volatile fields."""
        return canon.content_hash(mask(self.state(), self.volatile))

    def snapshot(self) -> Snapshot:
        """A copy of every file, seed and call count."""
        data = msgspec.msgpack.encode(_Saved(files.entries(self.root), self._seed, self._calls))
        return Snapshot(world=self.name, version=self.version, state_hash=self.state_hash(), data=data)

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to `snapshot`.

        Raises:
            InputError: the snapshot is of another world or version, or damaged.
        """
        check_origin(snapshot, self.name, self.version)
        try:
            saved = msgspec.msgpack.decode(snapshot.data, type=_Saved)
        except msgspec.DecodeError as error:
            raise InputError(f"snapshot of {snapshot.world} is damaged: {error}", hint="take it again") from error
        files.write(self.root, saved.entries)
        self._seed, self._calls = saved.seed, saved.calls

    def difference(self, before: State, after: State) -> tuple[StateChange, ...]:
        """Files and tests that differ, volatile ones left out."""
        return differences(before, after, self.volatile)


class Effects(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent's work did to a folder. `touched` are files added, changed or removed; `unrelated` those of them
    outside what the task allows; `newly_failing` tests passed before and do not now; `mended` the reverse."""

    touched: tuple[str, ...]
    unrelated: tuple[str, ...]
    newly_failing: tuple[str, ...]
    mended: tuple[str, ...]


def effects(before: State, after: State, allowed: Sequence[str] = ("*",)) -> Effects:
    """Compare two states of a directory world; `allowed` are patterns of paths (``*`` also matches ``/``).

    A test that is gone counts as failing.
    """
    old, new = before.get("files", {}), after.get("files", {})
    touched = tuple(sorted(p for p in old.keys() | new.keys() if old.get(p) != new.get(p)))
    passed, passes = before.get("tests", {}), after.get("tests", {})
    return Effects(
        touched=touched,
        unrelated=tuple(p for p in touched if not any(fnmatch(p, pattern) for pattern in allowed)),
        newly_failing=tuple(sorted(t for t, ok in passed.items() if ok and not passes.get(t, False))),
        mended=tuple(sorted(t for t, ok in passes.items() if ok and not passed.get(t, False))),
    )


class ShellTool(Tool[Path]):
    """A shell command in the folder, confined by bubblewrap: no network, nothing else of the machine writable."""

    def __init__(self, limits: confined.ShellLimits = confined.ShellLimits()) -> None:
        spec = ToolSpec(
            name="shell",
            description=f"Run a bash command in {confined.MOUNT}, the project's folder. There is no network.",
            parameters=parameters({"command": "string"}),
            risk=Risk(irreversible=False),
        )

        def run(root: Path, arguments: dict[str, Any], draws: random.Random) -> Output:
            done = confined.run(root, arguments["command"], limits)
            ok = done.exit_code == 0
            return Output(text=done.text, outcome="ok" if ok else "error", exit_code=done.exit_code)

        super().__init__(spec, run)


def file_tools() -> tuple[Tool[Path], ...]:
    """list_files, read_file, search, write_file, edit_file, move_file and delete_file."""
    return (
        _tool("list_files", "List every file below a folder.", "read", _list, parameters({"folder": "string?"})),
        _tool("read_file", "Read a file.", "read", _read, parameters({"path": "string"})),
        _tool(
            "search",
            "Find lines that hold a text.",
            "read",
            _search,
            parameters({"text": "string", "folder": "string?"}),
        ),
        _tool(
            "write_file", "Create or replace a file.", "write", _write, parameters({"path": "string", "text": "string"})
        ),
        _tool(
            "edit_file",
            "Replace a text that occurs once in a file.",
            "write",
            _edit,
            parameters({"path": "string", "old": "string", "new": "string"}),
        ),
        _tool("move_file", "Move or rename a file.", "write", _move, parameters({"path": "string", "to": "string"})),
        _tool("delete_file", "Delete a file.", "write", _delete, parameters({"path": "string"})),
    )


_Run = Callable[[Path, dict[str, Any], random.Random], Output]


def _tool(name: str, text: str, effect: Literal["read", "write"], run: _Run, schema: dict[str, Any]) -> Tool[Path]:
    return Tool(ToolSpec(name=name, description=text, parameters=schema, effect=effect), run)


def _wrong(why: str) -> Output:
    return Output(text=why, outcome="error", cause="model")


def _texts(root: Path, folder: str) -> list[tuple[str, str]]:
    base = files.inside(root, folder)
    below = base.relative_to(root.resolve()).as_posix()
    prefix = "" if below == "." else below + "/"
    found = [e for e in files.entries(root, IGNORED) if e.kind == "file" and e.path.startswith(prefix)]
    return [(e.path, e.data.decode(errors="replace")) for e in found]


def _list(root: Path, arguments: dict[str, Any], draws: random.Random) -> Output:
    return Output(text="\n".join(path for path, _ in _texts(root, arguments.get("folder", "."))) or "no files")


def _read(root: Path, arguments: dict[str, Any], draws: random.Random) -> Output:
    path = files.inside(root, arguments["path"])
    if not path.is_file():
        return _wrong(f"{arguments['path']}: no such file")
    return Output(text=path.read_bytes().decode(errors="replace"))


def _search(root: Path, arguments: dict[str, Any], draws: random.Random) -> Output:
    hits = [
        f"{path}:{number}: {line}"
        for path, text in _texts(root, arguments.get("folder", "."))
        for number, line in enumerate(text.splitlines(), 1)
        if arguments["text"] in line
    ]
    more = [f"... {len(hits) - 200} more"] if len(hits) > 200 else []
    return Output(text="\n".join(hits[:200] + more) or "no lines")


def _write(root: Path, arguments: dict[str, Any], draws: random.Random) -> Output:
    path = files.inside(root, arguments["path"])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(arguments["text"], encoding="utf-8", newline="")
    return Output(text=f"wrote {arguments['path']}")


def _edit(root: Path, arguments: dict[str, Any], draws: random.Random) -> Output:
    path = files.inside(root, arguments["path"])
    if not path.is_file():
        return _wrong(f"{arguments['path']}: no such file")
    text = path.read_bytes().decode("utf-8", errors="surrogateescape")
    found = text.count(arguments["old"]) if arguments["old"] else 0
    if found != 1:
        return _wrong(f"old occurs {found} times in {arguments['path']}, not once; nothing was changed")
    path.write_bytes(text.replace(arguments["old"], arguments["new"]).encode("utf-8", errors="surrogateescape"))
    return Output(text=f"changed {arguments['path']}")


def _move(root: Path, arguments: dict[str, Any], draws: random.Random) -> Output:
    path, to = files.inside(root, arguments["path"]), files.inside(root, arguments["to"])
    if not path.is_file():
        return _wrong(f"{arguments['path']}: no such file")
    if to.exists():
        return _wrong(f"{arguments['to']} exists already; nothing was moved")
    to.parent.mkdir(parents=True, exist_ok=True)
    path.rename(to)
    return Output(text=f"moved {arguments['path']} to {arguments['to']}")


def _delete(root: Path, arguments: dict[str, Any], draws: random.Random) -> Output:
    path = files.inside(root, arguments["path"])
    if not path.is_file():
        return _wrong(f"{arguments['path']}: no such file")
    path.unlink()
    return Output(text=f"deleted {arguments['path']}")
