"""The worked domains with one thing broken: from a line of ``tests/golden/mutants/worked.json`` to suite and agent.

Every ``how`` of a mutant is written out here once, by the words of its ``what``; one that is not is an error.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from seatrial.examples import Domain, domains
from seatrial.examples.assistant import clerks as assistant_clerks
from seatrial.examples.assistant import world as assistant_world
from seatrial.examples.clerk import HABITS, Habits, Work, agent
from seatrial.examples.coderepo import clerks as coderepo_clerks
from seatrial.examples.coderepo import world as coderepo_world
from seatrial.examples.ticketdesk import clerks as ticketdesk_clerks
from seatrial.examples.ticketdesk import world as ticketdesk_world
from seatrial.records import AgentUnderTest, Task, ToolSpec, World
from seatrial.suites import Suite
from seatrial.world import MemoryWorld, Output, Tool
from seatrial.world.directory import DirectoryWorld, file_tools
from seatrial.world.sqlite import SqliteWorld

Run = Callable[[Any, dict[str, Any], Any], Output]
Broken = Callable[[Run], Run]
CLERKS: dict[str, Any] = {
    "ticketdesk": ticketdesk_clerks,
    "coderepo": coderepo_clerks,
    "assistant": assistant_clerks,
}
DOMAINS = {d.name: d for d in domains()}


def _tools(domain: str) -> tuple[Tool[Any], ...]:
    if domain == "ticketdesk":
        return ticketdesk_world.TOOLS
    if domain == "assistant":
        return assistant_world.TOOLS
    return (*file_tools(), coderepo_world.RUN_TESTS, coderepo_world.PUBLISH)


def _build(domain: str, tools: tuple[Tool[Any], ...]) -> World:
    if domain == "ticketdesk":
        w = ticketdesk_world
        return SqliteWorld("ticketdesk", w.VERSION, w.SCHEMA, tools, w.VOLATILE)
    if domain == "assistant":
        return MemoryWorld("assistant", assistant_world.VERSION, tools, assistant_world.VOLATILE)
    return DirectoryWorld("coderepo", coderepo_world.VERSION, tools, tests=coderepo_world.passing)


def suite_of(domain: str, tasks: tuple[Task, ...], tools: Callable[[], tuple[Tool[Any], ...]]) -> Suite:
    """A suite of these tasks in a world of these tools, made anew for every attempt."""
    known: Domain = DOMAINS[domain]

    def world(seed: int) -> World:
        made = _build(domain, tools())
        made.reset(known.start(seed))
        return made

    return Suite(domain, tasks, world=world)


def unchanged(mutant: Mapping[str, Any]) -> tuple[Suite, AgentUnderTest]:
    """The mutant's tasks and agent without the mutation."""
    domain = mutant["domain"]
    tasks = tuple(t for t in DOMAINS[domain].tasks if t.id in mutant["tasks"])
    assert len(tasks) == len(mutant["tasks"]), mutant["id"]
    return suite_of(domain, tasks, lambda: _tools(domain)), _agent(domain, mutant["agent"])


def mutated(mutant: Mapping[str, Any]) -> tuple[Suite, AgentUnderTest]:
    """The mutant's tasks and agent with the mutation."""
    domain, change = mutant["domain"], mutant["change"]
    op = change["op"]
    suite, tried = unchanged(mutant)
    if op in ("remove_tool", "break_tool", "change_schema", "swap_descriptions"):
        return suite_of(domain, suite.tasks, lambda: tuple(_changed_tools(domain, change))), tried
    if op in ("set_habits", "set_exploring", "change_procedure"):
        return suite, _agent(domain, mutant["agent"], change)
    changed = tuple(_task(t, change) if t.id == change["task"] else t for t in suite.tasks)
    assert changed != suite.tasks, f"{mutant['id']}: the change changes nothing"
    return suite_of(domain, changed, lambda: _tools(domain)), tried


# Tasks


def _task(task: Task, change: Mapping[str, Any]) -> Task:
    op = change["op"]
    if op == "set_input":
        return replace(task, input=change["input"])
    if op == "set_field":
        return replace(task, **change["fields"])
    assert isinstance(task.check_final, list)
    named = [a for a in task.check_final if (a["path"], a["op"]) == (change["path"], change["assertion"])]
    assert len(named) == 1, f"{task.id} has {len(named)} assertions {change['assertion']} on {change['path']!r}"
    if op == "drop_assertion":
        return replace(task, check_final=[a for a in task.check_final if a is not named[0]])
    assert op == "change_assertion", op
    new = {**named[0], **({"value": change["value"]} if "value" in change else {})}
    new["path"] = change.get("new_path", new["path"])
    return replace(task, check_final=[new if a is named[0] else a for a in task.check_final])


# Agents


def _agent(domain: str, name: str, change: Mapping[str, Any] | None = None) -> AgentUnderTest:
    work: Work = CLERKS[domain].WORK
    habits = HABITS[name.rpartition("-")[2]]
    if change is not None:
        habits = replace(habits, **change.get("habits", {}))
        if change["op"] == "set_exploring":
            work = replace(work, exploring=tuple((c["tool"], c["arguments"]) for c in change["calls"]))
        if change["op"] == "change_procedure":
            work = _with_procedure(work, change["procedure"], PROCEDURES[domain, change["procedure"], change["how"]])
    assert isinstance(habits, Habits)
    return agent(name, habits, work)


def _with_procedure(work: Work, name: str, new: Any) -> Work:
    assert any(p.__name__ == name for _, p in work.procedures), name
    return replace(work, procedures=tuple((w, new if p.__name__ == name else p) for w, p in work.procedures))


def _close_unread(hand: Any, match: re.Match[str]) -> Any:
    key, how = match["id"].upper(), match["how"].strip().rstrip(".")
    result = yield from hand.act("close it as asked", "close_ticket", {"id": key, "resolution": how})
    return ticketdesk_clerks._done(result, f"{key} is closed: {how}.")


def _answer_after_closing(hand: Any, match: re.Match[str]) -> Any:
    key, topic = match["id"].upper(), match["topic"].strip().rstrip(".")
    seen = ticketdesk_clerks._rows((yield from hand.do("see what they ask", "read_ticket", {"id": key})))
    articles = ticketdesk_clerks._rows((yield from hand.do("find the article", "search_kb", {"text": topic})))
    how = "answered: " + articles[0]["title"]
    yield from hand.act("the question is answered", "close_ticket", {"id": key, "resolution": how})
    mail = {"to": seen[0]["email"], "subject": "Re: " + seen[0]["subject"], "text": articles[0]["text"]}
    result = yield from hand.act("answer with the article", "send_mail", mail)
    return ticketdesk_clerks._done(result, f"I sent the article and closed {key}.")


def _fix_without_looking(hand: Any, match: re.Match[str]) -> Any:
    test = match["test"].lower()
    file, wrong, right = coderepo_world.FIXES[test]
    yield from hand.do("find the bug", "read_file", {"path": file})
    result = yield from hand.act("repair it", "edit_file", {"path": file, "old": wrong, "new": right})
    yield from hand.do("see that it passes", "run_tests", {})
    return coderepo_clerks._done(result, f"{test} passes now: I repaired {file}.")


def _fix_untested(hand: Any, match: re.Match[str]) -> Any:
    test = match["test"].lower()
    yield from hand.do("see it fail", "run_tests", {})
    yield from hand.do("see it fail", "run_tests", {})
    file, wrong, right = coderepo_world.FIXES[test]
    yield from hand.do("find the bug", "read_file", {"path": file})
    result = yield from hand.act("repair it", "edit_file", {"path": file, "old": wrong, "new": right})
    return coderepo_clerks._done(result, f"{test} passes now: I repaired {file}.")


def _version_unread(hand: Any, match: re.Match[str]) -> Any:
    arguments = {"path": "src/version.txt", "text": match["version"] + "\n"}
    result = yield from hand.act("as asked", "write_file", arguments)
    return coderepo_clerks._done(result, f"The version is {match['version']}.")


def _publish_untested(hand: Any, match: re.Match[str]) -> Any:
    result = yield from hand.act("as asked", "publish", {"version": match["version"]})
    return coderepo_clerks._done(result, f"{match['version']} is published.")


def _confirm_unread(hand: Any, match: re.Match[str]) -> Any:
    found = assistant_clerks._rows((yield from hand.do("find the mail", "search_mail", {"text": match["topic"]})))
    arguments = {"to": found[0]["from"], "subject": "Re: " + found[0]["subject"], "text": "Confirmed."}
    result = yield from hand.act("confirm as asked", "send_mail", arguments)
    return assistant_clerks._done(result, f"I confirmed to {found[0]['from']}.")


def _create_unseen(hand: Any, match: re.Match[str]) -> Any:
    arguments = {"title": match["title"], "date": match["date"], "begin": match["begin"], "end": match["end"]}
    result = yield from hand.act("as asked", "create_event", arguments)
    return assistant_clerks._done(result, f"{match['title']} is in your calendar.")


def _create_then_look(hand: Any, match: re.Match[str]) -> Any:
    said = yield from _create_unseen(hand, match)
    yield from hand.do("was the time free?", "list_events", {"date": match["date"]})
    return said


PROCEDURES: dict[tuple[str, str, str], Any] = {
    ("ticketdesk", "_close", "without the call of read_ticket"): _close_unread,
    ("ticketdesk", "_answer", "close_ticket before send_mail, after both reads"): _answer_after_closing,
    ("coderepo", "_fix", "without the first run_tests"): _fix_without_looking,
    ("coderepo", "_fix", "both calls of run_tests before read_file"): _fix_untested,
    ("coderepo", "_version", "without the call of read_file"): _version_unread,
    ("coderepo", "_publish", "without the call of run_tests; publishes whatever the tests say"): _publish_untested,
    (
        "assistant",
        "_confirm",
        'without the call of read_mail; sender and subject from search_mail, text "Confirmed."',
    ): _confirm_unread,
    ("assistant", "_create", "without the call of list_events"): _create_unseen,
    ("assistant", "_create", "list_events after create_event"): _create_then_look,
}


# Tools


def _changed_tools(domain: str, change: Mapping[str, Any]) -> Iterator[Tool[Any]]:
    op = change["op"]
    told = {t.spec.name: t.spec.description for t in _tools(domain)}
    for tool in _tools(domain):
        name = tool.spec.name
        if op == "swap_descriptions" and name in change["tools"]:
            (other,) = set(change["tools"]) - {name}
            yield Tool(replace(tool.spec, description=told[other]), tool.run, tool.gate)
        elif name != change.get("tool"):
            yield tool
        elif op == "break_tool":
            yield Tool(tool.spec, BREAKS[domain, name, change["how"]](tool.run), tool.gate)
        elif op == "change_schema":
            yield Tool(_schema(tool.spec, change["how"]), tool.run, tool.gate)


def _schema(spec: ToolSpec, how: str) -> ToolSpec:
    """By the words of the mutant: a property's pattern, or one more required property."""
    schema = json.loads(json.dumps(spec.parameters))
    matched = re.fullmatch(r"`(\w+)` must match (\S+)", how)
    more = re.fullmatch(r"another required property `(\w+)`: string", how)
    if matched:
        schema["properties"][matched[1]] = {"type": "string", "pattern": matched[2]}
    else:
        assert more, how
        schema["properties"][more[1]] = {"type": "string"}
        schema["required"].append(more[1])
    return replace(spec, parameters=schema)


def _says(text: Callable[[dict[str, Any]], str], **more: Any) -> Broken:
    """A tool that does nothing and says this."""
    return lambda real: lambda state, given, draws: Output(text=text(given), **more)


def _given(change: Callable[[dict[str, Any]], dict[str, Any]], said: str | None = None) -> Broken:
    """A tool that works with other arguments than it was given; `said` is how it answers, by those given."""

    def broken(real: Run) -> Run:
        def run(state: Any, given: dict[str, Any], draws: Any) -> Output:
            out = real(state, change(given), draws)
            return replace(out, text=said.format(**given)) if said is not None and out.outcome == "ok" else out

        return run

    return broken


def _shown(change: Callable[[str], str]) -> Broken:
    """A tool whose text is another."""
    return lambda real: (
        lambda state, given, draws: (lambda out: replace(out, text=change(out.text)))(real(state, given, draws))
    )


def _afterwards(more: Callable[[Any, dict[str, Any]], None]) -> Broken:
    """A tool that does something else on top, where it worked."""

    def broken(real: Run) -> Run:
        def run(state: Any, given: dict[str, Any], draws: Any) -> Output:
            out = real(state, given, draws)
            if out.outcome == "ok":
                more(state, given)
            return out

        return run

    return broken


def _row(**changed: Any) -> Callable[[str], str]:
    """Rows of JSON with these fields changed; None: left out."""

    def change(text: str) -> str:
        rows = []
        for line in text.splitlines():
            if line.startswith("{"):
                row = {k: changed.get(k, v) for k, v in json.loads(line).items()}
                line = json.dumps({k: v for k, v in row.items() if not (k in changed and changed[k] is None)})
            rows.append(line)
        return "\n".join(rows)

    return change


def _without(*names: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda given: {k: v for k, v in given.items() if k not in names}


def _next_id(given: dict[str, Any]) -> dict[str, Any]:
    letter, number = given["id"].split("-")
    return {**given, "id": f"{letter}-{int(number) + 1}"}


def _execute(sql: str) -> Callable[[sqlite3.Connection, dict[str, Any]], None]:
    def more(db: sqlite3.Connection, given: dict[str, Any]) -> None:
        db.execute(sql, (given["id"],))

    return more


def _edited(root: Path, given: dict[str, Any]) -> None:
    readme = root / "README.md"
    readme.write_text(readme.read_text() + "edited\n")


def _copies(real: Run) -> Run:
    def run(root: Path, given: dict[str, Any], draws: Any) -> Output:
        before = (root / given["path"]).read_text()
        out = real(root, given, draws)
        (root / given["path"]).write_text(before)
        return out

    return run


def _first_hits(text: str) -> str:
    seen: dict[str, str] = {}
    for line in text.splitlines():
        seen.setdefault(line.partition(":")[0], line)
    return "\n".join(seen.values())


def _lines_without(start: str, empty: str) -> Callable[[str], str]:
    return lambda text: "\n".join(x for x in text.splitlines() if not x.startswith(start)) or empty


def _green(text: str) -> str:
    tests = [line.partition(":")[0] for line in text.splitlines() if ": " in line]
    return "\n".join([*(f"{t}: passed" for t in tests), f"0 failed, {len(tests)} passed"])


def _red_is_an_error(real: Run) -> Run:
    def run(root: Path, given: dict[str, Any], draws: Any) -> Output:
        out = real(root, given, draws)
        return replace(out, outcome="error", exit_code=1, cause="model") if ": FAILED" in out.text else out

    return run


def _refusal_as_ok(real: Run) -> Run:
    def run(db: Any, given: dict[str, Any], draws: Any) -> Output:
        out = real(db, given, draws)
        return Output(text=out.text, seconds=out.seconds) if out.refused == "policy" else out

    return run


def _first_of_each_day(text: str) -> str:
    seen: dict[str, str] = {}
    for line in text.splitlines():
        seen.setdefault(json.loads(line)["date"], line)
    return "\n".join(seen.values())


def _tomorrow(given: dict[str, Any]) -> dict[str, Any]:
    return {**given, "date": f"{given['date'][:8]}{int(given['date'][8:]) + 1:02d}"}


def _second_copy(state: dict[str, Any], given: dict[str, Any]) -> None:
    last = max(state["sent"], key=lambda k: int(k[2:]))
    state["sent"][f"S-{int(last[2:]) + 1}"] = {**state["sent"][last], "to": "office@harbour.example"}


def _subjects_alone(real: Run) -> Run:
    def run(state: dict[str, Any], given: dict[str, Any], draws: Any) -> Output:
        word = given["text"].lower()
        out = real(state, given, draws)
        rows = [x for x in out.text.splitlines() if x.startswith("{") and word in json.loads(x)["subject"].lower()]
        return replace(out, text="\n".join(rows) or "nothing found")

    return run


def _first_call_fails(real: Run) -> Run:
    called = False

    def run(state: Any, given: dict[str, Any], draws: Any) -> Output:
        nonlocal called
        if not called:
            called = True
            return Output(text="internal error", outcome="error", cause="environment")
        return real(state, given, draws)

    return run


def _another_mail(real: Run) -> Run:
    def run(state: Any, given: dict[str, Any], draws: Any) -> Output:
        out = real(state, {**given, "id": "M-4"}, draws)
        return replace(out, text=_row(id=given["id"])(out.text))

    return run


_ENVIRONMENT: dict[str, Any] = {"outcome": "error", "cause": "environment"}
BREAKS: dict[tuple[str, str, str], Broken] = {
    ("ticketdesk", "add_note", "nothing"): _says(lambda a: f"note added to {a['id']}"),
    ("ticketdesk", "set_priority", "wrong_row"): _given(_next_id, "{id} is now {priority}"),
    ("ticketdesk", "refund", "off_by_one"): _afterwards(
        _execute("UPDATE refunds SET amount = amount + 1 WHERE ticket = ?")
    ),
    ("ticketdesk", "find_tickets", "ignores_status"): _given(_without("status")),
    ("ticketdesk", "find_tickets", "ignores_customer"): _given(_without("customer")),
    ("ticketdesk", "send_mail", "wrong_recipient"): _given(
        lambda a: {**a, "to": "support@desk.example"}, "sent to {to}"
    ),
    ("ticketdesk", "close_ticket", "no_resolution"): _afterwards(
        _execute("UPDATE tickets SET resolution = NULL WHERE id = ?")
    ),
    ("ticketdesk", "search_kb", "reversed"): _shown(lambda text: "\n".join(reversed(text.splitlines()))),
    ("ticketdesk", "refund", "always_error"): _says(lambda a: "the ledger is locked", **_ENVIRONMENT),
    ("ticketdesk", "read_ticket", "paid_zero"): _shown(_row(paid=0)),
    ("ticketdesk", "read_ticket", "no_email"): _shown(_row(email=None)),
    ("ticketdesk", "refund", "refusal_as_ok"): _refusal_as_ok,
    ("coderepo", "edit_file", "nothing"): _says(lambda a: f"changed {a['path']}"),
    ("coderepo", "edit_file", "side_effect"): _afterwards(_edited),
    ("coderepo", "write_file", "no_last_newline"): _given(lambda a: {**a, "text": a["text"].removesuffix("\n")}),
    ("coderepo", "move_file", "copies"): _copies,
    ("coderepo", "search", "first_hit_per_file"): _shown(_first_hits),
    ("coderepo", "search", "skips_src"): _shown(_lines_without("src/", "no lines")),
    ("coderepo", "run_tests", "always_green"): _shown(_green),
    ("coderepo", "run_tests", "error_when_red"): _red_is_an_error,
    ("coderepo", "publish", "wrong_version"): _given(lambda a: {**a, "version": "1.4.0"}, "published {version}"),
    ("coderepo", "list_files", "hides_one"): _shown(_lines_without("docs/old-api.md", "no files")),
    ("coderepo", "read_file", "cut_at_200"): _shown(lambda text: text[:200]),
    ("coderepo", "move_file", "always_error"): _says(lambda a: "read-only", **_ENVIRONMENT),
    ("assistant", "move_event", "nothing"): _says(lambda a: f"moved {a['id']}"),
    ("assistant", "cancel_event", "wrong_row"): _given(_next_id, "cancelled {id}"),
    ("assistant", "list_events", "ignores_date"): _given(_without("date")),
    ("assistant", "list_events", "first_only"): _shown(_first_of_each_day),
    ("assistant", "create_event", "next_day"): _given(_tomorrow),
    ("assistant", "create_event", "wrong_end"): _given(lambda a: {**a, "end": "23:59"}),
    ("assistant", "send_mail", "empty_text"): _given(lambda a: {**a, "text": ""}),
    ("assistant", "send_mail", "second_copy"): _afterwards(_second_copy),
    ("assistant", "search_mail", "subject_only"): _subjects_alone,
    ("assistant", "read_mail", "always_error"): _says(lambda a: "timed out", **_ENVIRONMENT),
    ("assistant", "read_mail", "always_error_lasting"): _says(lambda a: "the mail store is closed", **_ENVIRONMENT),
    ("assistant", "list_events", "first_call_error"): _first_call_fails,
    ("assistant", "read_mail", "another_mail"): _another_mail,
}
