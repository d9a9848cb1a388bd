"""A world whose state is an SQLite database: tools are functions over a connection."""

from __future__ import annotations

import json
import math
import sqlite3
import time
from collections.abc import Sequence
from typing import Any

import msgspec

from seatrial import canon
from seatrial.errors import InputError
from seatrial.records import Gate, Snapshot, StateChange, ToolCall, ToolResult, ToolSpec, WorldStart
from seatrial.world.difference import Path, differences, mask
from seatrial.world.toolbox import Output, Tool, Toolbox, check_origin, parameters

State = dict[str, Any]


class _Saved(msgspec.Struct, frozen=True):
    database: bytes
    seed: int
    calls: int


class SqliteWorld:
    """Implements `records.World` over an in-memory database.

    `schema` is the SQL script that creates tables. The state, at the start and later, is
    ``{table: {key: {column: value}}}``: the key is the primary key as text (several columns: a JSON list; none: the
    rowid), bytes are ``{"hex": ...}``. Each call is one transaction: a function that raises `sqlite3.Error` leaves
    no change. SQL's own clock and luck are fixed: ``random()`` and ``randomblob()`` are refused; tools are handed
    their draws.
    """

    def __init__(
        self,
        name: str,
        version: str,
        schema: str,
        tools: Sequence[Tool[sqlite3.Connection]],
        volatile: Sequence[Path] = (),
    ) -> None:
        self.name = name
        self.version = version
        self.volatile = tuple(volatile)
        self._schema = schema
        self._box = Toolbox(name, tools)
        self._seed = 0
        self._calls = 0
        self._db = self._open()

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """Specifications, in the order given."""
        return self._box.specs

    def reset(self, start: WorldStart) -> None:
        """Create the tables anew and insert the rows of `start.state`.

        Raises:
            InputError: a table, column or value that the schema does not take.
        """
        self._db.close()
        self._db = self._open()
        self._seed = start.seed
        self._calls = 0
        self._db.execute("BEGIN")
        try:
            # Rows come table by table: references are checked once all are there.
            self._db.execute("PRAGMA defer_foreign_keys = ON")
            keys = self._keys()
            for table, rows in start.state.items():
                self._insert(table, rows, keys.get(table))
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            self._db.execute("ROLLBACK")
            hint = "rows are {table: {key: {column: value}}} and must fit the world's schema"
            raise InputError(f"world {self.name}: the start state does not fit: {error}", hint=hint) from error

    def gate(self, call: ToolCall) -> Gate | None:
        """The gate that the proposed call would trigger; None for an unknown tool or invalid arguments."""
        return self._box.gate(self._db, call)

    def call(self, call: ToolCall) -> ToolResult:
        """Execute one call in a transaction."""
        self._calls += 1
        self._db.execute("BEGIN")
        try:
            result = self._box.call(self._db, call, self._seed, self._calls)
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            extra = {"cause": "model", "seconds": 0.0}
            return ToolResult(call_id=call.id, outcome="error", text=f"database error: {error}", extra=extra)
        return result

    def state(self) -> State:
        """Every row of every table."""
        return {table: self._rows(table, keys) for table, keys in self._keys().items()}

    def state_hash(self) -> str:
        """sha256 of the canonical state without its volatile fields."""
        return canon.content_hash(mask(self.state(), self.volatile))

    def snapshot(self) -> Snapshot:
        """The database file's bytes, seed and call count."""
        data = msgspec.msgpack.encode(_Saved(self._db.serialize(), self._seed, self._calls))
        return Snapshot(world=self.name, version=self.version, state_hash=self.state_hash(), data=data)

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to `snapshot`.

        Raises:
            InputError: the snapshot is of another world or version, or damaged.
        """
        check_origin(snapshot, self.name, self.version)
        try:
            saved = msgspec.msgpack.decode(snapshot.data, type=_Saved)
            database = _connect()
            database.set_authorizer(None)  # loading attaches a file inside SQLite
            database.deserialize(saved.database)
            database.set_authorizer(_authorize)
            database.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        except (msgspec.DecodeError, sqlite3.Error) as error:
            raise InputError(f"snapshot of {snapshot.world} is damaged: {error}", hint="take it again") from error
        self._db.close()
        self._db, self._seed, self._calls = database, saved.seed, saved.calls

    def difference(self, before: State, after: State) -> tuple[StateChange, ...]:
        """Cells that differ, by (table, key, column), volatile ones left out; `rows_changed` counts rows."""
        return differences(before, after, self.volatile)

    def __del__(self) -> None:
        database = getattr(self, "_db", None)
        if database is not None:
            database.close()

    def _open(self) -> sqlite3.Connection:
        database = _connect()
        database.executescript(self._schema)
        return database

    def _keys(self) -> dict[str, list[str]]:
        """The columns of the primary key of every table, by table in order; none where a table has no key."""
        found = self._db.execute(
            "SELECT t.name, c.name, c.pk FROM sqlite_schema t JOIN pragma_table_info(t.name) c"
            " WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY t.name, c.pk"
        )
        keys: dict[str, list[str]] = {}
        for table, column, position in found:
            keys.setdefault(table, [])
            if position:
                keys[table].append(column)
        return keys

    def _rows(self, table: str, keys: list[str]) -> dict[str, Any]:
        # A table without a key is known by its rowid; one declared WITHOUT ROWID always has a key.
        columns = "*" if keys else "rowid AS [_rowid_], *"
        cursor = self._db.execute(f"SELECT {columns} FROM {_quoted(table)}")
        names = [d[0] for d in cursor.description]
        rows: dict[str, Any] = {}
        for values in cursor:
            row = dict(zip(names, map(_plain, values), strict=True))
            parts = [row[k] for k in keys] or [row.pop("_rowid_")]
            key = str(parts[0]) if len(parts) == 1 and isinstance(parts[0], str | int) else json.dumps(parts)
            # An untyped key column may hold 7 and "7": the second keeps its quotes.
            rows[key if key not in rows else json.dumps(parts)] = row
        return rows

    def _insert(self, table: str, rows: Any, keys: list[str] | None) -> None:
        if not isinstance(rows, dict) or not all(isinstance(r, dict) for r in rows.values()):
            raise InputError(
                f"world {self.name}: table {table} is not {{key: {{column: value}}}}", hint="see SqliteWorld"
            )
        without_key = keys == []
        for key, row in rows.items():
            columns = {**({"rowid": int(key)} if without_key else {}), **row}
            if not columns:
                continue
            names = ", ".join("rowid" if c == "rowid" else _quoted(c) for c in columns)
            marks = ", ".join("?" * len(columns))
            self._db.execute(
                f"INSERT INTO {_quoted(table)} ({names}) VALUES ({marks})", [_stored(v) for v in columns.values()]
            )


def rows_changed(changes: Sequence[StateChange]) -> tuple[tuple[str, str], ...]:
    """The (table, key) of every row that was added, removed or changed, each once: what a repair must restore."""
    return tuple(sorted({(c.path[0], c.path[1]) for c in changes if len(c.path) > 1}))


_READS = frozenset((sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE))


def query_tool(name: str = "query", limit: int = 50, seconds: float = 2.0) -> Tool[sqlite3.Connection]:
    """A tool that answers one SELECT with at most `limit` rows as JSON lines, within `seconds`. It cannot write,
    attach a file or change a setting."""

    def run(db: sqlite3.Connection, arguments: dict[str, Any], draws: Any) -> Output:
        until = time.monotonic() + seconds
        db.set_authorizer(lambda action, first, second, *_: _may_read(action, second))
        db.set_progress_handler(lambda: time.monotonic() > until, 10_000)
        try:
            cursor = db.execute(arguments["sql"])
            rows = cursor.fetchmany(limit + 1)
            names = [d[0] for d in cursor.description or ()]
            cursor.close()
        except (sqlite3.Error, sqlite3.Warning) as error:
            return Output(text=f"query failed: {error}", outcome="error", cause="model")
        finally:
            db.set_progress_handler(None, 0)
            db.set_authorizer(_authorize)
        lines = [canon.canonical(dict(zip(names, map(_plain, r), strict=True))).decode() for r in rows[:limit]]
        more = [f"... more than {limit} rows"] if len(rows) > limit else []
        return Output(text="\n".join(lines + more) or "no rows")

    spec = ToolSpec(
        name=name,
        description=f"Run one SQL SELECT; at most {limit} rows come back, one JSON object a line.",
        parameters=parameters({"sql": "string"}),
        effect="read",
    )
    return Tool(spec, run)


_UNSTEADY = ("random", "randomblob", "load_extension", "readfile", "writefile")


def _may_read(action: int, function: str | None) -> int:
    allowed = action in _READS and not (action == sqlite3.SQLITE_FUNCTION and function in _UNSTEADY)
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


def _authorize(action: int, first: str | None, second: str | None, *_: Any) -> int:
    """What any tool may not do: reach a file, or use luck that a snapshot does not hold."""
    if action in (sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH):
        return sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_FUNCTION and second in _UNSTEADY:
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK


def _connect() -> sqlite3.Connection:
    # Worlds may be driven from a server's thread; one call runs at a time.
    database = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    database.execute("PRAGMA foreign_keys = ON")
    database.set_authorizer(_authorize)
    return database


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    if isinstance(value, float) and not math.isfinite(value):
        return {"real": str(value)}
    return value


def _stored(value: Any) -> Any:
    if isinstance(value, dict) and set(value) == {"hex"}:
        return bytes.fromhex(value["hex"])
    if isinstance(value, dict) and set(value) == {"real"}:
        return float(value["real"])
    if isinstance(value, dict | list):
        raise sqlite3.DataError(f"a cell cannot hold {type(value).__name__}")
    return value


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
