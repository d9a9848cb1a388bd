"""Routers against CIR on nine processes with known truth, the certificate's error rate, and the peers' answers.

Usage: python benchmarks/recovery.py [REPETITIONS] [CERTIFY_REPETITIONS] [--quick] [--json]   (defaults 40 and 60)

Part 1 fits CIR and the direct router on the same 93 tasks, both tuned to 2% clean harm, and plays them on fresh tasks.
Part 2 does it with five replays per branch. Part 3 certifies at 2% on 250 tasks and counts the certificates that do not
hold. Part 4 compares our fit of CIR's models with scikit-learn's and our exact McNemar with statsmodels'.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "quality"))

import numpy as np
from recovery_designs import certify, compare

from contract import row, told
from seatrial.recovery.cir import logistic
from seatrial.recovery.episodes import design
from seatrial.recovery.simulate import PROCESSES, episodes
from seatrial.stats import mcnemar_exact


def main(quick: bool) -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 2 if quick else 40
    few = int(sys.argv[2]) if len(sys.argv) > 2 else 2 if quick else 60
    for replays in (1, 5):
        print(f"\nfitted on 93 tasks x 4 conditions, {replays} replay(s) per branch, {n} repetitions; points")
        _table(n, replays)
    print(f"\ncertified at 2% (95% confidence) on 250 tasks, {few} repetitions; points")
    print(f"{'process':28s}{'certified':>10s}{'gain':>8s}{'harm':>8s}{'harm > 2%':>11s}")
    for p in PROCESSES:
        c = certify(p.name, repetitions=few)
        broken = (c.harm > 2).mean()
        said = f"{c.feasible.mean():10.0%}{c.gain.mean():8.2f}{c.harm.mean():8.2f}{broken:11.1%}"
        print(f"{p.name:28s}{said}", flush=True)
        row(
            f"certificates that do not hold, {p.name}",
            100 * float(broken),
            "%",
            note=f"{c.feasible.mean():.0%} certified",
        )
    peers()


def _table(n: int, replays: int) -> None:
    heads = ("CIR gain", "harm", "> 2%", "ours gain", "harm", "> 2%", "ours at CIR's harm, minus CIR")
    print(f"{'process':28s}" + "".join(f"{h:>{w}s}" for h, w in zip(heads, (9, 7, 7, 10, 7, 7, 32), strict=True)))
    ahead = []
    for p in PROCESSES:
        c = compare(p.name, repetitions=n, replays=replays)
        d, se = c.ahead
        ahead.append(d)
        print(
            f"{p.name:28s}{c.cir_gain.mean():9.2f}{c.cir_harm.mean():7.2f}{(c.cir_harm > 2).mean():7.0%}"
            f"{c.gain.mean():10.2f}{c.harm.mean():7.2f}{(c.harm > 2).mean():7.0%}{d:+24.2f} +- {se:.2f}"
            f"{'  exact' if p.exact else ''}", flush=True,
        )  # fmt: skip
    row(f"gain over CIR at equal harm, {replays} replay(s)", float(np.mean(ahead)), "points")
    print(f"{'mean over the grid':28s}{np.mean(ahead):+71.2f}")


def peers() -> None:
    """The same data through scikit-learn and statsmodels, where they are installed."""
    e = episodes("three models, independent", 93, seed=1)
    x, y = design(e), e.y1.ravel()
    begun = time.perf_counter()
    ours = logistic(x, y)
    spent = time.perf_counter() - begun
    try:
        from sklearn.linear_model import LogisticRegression
        from statsmodels.stats.contingency_tables import mcnemar
    except ImportError as error:
        print(f"\npeers: {error.name} is not installed")
        row("the same fit and test by peers", peer=True, missing=f"{error.name} is not installed")
        return
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    begun = time.perf_counter()
    peer = LogisticRegression(C=0.1, tol=1e-10, max_iter=10_000).fit(z, y)
    theirs = time.perf_counter() - begun
    apart = np.abs(peer.predict_proba(z)[:, 1] - ours.probability(x)).max()
    row("CIR's three models, one fit: ours", 1000 * spent, "ms")
    row("CIR's three models, one fit: scikit-learn", 1000 * theirs, "ms", peer=True, times=theirs / spent,
        note=f"probabilities apart by {apart:.1e}")  # fmt: skip
    print(f"\nCIR's models: largest difference of a probability from scikit-learn {apart:.1e}; "
          f"{1000 * spent:.1f} ms against {1000 * theirs:.1f} ms")  # fmt: skip
    for b, c in ((23, 1), (17, 10), (11, 2)):
        p, q = mcnemar_exact(b, c).p_value, mcnemar([[0, b], [c, 0]], exact=True).pvalue
        print(f"exact McNemar of {b} and {c}: {p:.6g}, statsmodels {q:.6g}")


if __name__ == "__main__":
    with told("recovery") as small:
        main(small)
