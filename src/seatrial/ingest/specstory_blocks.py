"""The body of a SpecStory agent turn to blocks: what was thought, what was said, and each tool use.

Older histories separate blocks by rules (``---``) and name tools in a line (``Tool use: **name**``) or not at
all; newer ones wrap each tool use in ``<tool-use ...>``. A failed tool leaves the editor's sentence in place of
its block, without the tool's name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from seatrial.records import ResultOutcome

_ATTRIBUTE = re.compile(r'data-([\w-]+)="([^"]*)"')
_NAMED = re.compile(r"\ATool use: \*\*(?P<name>[^*\n]+)\*\*[ \t]*(?P<rest>.*)\Z", re.DOTALL)
_FENCE = re.compile(r"^[ \t]*(?P<ticks>`{3,}|~{3,})(?P<info>[^`\n]*)$")
_SHELL_FENCES = frozenset({"```bash", "```sh", "```shell", "```zsh", "```powershell"})
_INLINE = re.compile(r"^[ \t]*`([^`\n]+)`[ \t]*$", re.MULTILINE)
_READ = re.compile(r"\ARead file: (?P<path>[^\n]*)\Z")
_PATH = re.compile(r"\A(?:Edit file|Read file|Apply patch for|Write file|Delete file):? (?P<path>.+)\Z", re.DOTALL)
_CALLED = re.compile(r"\*Called tool\*: (?P<server>[^\n]*?) - (?P<tool>[^\s:]+)")
_PARAMETER = re.compile(r"^  \* (?P<name>[\w.-]+): (?P<value>.*)$", re.MULTILINE)
_ERROR = re.compile(
    r"\A(?:The string to replace was not found in the file\."
    r"|Could not find file[^\n]*"
    r"|Model provided invalid arguments[^\n]*"
    r"|The model provided an ambiguous search string to replace\."
    r"|Invalid: old_string and new_string are exactly the same\."
    r"|An unknown error occurred\.?"
    r"|Error calling tool[^\n]*"
    r"|Error parsing todo list data"
    r"|Tool [\w-]+ not found\.)\Z"
)
_UNCLOSED = 20
"""Fences and elements without an end that are looked for in one turn, before looking is given up."""

_UNKNOWN_TOOL = re.compile(r"\ATool (?P<name>[\w-]+) not found\.\Z")
_SHELLS = frozenset({"run_terminal_cmd", "run_terminal_command_v2", "bash", "shell", "exec_command", "shell_command"})
_BY_SUMMARY: tuple[tuple[str, str], ...] = (
    ("Edit file", "edit_file"),
    ("Read file", "read_file"),
    ("Apply patch", "apply_patch"),
    ("Grep", "grep"),
    ("Searched codebase", "codebase_search"),
    ("Searched web", "web_search"),
    ("Listed", "list_dir"),
    ("Read lints", "read_lints"),
)


class Block(NamedTuple):
    """One block of an agent turn.

    For a tool: `name` None when the history lost it, `outcome` None when it shows no result, `text` the result.
    """

    kind: Literal["text", "thought", "tool"]
    text: str
    name: str | None = None
    arguments: dict[str, Any] = {}
    outcome: ResultOutcome | None = None
    extra: dict[str, Any] = {}


def blocks(body: str) -> Iterator[Block]:
    """The blocks of an agent turn's body, in order."""
    at = 0
    while (found := _next_element(body, at)) is not None:
        start, opened, close, tag = found
        yield from _ruled(body[at:start])
        inside = body[opened:close]
        if tag == "tool-use":
            yield _element(dict(_ATTRIBUTE.findall(body[start:opened])), inside.strip())
        else:
            details = _details(inside.strip())
            yield Block("thought", (details[1] if details else inside).strip())
        at = close + len(tag) + 3
    yield from _ruled(body[at:])


def _next_element(body: str, at: int) -> tuple[int, int, int, str] | None:
    """The next element that begins a line and is closed: where it starts, opens, closes, and its tag."""
    best: tuple[int, int, int, str] | None = None
    for tag in ("tool-use", "think"):
        start = at if body.startswith(f"<{tag}", at) and (at == 0 or body[at - 1] == "\n") else None
        if start is None:
            line = body.find(f"\n<{tag}", at)
            start = line + 1 if line >= 0 else None
        if start is None:
            continue
        opened = body.find(">", start) + 1
        close = body.find(f"</{tag}>", opened) if opened else -1
        if close >= 0 and (best is None or start < best[0]):
            best = (start, opened, close, tag)
    return best


def _details(piece: str) -> tuple[str, str] | None:
    """Summary and body of a piece that is one details element; None when it is not."""
    rest = piece.removeprefix("<details>").lstrip()
    if not piece.startswith("<details>") or not rest.startswith("<summary>"):
        return None
    summary, mark, body = rest.removeprefix("<summary>").partition("</summary>")
    if not mark:
        return None
    return " ".join(summary.split()), body.rstrip().removesuffix("</details>").strip()


def _command(piece: str) -> tuple[str, str | None] | None:
    """Command and output of a piece that is a shell fence and perhaps an output fence; None when it is not."""
    rows = piece.rstrip().split("\n")
    if rows[0].strip() not in _SHELL_FENCES:
        return None
    try:
        end = next(n for n, row in enumerate(rows) if n and row.strip() == "```")
    except StopIteration:
        return None
    rest = [n for n in range(end + 1, len(rows)) if rows[n].strip()]
    command = "\n".join(rows[1:end])
    if not rest:
        return command, None
    first, last = rest[0], rest[-1]
    if first == last or not rows[first].startswith("```") or rows[last].strip() != "```":
        return None
    return command, "\n".join(rows[first + 1 : last])


def _ruled(text: str) -> Iterator[Block]:
    for piece in _pieces(text):
        yield _block(piece)


def _pieces(text: str) -> Iterator[str]:
    """Pieces between rules.

    A rule inside a code fence or a details element divides nothing, unless a named tool follows it: outputs hold
    fences of their own, so that an end may be taken for a start.
    """
    rows = text.split("\n")
    piece: list[str] = []
    shut = unclosed = 0
    for n, row in enumerate(rows):
        if n < shut and row == "---" and _names_tool(rows, n):
            shut = n
        if n >= shut and unclosed < _UNCLOSED:
            past = _shut(rows, n)
            unclosed += past < n
            shut = max(shut, past)
            if n >= shut and row.strip() == "---":
                if joined := "\n".join(piece).strip():
                    yield joined
                piece = []
                continue
        piece.append(row)
    if joined := "\n".join(piece).strip():
        yield joined


def _names_tool(rows: list[str], n: int) -> bool:
    """Whether a blank row and the name of a tool follow row n."""
    return len(rows) > n + 2 and not rows[n + 1].strip() and rows[n + 2].startswith("Tool use: **")


def _shut(rows: list[str], n: int) -> int:
    """Past-the-end row of the fence or details element that opens at row n; n if none does, -1 if none closes."""
    fence = _FENCE.match(rows[n])
    if fence:
        ticks = fence["ticks"]
        for m in range(n + 1, len(rows)):
            bare = rows[m].strip()
            if bare.startswith(ticks) and not bare.strip(ticks[0]):
                return m + 1
        return -1
    if rows[n].lstrip().startswith("<details>"):
        depth = 0
        for m in range(n, len(rows)):
            depth += rows[m].count("<details>") - rows[m].count("</details>")
            if depth <= 0:
                return m + 1
        return -1
    return n


def _fences(text: str) -> tuple[list[str], str]:
    """The bodies of the fences in a text, and the text without them."""
    rows = text.split("\n")
    bodies: list[str] = []
    rest: list[str] = []
    n = unclosed = 0
    while n < len(rows):
        past = _shut(rows, n) if unclosed < _UNCLOSED and _FENCE.match(rows[n]) else n
        if past > n:
            bodies.append("\n".join(rows[n + 1 : past - 1]))
            n = past
            continue
        unclosed += past < n
        rest.append(rows[n])
        n += 1
    return bodies, "\n".join(rest)


def _block(piece: str) -> Block:
    named = _NAMED.match(piece)
    if named:
        return _tool(named["name"].strip(), named["rest"].strip(), {})
    if _ERROR.match(piece):
        unknown = _UNKNOWN_TOOL.match(piece)
        return Block("tool", piece, unknown["name"] if unknown else None, {}, "error")
    if piece == "Cancelled":
        return Block("tool", piece, None, {}, "interrupted")
    if piece == "undefined":
        return Block("tool", piece, None, {}, "unknown")
    if _READ.match(piece):
        return _tool("read_file", piece, {})
    if piece.startswith("## Todo List"):
        return Block("tool", "", "todo_write", {"todos": piece.removeprefix("## Todo List").strip()})
    if _command(piece) is not None:
        return _tool("run_terminal_cmd", piece, {})
    details = _details(piece)
    if details is not None:
        summary, body = details
        if summary == "Thought Process":
            return Block("thought", body)
        name = next((name for start, name in _BY_SUMMARY if summary.startswith(start)), None)
        if called := _CALLED.search(body):
            name = f"mcp_{called['server']}_{called['tool']}"
        if name is not None:
            return _tool(name, piece, {})
    if piece == "<no message>":
        return Block("text", "")
    return Block("text", piece)


def _element(attributes: dict[str, str], body: str) -> Block:
    name = attributes.get("tool-name", "")
    extra: dict[str, Any] = {"type": attributes["tool-type"]} if "tool-type" in attributes else {}
    details = _details(body)
    if details is not None:
        summary = _NAMED.match(details[0])
        rest = summary["rest"].strip(" •\n") if summary else details[0]
        if rest:
            extra["summary"] = rest
    status = attributes.get("edit-status")
    if attributes.get("tool-type") == "shell" and details is not None:
        return _shell(name, details[1], extra)
    block = _tool(name, body, extra)
    return block._replace(outcome="rejected") if status == "rejected" else block


def _shell(name: str, body: str, extra: dict[str, Any]) -> Block:
    """A newer shell block: a command in backticks or in a first fence, its output in a last fence."""
    fences, rest = _fences(body)
    inline = _INLINE.search(rest)
    if inline:
        command, outputs = inline[1], fences
    else:
        command, outputs = (fences[0] if fences else ""), fences[1:]
    return Block(
        "tool",
        "\n".join(outputs),
        name,
        {"command": command} if command else {},
        "unknown" if outputs else None,
        extra,
    )


def _tool(name: str, rest: str, extra: dict[str, Any]) -> Block:
    """A named tool and what its block shows. A result that is shown as one succeeded, except a command's."""
    if not rest:
        return Block("tool", "", name, {}, None, extra)
    if _ERROR.match(rest):
        return Block("tool", rest, name, {}, "error", extra)
    if rest == "Cancelled":
        return Block("tool", rest, name, {}, "interrupted", extra)
    command = _command(rest)
    if command is not None:
        given, output = command
        shown: ResultOutcome | None = None if output is None else "unknown"
        return Block("tool", output or "", name, {"command": given}, shown, extra)
    if read := _READ.match(rest):
        path = read["path"]
        return Block("tool", "", name, {} if path == "undefined" else {"path": path}, None, extra)
    if rest.startswith("## Todo List"):
        return Block("tool", "", name, {"todos": rest.removeprefix("## Todo List").strip()}, None, extra)
    details = _details(rest)
    if details is None:
        return Block("tool", rest, name, {}, "unknown", extra)
    summary, body = details
    if at := _PATH.match(summary):
        return Block("tool", body, name, {"path": at["path"]}, "ok", extra)
    if "*Called tool*:" in body:
        head, _, result = body.partition("*Result*:")
        parameters = {match["name"]: match["value"] for match in _PARAMETER.finditer(head)}
        return Block("tool", result.strip(), name, parameters, "unknown", extra)
    shown = "unknown" if name.lower() in _SHELLS else "ok"
    return Block("tool", body, name, {"summary": summary}, shown, extra)
