"""Jobs that users ask for in the workspace, and how to tell from the world's final state what came of them."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

import msgspec

from seatrial.examples.repository import BUGS, RENAMES
from seatrial.examples.workspace import CONFIGS, LABELS, NUMBERS, PEOPLE, PRIORITIES, SERVICES, VOLATILE
from seatrial.world import differences

Path = tuple[str, ...]


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One request. `slots` are the words that it is about, by the names of `sentences_guide.md`."""

    kind: str
    type: str
    difficulty: str
    slots: dict[str, str]


class Want(msgspec.Struct, frozen=True, kw_only=True):
    """One leaf that must change: to `value`, or (`mentions`) to text that holds it. `name` is what people
    call the place; `missing` what they call the change when it is not there."""

    path: Path
    value: Any
    name: str
    missing: str
    mentions: bool = False


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One fault: the correction category of `sentences_guide.md` and its slots."""

    kind: str
    slots: dict[str, str]


KINDS: dict[str, tuple[str, str]] = {
    "set_config": ("coding", "easy"),
    "fix_test": ("coding", "medium"),
    "rename": ("coding", "hard"),
    "triage": ("workflow", "easy"),
    "close_label": ("workflow", "medium"),
    "roll_out": ("workflow", "hard"),
    "find_owner": ("conversation", "easy"),
    "count_open": ("conversation", "medium"),
    "compare": ("conversation", "hard"),
}
"""Task type and difficulty of each kind of job."""


def make(kind: str, state: dict[str, Any], draws: random.Random) -> Job:
    """A job of this kind about the things in `state`; a `fix_test` job plants its bug there."""
    type_, difficulty = KINDS[kind]
    return Job(kind=kind, type=type_, difficulty=difficulty, slots=_SLOTS[kind](state, draws))


def _set_config(state: dict[str, Any], draws: random.Random) -> dict[str, str]:
    key, file = draws.choice(list(NUMBERS)), draws.choice(CONFIGS)
    now = setting(state["files"][file], key)
    low, high = NUMBERS[key]
    value = draws.choice([v for v in range(low, high + 1) if str(v) != now])
    return {"key": key, "file": file, "value": str(value)}


def _fix_test(state: dict[str, Any], draws: random.Random) -> dict[str, str]:
    bug = draws.choice(BUGS)
    state["files"][bug.file] = state["files"][bug.file].replace(bug.right, bug.planted)
    return {"test": bug.test, "file": bug.file}


def _rename(state: dict[str, Any], draws: random.Random) -> dict[str, str]:
    old = draws.choice(list(RENAMES))
    return {"old": old, "new": draws.choice(RENAMES[old])}


def _triage(state: dict[str, Any], draws: random.Random) -> dict[str, str]:
    ticket = draws.choice(list(state["tickets"]))
    now = state["tickets"][ticket]
    return {
        "ticket": ticket,
        "priority": draws.choice([p for p in PRIORITIES if p != now["priority"]]),
        "person": draws.choice([p for p in PEOPLE if p != now["assignee"]]),
    }


def _close_label(state: dict[str, Any], draws: random.Random) -> dict[str, str]:
    usable = [label for label in LABELS if len(open_with(state, label)) >= 2]
    label = draws.choice(usable or list(LABELS))
    for ticket in list(state["tickets"].values())[:: 24 // 3]:
        if len(open_with(state, label)) >= 2:
            break
        ticket["status"] = "open"
        ticket["labels"] = sorted({*ticket["labels"], label})
    return {"label": label}


def _roll_out(state: dict[str, Any], draws: random.Random) -> dict[str, str]:
    service = draws.choice(SERVICES)
    replicas = draws.choice([n for n in range(1, 9) if n != state["services"][service]["replicas"]])
    return {
        "service": service,
        "version": f"3.{draws.randint(0, 9)}.{draws.randint(0, 9)}",
        "replicas": str(replicas),
        "ticket": draws.choice(list(state["tickets"])),
    }


def _find_owner(state: dict[str, Any], draws: random.Random) -> dict[str, str]:
    return {"ticket": draws.choice(list(state["tickets"]))}


def _count_open(state: dict[str, Any], draws: random.Random) -> dict[str, str]:
    return {"priority": draws.choice(PRIORITIES)}


def _compare(state: dict[str, Any], draws: random.Random) -> dict[str, str]:
    file, other = draws.sample(CONFIGS, 2)
    key = draws.choice(list(NUMBERS))
    if draws.random() < 0.5:
        value = setting(state["files"][file], key)
        state["files"][other] = with_setting(state["files"][other], key, value)
    return {"key": key, "file": file, "other": other}


_SLOTS: dict[str, Callable[[dict[str, Any], random.Random], dict[str, str]]] = {
    "set_config": _set_config,
    "fix_test": _fix_test,
    "rename": _rename,
    "triage": _triage,
    "close_label": _close_label,
    "roll_out": _roll_out,
    "find_owner": _find_owner,
    "count_open": _count_open,
    "compare": _compare,
}


def setting(text: str, key: str) -> str:
    """A setting's value in a configuration file's text; empty when it is not there."""
    found = re.search(rf"^{key} = (.*)$", text, re.MULTILINE)
    return found.group(1) if found else ""


def with_setting(text: str, key: str, value: str) -> str:
    """The text with the setting changed."""
    return re.sub(rf"^{key} = .*$", f"{key} = {value}", text, flags=re.MULTILINE)


def open_with(state: dict[str, Any], label: str) -> list[str]:
    """Open tickets that carry the label."""
    return [name for name, t in state["tickets"].items() if t["status"] == "open" and label in t["labels"]]


def wants(job: Job, state: dict[str, Any]) -> list[Want]:
    """What must be different after the job, given the state in which it was asked; empty for a question."""
    slots, files = job.slots, state["files"]
    if job.kind == "set_config":
        text = with_setting(files[slots["file"]], slots["key"], slots["value"])
        return [Want(path=("files", slots["file"]), value=text, name=slots["file"], missing=slots["file"])]
    if job.kind == "fix_test":
        bug = next(b for b in BUGS if b.test == slots["test"])
        text = files[bug.file].replace(bug.planted, bug.right)
        return [Want(path=("files", bug.file), value=text, name=bug.file, missing=bug.file)]
    if job.kind == "rename":
        return [
            Want(path=("files", path), value=text.replace(slots["old"], slots["new"]), name=path, missing=path)
            for path, text in sorted(files.items())
            if slots["old"] in text
        ]
    if job.kind == "triage":
        at = ("tickets", slots["ticket"])
        named = slots["ticket"]
        return [
            Want(path=(*at, "priority"), value=slots["priority"], name=named, missing=f"the priority of {named}"),
            Want(path=(*at, "assignee"), value=slots["person"], name=named, missing=f"the assignee of {named}"),
        ]
    if job.kind == "close_label":
        return [
            Want(path=("tickets", name, "status"), value="closed", name=name, missing=name)
            for name in open_with(state, slots["label"])
        ]
    if job.kind == "roll_out":
        return _wants_roll_out(slots, len(state["tickets"][slots["ticket"]]["notes"]))
    return []


def _wants_roll_out(slots: dict[str, str], n_notes: int) -> list[Want]:
    service, ticket = slots["service"], slots["ticket"]
    return [
        Want(
            path=("services", service, "version"),
            value=slots["version"],
            name=service,
            missing=f"version {slots['version']} on {service}",
        ),
        Want(
            path=("services", service, "replicas"),
            value=int(slots["replicas"]),
            name=service,
            missing=f"the replicas of {service}",
        ),
        Want(
            path=("tickets", ticket, "notes", str(n_notes)),
            value=slots["version"],
            name=ticket,
            missing=f"the note on {ticket}",
            mentions=True,
        ),
    ]


def answer(job: Job, state: dict[str, Any]) -> tuple[set[str], set[str], str] | None:
    """For a question: words that a right answer holds, words that it may not hold, and where to look."""
    slots = job.slots
    if job.kind == "find_owner":
        owner = state["tickets"][slots["ticket"]]["assignee"]
        return {owner}, set(PEOPLE) - {owner}, slots["ticket"]
    if job.kind == "count_open":
        at = [t for t in state["tickets"].values() if t["status"] == "open" and t["priority"] == slots["priority"]]
        return {str(len(at))}, {str(n) for n in range(30)} - {str(len(at))}, "the ticket list"
    if job.kind == "compare":
        same = setting(state["files"][slots["file"]], slots["key"]) == setting(
            state["files"][slots["other"]], slots["key"]
        )
        return ({"same"}, {"different"}, slots["other"]) if same else ({"different"}, {"same"}, slots["other"])
    return None


def judge(job: Job, before: dict[str, Any], after: dict[str, Any], said: str) -> list[Finding]:
    """Faults of a finished job, from the state when it was asked, the state now and what the agent said.

    An empty list means that the world (or the answer) is as asked and nothing else was touched.
    """
    if (right := answer(job, before)) is not None:
        return _judge_answer(said, right) + _unasked(_extras(before, after, set()))
    needed = wants(job, before)
    found: list[Finding] = []
    missing: list[Want] = []
    for want in needed:
        now, then = _leaf(after, want.path), _leaf(before, want.path)
        if (want.mentions and isinstance(now, str) and str(want.value) in now) or now == want.value:
            continue
        if now == then:
            missing.append(want)
        else:
            found.append(_wrong(job, want, now))
    extras = _extras(before, after, {want.path for want in needed})
    if missing and extras:
        found.append(Finding(kind="wrong_place", slots={"wanted": missing[0].name, "got": extras[0]}))
        return found
    if missing and len(missing) == len(needed):
        found.append(Finding(kind="not_done", slots={"where": job.slots.get("test", missing[0].name)}))
    else:
        found += [Finding(kind="incomplete", slots={"missing": want.missing}) for want in missing]
    return found + _unasked(extras)


def _judge_answer(said: str, right: tuple[set[str], set[str], str]) -> list[Finding]:
    must, may_not, where = right
    told = set(re.findall(r"[\w-]+", said.lower()))
    if must <= told and not (may_not & told):
        return []
    if not (must | may_not) & told:
        return [Finding(kind="not_done", slots={"where": where})]
    return [Finding(kind="wrong_answer", slots={"where": where, "got": sorted(may_not & told)[0]})]


def _wrong(job: Job, want: Want, now: Any) -> Finding:
    if job.kind == "fix_test":
        return Finding(kind="still_broken", slots={"where": job.slots["test"]})
    if job.kind == "set_config":
        key = job.slots["key"]
        slots = {"where": key, "wanted": job.slots["value"], "got": setting(str(now), key)}
        return Finding(kind="wrong_value", slots=slots)
    if job.kind == "rename":
        return Finding(
            kind="wrong_value", slots={"where": want.name, "wanted": job.slots["new"], "got": "another name"}
        )
    return Finding(kind="wrong_value", slots={"where": want.name, "wanted": str(want.value), "got": str(now)})


def _unasked(extras: list[str]) -> list[Finding]:
    return [Finding(kind="unasked", slots={"extra": extras[0]})] if extras else []


def _extras(before: dict[str, Any], after: dict[str, Any], asked: set[Path]) -> list[str]:
    """Names of things changed without being asked; commits and the changelog are not the user's concern here."""
    seen = []
    for change in differences(before, after, (*VOLATILE, ("git",), ("files", "CHANGELOG.md"))):
        if change.path not in asked and change.path[1] not in seen:
            seen.append(change.path[1])
    return seen


def _leaf(state: Any, path: Path) -> Any:
    for part in path:
        if isinstance(state, list):
            state = state[int(part)] if int(part) < len(state) else None
        else:
            state = state.get(part) if isinstance(state, dict) else None
    return state
