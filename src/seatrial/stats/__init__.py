"""Numbers to estimates: pure mathematics, no files, no records of sessions, no side effects.

Arrays of numbers go in; `seatrial.records.Estimate` and small frozen results come out. Every function names
its METHODS section or paper. Names are loaded on first use (PEP 562), so importing the room costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seatrial.stats.clusters import cluster_se, clustered_mean, crossed_se, effective_number, ratio_estimate
    from seatrial.stats.multiplicity import holm, max_t_quantile, romano_wolf
    from seatrial.stats.proportions import (
        beta_posterior,
        certified_consistency,
        clopper_pearson,
        clustered_proportion,
        consistency,
        pass_at_k,
        pass_hat_k,
        runs_for_consistency,
        wilson,
        zero_event_upper,
        zero_events_needed,
    )
    from seatrial.stats.ranks import rank_intervals

_WHERE = {
    "beta_posterior": "proportions",
    "certified_consistency": "proportions",
    "clopper_pearson": "proportions",
    "cluster_se": "clusters",
    "clustered_mean": "clusters",
    "clustered_proportion": "proportions",
    "consistency": "proportions",
    "crossed_se": "clusters",
    "effective_number": "clusters",
    "holm": "multiplicity",
    "max_t_quantile": "multiplicity",
    "pass_at_k": "proportions",
    "pass_hat_k": "proportions",
    "rank_intervals": "ranks",
    "ratio_estimate": "clusters",
    "romano_wolf": "multiplicity",
    "runs_for_consistency": "proportions",
    "wilson": "proportions",
    "zero_event_upper": "proportions",
    "zero_events_needed": "proportions",
}

__all__ = [
    "beta_posterior",
    "certified_consistency",
    "clopper_pearson",
    "cluster_se",
    "clustered_mean",
    "clustered_proportion",
    "consistency",
    "crossed_se",
    "effective_number",
    "holm",
    "max_t_quantile",
    "pass_at_k",
    "pass_hat_k",
    "rank_intervals",
    "ratio_estimate",
    "romano_wolf",
    "runs_for_consistency",
    "wilson",
    "zero_event_upper",
    "zero_events_needed",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
