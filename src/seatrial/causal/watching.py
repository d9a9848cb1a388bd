"""Looking often without fooling oneself: confidence sequences over a ranking that grows (METHODS 3.4, monitoring)."""

from __future__ import annotations

from collections.abc import Mapping

from seatrial.errors import UsageError
from seatrial.records import Ranking
from seatrial.records.drift import Watched
from seatrial.stats import confidence_sequence, rho_for

FEWEST_CLUSTERS = 40.0


def monitor(ranking: Ranking, v_target: float | Mapping[str, float], *, alpha: float = 0.05) -> tuple[Watched, ...]:
    """Limits of every net improvement that hold at every look, for all models together (alpha/M each).

    `v_target` is the information 1/SE^2 at which the limits should be tightest, by model or for all, *frozen before
    the first look*. Nothing is claimed until every model has forty effective clusters. The caller lets a user enter
    once, when their window closes (Waudby-Smith et al., arXiv 2103.06476).

    Raises:
        UsageError: a target that is missing or not positive.
    """
    rows = [r for r in ranking.models if r.net_improvement is not None and r.model in ranking.baseline]
    thin = [r.model for r in rows if r.g_effective < FEWEST_CLUSTERS]
    out = []
    for row in rows:
        net = row.net_improvement
        assert net is not None
        target = v_target if isinstance(v_target, int | float) else v_target.get(row.model)
        if target is None or not target > 0:
            raise UsageError(f"v_target for {row.model!r} must be a positive number frozen before the first look")
        low = high = None
        why = None
        if thin:
            why = f"fewer than {FEWEST_CLUSTERS:.0f} effective clusters ({', '.join(thin)}): nothing is claimed yet"
        elif not net.se:
            why = net.why or "no standard error"
        else:
            share = alpha / len(rows)
            radius = confidence_sequence(net.se, rho_for(target, share), share)
            low, high = net.value - radius, net.value + radius
        out.append(Watched(model=row.model, value=net.value, low=low, high=high, why=why))
    return tuple(out)
