"""Aider chat histories (``.aider.chat.history.md``) to traces: one per start of the program.

Markdown as Aider writes it: ``# aider chat started at …`` begins a chat, ``#### `` lines were typed, ``> `` lines
are the program's own, the rest is the model's. Built to the public specification (``aider/io.py`` and
``aider/utils.py`` of Aider-AI/aider); no real history was at hand. Token counts are rounded by Aider.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from seatrial.ingest.drafts import Draft, Thread, totals
from seatrial.ingest.identity import Ids
from seatrial.ingest.lines import lines, too_long
from seatrial.ingest.times import moment
from seatrial.ingest.user_text import spoken
from seatrial.records import Agent, Provenance, ReadLog, Trace, Usage

_START = re.compile(r"# aider chat started at (.+?)\s*\Z")
_VERSION = re.compile(r"Aider v(\S+)")
_MODEL = re.compile(r"(?:Main model|Model|Models): (\S+)")
_TOKENS = re.compile(
    r"Tokens: ([\d.,]+)(k?) sent(?:, ([\d.,]+)(k?) cache write)?(?:, ([\d.,]+)(k?) cache hit)?, ([\d.,]+)(k?) received"
)
_COST = re.compile(r"Cost: \$([\d.]+) message")
_TALK = re.compile(r"/(?:ask|code|architect|context|help)\s+(?=\S)")
_COMMAND = re.compile(r"[/!]\S")
_FENCE = re.compile(r"(`{3,}|~{3,})")

Speaker = Literal["typed", "program", "model"]


class Aider:
    """Reads one history: a trace per chat."""

    name = "aider"
    version = "1"
    verified = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Sure when a chat begins in the first bytes."""
        start = head.lstrip()
        if start.startswith(b"# aider chat started at "):
            return 0.97
        return 0.9 if path.name == ".aider.chat.history.md" or b"\n# aider chat started at " in head else 0.0

    def read(self, path: Path, log: ReadLog) -> Iterator[Trace]:
        """One trace per chat, in file order."""
        ids = Ids()
        chat, start, end = _Chat(None), 0, 0
        with path.open("rb", buffering=1 << 18) as stream:
            for line in lines(stream):
                if line.data is None:
                    log.skip(line.number, too_long(line.size), line.size)
                    end += line.size
                    continue
                try:
                    text = line.data.decode()
                except UnicodeDecodeError:
                    text = line.data.decode(errors="replace")
                    log.note(line.number, "bytes that are not UTF-8 were replaced")
                begun = _START.match(text)
                if begun:
                    yield from self._finish(chat, path, start, end, ids)
                    chat, start = _Chat(begun.group(1)), end
                chat.take(text, begun=begun is not None)
                chat.hash.update(line.data)
                log.kept(line.size, "line")
                end += line.size
        yield from self._finish(chat, path, start, end, ids)

    def _finish(self, chat: _Chat, path: Path, start: int, end: int, ids: Ids) -> Iterator[Trace]:
        chat.close()
        steps = chat.thread.steps()
        if not steps and chat.started is None:
            return
        time = moment(chat.started)
        digest = chat.hash.hexdigest()
        yield Trace(
            id=ids(f"aider~{digest[:16]}"),
            agent=Agent(name="aider", version=chat.version),
            model=chat.model,
            steps=steps,
            totals=totals(steps),
            provenance=Provenance(
                format=self.name,
                reader=self.name,
                reader_version=self.version,
                file=str(path),
                byte_start=start,
                byte_end=end,
                content_hash=digest,
            ),
            extra={"started": time} if time is not None else {},
        )


class _Chat:
    """Takes the lines of one chat; runs of lines of one speaker become a step."""

    def __init__(self, started: str | None) -> None:
        self.started = started
        self.thread = Thread()
        self.hash = hashlib.sha256()
        self.version: str | None = None
        self.model: str | None = None
        self._speaker: Speaker | None = None
        self._lines: list[str] = []
        self._fence: str | None = None

    def take(self, line: str, *, begun: bool) -> None:
        if begun:
            return
        speaker, said = self._who(line)
        if speaker != self._speaker:
            self.close()
            self._speaker = speaker
        self._lines.append(said)

    def _who(self, line: str) -> tuple[Speaker, str]:
        """Whose line it is. Inside the model's fenced code only a line that ends as Aider's own do is Aider's."""
        bare = line.rstrip("\n")
        marked = bare.endswith("  ") or bare in (">", "####")
        if self._fence is None or marked:
            for mark, speaker in (("#### ", "typed"), ("> ", "program")):
                if line.startswith(mark):
                    self._fence = None
                    return ("typed" if speaker == "typed" else "program"), bare[len(mark) :].rstrip()
            if bare.rstrip() in (">", "####"):
                return ("program" if bare.startswith(">") else "typed"), ""
        found = _FENCE.match(bare)
        if found:
            self._fence = (
                found.group(1) if self._fence is None else None if bare.startswith(self._fence) else self._fence
            )
        return "model", line

    def close(self) -> None:
        """Turn the lines at hand into a step."""
        text = ("" if self._speaker == "model" else "\n").join(self._lines).strip("\n")
        speaker, self._lines = self._speaker, []
        self._speaker = None
        if not text.strip() or speaker is None:
            return
        if speaker == "typed":
            self._typed(text)
        elif speaker == "program":
            self._program(text)
        else:
            self.thread.add(Draft("agent", text.strip(), model=self.model))

    def _typed(self, text: str) -> None:
        """Words for the model are a person's; a command to the program is none, but ``/ask`` and such carry some."""
        talk = _TALK.match(text)
        if talk:
            self.thread.add(Draft("human", text[talk.end() :], extra={"command": talk.group().strip()}))
        elif _COMMAND.match(text) or text.strip() == "<blank>":
            self.thread.add(Draft("harness", text, kind="command"))
        else:
            said = spoken(text)
            draft = self.thread.add(Draft(said.event_class, said.text, kind=said.kind))
            if said.injected:
                draft.extra["injected"] = list(said.injected)

    def _program(self, text: str) -> None:
        version, model = _VERSION.search(text), _MODEL.search(text)
        if version and self.version is None:
            self.version = version.group(1)
        if model:
            self.model = model.group(1)
        usage = _usage(text)
        last = self.thread.last_agent()
        if usage is not None and last is not None:
            last.spend(usage)
        if "^C KeyboardInterrupt" in text or text.strip() == "^C again to exit":
            self.thread.add(Draft("interrupted", text, kind="interrupted"))
        else:
            self.thread.add(Draft("harness", text, kind="tool_output"))


def _usage(text: str) -> Usage | None:
    """Tokens and cost of the message before, as far as Aider's line about them says; rounded as it is."""
    tokens, cost = _TOKENS.search(text), _COST.search(text)
    if tokens is None:
        return None
    sent, _, hit, received = (_count(*tokens.group(n, n + 1)) for n in (1, 3, 5, 7))
    return Usage(
        input_tokens=sent,
        output_tokens=received,
        cached_tokens=hit,
        cost_usd=_money(cost.group(1)) if cost else None,
        extra={"rounded": True},
    )


def _count(digits: str | None, thousands: str | None) -> int | None:
    if digits is None:
        return None
    try:
        return round(float(digits.replace(",", "")) * (1000 if thousands else 1))
    except (ValueError, OverflowError):
        return None


def _money(digits: str) -> float | None:
    try:
        return float(digits.rstrip("."))
    except ValueError:
        return None


READER = Aider()
