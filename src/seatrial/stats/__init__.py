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
    from seatrial.stats.randomisation import (
        RandomisationTest,
        cluster_permutation,
        hypergeometric_draws,
        null_variance,
        row_permutation,
        table_draws,
    )
    from seatrial.stats.ranks import rank_intervals
    from seatrial.stats.resampling import (
        TestResult,
        bootstrap_interval,
        permutation_test,
        sign_flip_interval,
        sign_flip_test,
    )

_WHERE = {
    "RandomisationTest": "randomisation",
    "TestResult": "resampling",
    "beta_posterior": "proportions",
    "bootstrap_interval": "resampling",
    "certified_consistency": "proportions",
    "clopper_pearson": "proportions",
    "cluster_permutation": "randomisation",
    "cluster_se": "clusters",
    "clustered_mean": "clusters",
    "clustered_proportion": "proportions",
    "consistency": "proportions",
    "crossed_se": "clusters",
    "effective_number": "clusters",
    "holm": "multiplicity",
    "hypergeometric_draws": "randomisation",
    "max_t_quantile": "multiplicity",
    "null_variance": "randomisation",
    "pass_at_k": "proportions",
    "pass_hat_k": "proportions",
    "permutation_test": "resampling",
    "rank_intervals": "ranks",
    "ratio_estimate": "clusters",
    "romano_wolf": "multiplicity",
    "row_permutation": "randomisation",
    "runs_for_consistency": "proportions",
    "sign_flip_interval": "resampling",
    "sign_flip_test": "resampling",
    "table_draws": "randomisation",
    "wilson": "proportions",
    "zero_event_upper": "proportions",
    "zero_events_needed": "proportions",
}

__all__ = [
    "RandomisationTest",
    "TestResult",
    "beta_posterior",
    "bootstrap_interval",
    "certified_consistency",
    "clopper_pearson",
    "cluster_permutation",
    "cluster_se",
    "clustered_mean",
    "clustered_proportion",
    "consistency",
    "crossed_se",
    "effective_number",
    "holm",
    "hypergeometric_draws",
    "max_t_quantile",
    "null_variance",
    "pass_at_k",
    "pass_hat_k",
    "permutation_test",
    "rank_intervals",
    "ratio_estimate",
    "romano_wolf",
    "row_permutation",
    "runs_for_consistency",
    "sign_flip_interval",
    "sign_flip_test",
    "table_draws",
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
