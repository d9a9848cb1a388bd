"""Two operations from the same states: which rescues they share, and what part of a refresh its content is.

Only tasks on which both operations have an outcome count, replay by replay (METHODS 4; B appendix A).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from seatrial.records import Decomposition, Overlap
from seatrial.recovery.bounds import effect_estimate
from seatrial.recovery.table import Floats, Pairs

ABLATED = {"refresh": ("ablated", "content-ablated", "content_ablated", "refresh-ablated", "refresh_ablated",
                       "ablated-refresh", "ablated_refresh", "content-ablated refresh")}  # fmt: skip
"""Operations and the names under which the same act without its content goes."""

Key = tuple[str, str, str, int]
Both = dict[str, list[tuple[float, float, float]]]


def overlaps(pairs: Pairs, level: float = 0.95, seed: int = 0) -> Iterator[Overlap]:
    """The overlap of every two operations, by agent, cohort, condition and delay; terminated runs are left out."""
    for key, first, second, shared in _shared(pairs):
        yield _overlap(key, first, second, shared, level, seed)


def decompositions(pairs: Pairs, level: float = 0.95, seed: int = 0) -> Iterator[Decomposition]:
    """Refresh = act + content, wherever a refresh and its content-ablated twin have the same tasks."""
    for (agent, cohort, condition, delay), first, second, shared in _shared(pairs):
        whole, ablated = (second, first) if _twin(second, first) else (first, second)
        if not _twin(whole, ablated):
            continue
        y0, a, b = _means(shared)
        full, bare = (b, a) if whole == second else (a, b)
        parts = {"total": full - y0, "act": bare - y0, "content": full - bare}
        made = {
            name: effect_estimate(values, discordant=bool(values.any()), level=level, seed=seed)
            for name, values in parts.items()
        }
        yield Decomposition(
            operation=whole, ablated=ablated, condition=condition, delay=delay, n=len(shared), total=made["total"],
            act=made["act"], content=made["content"], agent=agent or None, cohort=cohort or None,
        )  # fmt: skip


def _twin(whole: str, ablated: str) -> bool:
    return ablated in ABLATED.get(whole, ())


def _shared(pairs: Pairs) -> Iterator[tuple[Key, str, str, Both]]:
    """For every two operations at one place: by task, the outcomes (none, first, second) of each replay of both."""
    by: dict[Key, dict[str, dict[tuple[str, int], tuple[float, float]]]] = {}
    live = pairs.where(~pairs.terminated)
    for i in range(len(live)):
        key = (str(live.agent[i]), str(live.cohort[i]), str(live.condition[i]), int(live.delay[i]))
        place = by.setdefault(key, {}).setdefault(str(live.operation[i]), {})
        place[str(live.task[i]), int(live.replay[i])] = (float(live.y0[i]), float(live.y1[i]))
    for key in sorted(by):
        # A whole operation comes before its ablated twin, as in the published table.
        names = sorted(by[key], key=lambda name: (any(name in twins for twins in ABLATED.values()), name))
        for first, second in combinations(names, 2):
            a, b = by[key][first], by[key][second]
            shared: Both = {}
            for task, replay in sorted(a.keys() & b.keys()):
                y0 = (a[task, replay][0] + b[task, replay][0]) / 2.0
                shared.setdefault(task, []).append((y0, a[task, replay][1], b[task, replay][1]))
            if shared:
                yield key, first, second, shared


def _means(shared: Both) -> tuple[Floats, Floats, Floats]:
    means = np.array([np.mean(rows, axis=0) for _, rows in sorted(shared.items())])
    return means[:, 0], means[:, 1], means[:, 2]


def _overlap(key: Key, first: str, second: str, shared: Both, level: float, seed: int) -> Overlap:
    cells = np.array([np.mean([_eight(*row) for row in rows], axis=0) for _, rows in sorted(shared.items())])
    total = dict(zip(_NAMES, cells.sum(axis=0).tolist(), strict=True))
    y0, a, b = _means(shared)
    difference = a - b
    agent, cohort, condition, delay = key
    agree = total["both pass"] + total["all fail"] + total["both rescue"] + total["both harm"]
    return Overlap(
        first=first, second=second, condition=condition, delay=delay, n=len(shared),
        stable_success=total["both pass"], stable_failure=total["all fail"], shared_rescues=total["both rescue"],
        shared_harms=total["both harm"],
        first_only={"R": total["first rescues"], "H": total["first harms"]},
        second_only={"R": total["second rescues"], "H": total["second harms"]},
        agree=agree, net_first=float((a - y0).sum()), net_second=float((b - y0).sum()),
        difference=effect_estimate(difference, discordant=bool(difference.any()), level=level, seed=seed),
        agent=agent or None, cohort=cohort or None,
    )  # fmt: skip


_NAMES = ("both pass", "all fail", "both rescue", "both harm", "first rescues", "second rescues", "first harms",
          "second harms")  # fmt: skip


def _eight(y0: float, a: float, b: float) -> tuple[float, ...]:
    """The chance of each of the eight outcomes of (none, first, second); graded outcomes count as chances."""
    n0, na, nb = 1.0 - y0, 1.0 - a, 1.0 - b
    return (y0 * a * b, n0 * na * nb, n0 * a * b, y0 * na * nb, n0 * a * nb, n0 * na * b, y0 * na * b, y0 * a * nb)
