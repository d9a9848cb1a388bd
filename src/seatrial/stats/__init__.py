"""Numbers to estimates: pure mathematics, no files, no records of sessions, no side effects.

Arrays of numbers go in; `seatrial.records.Estimate` and small frozen results come out. Every function names
its METHODS section or paper. Names are loaded on first use (PEP 562), so importing the room costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seatrial.stats.agreement import Coefficient, cohen_kappa, krippendorff_alpha, raw_agreement, table_ratings
    from seatrial.stats.alignment import Alignment, align, match_unordered
    from seatrial.stats.clusters import cluster_se, clustered_mean, crossed_se, effective_number, ratio_estimate
    from seatrial.stats.corrected import ppi_mean, rogan_gladen
    from seatrial.stats.logistic import LogisticFit, auc, fit_logistic, log_loss
    from seatrial.stats.multiplicity import holm, max_t_quantile, romano_wolf
    from seatrial.stats.paired import interaction, mcnemar_exact, paired_mean, zero_discordant
    from seatrial.stats.power import attempts_needed, clustered_sample_size, mde, point_rule_false_alarm, sample_size
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
    from seatrial.stats.ratio import sample_ratio_test
    from seatrial.stats.resampling import (
        TestResult,
        bootstrap_interval,
        permutation_test,
        sign_flip_interval,
        sign_flip_test,
    )
    from seatrial.stats.sequential import confidence_sequence, mixture_bound, rho_for

_WHERE = {
    "Alignment": "alignment",
    "Coefficient": "agreement",
    "LogisticFit": "logistic",
    "RandomisationTest": "randomisation",
    "TestResult": "resampling",
    "align": "alignment",
    "attempts_needed": "power",
    "auc": "logistic",
    "beta_posterior": "proportions",
    "bootstrap_interval": "resampling",
    "certified_consistency": "proportions",
    "clopper_pearson": "proportions",
    "cluster_permutation": "randomisation",
    "cluster_se": "clusters",
    "clustered_mean": "clusters",
    "clustered_proportion": "proportions",
    "clustered_sample_size": "power",
    "cohen_kappa": "agreement",
    "confidence_sequence": "sequential",
    "consistency": "proportions",
    "crossed_se": "clusters",
    "effective_number": "clusters",
    "fit_logistic": "logistic",
    "holm": "multiplicity",
    "hypergeometric_draws": "randomisation",
    "interaction": "paired",
    "krippendorff_alpha": "agreement",
    "log_loss": "logistic",
    "match_unordered": "alignment",
    "max_t_quantile": "multiplicity",
    "mcnemar_exact": "paired",
    "mde": "power",
    "mixture_bound": "sequential",
    "null_variance": "randomisation",
    "paired_mean": "paired",
    "pass_at_k": "proportions",
    "pass_hat_k": "proportions",
    "permutation_test": "resampling",
    "point_rule_false_alarm": "power",
    "ppi_mean": "corrected",
    "rank_intervals": "ranks",
    "ratio_estimate": "clusters",
    "raw_agreement": "agreement",
    "rho_for": "sequential",
    "rogan_gladen": "corrected",
    "romano_wolf": "multiplicity",
    "row_permutation": "randomisation",
    "runs_for_consistency": "proportions",
    "sample_ratio_test": "ratio",
    "sample_size": "power",
    "sign_flip_interval": "resampling",
    "sign_flip_test": "resampling",
    "table_draws": "randomisation",
    "table_ratings": "agreement",
    "wilson": "proportions",
    "zero_discordant": "paired",
    "zero_event_upper": "proportions",
    "zero_events_needed": "proportions",
}

__all__ = [
    "Alignment",
    "Coefficient",
    "LogisticFit",
    "RandomisationTest",
    "TestResult",
    "align",
    "attempts_needed",
    "auc",
    "beta_posterior",
    "bootstrap_interval",
    "certified_consistency",
    "clopper_pearson",
    "cluster_permutation",
    "cluster_se",
    "clustered_mean",
    "clustered_proportion",
    "clustered_sample_size",
    "cohen_kappa",
    "confidence_sequence",
    "consistency",
    "crossed_se",
    "effective_number",
    "fit_logistic",
    "holm",
    "hypergeometric_draws",
    "interaction",
    "krippendorff_alpha",
    "log_loss",
    "match_unordered",
    "max_t_quantile",
    "mcnemar_exact",
    "mde",
    "mixture_bound",
    "null_variance",
    "paired_mean",
    "pass_at_k",
    "pass_hat_k",
    "permutation_test",
    "point_rule_false_alarm",
    "ppi_mean",
    "rank_intervals",
    "ratio_estimate",
    "raw_agreement",
    "rho_for",
    "rogan_gladen",
    "romano_wolf",
    "row_permutation",
    "runs_for_consistency",
    "sample_ratio_test",
    "sample_size",
    "sign_flip_interval",
    "sign_flip_test",
    "table_draws",
    "table_ratings",
    "wilson",
    "zero_discordant",
    "zero_event_upper",
    "zero_events_needed",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
