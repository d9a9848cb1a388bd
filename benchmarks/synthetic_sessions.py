"""Synthetic coding sessions of realistic sizes, for measuring: no two equal, the same for the same numbers.

The sizes follow real sessions of four coding agents (179 sessions, 9,003 steps): median and mean steps per session 33
and 50; 3.4 kB of stored JSON per step; results of median 443 and mean 2,270 characters, three tenths with characters
outside ASCII, one in twenty an error; agent words of median 83 characters, a quarter of the steps silent; commands of
median 72 characters, half of them with a pipe, `&&` or `;`; human turns of median 98 characters. `sizes` measures what
came out.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import polars as pl

from seatrial.canon import canonical, digest
from seatrial.records import Agent, Provenance, Step, TaskRef, ToolCall, ToolResult, Totals, Trace, Usage
from seatrial.store import Store, frames, session_row, step_rows
from seatrial.store.blobs import LEVEL

MODELS = ("amber", "birch", "cobalt", "dune")
SHAPES = 2_000
"""Conversations that differ in everything. More sessions than that repeat them with another opening."""

USERS = 20_000
CHUNK = 4_096
T0 = 1_780_000_000.0

WORDS = ("account", "batch", "buffer", "cache", "chunk", "client", "column", "config", "cursor", "event", "field",
         "filter", "frame", "handler", "header", "index", "invoice", "item", "job", "ledger", "limit", "loader", "log",
         "merge", "message", "metric", "node", "order", "page", "parser", "payload", "plan", "queue", "reader",
         "record", "region", "report", "request", "response", "retry", "row", "schema", "session", "shard",
         "signal", "socket", "status", "stream", "table", "task", "tenant", "token",
         "tracker", "value", "window", "worker")  # fmt: skip
SHOWN = (
    "{n:>6}\t    def {a}_{b}(self, {c}: str, *, {d}: int = {n}) -> None:", "{n:>6}\t        self._{a} = {b}.{c}({d})",
    "{n:>6}\t        if {a} is None or \"{b}\" not in {c}:", "{n:>6}",
    "{n:>6}\t            raise ValueError(f\"{a} {b}\")",
    "src/{a}/{b}_{c}.py:{n}:    return self.{d}.{a}({b})", "    \"{a}_{b}\": \"{c} {d}\",", "    ],", "",
    "tests/test_{a}.py::test_{b}_{c} PASSED    [ {n}%]", "-rw-r--r--  1 dev dev {n} Mar  3 10:12 {a}_{b}.py",
    "+    for {a} in {b}.{c}():  # {d}", "-    {a} = {b}[{n}]", "@@ -{n},7 +{n},9 @@ def {a}_{b}({c}):",
    "import {a} from '../{b}/{c}';", "  const {a} = await {b}.{c}({{ {d}: {n} }});", "### {a} and {b}",
    "- the {a} of a {b} is kept until its {c} closes", "[{n}] {a}: {b} {c} in {n} ms", "export type {a} = {b} | {c};",
)  # fmt: skip
WIDE = ("  ✓ {a} {b} {c} ({n} ms)", "│ {a:<14} │ {b:<12} │ {n:>5} │", "├── {a}_{b}.ts", "    {a} — {b}, {c}")
FAILED = (
    "Exit code 1\nTraceback (most recent call last):\n  File \"src/{a}.py\", line {n}, in <module>\n    {b}.{c}()\n"
    "AttributeError: '{b}' object has no attribute '{c}'", "Exit code 1\nFAILED tests/test_{a}.py::test_{b} - "
    "AssertionError: assert {n} == 3\n1 failed, {n} passed in 2.1s", "Exit code 127\n/bin/bash: line 1: {a}: command "
    "not found", "File has not been read yet. Read it first before writing to it.", "String to replace not found in "
    "file.\nString: {a}.{b}({c})", "Exit code 1", "Exit code 2\nls: cannot access 'src/{a}': No such file or directory",
    "Exit code 1\nsrc/{a}.ts({n},7): error TS2339: Property '{b}' does not exist on type '{c}'.",
    "Exit code 128\nfatal: pathspec '{a}/{b}' did not match any files", "curl: (7) Failed to connect to {a} port 80: "
    "Connection refused", "The user doesn't want to proceed with this tool use.", "[Request interrupted by user]",
)  # fmt: skip
COMMANDS = (
    "grep -rn \"{a}_{b}\" src/{c} --include=*.py | head -{n}", "cd /repo && python -m pytest tests/test_{a}.py -q",
    "git diff HEAD~1 -- src/{a}/{b}.py", "ls -la src/{a}/", "sed -n '{n},90p' src/{a}/{b}.py", "git status --short",
    "npm test -- {a}.{b} 2>&1 | tail -20", "cat src/{a}/{b}.py",
    "python -m pytest -x -k \"{a} and {b}\" 2>&1 | tail -5",
    "find . -name '*{a}*' -not -path './node_modules/*'", "git add src/{a}.py && git commit -m \"{b}: keep the {c}\"",
    "rg -n '{a}' src tests; echo done", "wc -l src/{a}/*.py", "make {a} && ./build/{b} --{c} {n}",
    "python - <<'EOF'\nimport {a}\nprint({a}.{b}({n}))\nEOF", "curl -s http://localhost:8000/{a}/{b} | jq .{c}",
)  # fmt: skip
ASKED = (
    "please fix the failing test in {f}, the {a} is {b} when it should be {c}",
    "add a flag to {f} that skips the {a}; it should be off unless the {b} asks for it",
    "why is {f} read twice? have a look at the {a} and tell me what you think before you change anything",
    "rename the {a} class in {f} to {b} and update its callers", "write a test for {f} that covers an empty {a}",
    "the import in {f} is wrong, please look",
)  # fmt: skip
ANSWERED = (
    "I read {f} and changed the loop so that the {a} is flushed once.", "Done: {f} now takes the flag.",
    "The test in {f} passes now.", "I looked at {f}; the second read comes from the {a}, so I removed it.",
    "Let me look at how the {a} is built.", "The {b} keeps its own {a}. I'll check the callers next:\n\n- `{f}`\n- {c}",
)  # fmt: skip
REACTED = (
    ("perfect, thank you", 0.10), ("that works", 0.08), ("ok", 0.06), ("commit this", 0.05),
    ("no, that is wrong, undo it", 0.07), ("this is still broken, the test fails", 0.06),
    ("now do the same for {f}, and keep the {a} as it was; the {b} must not change and its {c} stays", 0.30),
    ("and {f}? it has the same {a}, I think, but there the {b} comes from the {c} and not from a file", 0.28),
)  # fmt: skip


def _filled(rng: random.Random, line: str) -> str:
    a, b, c, d = rng.choices(WORDS, k=4)
    return line.format(a=a, b=b, c=c, d=d, n=rng.randrange(1, 900), f=f"src/{a}/{b}_{rng.randrange(100)}.py")


def _corpus(rng: random.Random, lines: Sequence[str]) -> str:
    return "\n".join(_filled(rng, rng.choice(lines)) for _ in range(40_000))


def _shown(rng: random.Random, corpora: tuple[str, str]) -> str:
    """What a tool printed: some of a corpus, of log-normal length."""
    n = min(34_000, max(1, int(rng.lognormvariate(6.2, 1.85))))
    corpus = corpora[rng.random() < 0.3]
    at = rng.randrange(len(corpus) - n)
    return corpus[at : at + n]


def _called(rng: random.Random, ident: str) -> ToolCall:
    name = rng.choices(("Bash", "Read", "Edit", "Grep"), weights=(45, 25, 20, 10))[0]
    file = _filled(rng, "{f}")
    arguments: dict[str, Any]
    if name == "Bash":
        arguments = {"command": _filled(rng, rng.choice(COMMANDS)), "description": _filled(rng, "Look at the {a} {b}")}
    elif name == "Read":
        arguments = {"file_path": f"/repo/{file}", "offset": rng.randrange(400), "limit": 120}
    elif name == "Edit":
        old, new = ("\n".join(_filled(rng, rng.choice(SHOWN)) for _ in range(rng.randrange(1, 12))) for _ in "on")
        arguments = {"file_path": f"/repo/{file}", "old_string": old, "new_string": new}
    else:
        arguments = {"pattern": _filled(rng, "{a}_{b}"), "path": f"/repo/{file}", "output_mode": "content"}
    return ToolCall(id=ident, name=name, arguments=arguments)


def _worked(rng: random.Random, index: int, at: float, model: str, corpora: tuple[str, str]) -> Step:
    """An agent step: nine in ten call a tool, a quarter say nothing."""
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()
    if rng.random() < 0.9:
        call = _called(rng, f"toolu_{rng.getrandbits(96):024x}")
        failed = rng.random() < 0.06
        text = _filled(rng, rng.choice(FAILED)) if failed else _shown(rng, corpora)
        code = None if call.name != "Bash" or failed else 0
        result = ToolResult(
            call_id=call.id, outcome="error" if failed else "ok", exit_code=code, text=text, time=at + 1
        )
        calls, results = (call,), (result,)
    text = "" if calls and rng.random() < 0.27 else " ".join(
        _filled(rng, rng.choice(ANSWERED)) for _ in range(min(40, 1 + int(rng.lognormvariate(0.6, 1.0))))
    )  # fmt: skip
    usage = Usage(input_tokens=rng.randrange(9_000, 90_000), output_tokens=rng.randrange(20, 900))
    ident = f"{rng.getrandbits(128):032x}"
    return Step(index=index, event_class="agent", text=text, time=at, model=model, tool_calls=calls, results=results,
                usage=usage, source_ids=(ident,))  # fmt: skip


def shape(number: int, corpora: tuple[str, str]) -> Trace:
    """One conversation, of a log-normal number of steps, one in eight of them human."""
    rng = random.Random(number)
    n = max(4, min(2_000, int(rng.lognormvariate(3.55, 0.85))))
    model = MODELS[number % len(MODELS)]
    at = T0 + number * 60.0
    steps: list[Step] = []
    while len(steps) < n:
        lines = [r for r, _ in REACTED] if steps else ASKED
        weights = [w for _, w in REACTED] if steps else None
        said = _filled(rng, rng.choices(lines, weights=weights)[0])
        ident = f"{rng.getrandbits(128):032x}"
        steps.append(Step(index=len(steps), event_class="human", text=said, time=at, source_ids=(ident,)))
        for _ in range(rng.randrange(3, 13)):
            at += rng.uniform(2, 30)
            steps.append(_worked(rng, len(steps), at, model, corpora))
        at += rng.uniform(20, 600)
    return Trace(
        id=f"shape-{number}", agent=Agent(name="synthetic", version="1"), model=model, task=TaskRef(type="coding"),
        provenance=Provenance(format="synthetic", reader="benchmark", reader_version="1"), steps=tuple(steps),
        totals=Totals(usage=Usage(input_tokens=9_000 * n, output_tokens=300 * n), wall=at - T0),
    )  # fmt: skip


def sessions(n_steps: int, first: int) -> Iterator[Trace]:
    """Sessions until there are so many steps; each greets in words of its own, so that no two blobs are equal."""
    rng = random.Random(0)
    corpora = (_corpus(rng, SHOWN), _corpus(rng, SHOWN + WIDE))
    shapes: dict[int, Trace] = {}
    done, number = 0, first
    while done < n_steps:
        like = shapes.get(number % SHAPES) or shapes.setdefault(number % SHAPES, shape(number % SHAPES, corpora))
        opening = msgspec.structs.replace(like.steps[0], text=f"{like.steps[0].text} (ticket {number})")
        user = f"user-{number % USERS}"
        yield msgspec.structs.replace(like, id=f"s{number:08d}", user=user, steps=(opening, *like.steps[1:]))
        done += len(like.steps)
        number += 1


class _Copies:
    """The blobs and step rows of a shape's copies: what they share is compressed and laid out once."""

    def __init__(self, like: Trace) -> None:
        self._shared = canonical(like.steps[1:])[1:-1]
        self._packed = _deflated(self._shared)
        self._steps = frames([], list(step_rows(like)))["steps"]
        self._first = like.steps[0].text

    def blob(self, trace: Trace) -> tuple[str, bytes]:
        """A copy's name and compressed bytes: one zlib stream, as any other."""
        whole = canonical(trace)
        at = whole.index(self._shared)
        parts = _deflated(whole[:at]), self._packed, _deflated(whole[at + len(self._shared) :], zlib.Z_FINISH)
        return digest(whole), b"\x78\x5e" + b"".join(parts) + zlib.adler32(whole).to_bytes(4, "big")

    def steps(self, trace: Trace) -> pl.DataFrame:
        """A copy's rows of the steps table."""
        more = len(trace.steps[0].text) - len(self._first)
        chars = pl.col("chars") + pl.when(pl.col("index") == 0).then(more).otherwise(0)
        return self._steps.with_columns(pl.lit(trace.id).alias("session"), chars.alias("chars"))


def _deflated(data: bytes, end: int = zlib.Z_FULL_FLUSH) -> bytes:
    stream = zlib.compressobj(LEVEL, zlib.DEFLATED, -15)
    return stream.compress(data) + stream.flush(end)


def fill(store: Store, n_steps: int, first: int = 0) -> tuple[int, int]:
    """Put sessions into the store, numbered from `first`; how many, with how many steps."""
    n = done = 0
    copies: dict[int, _Copies] = {}
    rows: list[dict[str, Any]] = []
    steps: list[pl.DataFrame] = []
    for trace in sessions(n_steps, first):
        number = (first + n) % SHAPES
        like = copies.get(number) or copies.setdefault(number, _Copies(trace))
        name, packed = like.blob(trace)
        store.blobs.put(name, packed, durable=False)
        rows.append(session_row(trace, name))
        steps.append(like.steps(trace))
        n, done = n + 1, done + len(trace.steps)
        if len(rows) == CHUNK or done >= n_steps:
            store.commit(frames(rows, []) | {"steps": pl.concat(steps)})
            rows, steps = [], []
    return n, done


def sizes(n: int = 500) -> dict[str, float]:
    """Of the first n sessions: steps in each, stored bytes of a step, characters of a result, shares."""
    held = [trace for trace, _ in zip(sessions(10**9, 0), range(n), strict=False)]
    steps = [s for t in held for s in t.steps]
    results = sorted(len(r.text) for s in steps for r in s.results)
    return {
        "steps per session": len(steps) / n,
        "bytes per step": sum(len(canonical(t)) for t in held) / len(steps),
        "median characters of a result": results[len(results) // 2],
        "mean characters of a result": sum(results) / len(results),
        "share of human steps": sum(s.event_class == "human" for s in steps) / len(steps),
        "share of failed results": sum(r.outcome == "error" for s in steps for r in s.results) / len(results),
    }
