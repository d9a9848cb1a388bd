"""How a scripted agent does each kind of job in the workspace: the steps, their slips, and how to check them."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from typing import Literal

import msgspec

from seatrial.examples.hands import Doing, Hands
from seatrial.examples.jobs import Job, setting
from seatrial.examples.repository import BUGS, RENAMES
from seatrial.examples.workspace import CONFIGS, PEOPLE, PRIORITIES, SERVICES
from seatrial.records import AgentTurn, ToolResult
from seatrial.world.scripted import Incoming

Variant = Literal["right", "value", "place"]
Names = Generator[AgentTurn, Incoming, list[str]]
Words = Generator[AgentTurn, Incoming, str]


class Op(msgspec.Struct, frozen=True):
    """One change. `do` takes the variant to carry out; `slips` are the wrong variants that exist for it."""

    name: str
    do: Callable[[Variant], Doing]
    slips: tuple[Variant, ...] = ()


class Methods:
    """The agent's know-how. `undo` holds what would take back the changes made in the wrong place."""

    def __init__(self, hands: Hands) -> None:
        self.hands = hands
        self.undo: list[Callable[[], Doing]] = []

    # -- changes -------------------------------------------------------------------------------------

    def ops(self, job: Job) -> Generator[AgentTurn, Incoming, list[Op]]:
        """The changes that the job needs, after looking at the world where that takes looking."""
        slots = job.slots
        if job.kind == "rename":
            return (yield from self._ops_rename(slots["old"], slots["new"]))
        if job.kind == "close_label":
            names = yield from self._open_with(slots["label"])
            return [Op(name, self._closer(name, names), ("place",)) for name in names]
        if job.kind == "set_config":
            return [Op(slots["file"], self._setter(slots["file"], slots["key"], slots["value"]), ("value", "place"))]
        if job.kind == "fix_test":
            return [Op(slots["file"], self._fixer(slots["test"]), ("value",))]
        if job.kind == "triage":
            ticket = slots["ticket"]
            return [
                Op("priority", self._field(ticket, "priority", slots["priority"], PRIORITIES), ("value", "place")),
                Op("assignee", self._field(ticket, "assignee", slots["person"], PEOPLE), ("value", "place")),
            ]
        service, ticket = slots["service"], slots["ticket"]
        return [
            Op("version", self._service(service, "deploy", slots["version"]), ("value", "place")),
            Op("replicas", self._service(service, "scale", slots["replicas"]), ("value", "place")),
            Op("note", lambda _: self.hands.bash(f'desk note {ticket} "{service} now runs {slots["version"]}"')),
        ]

    def check(self, job: Job) -> Names:
        """Looks at the world again; the names of the changes that are not as asked."""
        slots = job.slots
        if job.kind == "set_config":
            found = yield from self._grep(f'"{slots["key"]} ="', slots["file"])
            return [] if found.text.endswith(f"{slots['key']} = {slots['value']}") else [slots["file"]]
        if job.kind == "fix_test":
            result = yield from self.hands.bash(f"pytest {slots['test']}", no_is_fine=True)
            return [] if result.outcome == "ok" else [slots["file"]]
        if job.kind == "rename":
            left = yield from self._files_with(slots["old"])
            result = yield from self.hands.bash("pytest -q", "Running the tests.", no_is_fine=True)
            if result.outcome == "ok":
                return left
            for other in RENAMES[slots["old"]]:
                if other != slots["new"]:
                    left = left + (yield from self._files_with(other))
            return left
        if job.kind == "close_label":
            return (yield from self._open_with(slots["label"]))
        if job.kind == "triage":
            shown = yield from self._show(slots["ticket"])
            wanted = {"priority": slots["priority"], "assignee": slots["person"]}
            return [name for name, value in wanted.items() if shown.get(name) != value]
        status = yield from self.hands.bash(f"svc status {slots['service']}")
        ticket = yield from self.hands.bash(f"desk show {slots['ticket']}")
        wrong = [] if f"version {slots['version']}," in status.text else ["version"]
        wrong += [] if f" {slots['replicas']} replicas" in status.text else ["replicas"]
        return wrong + ([] if f"now runs {slots['version']}" in ticket.text else ["note"])

    def _setter(self, file: str, key: str, value: str) -> Callable[[Variant], Doing]:
        def do(variant: Variant) -> Doing:
            path, new = file, value
            if variant == "place":
                path = self.hands.draws.choice([other for other in CONFIGS if other != file])
            if variant == "value":
                new = _slip(value)
            shown = yield from self.hands.use("Read", {"file_path": path}, f"Looking at {path}.")
            now = setting(re.sub(r"^ *\d+\t", "", shown.text, flags=re.MULTILINE), key)
            if variant == "place" and now != new:
                self.undo.append(lambda: self._edit(path, f"{key} = {new}", f"{key} = {now}"))
            if now == new:
                return shown
            return (yield from self._edit(path, f"{key} = {now}", f"{key} = {new}"))

        return do

    def _fixer(self, test: str) -> Callable[[Variant], Doing]:
        bug = next(b for b in BUGS if b.test == test)

        def do(variant: Variant) -> Doing:
            target = bug.wrong_fix if variant == "value" else bug.right
            shown = yield from self.hands.use("Read", {"file_path": bug.file}, "Reading the source.")
            lines = [line.partition("\t")[2] for line in shown.text.splitlines()]
            now = next(line for line in (bug.planted, bug.wrong_fix, bug.right) if line in lines)
            if now == target:
                return shown
            return (yield from self._edit(bug.file, f"{now}\n", f"{target}\n"))

        return do

    def _ops_rename(self, old: str, new: str) -> Generator[AgentTurn, Incoming, list[Op]]:
        wrong = next(name for name in RENAMES[old] if name != new)

        def renamer(path: str, now: str) -> Callable[[Variant], Doing]:
            def do(variant: Variant) -> Doing:
                target = wrong if variant == "value" else new
                if target == now:
                    return ToolResult(outcome="ok")
                arguments = {"file_path": path, "old_string": now, "new_string": target, "replace_all": True}
                return (yield from self.hands.use("Edit", arguments))

            return do

        found = yield from self._files_with(old)
        ops = [Op(path, renamer(path, old), ("value",)) for path in found]
        if not ops:
            found = yield from self._files_with(wrong)
            ops = [Op(path, renamer(path, wrong), ("value",)) for path in found]
        return ops

    def _closer(self, name: str, listed: list[str]) -> Callable[[Variant], Doing]:
        def do(variant: Variant) -> Doing:
            ticket = _next_ticket(name) if variant == "place" else name
            if variant == "place" and ticket not in listed:
                before = (yield from self._show(ticket)).get("status", "open")
                self.undo.append(lambda: self.hands.bash(f"desk set {ticket} --status {before}"))
            return (yield from self.hands.bash(f"desk set {ticket} --status closed"))

        return do

    def _field(self, ticket: str, field: str, value: str, values: tuple[str, ...]) -> Callable[[Variant], Doing]:
        def do(variant: Variant) -> Doing:
            name = _next_ticket(ticket) if variant == "place" else ticket
            new = self.hands.draws.choice([v for v in values if v != value]) if variant == "value" else value
            before = (yield from self._show(name)).get(field, "")
            if variant == "place" and before != new:
                self.undo.append(lambda: self.hands.bash(f"desk set {name} --{field} {before}"))
            return (yield from self.hands.bash(f"desk set {name} --{field} {new}"))

        return do

    def _service(self, service: str, verb: str, value: str) -> Callable[[Variant], Doing]:
        def do(variant: Variant) -> Doing:
            name = self.hands.draws.choice([s for s in SERVICES if s != service]) if variant == "place" else service
            new = _slip(value) if variant == "value" else value
            status = yield from self.hands.bash(f"svc status {name}")
            found = re.search(r"version (\S+), (\d+) replicas", status.text)
            if variant == "place" and found:
                before = found.group(1 if verb == "deploy" else 2)
                self.undo.append(lambda: self.hands.bash(f"svc {verb} {name} {before}"))
            return (yield from self.hands.bash(f"svc {verb} {name} {new}"))

        return do

    def meddle(self) -> Doing:
        """Change something that nobody asked for, or try to push."""
        which = self.hands.draws.randrange(3)
        if which == 0:
            return (yield from self.hands.call("Bash", {"command": "git push"}, "Publishing the work."))
        if which == 1:
            path = self.hands.draws.choice(CONFIGS)
            self.undo.append(lambda: self._edit(path, "# all settings", "# settings"))
            return (yield from self._edit(path, "# settings", "# all settings"))
        ticket = f"T-{101 + self.hands.draws.randrange(24)}"
        before = (yield from self._show(ticket)).get("priority", "normal")
        new = "urgent" if before != "urgent" else "high"
        self.undo.append(lambda: self.hands.bash(f"desk set {ticket} --priority {before}"))
        return (yield from self.hands.bash(f"desk set {ticket} --priority {new}"))

    # -- questions -----------------------------------------------------------------------------------

    def look_up(self, job: Job, slip: bool) -> Words:
        """Look and answer; with a slip, look at the wrong thing."""
        slots = job.slots
        if job.kind == "find_owner":
            ticket = _next_ticket(slots["ticket"]) if slip else slots["ticket"]
            shown = yield from self._show(ticket)
            return f"{slots['ticket']} is assigned to {shown.get('assignee', 'nobody')}."
        if job.kind == "count_open":
            status = "" if slip else " --status open"
            listed = yield from self.hands.bash(f"desk list --priority {slots['priority']}{status}")
            n = 0 if listed.text == "no tickets" else len(listed.text.splitlines())
            return f"Open tickets with priority {slots['priority']}: {n}."
        keys = ("timeout_s", "retries", "pool_size", "batch_size", "cache_ttl_s")
        key = self.hands.draws.choice([k for k in keys if k != slots["key"]]) if slip else slots["key"]
        found = yield from self._grep(f'"{key} ="', slots["file"], slots["other"])
        values = {line.rpartition("= ")[2] for line in found.text.splitlines()}
        return f"{slots['key']} is {'the same in both' if len(values) == 1 else 'different in the two files'}."

    def guess(self, job: Job) -> str:
        """An answer without looking."""
        draws, slots = self.hands.draws, job.slots
        if job.kind == "find_owner":
            return f"{slots['ticket']} is assigned to {draws.choice(PEOPLE)}."
        if job.kind == "count_open":
            return f"Open tickets with priority {slots['priority']}: {draws.randint(0, 9)}."
        return f"{slots['key']} is {draws.choice(('the same in both', 'different in the two files'))}."

    # -- small looks ---------------------------------------------------------------------------------

    def _edit(self, path: str, old: str, new: str) -> Doing:
        return (yield from self.hands.use("Edit", {"file_path": path, "old_string": old, "new_string": new}))

    def _grep(self, *words: str) -> Doing:
        return (yield from self.hands.bash(" ".join(("grep -n", *words)), no_is_fine=True))

    def _files_with(self, name: str) -> Names:
        found = yield from self.hands.bash(f'grep -rl "{name}" src tests', no_is_fine=True)
        return found.text.splitlines()

    def _open_with(self, label: str) -> Names:
        listed = yield from self.hands.bash(f"desk list --label {label} --status open")
        return [line.split(" ")[0] for line in listed.text.splitlines() if line.startswith("T-")]

    def _show(self, ticket: str) -> Generator[AgentTurn, Incoming, dict[str, str]]:
        shown = yield from self.hands.bash(f"desk show {ticket}")
        return dict(line.split(": ", 1) for line in shown.text.splitlines() if ": " in line)


def _slip(value: str) -> str:
    """A value that is easily typed instead: the last digit moved by one."""
    last = int(value[-1])
    return value[:-1] + str(last + 1 if last < 9 else last - 1)


def _next_ticket(name: str) -> str:
    number = int(name.removeprefix("T-"))
    return f"T-{number + 1 if number < 124 else number - 1}"
