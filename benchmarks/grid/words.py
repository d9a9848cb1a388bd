"""What the page says in words: how to read it, what each table measures, and why a method falls short."""

from __future__ import annotations

from grid import families, gates, labels, paired, ranking, shares

OPENING = [
    "Each row is a simulation with known truth: how often the interval holds it (coverage), how often a test at",
    "5% or an interval rejects where there is no effect (type I error), how often where there is one (power), and",
    "how wide the interval is on average. The number after ± is the Monte Carlo error of the row. **low** marks",
    "coverage more than two such errors below the promised 95%, **high** a type I error so far above the promised",
    "5%. Methods of this project are bold; the others are peers, called as their manuals say, on the same samples",
    "(slow ones on the first of them). A *foil* is a wrong way on purpose. *Refused* is the share of samples on",
    "which a method gives no interval: with fewer than five effective users of some model rank prints a reason",
    "and no number, and those samples count for nothing. Power of a method whose type I error is high means",
    "nothing.",
]

ABOUT: dict[str, list[str]] = {
    ranking.TABLE: [
        "Three models, binary outcomes whose logit is model × task type + user + user × model; the difference of",
        "the last and the first. Peers that take one grouping get the users; those that take no strata get none.",
        "The randomisation test is of the net improvement of the last model; it tests that models make no",
        "difference to anybody, which without an effect here holds only on average (users still suit models",
        "differently).",
    ],
    families.TABLE: [
        "Coverage and errors are of all statements together: one wrong interval of eight is a miss.",
    ],
    labels.TABLE: [
        "The outcome is a signal that is right only so often; some sessions carry a true label. *Flattered*: the",
        "last model is praised for 40% of its failures too.",
    ],
    shares.SHARES: ["A share of ones where clusters have a chance of their own (Beta). No contrast, so no test."],
    shares.PASSING: [
        "The chance that four fresh attempts all pass, over tasks of a population; eight attempts at each.",
    ],
    shares.CARDS: [
        "Completion (D1), reproducibility (D3) and repair cost (D4) of a population of tasks. *Beta(a, b)*: the",
        "chances of the tasks.",
    ],
    paired.PAIRED: [
        "Two systems on the same tasks; tasks differ in their chance and in how often they change. Where a task",
        "is run several times its runs are not independent, and McNemar's test, which takes them for so, is a",
        "foil.",
    ],
    paired.RECOVERY: ["Continuations without and with a recovery operation from one saved state."],
    paired.HARM: [
        "One-sided 95% bounds, and certificates: *coverage* is how often the limit truly holds for what is",
        "certified.",
    ],
    gates.GATE: [
        "Six metrics on the same tasks. Type I error: an unchanged agent is blocked on any of them; power: one",
        "that lost ten points on all of them is.",
    ],
    gates.PASSES: [
        "Type I error: an agent that truly lost the margin of two points passes (METHODS 6.5 allows 6.4%); power:",
        "an unchanged one does.",
    ],
    gates.LOOKS: [
        "Coverage: the truth inside at *every* one of sixty looks (from forty effective users on); type I error:",
        "zero left outside at any look. Width is that of the last look.",
    ],
}  # fmt: skip

_UNEVEN = (
    "METHODS 0.3 takes t with G − 1 degrees of freedom and the plain cluster error; with a few heavy clusters both are "
    "too small. The jackknife error with G* − 1, which net improvement uses, covers (the row below it)."
)
_SKEWED = (
    "Task values pile up at 0 or 1, and a symmetric interval (METHODS 6.3) misses on the long side; Wilson's interval "
    "with the size that gives the same error does better (the row below it)."
)
_RARE = (
    "Few pairs differ at all, and neither bootstrap nor t knows what was not drawn; the sign-flip test keeps its level."
)

_FLIPS = "Inverting sign flips presumes that every pair moves by the same amount; with few pairs that differ none does."

WHY: dict[tuple[str, str, str], str] = {
    (paired.PAIRED, "", "sign-flip interval"): _FLIPS,
    (paired.PAIRED, "", "paired mean over tasks, t"): "Of twenty tasks two or three differ, too few for t.",
    (shares.SHARES, "", "clustered Wilson, t (default)"): _UNEVEN,
    (shares.PASSING, "", "pass^4, t over tasks (default)"): _SKEWED,
    (paired.RECOVERY, "", "bootstrap over tasks (default)"): _RARE,
    (paired.RECOVERY, "", "paired mean over tasks, t"): _RARE,
}
"""Reasons by table, design (or "" for all) and method."""
