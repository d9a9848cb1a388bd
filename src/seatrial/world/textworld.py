"""A TextWorld or ALFWorld game as a world: one tool, `act`, that says a command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path as FilePath
from typing import Any

from seatrial import canon
from seatrial.errors import InputError
from seatrial.records import Gate, Snapshot, StateChange, ToolCall, ToolResult, ToolSpec, WorldStart
from seatrial.world.difference import Path, differences, mask
from seatrial.world.replayed import Past, over, pack, unpack, verify
from seatrial.world.toolbox import Output, Tool, Toolbox, parameters

INVALID = "Nothing happens."
"""What the game answers to a command that it does not take; it changes nothing."""


class TextWorldGame:
    """Implements `records.World` over one PDDL game (the kind that ALFWorld ships); needs the extra [alfworld].

    The start state may be empty; the game file is the start. The state is ``{"feedback", "facts", "won", "steps"}``,
    facts sorted. Games cannot be copied: a snapshot is the commands so far, restored by replay (METHODS 4) and
    checked by hash. `commands()` are those that the game takes now. `make` gives another environment with ``load``,
    ``reset`` and ``step`` as TextWorld's; the usual one is `pddl.PddlGame`, the same game at a tenth of the cost.

    Raises:
        MissingExtra: TextWorld or ALFWorld is not installed.
        InputError: there is no such game file.
    """

    volatile: tuple[Path, ...] = (("feedback",), ("steps",))
    restores_by_replay = True
    """A snapshot costs nothing to take, and all commands since the start to restore."""

    def __init__(self, game: str, *, make: Callable[[], Any] | None = None) -> None:
        self.name = f"textworld:{FilePath(game).parent.name or game}"
        self.version = "1"
        self._env: Any = (make or _environment)()
        if make is None and not FilePath(game).is_file():
            raise InputError("there is no such game", file=game, hint="name a game.tw-pddl file")
        self._env.load(game)
        spec = ToolSpec(
            name="act",
            description="Say one command to the game, e.g. 'go to desk 1' or 'take mug 1 from desk 1'.",
            parameters=parameters({"command": "string"}),
            effect="write",
        )
        self._box: Toolbox[None] = Toolbox(self.name, (Tool(spec, lambda s, arguments, d: self._act(arguments)),))
        self._past = Past({}, 0, ())
        self._seen: Any = None
        self._feedback = ""
        self._won = False
        self._steps = 0
        self._facts: list[str] | None = None

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """`act` alone."""
        return self._box.specs

    @property
    def won(self) -> bool:
        """The goal is reached."""
        return self._won

    @property
    def feedback(self) -> str:
        """What the game said last."""
        return self._feedback

    def commands(self) -> tuple[str, ...]:
        """What the game takes now, sorted."""
        return tuple(sorted(_get(self._seen, "admissible_commands") or ()))

    def reset(self, start: WorldStart) -> None:
        """Begin the game anew."""
        self._past = Past(start.state, start.seed, ())
        self._see(self._env.reset(), won=False, steps=0)

    def gate(self, call: ToolCall) -> Gate | None:
        """A game has no gates."""
        return None

    def call(self, call: ToolCall) -> ToolResult:
        """Say a command. After the game is won nothing happens any more."""
        if call.name == "act" and self._won:
            return over(call.id)
        return self._box.call(None, call, self._past.seed, len(self._past.actions))

    def state(self) -> dict[str, Any]:
        """Feedback, facts, whether it is won, and how many commands were said."""
        if self._facts is None:
            self._facts = sorted(str(f) for f in _get(self._seen, "facts") or ())
        return {"feedback": self._feedback, "facts": list(self._facts), "won": self._won, "steps": self._steps}

    def state_hash(self) -> str:
        """Hash of the facts and the won flag."""
        return canon.content_hash(mask(self.state(), self.volatile))

    def snapshot(self) -> Snapshot:
        """The commands so far."""
        return pack(self._past, self.name, self.version, self.state_hash())

    def restore(self, snapshot: Snapshot) -> None:
        """Replay to `snapshot`.

        Raises:
            InputError: the snapshot is of another game, or the game is not deterministic.
        """
        past = unpack(snapshot, self.name, self.version)
        self.reset(WorldStart(state=past.start, seed=past.seed))
        for action in past.actions:
            self._act({"command": action})
        verify(snapshot, self.state_hash())

    def difference(self, before: dict[str, Any], after: dict[str, Any]) -> tuple[StateChange, ...]:
        """Facts that came or went, and whether it is won."""

        def keyed(state: dict[str, Any]) -> dict[str, Any]:
            # By content, not by place: one new fact would move all that follow it in a list.
            return {**state, "facts": dict.fromkeys(state.get("facts", []), True)}

        return differences(keyed(before), keyed(after), self.volatile)

    def _act(self, arguments: dict[str, Any]) -> Output:
        command = arguments["command"].strip()
        seen, _, _ = self._env.step(command)
        self._past = Past(self._past.start, self._past.seed, (*self._past.actions, command))
        self._see(seen, won=bool(_get(seen, "won")), steps=self._steps + 1)
        if self._feedback.startswith(INVALID):
            return Output(text=self._feedback, outcome="error", cause="model")
        return Output(text=self._feedback)

    def _see(self, seen: Any, *, won: bool, steps: int) -> None:
        self._seen, self._won, self._steps = seen, won, steps
        self._feedback = str(_get(seen, "feedback") or "").strip()
        self._facts = None  # listed when somebody asks: it costs more than the step


def _get(seen: Any, name: str) -> Any:
    return seen.get(name) if isinstance(seen, dict) else getattr(seen, name, None)


def _environment() -> Any:
    from seatrial.world.pddl import PddlGame

    return PddlGame()
