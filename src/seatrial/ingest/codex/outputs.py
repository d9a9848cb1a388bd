"""What a rollout says about a tool's output: outcome, exit code, and whether it was cut (METHODS 1.1)."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from seatrial.ingest.drafts import a_list, an_object
from seatrial.ingest.jsontext import BadJSON, as_text, loads
from seatrial.records import ResultOutcome

_EXIT = re.compile(r"(?:^|\n)(?:Process exited with code|Exit code:) (-?\d+)\s*(?:\n|\Z)")
_BODY = re.compile(r"(?:^|\n)Output:\n")
_CUT = re.compile(r"…\d+ (?:tokens|chars) truncated…|\[\.\.\. omitted \d+ of \d+ lines \.\.\.\]")
_ABORTED = re.compile(r"aborted(?: by user)?(?: after [\d.]+s)?\s*\Z")
_REFUSED = re.compile(
    r"\s*(?:exec command rejected by user|command rejected by user|patch rejected by user|rejected by user"
    r"|user rejected |apply_patch rejected by user)",
    re.IGNORECASE,
)
_FAILED = re.compile(
    r"\s*(?:apply_patch verification failed|failed to parse (?:function|exec|tool) arguments|unsupported call"
    r"|execution error:|exec_command failed|tool call error|patch rejected:|failed in sandbox|sandbox error"
    r"|write_stdin failed|unknown tool|err: )",
    re.IGNORECASE,
)
_TIMED_OUT = re.compile(r"\s*command timed out after", re.IGNORECASE)


class Output(NamedTuple):
    """A tool's output as read: text, outcome, exit code (None: none recorded), cut short, and what else it had."""

    text: str
    outcome: ResultOutcome
    exit_code: int | None
    truncated: bool
    extra: dict[str, Any]


def output_of(raw: Any, ended: dict[str, Any]) -> Output:
    """Read the `output` of a call; `ended` is what the events said about its end.

    An exit code decides; then what the events recorded; then the harness's own words for a call that it could
    not make. A call that is still running has no outcome yet.
    """
    text, extra, said = _text(raw)
    exit_code = _whole(extra.get("metadata", {}).get("exit_code")) if "metadata" in extra else None
    if exit_code is None and "metadata" not in extra:
        head = _BODY.split(text[:2000], maxsplit=1)[0]
        found = _EXIT.search(head)
        exit_code = _whole(found.group(1)) if found else None
    if exit_code is None:
        exit_code = _whole(ended.get("exit_code"))
    return Output(text, _outcome(text, exit_code, said, ended), exit_code, _was_cut(text), extra)


def _was_cut(text: str) -> bool:
    # A plain search first: the pattern alone cost an eighth of a file's reading time.
    return ("truncated…" in text or "[... omitted " in text) and _CUT.search(text) is not None


def _outcome(text: str, exit_code: int | None, said: bool | None, ended: dict[str, Any]) -> ResultOutcome:
    if _ABORTED.match(text):
        return "interrupted"
    if _REFUSED.match(text[:200]):
        return "rejected"
    if exit_code is not None:
        return "ok" if exit_code == 0 else "error"
    success = ended.get("success", said)
    if isinstance(success, bool):
        return "ok" if success else "error"
    if _FAILED.match(text[:200]) or _TIMED_OUT.match(text[:200]):
        return "error"
    return "unknown"


def _text(raw: Any) -> tuple[str, dict[str, Any], bool | None]:
    """Text of an output, the parts of it that are not text, and its own word on success."""
    if isinstance(raw, str):
        if raw.startswith("{") and '"metadata"' in raw:
            try:
                value, _ = loads(raw.encode())
            except BadJSON:
                return raw, {}, None
            if isinstance(value, dict) and isinstance(value.get("output"), str) and "metadata" in value:
                return value["output"], {"metadata": an_object(value["metadata"])}, None
        return raw, {}, None
    if isinstance(raw, dict):
        success = raw.get("success")
        text, extra, _ = _text(raw.get("content", raw.get("output", "")))
        return text, extra, success if isinstance(success, bool) else None
    if isinstance(raw, list):
        texts = [part["text"] for part in raw if isinstance(part, dict) and isinstance(part.get("text"), str)]
        others = [part for part in a_list(raw) if not (isinstance(part, dict) and isinstance(part.get("text"), str))]
        return "\n".join(texts), {"content": others} if others else {}, None
    return ("" if raw is None else as_text(raw)), {}, None


def end_of(payload: dict[str, Any]) -> dict[str, Any]:
    """What an event on the end of a call says: ``exit_code``, ``success`` and what else is worth keeping."""
    ended: dict[str, Any] = {}
    if isinstance(payload.get("exit_code"), int):
        ended["exit_code"] = payload["exit_code"]
    if isinstance(payload.get("success"), bool):
        ended["success"] = payload["success"]
    result = payload.get("result")
    if isinstance(result, dict):
        answer = result.get("Ok")
        if "Err" in result:
            ended["success"] = False
        elif isinstance(answer, dict):
            ended["success"] = not (answer.get("isError") or answer.get("is_error"))
    kept = {name: payload[name] for name in ("changes", "duration", "invocation", "status") if payload.get(name)}
    if kept:
        ended["kept"] = kept
    return ended


def _whole(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if -(2**31) <= value < 2**32 else None
    if isinstance(value, str) and len(value) < 12:
        return _whole(int(value))
    return None
