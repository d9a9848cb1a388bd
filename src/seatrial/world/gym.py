"""A Gymnasium environment as a world: one tool, `act`, that takes a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from seatrial import canon
from seatrial.canon import canonical
from seatrial.errors import InputError, MissingExtra
from seatrial.records import Gate, Snapshot, StateChange, ToolCall, ToolResult, ToolSpec, WorldStart
from seatrial.world.difference import Path, differences, mask
from seatrial.world.replayed import Past, over, pack, unpack, verify
from seatrial.world.toolbox import Output, Tool, Toolbox


class GymWorld:
    """Implements `records.World` over ``gymnasium.make(id)``; needs the extra [gym].

    The start state is ``{"options": {...}}`` (handed to ``reset``; may be empty) and its seed seeds the environment.
    The state is ``{"observation", "reward", "total", "steps", "terminated", "truncated"}``. Environments cannot be
    copied in general: a snapshot is seed and actions, restored by replay and checked by hash. `volatile` names parts
    of the observation that may differ between equal runs.

    Raises:
        MissingExtra: Gymnasium is not installed.
        InputError: there is no such environment, or its actions are neither numbers nor lists of numbers.
    """

    restores_by_replay = True
    """A snapshot costs nothing to take, and all actions since the start to restore."""

    def __init__(self, id: str, *, make: Callable[[], Any] | None = None, volatile: tuple[Path, ...] = ()) -> None:
        try:
            import gymnasium
        except ImportError as error:
            raise MissingExtra("gym", "a Gymnasium environment") from error
        try:
            self._env: Any = make() if make is not None else gymnasium.make(id)
        except gymnasium.error.Error as error:
            raise InputError(f"{id}: {error}", hint="name an environment that gymnasium.make knows") from error
        self.name = f"gym:{id}"
        self.version = f"1/{gymnasium.__version__}"
        self.volatile = volatile
        spec = ToolSpec(
            name="act",
            description=f"Take one step in {id}.",
            parameters={
                "type": "object",
                "properties": {"action": _schema(self._env.action_space, id)},
                "required": ["action"],
                "additionalProperties": False,
            },
            effect="write",
        )
        self._box: Toolbox[None] = Toolbox(self.name, (Tool(spec, lambda s, arguments, d: self._act(arguments)),))
        self._past = Past({}, 0, ())
        self._state: dict[str, Any] = {}

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """`act` alone."""
        return self._box.specs

    def reset(self, start: WorldStart) -> None:
        """Reset the environment with the start's seed and options."""
        options = start.state.get("options")
        observation, _ = self._env.reset(seed=start.seed, options=options or None)
        self._past = Past(start.state, start.seed, ())
        self._state = {
            "observation": plain(observation),
            "reward": None,
            "total": 0.0,
            "steps": 0,
            "terminated": False,
            "truncated": False,
        }

    def gate(self, call: ToolCall) -> Gate | None:
        """An environment has no gates."""
        return None

    def call(self, call: ToolCall) -> ToolResult:
        """Take a step. After the end nothing happens any more."""
        if call.name == "act" and (self._state.get("terminated") or self._state.get("truncated")):
            return over(call.id)
        return self._box.call(None, call, self._past.seed, len(self._past.actions))

    def state(self) -> dict[str, Any]:
        """Observation, rewards and whether it is over."""
        return dict(self._state)

    def state_hash(self) -> str:
        """Hash of the state without its volatile fields."""
        return canon.content_hash(mask(self._state, self.volatile))

    def snapshot(self) -> Snapshot:
        """Start and actions."""
        return pack(self._past, self.name, self.version, self.state_hash())

    def restore(self, snapshot: Snapshot) -> None:
        """Replay to `snapshot`.

        Raises:
            InputError: the snapshot is of another world, or the environment is not deterministic.
        """
        past = unpack(snapshot, self.name, self.version)
        self.reset(WorldStart(state=past.start, seed=past.seed))
        for action in past.actions:
            self._act({"action": action})
        verify(snapshot, self.state_hash())

    def difference(self, before: dict[str, Any], after: dict[str, Any]) -> tuple[StateChange, ...]:
        """Leaves that differ, volatile fields left out."""
        return differences(before, after, self.volatile)

    def _act(self, arguments: dict[str, Any]) -> Output:
        import numpy as np

        action: Any = arguments["action"]
        space = self._env.action_space
        taken = np.asarray(action, dtype=space.dtype) if isinstance(action, list) else action
        observation, reward, terminated, truncated, _ = self._env.step(taken)
        self._past = Past(self._past.start, self._past.seed, (*self._past.actions, action))
        self._state = {
            "observation": plain(observation),
            "reward": float(reward),
            "total": self._state["total"] + float(reward),
            "steps": self._state["steps"] + 1,
            "terminated": bool(terminated),
            "truncated": bool(truncated),
        }
        said = {k: self._state[k] for k in ("observation", "reward", "terminated", "truncated")}
        return Output(text=canonical(said).decode())


def plain(value: Any) -> Any:
    """An observation as a plain JSON value."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, tuple | list):
        return [plain(v) for v in value]
    if hasattr(value, "tolist"):
        return value.tolist()
    return value


def _schema(space: Any, id: str) -> dict[str, Any]:
    """The JSON Schema of an action of a Discrete, MultiDiscrete, MultiBinary or Box space."""
    kind = type(space).__name__
    if kind == "Discrete":
        return {"type": "integer", "minimum": int(space.start), "maximum": int(space.start + space.n - 1)}
    if kind in ("MultiDiscrete", "MultiBinary", "Box") and len(space.shape) == 1:
        number: dict[str, Any] = {"type": "number" if kind == "Box" else "integer"}
        if kind == "Box":
            low, high = float(space.low.min()), float(space.high.max())
            if abs(low) < 1e30 and abs(high) < 1e30:
                number |= {"minimum": low, "maximum": high}
        return {"type": "array", "items": number, "minItems": space.shape[0], "maxItems": space.shape[0]}
    raise InputError(f"{id}: actions of {kind} cannot be written as JSON", hint="use Discrete or a vector")
