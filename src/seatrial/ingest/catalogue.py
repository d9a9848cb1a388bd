"""The readers that come with seatrial: one line each, imported when a file of theirs turns up.

Each module holds its reader as ``READER``. A new format is a new file and a new line here; third parties come
in through the entry-point group ``seatrial.readers``.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import NamedTuple

from seatrial.errors import FormatError, UsageError
from seatrial.plugins import plugins
from seatrial.records import Reader


class Entry(NamedTuple):
    """A built-in reader: format name, module, and the file suffixes (lower case) that it may sniff."""

    name: str
    module: str
    suffixes: tuple[str, ...]

    def load(self) -> Reader:
        """Import the module and hand out its reader."""
        reader: Reader = importlib.import_module(self.module).READER
        return reader


BUILT_IN: tuple[Entry, ...] = (
    Entry("claude-code", "seatrial.ingest.claude_code", (".jsonl",)),
    Entry("codex", "seatrial.ingest.codex", (".jsonl",)),
    Entry("copilot-cli", "seatrial.ingest.copilot_cli", (".jsonl",)),
    Entry("specstory", "seatrial.ingest.specstory", (".md",)),
    Entry("atif", "seatrial.ingest.atif", (".json",)),
    Entry("gemini-cli", "seatrial.ingest.gemini_cli", (".json", ".jsonl")),
    Entry("opencode", "seatrial.ingest.opencode", (".json",)),
    Entry("aider", "seatrial.ingest.aider", (".md",)),
    Entry("swe-agent", "seatrial.ingest.swe_agent", (".traj", ".json")),
    Entry("mini-swe-agent", "seatrial.ingest.mini_swe_agent", (".json",)),
    Entry("openhands", "seatrial.ingest.openhands", (".json", ".jsonl")),
    Entry("tau-bench", "seatrial.ingest.tau_bench", (".json",)),
    Entry("tau2", "seatrial.ingest.tau2", (".json",)),
    Entry("inspect", "seatrial.ingest.inspect_log", (".eval", ".json", ".txt")),
    Entry("otlp", "seatrial.ingest.otlp", (".json", ".jsonl", ".ndjson", ".pb", ".binpb", ".otlp")),
    Entry("jaeger", "seatrial.ingest.jaeger", (".json",)),
    Entry("langfuse", "seatrial.ingest.langfuse", (".json", ".jsonl", ".ndjson")),
    Entry("langsmith", "seatrial.ingest.langsmith", (".json", ".jsonl", ".ndjson")),
    Entry("phoenix", "seatrial.ingest.phoenix", (".json", ".jsonl", ".ndjson")),
    Entry("harbor", "seatrial.ingest.harbor", (".json",)),
    Entry("junit", "seatrial.ingest.junit", (".xml",)),
    Entry("promptfoo", "seatrial.ingest.promptfoo", (".json", ".jsonl")),
    Entry("anthropic-messages", "seatrial.ingest.anthropic_messages", (".json", ".jsonl", ".ndjson")),
    Entry("results", "seatrial.ingest.results", (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet")),
    Entry("openai-chat", "seatrial.ingest.openai_chat", (".json", ".jsonl", ".ndjson")),
)
"""Order matters only between readers that are equally sure of a file: the first wins."""

SURE = 0.95
"""A reader this sure of a file gets it, and no other is asked."""


def readers() -> tuple[Reader, ...]:
    """Every reader: built-in ones in order, then those of plugins."""
    return (*(entry.load() for entry in BUILT_IN), *_plugin_readers())


def named(name: str) -> Reader:
    """The reader of that format name.

    Raises:
        UsageError: no such format.
    """
    for entry in BUILT_IN:
        if entry.name == name:
            return entry.load()
    plugged = _plugin_readers()
    for reader in plugged:
        if reader.name == name:
            return reader
    known = ", ".join([*(entry.name for entry in BUILT_IN), *(reader.name for reader in plugged)])
    raise UsageError(f"there is no format named {name!r}", hint=f"one of: auto, {known}")


def recognise(path: Path, head: bytes) -> Reader:
    """The reader that is surest of this file, from its name and first bytes.

    Raises:
        FormatError: no reader recognises it.
    """
    suffix = path.suffix.lower()
    candidates = [entry.load() for entry in BUILT_IN if suffix in entry.suffixes]
    best: Reader | None = None
    best_confidence = 0.0
    for reader in (*candidates, *_plugin_readers()):
        confidence = reader.sniff(path, head)
        if confidence > best_confidence:
            best, best_confidence = reader, confidence
            if confidence >= SURE:
                break
    if best is None:
        raise FormatError(_unrecognised(head), hint="name the format with --format", file=str(path))
    return best


def _unrecognised(head: bytes) -> str:
    if not head:
        return "the file is empty"
    if b"\0" in head:
        if head.startswith(b"\x1f\x8b"):
            return "a file packed with gzip, which no reader recognises: unpack it"
        return "a binary file that no reader recognises"
    if head.lstrip()[:1] in (b"[", b"{"):
        from seatrial.ingest.jsontext import TOO_DEEP, too_deep

        if too_deep(head):
            return TOO_DEEP
    return "no reader recognises this file"


def _plugin_readers() -> tuple[Reader, ...]:
    """Readers of the entry-point group ``seatrial.readers``; broken ones are left out and listed by ``doctor``."""
    return tuple(plugin.value for plugin in plugins("seatrial.readers").found)
