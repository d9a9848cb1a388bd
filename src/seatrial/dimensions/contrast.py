"""Two agents' runs of the same tasks: which dimensions separate them, dimension by dimension (METHODS 0.5, 5).

If both agents behaved alike at a task, their runs of it could be swapped. So runs change places inside each task, and
the mean difference over tasks is compared with what such exchanges give. That speaks of these tasks; it needs no more
than one of them, and holds for D3 too, which only a task's runs have together. Holm's adjustment is over dimensions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from seatrial.dimensions.aggregate import by_task, scored
from seatrial.records import DimensionValue
from seatrial.stats import holm

DRAWS = 4999
Floats = NDArray[np.float64]


class Contrast(msgspec.Struct, frozen=True, kw_only=True):
    """One dimension of two agents. `difference` is first minus second, the mean over `tasks` common tasks; `p_value`
    of no difference, `p_holm` adjusted over the dimensions; `separated` at 5%. None: `why`."""

    dimension: str
    difference: float | None
    p_value: float | None
    p_holm: float | None
    separated: bool
    tasks: int
    why: str = ""


def contrast(
    first: Mapping[str, Sequence[DimensionValue]],
    second: Mapping[str, Sequence[DimensionValue]],
    *,
    seed: int = 0,
    draws: int = DRAWS,
) -> tuple[Contrast, ...]:
    """Every dimension that both have, in order. D3 is of the outcomes of runs, the others of their values."""
    rng = np.random.default_rng(seed)
    found: list[Contrast] = []
    for name in sorted(first.keys() & second.keys()):
        together = name == "D3"
        a, b = _runs(first[name], together), _runs(second[name], together)
        least = 2 if together else 1
        common = [t for t in a if t in b and len(a[t]) >= least and len(b[t]) >= least]
        if not common:
            found.append(Contrast(dimension=name, difference=None, p_value=None, p_holm=None, separated=False, tasks=0,
                                  why="no task at which both have a value"))  # fmt: skip
            continue
        difference, p = _test([(a[t], b[t]) for t in common], together, rng, draws)
        found.append(Contrast(dimension=name, difference=difference, p_value=p, p_holm=None, separated=False,
                              tasks=len(common)))  # fmt: skip
    known = [c for c in found if c.p_value is not None]
    adjusted = dict(zip([c.dimension for c in known], holm([c.p_value or 0.0 for c in known]), strict=True))
    return tuple(
        msgspec.structs.replace(c, p_holm=float(adjusted[c.dimension]), separated=bool(adjusted[c.dimension] <= 0.05))
        if c.dimension in adjusted else c
        for c in found
    )  # fmt: skip


def _runs(values: Sequence[DimensionValue], together: bool) -> dict[str, Floats]:
    out = {}
    for task, rows in by_task(scored(values)).items():
        known = [v for v in (r.numerator if together else r.value for r in rows) if v is not None]
        if known:
            out[task] = np.asarray(known, dtype=np.float64)
    return out


def _test(
    tasks: Sequence[tuple[Floats, Floats]], together: bool, rng: np.random.Generator, draws: int
) -> tuple[float, float]:
    observed = 0.0
    scale = 0.0
    shuffled = np.zeros(draws)
    for a, b in tasks:
        pooled = np.concatenate([a, b])
        observed += float(_value(a[None, :], together)[0] - _value(b[None, :], together)[0])
        scale += float(np.abs(pooled).max(initial=1.0))
        if pooled.min() == pooled.max():
            continue
        mixed = rng.permuted(np.tile(pooled, (draws, 1)), axis=1)
        shuffled += _value(mixed[:, : a.size], together) - _value(mixed[:, a.size :], together)
    extreme = int((np.abs(shuffled) >= abs(observed) - 1e-12 * scale).sum())
    return observed / len(tasks), (1 + extreme) / (1 + draws)


def _value(runs: Floats, together: bool) -> Floats:
    made: Floats = 1.0 - 4.0 * runs.var(axis=1, ddof=1) if together else runs.mean(axis=1)
    return made
