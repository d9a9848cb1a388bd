"""Numbers that generalise beyond their sample (METHODS 0.3)."""

from __future__ import annotations

import msgspec


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A value with its interval.

    `low` and `high` bound the interval of confidence `level`; both None when no interval is defensible, and
    `why` then says so. `n` counts observations, `n_clusters` the units that were resampled. `method` names
    estimator and interval, e.g. ``post-stratified, CR3 t``. `se` is the standard error where one exists.
    """

    value: float
    low: float | None
    high: float | None
    level: float
    n: int
    n_clusters: int
    method: str
    se: float | None = None
    why: str | None = None


class RankInterval(msgspec.Struct, frozen=True, kw_only=True):
    """Rank by point estimate (1 is best) and simultaneous bounds on the true rank."""

    value: int
    low: int
    high: int


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One check behind a verdict: `ok` None means that it does not apply; `why` is in plain words."""

    name: str
    ok: bool | None
    value: float | str | None
    why: str


class Dropped(msgspec.Struct, frozen=True, kw_only=True):
    """Something that does not count in a result, how many, and why."""

    what: str
    n: int
    why: str
