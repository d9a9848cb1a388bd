"""The demo's sessions: users with jobs, agents at work under the arms that were drawn for them, logs on disk."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from seatrial.errors import UsageError
from seatrial.examples import claude_log, jobs, users, workspace
from seatrial.examples.habits import FLEET, Profile
from seatrial.examples.jobs import Job
from seatrial.examples.sentences import Sentences, built_in
from seatrial.examples.users import Persona
from seatrial.examples.worker import agent
from seatrial.records import WorldStart
from seatrial.world import Limits, SimulatedClock, Transcript, run_episode

FIRST_DAY = 1_772_438_400.0
"""2 March 2026, 08:00 UTC: sessions start in the ten hours after this, on fourteen days."""
DAYS = 14
MAX_JOBS = 3


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """One session before anybody is assigned to it: who asks for what, where, when."""

    id: str
    persona: Persona
    jobs: tuple[Job, ...]
    start: WorldStart
    time: float
    seed: int


class Worked(msgspec.Struct, frozen=True, kw_only=True):
    """One session afterwards. `right` tells for each job asked whether it came out as asked in the end, by the
    world's state (or the answer); `log` is None where none was written."""

    plan: Plan
    agent: str
    transcript: Transcript
    right: tuple[bool, ...]
    log: Path | None = None


def plan(n: int, seed: int) -> tuple[Plan, ...]:
    """`n` planned sessions in time order; the same (n, seed) gives the same plan, whatever agents do with it."""
    people = users.population(seed=seed)
    draws = random.Random(f"plan:{seed}")
    times = sorted(FIRST_DAY + 86_400 * draws.randrange(DAYS) + 36_000 * draws.random() for _ in range(n))
    return tuple(_planned(i, seed, draws, people, round(time, 3)) for i, time in enumerate(times))


def _planned(i: int, seed: int, draws: random.Random, people: tuple[Persona, ...], time: float) -> Plan:
    persona = draws.choices(people, [p.weight for p in people])[0]
    n_jobs = 1
    while n_jobs < MAX_JOBS and draws.random() < persona.more:
        n_jobs += 1
    own = draws.getrandbits(32)
    start = workspace.start(own)
    asked = tuple(jobs.make(kind, start.state, draws) for kind in draws.sample(list(jobs.KINDS), n_jobs))
    name = str(uuid.UUID(int=draws.getrandbits(128), version=4))
    return Plan(id=name, persona=persona, jobs=asked, start=start, time=time, seed=own)


def work(planned: Plan, profile: Profile, sentences: Sentences) -> Worked:
    """One agent works one planned session to its end; nothing is written."""
    world = workspace.world(planned.seed)
    world.reset(planned.start)
    user = users.SimulatedUser(planned.persona, planned.jobs, sentences, planned.seed)
    transcript = run_episode(
        world,
        agent(profile).begin(world.tools, planned.seed),
        user,
        limits=Limits(turns=400, calls=400),
        approver=user,
        clock=SimulatedClock(planned.time),
    )
    right = tuple(user.right.get(i, False) for i in range(max(user.right, default=-1) + 1))
    return Worked(plan=planned, agent=profile.name, transcript=transcript, right=right)


def generate(
    folder: Path,
    plans: Sequence[Plan],
    arms: Mapping[str, str],
    *,
    sentences: Sentences | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Worked, ...]:
    """Let the agents named by `arms` (session id -> agent) work the planned sessions in time order, and write one
    Claude Code log each under `folder`. Every user has a project folder of their own.

    Raises:
        UsageError: a session without an arm, or an arm that is no member of the fleet.
    """
    sentences = sentences or built_in()
    profiles = {profile.name: profile for profile in FLEET}
    done = []
    for i, planned in enumerate(plans):
        arm = arms.get(planned.id)
        if arm not in profiles:
            raise UsageError(f"session {planned.id} has no arm of the fleet (got {arm!r})")
        worked = work(planned, profiles[arm], sentences)
        session = claude_log.Session(id=planned.id, cwd=f"/home/{planned.persona.name}/harbour")
        log = claude_log.write(folder, session, worked.transcript.steps)
        done.append(msgspec.structs.replace(worked, log=log))
        if progress is not None:
            progress(i + 1, len(plans))
    return tuple(done)
