"""Simulated users: they ask for jobs, look at what the agent said and at the world, and react, or do not.

A user never learns which agent it has. What it *means* depends on the world and its own temper; the words are
drawn from another source, so that changing the sentences changes no decision.
"""

from __future__ import annotations

import random
from typing import Any

import msgspec

from seatrial.examples import jobs
from seatrial.examples.jobs import Finding, Job
from seatrial.examples.sentences import REGISTERS, Sentences
from seatrial.examples.worker import GO_AHEAD, OFFER
from seatrial.records import Approval, Gate, ToolCall, UserMessage


class Persona(msgspec.Struct, frozen=True, kw_only=True):
    """One user. Probabilities in [0, 1]; `weight` is the relative number of sessions; `patience` the number
    of corrections that it types for one job before it gives up."""

    name: str
    register: str
    weight: float
    vocal: float
    """Says something about a job that came out right."""
    warm: float
    """What it says then holds praise."""
    acts: float
    """Accepts by acting (commit it), where there is something to commit, instead of by words."""
    notices: float
    """Sees a fault that is there."""
    temper: float
    """Complains when it sees a fault."""
    patience: int
    repeats: float
    """Sends the same request again instead of saying what is wrong."""
    busy: float
    """Leaves without a word, whatever happened."""
    more: float
    """Has another job afterwards."""


def population(n: int = 120, seed: int = 0) -> tuple[Persona, ...]:
    """`n` users with uneven activity (log-normal, sigma 0.7: the busiest tenth has about a quarter of the sessions)."""
    draws = random.Random(f"users:{seed}")
    people = []
    for i in range(n):
        people.append(
            Persona(
                name=f"dev{i + 1:02d}",
                register=REGISTERS[i % len(REGISTERS)],
                weight=draws.lognormvariate(0.0, 0.7),
                vocal=draws.uniform(0.45, 0.9),
                warm=draws.uniform(0.1, 0.6),
                acts=draws.uniform(0.05, 0.35),
                notices=draws.uniform(0.75, 1.0),
                temper=draws.uniform(0.05, 0.5),
                patience=draws.choice((1, 2, 2, 3)),
                repeats=draws.uniform(0.0, 0.12),
                busy=draws.uniform(0.02, 0.15),
                more=draws.uniform(0.05, 0.35),
            )
        )
    return tuple(people)


class SimulatedUser:
    """Implements `records.Counterpart` and `records.Approver` for one session.

    `plan` is the jobs that the user has in mind, decided before the session; it may leave earlier. `right` tells
    for each job that was asked whether the agent's last attempt came out as asked, noticed or not: ground truth.
    """

    def __init__(self, persona: Persona, plan: tuple[Job, ...], sentences: Sentences, seed: int) -> None:
        self.persona = persona
        self.plan = plan
        self._sentences = sentences
        self._mind = random.Random(f"mind:{seed}")
        self._words = random.Random(f"words:{seed}")
        self._at = 0
        self._corrected = 0
        self._before: dict[str, Any] = {}
        self._settled = False
        self._last = ""
        self._push = False
        self.right: dict[int, bool] = {}

    def open(self, state: dict[str, Any]) -> UserMessage:
        """The first request."""
        return self._request(state, bridge=False)

    def reply(self, said: str, state: dict[str, Any]) -> UserMessage | None:
        """What the user types next, None when it has left."""
        if said.endswith(GO_AHEAD):
            return self._message([("permission", "permission", {})], 12)
        if self._settled:
            return self._next(state)
        job = self.plan[self._at]
        findings = jobs.judge(job, self._before, state, said)
        self.right[self._at] = not findings
        if self._chance(self.persona.busy):
            return self._next(state)
        if findings and (self._corrected or self._chance(self.persona.notices)):
            return self._displeased(job, findings)
        return self._pleased(job, said, state)

    def decide(self, call: ToolCall, gate: Gate, state: dict[str, Any]) -> Approval:
        """Lets the agent publish only when this user has just asked it to commit its work."""
        return Approval(decision="approve" if self._push else "deny", by=self.persona.name)

    def _pleased(self, job: Job, said: str, state: dict[str, Any]) -> UserMessage | None:
        self._settled = True
        # Someone who had to ask twice more often says whether it is right now.
        vocal = self.persona.vocal if not self._corrected else (1 + self.persona.vocal) / 2
        parts: list[tuple[str, str, dict[str, str]]] = []
        if self._chance(vocal):
            if self._chance(self.persona.acts) and job.type == "coding" and state["git"]["changed"]:
                self._push = True
                parts.append(("accept_implicit", "accept_implicit", {}))
            elif self._chance(self.persona.warm):
                parts.append(("praise", "praise", {}))
            if (not parts or self._chance(0.3)) and "accept_implicit" not in [p[0] for p in parts]:
                parts.insert(0, ("confirmation", "confirmation", {}))
        elif said.endswith(OFFER):
            parts.append(("decline", "decline", {}))
        elif self._chance(0.12):
            kind = "neutral.question" if self._chance(0.5) else "neutral.remark"
            parts.append(("neutral", kind, {}))
        return self._message(parts, 60) if parts else self._next(state)

    def _displeased(self, job: Job, findings: list[Finding]) -> UserMessage | None:
        persona = self.persona
        angry = self._chance(persona.temper)
        parts: list[tuple[str, str, dict[str, str]]] = [("complaint", "complaint", {})] if angry else []
        if self._corrected >= persona.patience:
            self._settled = True
            return self._message(parts, 45) if parts else None
        self._corrected += 1
        if not parts and self._chance(persona.repeats):
            meaning = {"kinds": ["retry_request"], "job": job, "parts": [{"kind": "retry_request", "text": self._last}]}
            return UserMessage(text=self._last, meaning=meaning, delay=self._wait(40))
        fault = findings[0]
        return self._message([*parts, ("correction", f"correction.{fault.kind}", fault.slots)], 50)

    def _next(self, state: dict[str, Any]) -> UserMessage | None:
        if self._at + 1 >= len(self.plan):
            return None
        self._at += 1
        return self._request(state, bridge=True)

    def _request(self, state: dict[str, Any], *, bridge: bool) -> UserMessage:
        job = self.plan[self._at]
        self._before, self._corrected, self._settled, self._push = state, 0, False, False
        parts: list[tuple[str, str, dict[str, str]]] = [("bridge", "bridge", {})] if bridge else []
        message = self._message([*parts, ("request", f"request.{job.kind}", job.slots)], 90 if bridge else 0)
        self._last = message.meaning["parts"][-1]["text"]
        return message

    def _message(self, parts: list[tuple[str, str, dict[str, str]]], wait: float) -> UserMessage:
        spoken = []
        for kind, category, slots in parts:
            sentence = self._sentences.say(category, self.persona.register, slots, self._words)
            spoken.append({"kind": kind, "category": category, "text": sentence})
        text = " ".join(part["text"] for part in spoken)
        meaning: dict[str, Any] = {"kinds": [part["kind"] for part in spoken], "parts": spoken}
        if "request" in meaning["kinds"]:
            meaning["job"] = self.plan[self._at]
        return UserMessage(text=text, meaning=meaning, delay=self._wait(wait))

    def _wait(self, mean: float) -> float:
        """Reading and typing take at least half of the mean, so that 30 s merges stay inside one message."""
        return round(mean * (0.8 + self._mind.expovariate(1.2)), 3)

    def _chance(self, probability: float) -> bool:
        return self._mind.random() < probability
