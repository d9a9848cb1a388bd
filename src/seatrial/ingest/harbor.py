"""Harbor job and trial results to attempts: `result.json` of a trial, of a job, or a list of trials.

A job's file that only counts is bookkeeping where its trials' own files lie beside it, else its lists of trials by
reward and by exception are the attempts. Trials of one task are numbered by name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from seatrial.errors import FormatError
from seatrial.ingest.attempts import trace_of
from seatrial.ingest.drafts import an_object, rest, text_or_none
from seatrial.ingest.identity import Ids
from seatrial.ingest.jsontext import first_keys, kind
from seatrial.ingest.messages import amount, whole
from seatrial.ingest.times import moment
from seatrial.ingest.values import Value, values
from seatrial.records import Agent, Attempt, ReadLog, Status, Trace, Usage

_SHAPE = "a Harbor result: a trial with task_name and trial_name, or a job with stats"
_AGENT_FAULTS = frozenset({"NonZeroAgentExitCodeError", "AgentError", "ContextLengthExceededError"})


class Harbor:
    """Reads Harbor results: one trace without steps per trial."""

    name = "harbor"
    version = "1"
    verified = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Sure of a trial's or a job's keys."""
        if head.lstrip()[:1] not in (b"{", b"["):
            return 0.0
        found = first_keys(head)
        if {"task_name", "trial_name"} <= found:
            return 0.97
        return 0.97 if {"stats", "n_total_trials"} <= found or "trial_results" in found else 0.0

    def read(self, path: Path, log: ReadLog) -> Iterator[Trace]:
        """One trace per trial.

        Raises:
            FormatError: not JSON, or no Harbor result.
        """
        ids = Ids()
        number: dict[tuple[str, str], int] = defaultdict(int)
        for value in values(path, log, _SHAPE):
            body = an_object(value.value)
            if "trial_name" in body:
                log.kept(value.size, "trial")
                yield self._trial(path, body, _among_siblings(path, body), ids)
            elif isinstance(body.get("trial_results"), list):
                log.kept(value.size, "job")
                trials = [trial for trial in body["trial_results"] if isinstance(trial, dict)]
                for trial in sorted(trials, key=lambda t: str(t.get("trial_name"))):
                    key = (_arm(trial), str(trial.get("task_name")))
                    yield self._trial(path, trial, number[key], ids)
                    number[key] += 1
            elif isinstance(body.get("stats"), dict):
                log.kept(value.size, "job")
                if not any(path.parent.glob("*/result.json")):
                    yield from self._counted(path, body["stats"], ids)
            else:
                self._refuse(path, value, log)

    @staticmethod
    def _refuse(path: Path, value: Value, log: ReadLog) -> None:
        if value.start == 0 and value.end == path.stat().st_size:
            raise FormatError(f"expected {_SHAPE}", hint="name the file that Harbor wrote", file=str(path), line=1)
        log.skip(value.line, f"expected {_SHAPE}, found {kind(value.value)}", value.size)

    def _trial(self, path: Path, body: Mapping[str, Any], trial: int, ids: Ids) -> Trace:
        info = an_object(body.get("agent_info"))
        model = an_object(info.get("model_info"))
        used = an_object(body.get("agent_result"))
        verified = an_object(body.get("verifier_result"))
        rewards = an_object(verified.get("rewards"))
        reward = amount(rewards.get("reward", next(iter(rewards.values()), verified.get("reward"))))
        failure = an_object(body.get("exception_info"))
        name = text_or_none(body.get("trial_name")) or "trial"
        ran = an_object(body.get("agent_execution")) or dict(body)
        begun, ended = moment(ran.get("started_at")), moment(ran.get("finished_at"))
        configured = an_object(an_object(body.get("config")).get("agent"))
        tokens = [whole(used.get(f"n_{part}_tokens")) for part in ("input", "output")]
        attempt = Attempt(
            task=text_or_none(body.get("task_name")) or name.rpartition("__")[0] or name,
            trial=trial,
            status=status_of(reward, text_or_none(failure.get("exception_type"))),
            score=reward,
            model=text_or_none(model.get("name")) or text_or_none(configured.get("model_name")),
            suite=text_or_none(body.get("source")),
            reason=text_or_none(failure.get("exception_message")) or text_or_none(failure.get("exception_type")),
            cost_usd=amount(used.get("cost_usd")),
            latency_s=round(ended - begun, 6) if begun is not None and ended is not None and ended >= begun else None,
            tokens=sum(n for n in tokens if n is not None) if any(n is not None for n in tokens) else None,
            extra=rest({"harbor": rest(dict(body), "task_name")}),
        )
        return trace_of(
            attempt,
            self,
            path,
            id=ids(f"harbor~{text_or_none(body.get('id')) or name}"),
            by="harbor",
            usage=Usage(
                input_tokens=tokens[0],
                output_tokens=tokens[1],
                cached_tokens=whole(used.get("n_cache_tokens")),
                cost_usd=attempt.cost_usd,
            ),
            agent=Agent(
                name=text_or_none(info.get("name")) or text_or_none(configured.get("name")) or "harbor",
                version=text_or_none(info.get("version")),
            ),
        )

    def _counted(self, path: Path, stats: dict[str, Any], ids: Ids) -> Iterator[Trace]:
        """The attempts of a job that lists its trials by reward and by exception alone."""
        for arm, raw in an_object(stats.get("evals")).items():
            evals = an_object(raw)
            found = _listed(evals)
            number: dict[str, int] = defaultdict(int)
            for name in sorted(found):
                task = name.rpartition("__")[0] or name
                agent, _, rest_of = arm.partition("__")
                model, _, suite = rest_of.partition("__")
                entry = found[name]
                attempt = Attempt(
                    task=task,
                    trial=number[task],
                    status=status_of(entry.reward, entry.exception),
                    score=entry.reward,
                    model=model if suite else None,
                    agent=agent,
                    suite=suite or model or None,
                    reason=entry.exception,
                )
                number[task] += 1
                yield trace_of(attempt, self, path, id=ids(f"harbor~{arm}~{name}"), by="harbor")


class _Listed(NamedTuple):
    reward: float | None
    exception: str | None


def _listed(evals: Mapping[str, Any]) -> dict[str, _Listed]:
    rewards: dict[str, float | None] = {}
    stats = an_object(evals.get("reward_stats"))
    main = an_object(stats.get("reward", next(iter(stats.values()), None)))
    for value, names in main.items():
        for name in names if isinstance(names, list) else []:
            if isinstance(name, str):
                try:
                    rewards[name] = amount(float(value))
                except ValueError:
                    rewards[name] = None
    exceptions: dict[str, str] = {}
    for kind_of, names in an_object(evals.get("exception_stats")).items():
        exceptions |= {name: kind_of for name in (names if isinstance(names, list) else []) if isinstance(name, str)}
    return {name: _Listed(rewards.get(name), exceptions.get(name)) for name in {**rewards, **exceptions}}


def status_of(reward: float | None, exception: str | None) -> Status:
    """The status of a trial (METHODS 0.1).

    A passing reward passes, whatever else happened; an agent that ran out of time is `timeout`, one that ended with
    an error `error_agent`; any other exception is the harness's or the environment's.
    """
    if reward is not None and reward >= 1.0:
        return "passed"
    if exception is not None:
        if exception == "AgentTimeoutError":
            return "timeout"
        return "error_agent" if exception in _AGENT_FAULTS else "error_infra"
    return "unscored" if reward is None else "failed"


def _arm(trial: Mapping[str, Any]) -> str:
    info = an_object(trial.get("agent_info"))
    return f"{info.get('name')}/{an_object(info.get('model_info')).get('name')}"


def _among_siblings(path: Path, body: Mapping[str, Any]) -> int:
    """The trial's number: its place by name among the folders of trials of its task."""
    name = path.parent.name
    prefix, mark, _ = name.rpartition("__")
    if not mark or text_or_none(body.get("trial_name")) != name:
        return 0
    siblings = sorted(
        p.name for p in path.parent.parent.glob(f"{_escaped(prefix)}__*") if (p / "result.json").is_file()
    )
    return siblings.index(name) if name in siblings else 0


def _escaped(text: str) -> str:
    return "".join(f"[{c}]" if c in "*?[" else c for c in text)


READER = Harbor()
