"""Pairs to the four cells: what an operation rescues, what it harms, and how sure that is (METHODS 4.1-4.3).

The task is the unit: replays are averaged inside it first. Rescue of a task with replays is the share of its replay
pairs, one continuation without and one with recovery, that fail without and pass with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seatrial.errors import EvidenceError
from seatrial.records import Contrast, ContrastRow, Dropped, Interaction, Timing
from seatrial.recovery import overlap
from seatrial.recovery.bounds import effect_estimate, harm_upper
from seatrial.recovery.table import CLEAN, Floats, Pairs
from seatrial.stats import mcnemar_exact, sign_flip_test

SIGN_FLIPS = 100_000
BOOTSTRAP = 10_000
PLACEBO_SOURCES = ("placebo pairs", "replays")


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """The tasks of one agent, cohort, condition, operation and delay, in task order; outcomes averaged over replays.

    `floor` is a task's placebo rescue (and harm) from its replays without recovery, NaN with fewer than two.
    """

    agent: str
    cohort: str
    condition: str
    operation: str
    delay: int
    tasks: NDArray[np.str_]
    m0: Floats
    m1: Floats
    pairs: NDArray[np.int64]
    binary: bool
    terminated: NDArray[np.bool_]
    floor: Floats

    @property
    def rescue(self) -> Floats:
        """Share of replay pairs that fail without and pass with recovery, by task."""
        return (1.0 - self.m0) * self.m1

    @property
    def harm(self) -> Floats:
        """Share of replay pairs that pass without and fail with recovery, by task."""
        return self.m0 * (1.0 - self.m1)

    @property
    def effect(self) -> Floats:
        """Rescue minus harm, by task."""
        return self.m1 - self.m0

    def at(self, tasks: NDArray[np.str_]) -> NDArray[np.int64]:
        """Where these tasks, all of them present, stand."""
        return np.searchsorted(self.tasks, tasks)


def contrast(pairs: Pairs, *, level: float = 0.95, seed: int = 0) -> Contrast:
    """Everything that a pairs table says about rescue and harm, cohort by cohort.

    Intervals are percentile bootstraps over tasks (10,000 draws), tests flip signs over tasks (100,000 draws).

    Raises:
        EvidenceError: there is no pair with a recovery operation.
    """
    real = pairs.where(~pairs.placebo)
    if not len(real):
        raise EvidenceError("every pair is a placebo, so there is nothing to contrast",
                            hint="add pairs with an operation")  # fmt: skip
    found = cells(real)
    floors = _floors(pairs.where(pairs.placebo))
    sizes = {key: len(set(real.task[(real.agent == key[0]) & (real.cohort == key[1])].tolist()))
             for key in {(c.agent, c.cohort) for c in found}}  # fmt: skip
    rows = tuple(_row(c, floors, sizes[c.agent, c.cohort], level, seed) for c in found)
    return Contrast(
        rows=rows,
        interactions=tuple(_interactions(found, level, seed)),
        timing=tuple(_timing(found, level, seed)),
        overlaps=tuple(overlap.overlaps(real, level, seed)),
        decompositions=tuple(overlap.decompositions(real, level, seed)),
        tasks=len(set(pairs.task.tolist())),
        pairs=len(pairs),
        level=level,
        dropped=_dropped(pairs),
        warnings=tuple(_warnings(found, rows, pairs)),
    )


def cells(pairs: Pairs) -> list[Cell]:
    """Pairs by agent, cohort, operation, condition (clean first) and delay, one value per task."""
    keys = sorted(
        {
            (a, c, o, k, int(d))
            for a, c, o, k, d in zip(pairs.agent.tolist(), pairs.cohort.tolist(), pairs.operation.tolist(),
                                     pairs.condition.tolist(), pairs.delay.tolist(), strict=True)
        },
        key=lambda key: (key[0], key[1], key[2], key[3] != CLEAN, key[3], key[4]),
    )  # fmt: skip
    out = []
    for agent, cohort, operation, condition, delay in keys:
        part = pairs.where(
            (pairs.agent == agent) & (pairs.cohort == cohort) & (pairs.operation == operation)
            & (pairs.condition == condition) & (pairs.delay == delay)
        )  # fmt: skip
        out.append(_cell(part, agent, cohort, condition, operation, delay))
    return out


def _cell(part: Pairs, agent: str, cohort: str, condition: str, operation: str, delay: int) -> Cell:
    tasks, code = np.unique(part.task, return_inverse=True)
    n = np.bincount(code)
    m0, m1 = np.bincount(code, part.y0) / n, np.bincount(code, part.y1) / n
    # Two different continuations without recovery, drawn from the replays: 1/(K - 1) counts out a replay with itself.
    floor = np.where(n > 1, m0 * (1.0 - m0) * n / np.maximum(n - 1, 1), np.nan)
    return Cell(
        agent=agent, cohort=cohort, condition=condition, operation=operation, delay=delay, tasks=tasks, m0=m0, m1=m1,
        pairs=n.astype(np.int64), binary=bool(np.isin(np.concatenate([part.y0, part.y1]), (0.0, 1.0)).all()),
        terminated=np.bincount(code, part.terminated) > 0, floor=floor,
    )  # fmt: skip


def _floors(placebos: Pairs) -> dict[tuple[str, str, str, int], dict[str, float]]:
    """Rescue (which is also harm) between two continuations without recovery, by cell and task, either order."""
    out: dict[tuple[str, str, str, int], dict[str, float]] = {}
    if not len(placebos):
        return out
    either = (placebos.y0 * (1.0 - placebos.y1) + placebos.y1 * (1.0 - placebos.y0)) / 2.0
    sums: dict[tuple[str, str, str, int], dict[str, list[float]]] = {}
    for i in range(len(placebos)):
        key = (str(placebos.agent[i]), str(placebos.cohort[i]), str(placebos.condition[i]), int(placebos.delay[i]))
        sums.setdefault(key, {}).setdefault(str(placebos.task[i]), []).append(float(either[i]))
    for key, tasks in sums.items():
        out[key] = {task: sum(v) / len(v) for task, v in tasks.items()}
    return out


def _row(c: Cell, floors: dict[tuple[str, str, str, int], dict[str, float]], size: int, level: float, seed: int
         ) -> ContrastRow:  # fmt: skip
    single = c.binary and bool((c.pairs == 1).all())
    alive = ~c.terminated
    n_terminated = int(c.terminated.sum())
    return ContrastRow(
        agent=c.agent or None,
        cohort=c.cohort or None,
        condition=c.condition,
        operation=c.operation,
        delay=c.delay,
        n=c.tasks.size,
        n_cohort=size,
        n_pairs=int(c.pairs.sum()),
        stable_success=float((c.m0 * c.m1).mean()),
        rescue=float(c.rescue.mean()),
        harm=float(c.harm.mean()),
        stable_failure=float(((1.0 - c.m0) * (1.0 - c.m1)).mean()),
        effect=effect_estimate(c.effect, discordant=_discordant(c), level=level, seed=seed),
        p_value=sign_flip_test(c.effect, seed=seed, draws=SIGN_FLIPS).p_value,
        mcnemar=mcnemar_exact(round(c.rescue.sum()), round(c.harm.sum())).p_value if single else None,
        harm_upper=harm_upper(c.harm),
        placebo=_placebo(c, floors.get((c.agent, c.cohort, c.condition, c.delay)), level, seed),
        n_terminated=n_terminated,
        without_terminated=effect_estimate(
            c.effect[alive], discordant=bool((c.rescue + c.harm)[alive].any()), level=level, seed=seed
        )
        if n_terminated and alive.any()
        else None,
    )


def _discordant(c: Cell) -> bool:
    return bool((c.rescue + c.harm).any())


def _placebo(c: Cell, given: dict[str, float] | None, level: float, seed: int) -> dict[str, object] | None:
    """The floor and the excess over it, on the tasks that have both; None where nothing measures the floor."""
    # Replays without recovery give every ordered pair of two different ones; placebo pairs of the same replays do not.
    floor, source = c.floor, PLACEBO_SOURCES[1]
    if given and np.isnan(floor).any():
        measured = np.array([given.get(t, np.nan) for t in c.tasks.tolist()])
        floor, source = np.where(np.isnan(floor), measured, floor), PLACEBO_SOURCES[0]
    known = np.isfinite(floor)
    if not known.any():
        return None
    rescue, harm = (c.rescue - floor)[known], (c.harm - floor)[known]
    return {
        "floor": float(floor[known].mean()),
        "n": int(known.sum()),
        "source": source,
        "rescue_excess": effect_estimate(rescue, discordant=bool(rescue.any()), level=level, seed=seed),
        "harm_excess": effect_estimate(harm, discordant=bool(harm.any()), level=level, seed=seed),
    }


def _interactions(found: Sequence[Cell], level: float, seed: int) -> Iterator[Interaction]:
    clean = {(c.agent, c.cohort, c.operation, c.delay): c for c in found if c.condition == CLEAN}
    for c in found:
        base = clean.get((c.agent, c.cohort, c.operation, c.delay))
        if c.condition == CLEAN or base is None:
            continue
        difference = _paired(c, base)
        if difference is None:
            continue
        discordant = _discordant(c) or _discordant(base)
        yield Interaction(
            operation=c.operation, delay=c.delay, condition=c.condition, agent=c.agent or None, cohort=c.cohort or None,
            difference=effect_estimate(difference, discordant=discordant, level=level, seed=seed),
            p_value=sign_flip_test(difference, seed=seed, draws=SIGN_FLIPS).p_value,
        )  # fmt: skip


def _timing(found: Sequence[Cell], level: float, seed: int) -> Iterator[Timing]:
    first: dict[tuple[str, str, str, str], Cell] = {}
    for c in found:
        key = (c.agent, c.cohort, c.operation, c.condition)
        if key not in first:
            first[key] = c
            continue
        difference = _paired(c, first[key])
        if difference is None:
            continue
        discordant = _discordant(c) or _discordant(first[key])
        yield Timing(
            operation=c.operation, condition=c.condition, delay=c.delay, since=first[key].delay, agent=c.agent or None,
            cohort=c.cohort or None,
            difference=effect_estimate(difference, discordant=discordant, level=level, seed=seed),
        )  # fmt: skip


def _paired(second: Cell, first: Cell) -> Floats | None:
    """Effect of `second` minus effect of `first` on the tasks that both have; None where they share none."""
    common = np.intersect1d(second.tasks, first.tasks)
    if not common.size:
        return None
    return second.effect[second.at(common)] - first.effect[first.at(common)]


def _dropped(pairs: Pairs) -> tuple[Dropped, ...]:
    return tuple(
        Dropped(what=f"column {name}", n=len(pairs), why="neither a known column nor numbers: not a feature")
        for name in pairs.ignored
    )


def _warnings(found: Sequence[Cell], rows: Sequence[ContrastRow], pairs: Pairs) -> Iterator[str]:
    for agent, cohort in sorted({(c.agent, c.cohort) for c in found}):
        clean = [c for c in found if (c.agent, c.cohort, c.condition) == (agent, cohort, CLEAN)]
        label = f"cohort {cohort}" if cohort else "these pairs"
        if clean and all((c.m0 == 1.0).all() for c in clean):
            yield f"{label}: every run without intervention succeeds when clean, so a clean rescue is impossible"
        if not clean:
            yield f"{label}: no clean observations, so harm to undisturbed runs and the interaction are not known"
    short = [r for r in rows if r.n < r.n_cohort]
    if short:
        worst = min(short, key=lambda r: r.n / r.n_cohort)
        yield (f"{len(short)} of {len(rows)} rows lack tasks of their cohort, at worst {worst.n} of {worst.n_cohort} "
               f"({worst.condition}, {worst.operation}, delay {worst.delay})")  # fmt: skip
    if not any(r.placebo for r in rows):
        yield "no placebo pairs and no replays: the noise of a stochastic agent cannot be told from rescue and harm"


def row(result: Contrast, condition: str, operation: str, delay: int, cohort: str | None = None) -> ContrastRow:
    """The row of this condition, operation and delay.

    Raises:
        EvidenceError: there is none.
    """
    for r in result.rows:
        if (r.condition, r.operation, r.delay) == (condition, operation, delay) and cohort in (None, r.cohort):
            return r
    raise EvidenceError(f"no pairs of {operation} under {condition} at delay {delay}")
