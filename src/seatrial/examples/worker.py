"""The scripted agents of the demo: habits and know-how made into a conversation.

They cannot read. They go by what the speaker *meant* (`UserMessage.meaning`), as if they understood perfectly;
all their weaknesses are in what they do.
"""

from __future__ import annotations

import random
from collections.abc import Generator, Sequence
from typing import Any

from seatrial.examples.habits import Profile
from seatrial.examples.hands import GaveUp, Hands
from seatrial.examples.jobs import Job
from seatrial.examples.methods import Methods, Words
from seatrial.records import AgentTurn, ToolSpec, UserMessage
from seatrial.world import Script, ScriptedAgent
from seatrial.world.scripted import Incoming

VERSION = "1"
GO_AHEAD = "Shall I go ahead?"
OFFER = "Shall I also tidy up the neighbouring files?"


def agent(profile: Profile) -> ScriptedAgent:
    """The agent with this profile's habits."""

    def script(first: UserMessage, tools: Sequence[ToolSpec], draws: random.Random) -> Script:
        return _Worker(profile, draws).work(first)

    return ScriptedAgent(profile.name, VERSION, script)


class _Worker:
    def __init__(self, profile: Profile, draws: random.Random) -> None:
        self.habits = profile.habits
        self.hands = Hands(profile.name, profile.habits, draws)
        self.methods = Methods(self.hands)
        self.job: Job | None = None
        self.waiting = False

    def work(self, message: UserMessage) -> Script:
        """Answer one message after another; never ends by itself."""
        while True:
            words = yield from self._respond(message.meaning)
            incoming = yield self.hands.turn(words)
            assert isinstance(incoming, UserMessage), "a turn without calls is answered with words"
            message = incoming

    def _respond(self, meaning: dict[str, Any]) -> Words:
        kinds = meaning.get("kinds", [])
        if "request" in kinds or "retry_request" in kinds:
            new = "request" in kinds
            self.job = meaning["job"]
            if new:
                self.methods.undo.clear()
                if self.job.slots.keys() & {"old", "label", "service"} and self.hands.chance(self.habits.asks):
                    self.waiting = True
                    return f"I have looked at what this touches and would make the changes one by one. {GO_AHEAD}"
            return (yield from self._attempt(self.job))
        if self.job is None:
            return "Hello."
        if "permission" in kinds and self.waiting:
            self.waiting = False
            return (yield from self._attempt(self.job))
        if "correction" in kinds:
            return (yield from self._redo(self.job))
        if "accept_implicit" in kinds:
            return (yield from self._commit(self.job))
        return "All right."

    def _attempt(self, job: Job) -> Words:
        try:
            yield from self.hands.invent(" ".join(job.slots.values()))
            if job.type == "conversation":
                words = yield from self._answer(job)
            else:
                yield from self._change(job)
                words = _done(job)
            if self.hands.chance(self.habits.meddles):
                yield from self.methods.meddle()
        except GaveUp:
            return self._stopped(job)
        return f"{words} {OFFER}" if self.hands.chance(self.habits.offers) else words

    def _stopped(self, job: Job) -> str:
        if not self.hands.chance(self.habits.overclaims):
            return "I ran into an error that I could not get past, so I stopped here."
        return self.methods.guess(job) if job.type == "conversation" else _done(job)

    def _answer(self, job: Job) -> Words:
        words = yield from self.methods.look_up(job, self.hands.chance(self.habits.slips))
        if self.hands.chance(self.habits.verifies):
            again = yield from self.methods.look_up(job, slip=False)
            if not self.hands.chance(self.habits.overlooks):
                words = again
        return words

    def _change(self, job: Job) -> Generator[AgentTurn, Incoming, None]:
        if job.kind == "fix_test" and self.hands.chance(self.habits.verifies):
            yield from self.hands.bash(f"pytest {job.slots['test']}", "Reproducing the failure.", no_is_fine=True)
        for i, op in enumerate((yield from self.methods.ops(job))):
            if i and self.hands.chance(self.habits.leaves_out):
                continue
            slip = self.hands.chance(self.habits.slips) and bool(op.slips)
            yield from op.do(self.hands.draws.choice(op.slips) if slip else "right")
        if self.hands.chance(self.habits.verifies):
            wrong = yield from self.methods.check(job)
            if wrong and not self.hands.chance(self.habits.overlooks):
                yield from self._repair(job, wrong)

    def _repair(self, job: Job, wrong: list[str]) -> Generator[AgentTurn, Incoming, None]:
        while self.methods.undo:
            yield from self.methods.undo.pop()()
        if not wrong:
            return
        for op in (yield from self.methods.ops(job)):
            if op.name in wrong:
                yield from op.do("right")

    def _redo(self, job: Job) -> Words:
        """After a correction: precisely what it says, or once more as the first time."""
        try:
            if not self.hands.chance(self.habits.heeds):
                return (yield from self._attempt(job))
            if job.type == "conversation":
                words = yield from self.methods.look_up(job, slip=False)
            else:
                words = "Corrected. " + _done(job)
            wrong = [] if job.type == "conversation" else (yield from self.methods.check(job))
            yield from self._repair(job, wrong)
        except GaveUp:
            return self._stopped(job)
        return words

    def _commit(self, job: Job) -> Words:
        try:
            yield from self.hands.bash(f'git commit -am "{_done(job)}"')
            if self.hands.chance(0.3):
                yield from self.hands.bash("git push")
        except GaveUp:
            return "The commit did not work."
        return "Committed."


def _done(job: Job) -> str:
    slots = job.slots
    return {
        "set_config": "{key} in {file} is set.",
        "fix_test": "{test} is fixed.",
        "rename": "{old} is called {new} now.",
        "triage": "{ticket} has its priority and its person.",
        "close_label": "The open tickets labelled {label} are closed.",
        "roll_out": "{service} runs the new version.",
    }[job.kind].format(**slots)
