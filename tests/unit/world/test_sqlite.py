"""A database as a world: rows as state, transactions, what SQL may not do."""

from __future__ import annotations

import random
import sqlite3
from typing import Any

import pytest

from seatrial.errors import InputError
from seatrial.records import ToolCall, ToolSpec, World, WorldStart
from seatrial.world import Output, Tool
from seatrial.world.sqlite import SqliteWorld, query_tool, rows_changed
from seatrial.world.toolbox import parameters

SCHEMA = """
CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT UNIQUE, photo BLOB, seen REAL);
CREATE TABLE visits (person INTEGER REFERENCES people(id), day TEXT, n INTEGER, PRIMARY KEY (person, day));
CREATE TABLE log (line TEXT);
CREATE TABLE odd (k PRIMARY KEY, "a ""b" TEXT);
"""
START: dict[str, Any] = {
    "visits": {'[1,"mon"]': {"person": 1, "day": "mon", "n": 2}},
    "people": {"1": {"id": 1, "name": "Ada", "photo": {"hex": "00ff"}, "seen": 0.5}},
    "log": {"3": {"line": "first"}},
    "odd": {"7": {"k": 7, 'a "b': "int"}, '["7"]': {"k": "7", 'a "b': "text"}},
}


def _sql(db: sqlite3.Connection, arguments: dict[str, Any], draws: random.Random) -> Output:
    for statement in arguments["sql"].split(";"):
        db.execute(statement)
    return Output(text="ok")


SQL = Tool(ToolSpec(name="sql", description="Any SQL.", parameters=parameters({"sql": "string"}), effect="write"), _sql)


@pytest.fixture
def world() -> SqliteWorld:
    made = SqliteWorld("db", "1", SCHEMA, (SQL, query_tool(limit=2)), (("people", "*", "seen"),))
    made.reset(WorldStart(state=START, seed=1))
    return made


def ask(world: SqliteWorld, sql: str, tool: str = "sql") -> Any:
    return world.call(ToolCall(id="c", name=tool, arguments={"sql": sql}))


def test_the_state_that_went_in_comes_out(world: SqliteWorld) -> None:
    assert isinstance(world, World)
    state = world.state()
    assert world.difference(START, {**state, "visits": START["visits"]}) == ()
    assert list(state["visits"].values()) == list(START["visits"].values())
    before = world.state_hash()
    world.reset(WorldStart(state=state))
    assert world.state_hash() == before


def test_differences_are_by_row_and_cell_without_volatile_ones(world: SqliteWorld) -> None:
    before, hashed = world.state(), world.state_hash()
    ask(world, "UPDATE people SET seen = 9.0")
    assert world.state_hash() == hashed
    ask(world, "UPDATE people SET name = 'Eve'; DELETE FROM log; INSERT INTO log (line) VALUES ('x')")
    changes = world.difference(before, world.state())
    assert [c.path for c in changes] == [("log", "1", "line"), ("log", "3", "line"), ("people", "1", "name")]
    assert [c.kind for c in changes] == ["added", "removed", "changed"]
    assert rows_changed(changes) == (("log", "1"), ("log", "3"), ("people", "1"))


def test_a_call_that_fails_leaves_nothing(world: SqliteWorld) -> None:
    before = world.state()
    failed = ask(world, "DELETE FROM log; INSERT INTO people (name) VALUES ('Ada')")
    assert failed.outcome == "error"
    assert "UNIQUE" in failed.text
    assert world.state() == before
    assert ask(world, "DELETE FROM people").outcome == "error", "a visit refers to her"


@pytest.mark.parametrize("sql", ["SELECT random()", "ATTACH '/tmp/x.db' AS x", "SELECT load_extension('x')"])
def test_what_a_snapshot_cannot_hold_is_refused(world: SqliteWorld, sql: str) -> None:
    assert ask(world, sql).outcome == "error"


def test_queries_read_and_do_nothing_else(world: SqliteWorld) -> None:
    before = world.state()
    assert ask(world, "SELECT name, photo FROM people", "query").text == '{"name":"Ada","photo":{"hex":"00ff"}}'
    assert ask(world, "SELECT 1 WHERE 0", "query").text == "no rows"
    assert "more than 2 rows" in ask(world, "VALUES (1), (2), (3)", "query").text
    writes = ("DELETE FROM log", "PRAGMA user_version = 3", "CREATE TABLE t (x)", "SELECT 1; SELECT 2", "nonsense")
    for sql in (*writes, "WITH x AS (SELECT 1) DELETE FROM log"):
        assert ask(world, sql, "query").outcome == "error", sql
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    quick = SqliteWorld("db", "1", SCHEMA, (query_tool(seconds=0.05),))
    assert "interrupted" in ask(quick, endless, "query").text
    assert world.state() == before
    assert ask(world, "DELETE FROM log").outcome == "ok", "the reader's limits end with it"


def test_starts_that_do_not_fit_are_named() -> None:
    world = SqliteWorld("db", "1", SCHEMA, ())
    for state, said in (
        ({"planets": {"1": {"id": 1}}}, "no such table"),
        ({"people": {"1": {"id": 1, "age": 3}}}, "age"),
        ({"people": {"1": {"id": 1, "name": ["x"]}}}, "cannot hold list"),
        ({"visits": {"x": {"person": 9, "day": "d", "n": 1}}}, "FOREIGN KEY"),
        ({"people": [1]}, "table people"),
    ):
        with pytest.raises(InputError, match=said):
            world.reset(WorldStart(state=state))
