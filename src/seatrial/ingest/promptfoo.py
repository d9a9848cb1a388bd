"""promptfoo results to attempts: the JSON or JSON lines that ``promptfoo eval --output`` writes.

A row is one attempt of a test by a provider under a prompt. A row whose provider or assertion broke (failure reason
`error`) is `error_infra`. Where there are several prompts, the prompt is the agent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from seatrial.errors import FormatError
from seatrial.ingest.attempts import trace_of
from seatrial.ingest.drafts import an_object, rest, text_or_none
from seatrial.ingest.identity import Ids
from seatrial.ingest.jsontext import first_keys, kind
from seatrial.ingest.messages import amount, whole
from seatrial.ingest.values import values
from seatrial.records import Agent, Attempt, ReadLog, Status, Trace, Usage

_SHAPE = "promptfoo results: an object with results.results, or result rows"
_ERROR = 2


class Promptfoo:
    """Reads promptfoo results: one trace without steps per row."""

    name = "promptfoo"
    version = "1"
    verified = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Sure of an evaluation's or a row's keys."""
        if head.lstrip()[:1] != b"{":
            return 0.0
        found = first_keys(head)
        if "results" in found and ({"evalId", "config"} & found) and (b'"prompts"' in head or b'"stats"' in head):
            return 0.96
        return 0.96 if {"success", "provider", "prompt", "vars"} <= found else 0.0

    def read(self, path: Path, log: ReadLog) -> Iterator[Trace]:
        """One trace per row, in file order.

        Raises:
            FormatError: not JSON, or no promptfoo results.
        """
        ids = Ids()
        number: dict[tuple[str, str, str], int] = defaultdict(int)
        for value in values(path, log, _SHAPE):
            body = an_object(value.value)
            inner = body.get("results")
            rows = an_object(inner).get("results") if isinstance(inner, dict) else inner
            if "success" in body and not isinstance(rows, list):
                log.kept(value.size, "row")
                yield self._row(path, body, "", False, number, ids)
                continue
            if not isinstance(rows, list):
                if value.start == 0 and value.end == path.stat().st_size:
                    raise FormatError(f"expected {_SHAPE}", hint="write it with --output", file=str(path), line=1)
                log.skip(value.line, f"expected {_SHAPE}, found {kind(value.value)}", value.size)
                continue
            log.kept(value.size, "evaluation")
            good = [row for row in rows if isinstance(row, dict)]
            if len(good) < len(rows):
                log.note(None, f"{len(rows) - len(good)} results are no objects and are left out")
            several = len({_prompt(row) for row in good}) > 1
            suite = text_or_none(an_object(body.get("config")).get("description")) or ""
            name = text_or_none(body.get("evalId")) or ""
            for row in good:
                yield self._row(path, row, suite, several, number, ids, name)

    def _row(
        self,
        path: Path,
        row: Mapping[str, Any],
        suite: str,
        several: bool,
        number: dict[tuple[str, str, str], int],
        ids: Ids,
        name: str = "",
    ) -> Trace:
        provider = row.get("provider")
        body = an_object(provider)
        model = text_or_none(provider) or text_or_none(body.get("label")) or text_or_none(body.get("id"))
        case = an_object(row.get("testCase"))
        index = whole(row.get("testIdx"))
        task = text_or_none(case.get("description")) or text_or_none(row.get("description"))
        if task is None:
            task = f"test-{index}" if index is not None else "test"
        prompt = _prompt(row)
        key = (model or "", prompt, f"{index}~{task}")
        trial = number[key]
        number[key] += 1
        response = an_object(row.get("response"))
        tokens = an_object(response.get("tokenUsage")) or an_object(row.get("tokenUsage"))
        latency = amount(row.get("latencyMs"))
        attempt = Attempt(
            task=task,
            trial=trial,
            status=status_of(row),
            score=None if status_of(row) == "error_infra" else amount(row.get("score")),
            model=model,
            agent=prompt if several else "promptfoo",
            suite=suite or None,
            reason=text_or_none(row.get("error")) or text_or_none(an_object(row.get("gradingResult")).get("reason")),
            cost_usd=amount(row.get("cost")),
            latency_s=None if latency is None or latency < 0 else latency / 1000,
            tokens=whole(tokens.get("total")),
            extra=rest({"promptfoo": rest(dict(row), "provider", "latencyMs") or None}),
        )
        place = "~".join((name or path.name, attempt.agent or "", model or "", str(index), task, str(trial)))
        return trace_of(
            attempt,
            self,
            path,
            id=ids(f"promptfoo~{place}"),
            by="promptfoo",
            usage=Usage(
                input_tokens=whole(tokens.get("prompt")),
                output_tokens=whole(tokens.get("completion")),
                cached_tokens=whole(tokens.get("cached")),
                cost_usd=attempt.cost_usd,
            ),
            agent=Agent(name=attempt.agent or "promptfoo"),
        )


def status_of(row: Mapping[str, Any]) -> Status:
    """The status of a row (METHODS 0.1)."""
    success, failure = row.get("success"), row.get("failureReason")
    if success is True:
        return "passed"
    if failure in (_ERROR, "error") or (row.get("error") and failure is None and not row.get("gradingResult")):
        return "error_infra"
    return "failed" if success is False else "unscored"


def _prompt(row: Mapping[str, Any]) -> str:
    prompt = an_object(row.get("prompt"))
    index = whole(row.get("promptIdx"))
    label = text_or_none(prompt.get("label"))
    known = label if label is not None and len(label) <= 80 else None
    return known or (f"prompt-{index}" if index is not None else text_or_none(row.get("promptId")) or "prompt")


READER = Promptfoo()
