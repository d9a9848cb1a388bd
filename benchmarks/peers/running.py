"""What the adapters of other readers share: the two ways in which they are run, and ATIF documents as shown turns.

As an adapter (``python from_X.py FILE...``) a peer prints what it shows of the files. With ``--time LIST`` it reads
the files that LIST names, keeps nothing, and prints processor seconds, peak memory and what failed. Standard library
only: this runs in a peer's own environment.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any


def main(show: Callable[[list[Path]], Iterator[dict[str, Any]]], read: Callable[[Path], int]) -> None:
    """Run as the arguments say. `read` reads one file and returns its number of turns."""
    if sys.argv[1] != "--time":
        # Sub-agents' own files are found by the peers themselves.
        files = [Path(a) for a in sys.argv[1:] if "/subagents/" not in a]
        for line in show(files):
            print(json.dumps(line))
        return
    files = [Path(line) for line in Path(sys.argv[2]).read_text().splitlines()]
    with contextlib.suppress(Exception):
        read(files[0])  # what is imported when it is first used is not reading
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    failed: list[str] = []
    turns = 0
    for file in files:
        try:
            turns += read(file)
        except Exception as error:
            failed.append(f"{file.name}: {type(error).__name__}: {str(error)[:200]}")
    took = time.process_time() - start
    unit = 1 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    out = {"seconds": took, "turns": turns, "failed": failed, "before": before * unit, "peak": peak * unit}
    print(json.dumps(out))
    sys.stdout.flush()
    os._exit(0)


def atif_turns(document: dict[str, Any], parent: str | None = None) -> Iterator[dict[str, Any]]:
    """The turns of an ATIF document. Whatever a peer notes about who wrote a turn is used in its favour."""
    trace = document.get("trajectory_id") or document.get("session_id") or ""
    for step in document["steps"]:
        noted = json.dumps(step.get("extra") or {})
        meta = any(f'"{mark}": true' in noted for mark in ("isMeta", "isCompactSummary", "meta"))
        event = {"user": "human", "agent": "agent"}.get(step["source"], "harness")
        metrics = step.get("metrics") or {}
        results = (step.get("observation") or {}).get("results") or []
        yield {
            "event": "harness" if meta else event,
            "trace": trace,
            "parent": parent,
            "text": text_of(step.get("message")),
            "copied": bool(step.get("is_copied_context")),
            "model": step.get("model_name"),
            "tool_calls": [
                {"id": call["tool_call_id"], "name": call["function_name"]} for call in step.get("tool_calls") or []
            ],
            "results": [_result(result, step, i) for i, result in enumerate(results)],
            "usage": {"input_tokens": metrics.get("prompt_tokens"), "output_tokens": metrics.get("completion_tokens")}
            if metrics
            else None,
        }
    for child in document.get("subagent_trajectories") or []:
        yield from atif_turns(child, trace)


def _result(result: dict[str, Any], step: dict[str, Any], i: int) -> dict[str, Any]:
    fields = ((step.get("extra") or {}).get("agentpile") or {}).get("result_fields") or []
    noted = (fields[i] if i < len(fields) else None) or result.get("extra") or {}
    return {
        "call_id": result.get("source_call_id"),
        "outcome": "error" if noted.get("is_error") else "ok",
        "text": text_of(result.get("content")),
    }


def text_of(content: Any) -> str:
    """The text of an ATIF message or result."""
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content or [] if isinstance(part, dict) and part.get("text"))
