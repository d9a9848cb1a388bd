"""What a judge is made of, and the stamp that lets it gate (METHODS 6.4)."""

from __future__ import annotations

from typing import Any, Literal, Protocol

import msgspec

from seatrial.records.trace import Usage

JudgeStatus = Literal["usable", "provisional", "refused", "fix the rubric"]
"""`provisional` clears the thresholds by its points alone and cannot gate; `fix the rubric`: humans disagree."""


class Criterion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thing that two people could check alike.

    `statement` is true or false of an output; `passes` and `fails` say what is seen in either case, and where.
    """

    id: str
    statement: str
    passes: str = ""
    fails: str = ""


class JudgeSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A judge: a model, instructions and a rubric, as ``judge.toml`` holds it.

    `kind` ``pairwise`` chooses between two outputs, in both orders. `scope` is what the judge reads of a trace.
    `family` is the model's maker, guessed from its name where None. Prices are USD per million tokens; None: unknown,
    never zero. `max_characters` is the longest text that is judged; a longer one is unscored.
    """

    name: str
    model: str
    criteria: tuple[Criterion, ...]
    kind: Literal["criteria", "pairwise"] = "criteria"
    url: str | None = None
    instructions: str = ""
    scope: Literal["final", "transcript"] = "transcript"
    family: str | None = None
    temperature: float | None = 0.0
    max_tokens: int = 2000
    max_characters: int = 100_000
    usd_per_million_input: float | None = None
    usd_per_million_output: float | None = None


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """One message to a model."""

    role: Literal["system", "user", "assistant"]
    content: str


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What the model answered. `usage` None: not reported."""

    text: str
    usage: Usage | None = None


class Complete(Protocol):
    """A model behind any endpoint: messages in, a reply out."""

    def __call__(self, messages: tuple[Message, ...]) -> Reply:
        """Raises InfrastructureError where there is no answer."""


class JudgeStamp(msgspec.Struct, frozen=True, kw_only=True):
    """Proof that this very judge agreed with people.

    `key` is the hash of model, prompt and rubric: any change makes the stamp expire. `criteria` maps each criterion
    to its status; `numbers` holds what it rests on.
    """

    key: str
    name: str
    model: str
    prompt_hash: str
    rubric_hash: str
    criteria: dict[str, JudgeStatus]
    made: str
    numbers: dict[str, Any] = {}
