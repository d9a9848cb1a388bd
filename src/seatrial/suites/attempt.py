"""One task, one agent, one trial: to an episode that has its trace, its states and the reason why it ended."""

from __future__ import annotations

import inspect
import threading
import time
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from seatrial import plugins
from seatrial.errors import AgentTimeout, InfrastructureError, InputError, SeatrialError, UsageError
from seatrial.records import (
    Agent,
    AgentUnderTest,
    Approver,
    Counterpart,
    Provenance,
    StateChange,
    Status,
    Step,
    Task,
    TaskRef,
    ToolSpec,
    Totals,
    Trace,
    Usage,
    World,
    WorldStart,
)
from seatrial.records.price import Prices
from seatrial.suites.suite import Suite
from seatrial.suites.watch import Watched, WatchedWorld, is_infrastructure
from seatrial.world import (
    FixedText,
    MemoryWorld,
    Transcript,
    approver_of,
    offered,
    rules,
    run_episode,
    trace_of,
)
from seatrial.world import Limits as EpisodeLimits
from seatrial.world.tracing import FORMAT

GRACE_S = 2.0
"""How long past its time limit an agent that does not answer is waited for."""

VERSION = "1"


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What one attempt may use. None: no limit; `turns` None: twice the task's `max_turns`, and 50 where it has none,
    so that going over budget is seen by a check before it is stopped."""

    turns: int | None = None
    calls: int = 500
    seconds: float | None = 600.0
    cost_usd: float | None = None


class Episode(msgspec.Struct, frozen=True, kw_only=True):
    """What one attempt left. `status` None: it came to its end and is to be graded; else the status is settled.

    `start` and `final` are the world's states (None: it never got so far), `changes` what differs between them.
    `seconds` is the wall time of the attempt; `cost_usd` None: some price is not known.
    """

    status: Status | None
    reason: str
    trace: Trace
    tools: tuple[ToolSpec, ...]
    start: dict[str, Any] | None
    final: dict[str, Any] | None
    changes: tuple[StateChange, ...] | None
    stopped: str | None
    began: float
    seconds: float
    cost_usd: float | None
    world: str | None
    world_version: str | None


class _Running:
    """What the attempt's thread shares with whoever waits for it."""

    def __init__(self) -> None:
        self.talk: Watched | None = None
        self.world: WatchedWorld | None = None
        self.start: dict[str, Any] | None = None
        self.tools: tuple[ToolSpec, ...] = ()
        self.done: Transcript | None = None
        self.error: BaseException | None = None
        self.left = False


def run_attempt(
    suite: Suite,
    task: Task,
    agent: AgentUnderTest,
    *,
    trial: int,
    seed: int,
    name: str,
    limits: Limits = Limits(),
    approver: str = "approve",
    wrap: Callable[[World], World] | None = None,
    prices: Prices | None = None,
) -> Episode:
    """Let the agent try the task once, in a fresh world.

    `seed` seeds world and agent, `name` becomes the trace's id; `wrap` puts something around the world, such as a
    cassette. `approver` decides on gated calls where neither suite nor task (``extra["approver"]``) names someone, as
    `world.approver_of` reads it: a sandbox's person agrees, unless the task is about someone who does not. `prices`
    tell what turns cost whose agent did not say so itself.
    Nothing that agent or world does raises: it ends in the episode's status.
    """
    running = _Running()
    began = time.time()
    clock = time.perf_counter()
    deadline = None if limits.seconds is None else clock + limits.seconds

    def over() -> str | None:
        if running.world is not None and running.world.failure is not None:
            return "infra_error"
        return "time_limit" if deadline is not None and time.perf_counter() > deadline else None

    def work() -> None:
        try:
            _play(running, suite, task, agent, seed, limits, approver, wrap, over, prices)
        except BaseException as error:
            running.error = error

    if deadline is None:
        work()
    else:
        # An agent that hangs cannot be ended inside its thread: its session is ended from here.
        thread = threading.Thread(target=work, name=f"attempt {name}", daemon=True)
        thread.start()
        thread.join(deadline - time.perf_counter() + GRACE_S)
        running.left = thread.is_alive()
    seconds = time.perf_counter() - clock
    episode = _episode(running, suite, task, agent, trial, name, began, seconds)
    if running.left:
        # After the episode is settled: what an agent says while it is being ended is no part of the attempt.
        _end(running)
    return episode


def _end(running: _Running) -> None:
    """End the session of an attempt that was given up; a session that cannot be ended is not waited for."""
    if running.talk is None:
        return
    ending = threading.Thread(target=running.talk.kill, name="end of an attempt", daemon=True)
    ending.start()
    ending.join(2 * GRACE_S)


def _play(
    running: _Running,
    suite: Suite,
    task: Task,
    agent: AgentUnderTest,
    seed: int,
    limits: Limits,
    person: str,
    wrap: Callable[[World], World] | None,
    over: Callable[[], str | None],
    prices: Prices | None,
) -> None:
    try:
        world = prepared(suite, task, seed)
        watched = WatchedWorld(wrap(world) if wrap is not None else world)
        running.start = watched.state()
        running.world = watched
        gates = rules(task.gates)
        counterpart: Counterpart = suite.counterpart(task) if suite.counterpart else _said_once(task)
        approver = suite.approver(task) if suite.approver else _person(task, person)
    except Exception as error:
        why = error.message if isinstance(error, SeatrialError) else f"{type(error).__name__}: {error}"
        raise InfrastructureError(f"the world could not be set up: {why}") from error
    running.tools = offered(watched.tools, gates)
    try:
        talk = Watched(agent.begin(running.tools, seed), over=over, prices=prices)
    except Exception as error:
        running.talk = _never_began(error)
        return
    running.talk = talk
    if running.left:
        talk.kill()
        return
    turns = limits.turns if limits.turns is not None else 2 * task.max_turns if task.max_turns else 50
    running.done = run_episode(
        watched,
        talk,
        counterpart,
        limits=EpisodeLimits(turns=turns, calls=limits.calls, cost_usd=limits.cost_usd),
        approver=approver,
        gates=gates,
        who="simulated_user",
        hashes=True,
    )


def _person(task: Task, usual: str) -> Approver:
    """Who decides on gated calls.

    Raises:
        InputError: the task names someone unknown.
    """
    try:
        return approver_of(str(task.extra.get("approver", usual)))
    except UsageError as error:
        raise InputError(f"task {task.id}: {error.message}", hint=error.hint) from error


def _said_once(task: Task) -> FixedText:
    """The task's input; `extra["meaning"]` is for scripted agents, which cannot read, `extra["replies"]` what the
    one who asks says next."""
    meaning, replies = task.extra.get("meaning"), task.extra.get("replies")
    return FixedText(
        task.input,
        [str(r) for r in replies] if isinstance(replies, list) else [],
        meaning if isinstance(meaning, dict) else {},
    )


class _Silent:
    def send(self, incoming: Any) -> Any:
        raise InfrastructureError("the session never began")


def _never_began(error: Exception) -> Watched:
    talk = Watched(_Silent(), over=lambda: None)
    talk.failure = error
    return talk


def prepared(suite: Suite, task: Task, seed: int) -> World:
    """A fresh world in the task's start state.

    Raises:
        InputError: the task's setup gives no state.
    """
    world: World = suite.world(seed) if suite.world else MemoryWorld("nothing", "1", ())
    setup = plugins.named(task.setup) if isinstance(task.setup, str) else task.setup
    if callable(setup):
        named = [n for n, p in inspect.signature(setup).parameters.items() if p.default is p.empty]
        setup = setup(world) if named == ["world"] else setup(seed) if named else setup()
        if setup is None and named == ["world"]:
            return world
    elif setup is None:
        return world
    if isinstance(setup, WorldStart):
        world.reset(setup)
    elif isinstance(setup, dict):
        world.reset(WorldStart(state=setup, seed=seed))
    else:
        raise InputError(
            f"the setup of task {task.id} gave {type(setup).__name__}",
            hint="a start state: of nothing, of the seed, or of the world, which it then prepares itself",
        )
    return world


def _episode(
    running: _Running,
    suite: Suite,
    task: Task,
    agent: AgentUnderTest,
    trial: int,
    name: str,
    began: float,
    seconds: float,
) -> Episode:
    talk, world, done = running.talk, running.world, running.done
    stopped, status, reason = _ending(running)
    steps = _without_end(done.steps, talk) if done is not None else talk.steps() if talk is not None else ()
    about = Agent(name=agent.name, version=agent.version)
    ref = TaskRef(id=task.id, type=task.type, difficulty=task.difficulty, suite=suite.name, source=task.source)
    if done is not None:
        whole = replace(done, steps=steps)
        trace = trace_of(whole, id=name, agent=about, world=world, task=ref, attempt=trial)
    else:
        source = Provenance(format=FORMAT, reader="seatrial.suites", reader_version=VERSION)
        model = next((s.model for s in reversed(steps) if s.model), None)
        trace = Trace(
            id=name, agent=about, provenance=source, model=model, task=ref, attempt=trial, steps=steps,
            extra={"start": running.start, "stopped": stopped},
        )  # fmt: skip
    usage = total(steps)
    changes = None
    if world is not None and done is not None:
        changes = tuple(msgspec.convert(c, StateChange) for c in trace.extra["changes"])
    return Episode(
        status=status,
        reason=reason,
        trace=replace(trace, totals=Totals(usage=usage, wall=round(seconds, 6))),
        tools=running.tools,
        start=running.start,
        final=done.final if done is not None else None,
        changes=changes,
        stopped=stopped,
        began=began,
        seconds=seconds,
        cost_usd=usage.cost_usd,
        world=None if world is None else world.name,
        world_version=None if world is None else world.version,
    )


def _ending(running: _Running) -> tuple[str | None, Status | None, str]:
    """Why it ended, its status if that is settled, and the reason."""
    talk, world, error, done = running.talk, running.world, running.error, running.done
    if world is not None and world.failure is not None:
        return "infra_error", "error_infra", f"the world broke: {_said(world.failure)}"
    if talk is not None and talk.failure is not None:
        failure = talk.failure
        if isinstance(failure, AgentTimeout):
            return "agent_timeout", "timeout", _said(failure)
        if is_infrastructure(failure):
            return "infra_error", "error_infra", _said(failure)
        return "agent_error", "error_agent", _said(failure)
    if error is not None:
        return "infra_error", "error_infra", _said(error)
    trouble = getattr(talk.inner, "trouble", None) if talk is not None else None
    if done is None and trouble is not None:
        return "infra_error", "error_infra", f"still asking again at the time limit: {_said(trouble)}"
    if done is None:
        return "time_limit", "timeout", "the agent did not answer within the time limit"
    if done.stopped == "infra_error":
        return "infra_error", "error_infra", done.failure or "infrastructure failed"
    stopped = (talk.stopped if talk is not None else None) or done.stopped
    if stopped != "user_left":
        return stopped, "timeout", f"stopped by the {stopped.replace('_', ' ')}"
    return stopped, None, ""


def unfinished(suite: Suite, task: Task, agent: AgentUnderTest, trial: int, name: str, error: BaseException) -> Episode:
    """The episode of an attempt in which something broke that is neither the agent's nor the world's: nothing is
    known of it but why."""
    running = _Running()
    running.error = error
    return _episode(running, suite, task, agent, trial, name, time.time(), 0.0)


def _without_end(steps: tuple[Step, ...], talk: Watched | None) -> tuple[Step, ...]:
    """The steps without the empty turn by which a watched session was ended."""
    if talk is not None and talk.ended and steps and steps[-1].event_class == "agent":
        last = steps[-1]
        if not last.text and not last.tool_calls:
            return steps[:-1]
    return steps


def total(steps: tuple[Step, ...]) -> Usage:
    """Sums over agent steps; a sum is None where no step recorded it, and money also where any step did not."""
    used = [s.usage for s in steps if s.event_class == "agent"]
    known = [u for u in used if u is not None]

    def added(name: str) -> int | None:
        values = [getattr(u, name) for u in known if getattr(u, name) is not None]
        return sum(values) if values else None

    costs = [u.cost_usd if u is not None else None for u in used]
    cost = sum(c for c in costs if c is not None) if costs and None not in costs else None
    return Usage(
        input_tokens=added("input_tokens"),
        output_tokens=added("output_tokens"),
        cached_tokens=added("cached_tokens"),
        cost_usd=cost,
    )


def _said(error: BaseException) -> str:
    text = error.message if isinstance(error, SeatrialError) else f"{type(error).__name__}: {error}"
    return text if len(text) <= 500 else text[:497] + "..."
