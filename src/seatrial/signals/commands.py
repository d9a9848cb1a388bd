"""Tool results to errors with a cause (METHODS 1.3): by tool, command and the tool's own output.

The model that made the call is never consulted. Only a result's own text is evidence; prose never is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from seatrial.records import CallFact, ErrorCause, Signal, Span, Step, ToolCall, ToolResult, Trace
from seatrial.signals import faults, looks, shell
from seatrial.signals.calls import Read, command_text, intent, read

NAME = "commands"
VERSION = "3"

UNRECORDED = "not recorded"
"""The tool of a result whose call is not in the log."""

_READ = 4_000
"""Characters of a result's head and tail that are read. Tools put their error message at either end."""

_FILE_TOOL = re.compile(
    r"read|view|open|cat|grep|glob|search|find|list|fetch|browse|ls\b|web|get_?file|show|snapshot|notebook|image"
    r"|resource|diff|log",
    re.IGNORECASE,
)
_DECLARES = frozenset("eEfF{")
"""What a body that declares an error begins with."""
_EXIT_TEXT = re.compile(r"\A\s*(?:Error: )?(?:Exit code|exit status|exited with code)[:\s]+(\d{1,3})\b", re.IGNORECASE)


class Finding(NamedTuple):
    """What one result shows: the cause (None: no error), confidence, reason and where the evidence is."""

    cause: ErrorCause | None
    confidence: float
    why: str
    start: int = 0
    end: int = 0
    abnormal: bool = False


_NOTHING = Finding(None, 0.0, "")


@lru_cache(maxsize=1024)
def _reads_files(name: str) -> bool:
    return _FILE_TOOL.search(name) is not None


@lru_cache(maxsize=1024)
def _checks(head: str) -> bool:
    return faults.CHECKERS.search(head) is not None


_FAILURES = (
    faults.REJECTED, faults.INTERRUPTED, faults.SIBLING, faults.TIMEOUT, faults.REMOTE_AHEAD, faults.MISUSE,
    faults.CONFLICT, faults.HALLUCINATED, *(pattern for _, pattern in faults.ENVIRONMENT),
)  # fmt: skip


@lru_cache(maxsize=1)
def _failures() -> looks.Look:
    return looks.Look(_FAILURES)


@lru_cache(maxsize=1)
def _firsts() -> dict[int, looks.First]:
    """By the pattern's `id`: its hash is that of its whole program, new every time."""
    return {id(pattern): looks.First(pattern) for pattern in _FAILURES}


def _search(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    """What the pattern's own `search` finds, sooner for those of `_FAILURES`."""
    first = _firsts().get(id(pattern))
    return pattern.search(text) if first is None else first(text)


def _possible(text: str) -> frozenset[int]:
    """Those of `_FAILURES` that may occur in a text or in its beginning, by `id`."""
    return frozenset([id(_FAILURES[i]) for i in _failures()(looks.plain(text))])


def classify(call: ToolCall | None, result: ToolResult, command: Read | None) -> Finding:
    """Why this result is an error, or None.

    `command` is what a command-like tool was given; None for other tools.
    """
    code = result.exit_code
    if result.outcome == "ok" and not code:
        return _abnormal(call.name if call else "", result, command)
    text = _ends(result.text)
    if code is None and command is not None and result.outcome == "error":
        # Only a harness that flags an error writes the code into its text; `echo "exit code: $?"` flags nothing.
        match = _EXIT_TEXT.match(text)
        code = int(match[1]) if match else None
    failed = result.outcome == "error" or bool(code)
    may = _possible(text) if failed else frozenset()
    if result.outcome == "rejected" or (result.outcome == "error" and _holds(faults.REJECTED, text[:600], may)):
        return _at(result, faults.REJECTED, Finding("rejected", 1.0, "the user refused the call"))
    if result.outcome == "interrupted" or (result.outcome == "error" and _holds(faults.INTERRUPTED, text[:600], may)):
        return _at(result, faults.INTERRUPTED, Finding("interrupted", 1.0, "the call was interrupted"))
    if failed:
        return _failed(call, result, command, code, text, may)
    if result.outcome == "unknown" and call is not None and call.validity == "unknown_tool":
        return Finding("model", 0.95, "the tool does not exist", 0, min(len(result.text), 200))
    return _abnormal(call.name if call else "", result, command)


def _holds(pattern: re.Pattern[str], text: str, may: frozenset[int]) -> bool:
    return id(pattern) in may and _search(pattern, text) is not None


def _failed(
    call: ToolCall | None,
    result: ToolResult,
    command: Read | None,
    code: int | None,
    text: str,
    may: frozenset[int],
) -> Finding:
    line = command.line if command is not None else None
    unknown = call is not None and call.validity == "unknown_tool"
    if unknown or (result.outcome == "error" and _holds(faults.HALLUCINATED, text[:200], may)):
        return _at(result, faults.HALLUCINATED, Finding("model", 0.95, "the tool does not exist"))
    if _holds(faults.SIBLING, text[:400], may):
        found = Finding("interrupted", 0.9, "cancelled because a call beside it failed")
        return _at(result, faults.SIBLING, found)
    if code in faults.SIGNALS and line is not None:
        if code == 141:
            return Finding("benign", 0.8, "exit 141: the reader closed the pipe", 0, min(len(result.text), 120))
        return Finding("interrupted", 0.8, f"exit {code}: stopped by a signal", 0, min(len(result.text), 120))
    if line is not None and code is not None:
        benign = _benign(line, code, text, may)
        if benign:
            return Finding("benign", *benign, 0, min(len(result.text), 120))
    checks = line is not None and any(_checks(c.head) for c in line.commands)
    for fault, pattern in faults.ENVIRONMENT:
        if _holds(pattern, text, may) and not (checks and faults.CHECK_FAILED.search(text)):
            return _at(result, pattern, Finding("environment", 0.8, f"environment fault: {fault}"))
    if call is not None and call.validity == "invalid":
        return Finding("model", 0.9, "arguments that the tool refuses", 0, min(len(result.text), 200))
    shown = "" if code is None else f"exit {code}: "
    if _holds(faults.TIMEOUT, text, may):
        return _at(result, faults.TIMEOUT, Finding("unknown", 0.6, f"{shown}ran out of time"))
    if _holds(faults.REMOTE_AHEAD, text, may):
        return _at(result, faults.REMOTE_AHEAD, Finding("unknown", 0.6, f"{shown}the remote had moved on"))
    if _holds(faults.MISUSE, text, may):
        return _at(result, faults.MISUSE, Finding("model", 0.85, f"{shown}the output names an error of the call"))
    if line is not None and code is not None and any(c.program in ("false", "exit") for c in line.deciders):
        return Finding("model", 0.7, f"{shown}the command sets its own failure", 0, min(len(result.text), 120))
    return Finding("unknown", 0.6, f"{shown}no known fault in the output", 0, min(len(result.text), 200))


def _benign(line: shell.Line, code: int, text: str, may: frozenset[int]) -> tuple[float, str] | None:
    """Confidence and reason if this exit code answers a question rather than reporting a failure."""
    if not line.deciders:
        return None
    if _holds(faults.CONFLICT, text, may) and any(c.head in faults.CONFLICTING for c in line.deciders):
        return 0.8, f"exit {code}: a merge conflict is to be decided"
    asked = [c for c in line.deciders if _answers(c, code, text)]
    others = [c for c in line.deciders if c not in asked]
    if not asked:
        return None
    head = asked[-1].head
    body = _EXIT_TEXT.sub("", text, count=1).strip()
    if not others and any(_silenced(c) for c in asked):
        return 0.7, f"exit {code} of {head} with its complaints thrown away means no"
    complaint = re.search(rf"^(?:\S*sh: )?{re.escape(asked[-1].program)}: ", body, re.MULTILINE)
    if complaint or re.search(r"^\(eval\):\d+:|parse error|syntax error near", body[:300], re.MULTILINE):
        return None
    if not others:
        return 0.95, f"exit {code} of {head} means no"
    if all(c.program in faults.NOISY for c in others) and not re.search(
        r"\b(?:error|fatal|no such file|not found|denied|cannot)\b", body[:2000], re.IGNORECASE
    ):
        return 0.7, f"exit {code} of {head} means no; the commands before it would have said why they failed"
    return None


def _silenced(command: shell.Command) -> bool:
    return command.program in faults.PROBES and faults.SILENCED.search(" ".join(command.words)) is not None


def _answers(command: shell.Command, code: int, text: str) -> bool:
    if command.inverted:
        return code == 1
    if _silenced(command):
        return code in (1, 2)
    for words, (exits, output) in faults.BENIGN_COMMANDS.items():
        if command.program == words[0] and command.words[: len(words) - 1] == words[1:]:
            return code in exits and (output is None or output.search(text) is not None)
    codes = faults.BENIGN_EXITS.get(command.head) or faults.BENIGN_EXITS.get(command.program)
    if command.program == "command" or (command.program == "git" and command.head not in faults.BENIGN_EXITS):
        return command.program == "command" and code == 1
    return codes is not None and code in codes


def _abnormal(name: str, result: ToolResult, command: Read | None) -> Finding:
    if not result.text:
        return _NOTHING
    if command is not None:
        if command.silent:
            return _NOTHING
        return _abnormal_command(result, command, _ends(result.text))
    if _reads_files(name):
        return _NOTHING
    text = _ends(result.text)
    opening = text.lstrip()
    if text[:500].lstrip()[:1] not in _DECLARES and not _noisy(opening[: opening.find("\n") + 1 or None]):
        return _NOTHING
    text = _quiet(text)
    if text[:500].lstrip()[:1] in _DECLARES:
        for pattern in (faults.DECLARED_TEXT, faults.DECLARED_JSON):
            if pattern.search(text[:500]):
                return _at(result, pattern, _abnormal_finding("the body declares an error", 0.85))
    return _NOTHING


def _noisy(text: str) -> bool:
    return "_state" in text or "__vsc" in text or "shell-snapshot" in text


def _quiet(text: str) -> str:
    """The text without lines of the harness's own wrapper. Lines only go: what no line holds is not in here either."""
    return faults.HARNESS_NOISE.sub("", text) if _noisy(text) else text


def _abnormal_command(result: ToolResult, command: Read, text: str) -> Finding:
    if not command.reads:
        if "Traceback" in text or "not found" in text or "fatal: " in text or "panic: " in text:
            text = _quiet(text)
            for needle, what, confidence, pattern in faults.ABNORMAL:
                found = pattern.search(text) if needle in text else None
                if found:
                    at = re.compile(re.escape(found.group()[:200]))
                    return _at(result, at, _abnormal_finding(f"{what} in the output", confidence))
    elif len(command.line.commands) > 1 and "not found" in text:
        text = _quiet(text)
        pattern = faults.COMMAND_NOT_FOUND
        if "not found" in text[:600] and pattern.search(text[:600]):
            return _at(result, pattern, _abnormal_finding("command not found in the output", 0.7))
    if not command.http:
        return _NOTHING
    text = _quiet(text)
    if faults.HTTP_STATUS.search(text):
        return _at(result, faults.HTTP_STATUS, _abnormal_finding("HTTP status of 400 or more", 0.85))
    if not command.reads and faults.DECLARED_JSON.search(text[:500]):
        return _at(result, faults.DECLARED_JSON, _abnormal_finding("the body declares an error", 0.8))
    return _NOTHING


def _abnormal_finding(why: str, confidence: float) -> Finding:
    return Finding(None, confidence, why, abnormal=True)


def _at(result: ToolResult, pattern: re.Pattern[str], finding: Finding) -> Finding:
    """Put the evidence's place into a finding: the match in the whole text, else the text's beginning."""
    text = result.text
    if len(text) <= _READ:
        match = _search(pattern, text)
    else:
        match = pattern.search(text, 0, _READ) or pattern.search(text, len(text) - _READ)
    start, end = match.span() if match is not None else (0, min(len(text), 120))
    return Finding(finding.cause, finding.confidence, finding.why, start, min(end, start + 300), finding.abnormal)


def _ends(text: str) -> str:
    return text if len(text) <= 2 * _READ else text[:_READ] + "\n" + text[-_READ:]


def hallucinated(call: ToolCall | None, result: ToolResult | None) -> bool:
    """Whether the called tool does not exist, by the source's word or the harness's refusal."""
    if call is not None and call.validity == "unknown_tool":
        return True
    if result is None or result.outcome != "error":
        return False
    return bool(faults.HALLUCINATED.search(result.text[:200]))


class Detected(NamedTuple):
    """Everything that the tool results of a trace show."""

    signals: list[Signal]
    calls: list[CallFact]


def detect(trace: Trace) -> Detected:
    """Errors, abnormal outputs and refusals of a trace, none dropped yet, and one fact per call.

    Copied steps are context and give nothing. A refusal also gives a correction candidate: with the user's
    reason it is confident, without one it stays below the threshold.
    """
    signals: list[Signal] = []
    calls: list[CallFact] = []
    for step in trace.steps:
        if (step.tool_calls or step.results) and not step.copied:
            fact = _uneventful(trace, step)
            if fact is not None:
                calls.append(fact)
            else:
                _step(trace, step, signals, calls)
    return Detected(signals, calls)


def _uneventful(trace: Trace, step: Step) -> CallFact | None:
    """The fact of a step's only call if that went well and its result shows nothing; None: `_step` has to look."""
    if len(step.tool_calls) != 1 or len(step.results) != 1:
        return None
    call, result = step.tool_calls[0], step.results[0]
    code = result.exit_code
    if result.outcome != "ok" or code or result.call_id != call.id or call.validity == "unknown_tool":
        return None
    tool, line = call.name, command_text(call)
    command = read(line) if line is not None else None
    if _abnormal(tool, result, command) is not _NOTHING:
        return None
    head = command.head if command is not None else None
    return CallFact(
        session=trace.id, step=step.index, call=0, tool=tool, outcome="ok", intent=intent(call, head), call_id=call.id,
        model=step.model or trace.model, command=head, exit_code=code,
    )  # fmt: skip


def _step(trace: Trace, step: Step, signals: list[Signal], calls: list[CallFact]) -> None:
    asked, results = step.tool_calls, step.results
    if len(asked) == len(results) == 1 and results[0].call_id == asked[0].id:
        calls.append(_fact(trace, step, (0, asked[0]), (0, results[0]), signals))
        return
    paired = _pairs(step)
    for position, call in enumerate(asked):
        index = paired.get(position)
        result = (index, results[index]) if index is not None else None
        calls.append(_fact(trace, step, (position, call), result, signals))
    if len(paired) == len(results):
        return
    for position, index in enumerate(sorted(set(range(len(results))) - set(paired.values()))):
        _loose(trace, step, index, len(asked) + position, signals, calls)


def _fact(
    trace: Trace, step: Step, called: tuple[int, ToolCall], came: tuple[int, ToolResult] | None, signals: list[Signal]
) -> CallFact:
    """What became of a call; what its result shows is added to `signals`. Both come with their places in the step."""
    position, call = called
    tool, line = call.name, command_text(call)
    command = read(line) if line is not None else None
    head = command.head if command is not None else None
    what, model = intent(call, head), step.model or trace.model
    if came is None:
        return CallFact(
            session=trace.id, step=step.index, call=position, tool=tool, outcome="unknown", intent=what,
            call_id=call.id, model=model, command=head, hallucinated=call.validity == "unknown_tool",
        )  # fmt: skip
    index, result = came
    finding = classify(call, result, command)
    outcome, code = result.outcome, result.exit_code
    fact = CallFact(
        session=trace.id, step=step.index, call=position, tool=tool, outcome=outcome, intent=what, call_id=call.id,
        model=model, command=head, cause=finding.cause, exit_code=code, abnormal=finding.abnormal,
        hallucinated=hallucinated(call, result),
    )  # fmt: skip
    if finding.cause or finding.abnormal:
        signals.extend(_signals(trace, step, fact, finding, index))
    return fact


def _loose(trace: Trace, step: Step, index: int, position: int, signals: list[Signal], calls: list[CallFact]) -> None:
    """A result whose call the source does not record: what it reports is evidence all the same."""
    result = step.results[index]
    finding = classify(None, result, None)
    if finding.cause is None:
        return
    fact = CallFact(
        session=trace.id, step=step.index, call=position, tool=UNRECORDED, outcome=result.outcome, intent=UNRECORDED,
        call_id=result.call_id, model=step.model or trace.model, cause=finding.cause, exit_code=result.exit_code,
        hallucinated=hallucinated(None, result),
    )  # fmt: skip
    calls.append(fact)
    signals.extend(_signals(trace, step, fact, finding, index))


def _pairs(step: Step) -> dict[int, int]:
    """Call position to result position: by id; results without an id follow the order of the calls left over."""
    by_id: dict[str, list[int]] = {}
    for i, r in enumerate(step.results):
        if r.call_id is not None:
            by_id.setdefault(r.call_id, []).append(i)
    paired = {}
    # From the back, so that the last of several results to one call is its own, and no result counts for two calls.
    for p in reversed(range(len(step.tool_calls))):
        if by_id.get(step.tool_calls[p].id):
            paired[p] = by_id[step.tool_calls[p].id].pop()
    loose = [i for i, r in enumerate(step.results) if r.call_id is None]
    waiting = [p for p in range(len(step.tool_calls)) if p not in paired]
    if len(loose) == len(waiting):
        paired.update(zip(waiting, loose, strict=True))
    return paired


def _signals(trace: Trace, step: Step, fact: CallFact, finding: Finding, index: int) -> Sequence[Signal]:
    result = step.results[index]
    quote = result.text[finding.start : finding.end]
    found = Signal(
        kind="abnormal_output" if finding.abnormal else "execution_error",
        session=trace.id,
        step=step.index,
        detector=NAME,
        version=VERSION,
        confidence=finding.confidence,
        span=Span(start=finding.start, end=finding.end, field=f"results.{index}.text"),
        quote=quote,
        time=result.time if result.time is not None else step.time,
        model=fact.model,
        judges_step=step.index,
        cause=finding.cause,
        tool=fact.tool,
        command=fact.command,
        call_id=fact.call_id,
        why=finding.why,
    )
    if finding.cause != "rejected":
        return (found,)
    reason = faults.REJECTION_REASON.search(result.text)
    start, end = reason.span("reason") if reason else (finding.start, finding.end)
    end = min(end, start + 300)
    quote = result.text[start:end]
    candidate = Signal(
        kind="correction",
        session=trace.id,
        step=step.index,
        detector=NAME,
        version=VERSION,
        confidence=0.8 if reason else 0.6,
        span=Span(start=start, end=end, field=f"results.{index}.text"),
        quote=quote,
        time=found.time,
        model=fact.model,
        judges_step=step.index,
        tool=fact.tool,
        command=fact.command,
        call_id=fact.call_id,
        why="the user refused the call and said why" if reason else "the user refused the call without a word",
    )
    return (found, candidate)
