"""What codes mean in plain words: verdicts, checks, signals, dimensions, and how to read the numbers.

The word "causal" is for the verdicts `randomised` and `crossed` alone (METHODS 3.6).
"""

from __future__ import annotations

from seatrial.records import Ranking
from seatrial.records.decision import DesignVerdict
from seatrial.report.numbers import Unit, anything, level, number

LADDER: tuple[DesignVerdict, ...] = ("not_identified", "observational", "crossed", "randomised")
"""From nothing that can be compared to the strongest evidence."""

VERDICT_NAME: dict[DesignVerdict, str] = {
    "randomised": "Randomised",
    "crossed": "Crossed",
    "observational": "Observational",
    "not_identified": "Not identified",
}

VERDICT_BRIEF: dict[DesignVerdict, str] = {
    "randomised": "drawn at random, and recorded",
    "crossed": "every model, the same tasks",
    "observational": "as people happened to choose",
    "not_identified": "nothing in common to compare on",
}

VERDICT_MEANS: dict[DesignVerdict, str] = {
    "randomised": (
        "Models were drawn at random for each unit and the draw was recorded, so the differences below can be read "
        "as causal: what changes when the same kind of task goes to another model."
    ),
    "crossed": (
        "Every model ran the same tasks, so each is compared with the others task by task. The differences are causal "
        "only as far as nothing but the model differed between the runs."
    ),
    "observational": (
        "Nobody drew the models at random. Models may have been given different people and different work, so what "
        "follows are associations: how each model's sessions went, not what the model would do for yours."
    ),
    "not_identified": (
        "No two models were seen on the same kind of task, so there is nothing to compare them on. What follows "
        "describes each model alone."
    ),
}

CHECKS: dict[str, str] = {
    "assignment record": "Assignment recorded",
    "sample ratio": "Arms came up as often as planned",
    "sample-ratio mismatch": "Arms came up as often as planned",
    "sample ratio mismatch": "Arms came up as often as planned",
    "balance": "Arms alike before the start",
    "covariate balance": "Arms alike before the start",
    "same tasks": "Every model ran the same tasks",
    "overlap": "Models share kinds of task",
    "only the model differed": "Nothing but the model differed",
}

SIGNALS: dict[str, str] = {
    "confirmed_success": "Confirmed success",
    "praise_over_complaint": "Praise beats complaint",
    "steerability": "Steerability",
    "command_recovery": "Command recovery",
    "no_tool_hallucination": "No invented tools",
    "outcome": "recorded outcome",
    "signals_mean": "mean of the signals",
    "signals": "mean of the signals",
    "score": "count score",
}

ANY_SIGNAL: dict[str, str] = {
    "any_confirmation": "Any confirmation",
    "any_accept_implicit": "Any implicit acceptance",
    "any_praise": "Any praise",
    "any_complaint": "Any complaint",
    "any_correction": "Any correction",
    "any_execution_error": "Any execution error",
}

SIGNAL_MEANS: dict[str, str] = {
    "confirmed_success": "the last accepting or rejecting word of the person accepts",
    "praise_over_complaint": "more praise than complaint about the work",
    "steerability": "after a correction, the person's next word on it accepts",
    "command_recovery": "after an error of the model's making, a later call of the same intent succeeds",
    "no_tool_hallucination": "no call to a tool that does not exist",
}

DIMENSIONS: dict[str, tuple[str, Unit, str]] = {
    "net_improvement": ("Net improvement", "points", "points over the baseline"),
    "command_reliability": ("Command reliability", "percent", "tool calls that succeed"),
    "recovery_rate": ("Recovery rate", "percent", "failed calls put right by a later call"),
    "corrective_responsiveness": (
        "Corrective responsiveness",
        "plain",
        "1 / agent turns until a correction is accepted",
    ),
    "positivity": ("Positivity", "percent", "praise and confirmations among all judging words"),
}
FACTS: dict[str, tuple[str, Unit]] = {
    "counted": ("Counted", "plain"),
    "ok": ("Succeeded", "plain"),
    "environment": ("Environment", "plain"),
    "rejected": ("Refused", "plain"),
    "interrupted": ("Interrupted", "plain"),
    "recovery": ("Recovery rate", "percent"),
    "recovery_sessions": ("Sessions", "plain"),
    "reliability": ("Reliability", "percent"),
    "n": ("Calls", "plain"),
    "failed": ("Failed", "plain"),
    "mean_wait": ("Mean wait, agent turns", "plain"),
}
"""Names and units of the facts that come with a sub-dimension."""

_SHORT = {
    "reliability": "command_reliability",
    "responsiveness": "corrective_responsiveness",
    "recovery": "recovery_rate",
    "positive": "positivity",
}


def plain_name(code: str) -> str:
    """``median_of_bootstrap`` -> ``Median of bootstrap``."""
    words = code.replace("_", " ").strip()
    return words[:1].upper() + words[1:]


def sentence(text: str) -> str:
    """A note as a sentence: a capital letter first, a full stop last."""
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?", "…")) else text + "."


def fact(key: str, value: object) -> str:
    """A fact's value in its unit."""
    if isinstance(value, float):
        return number(value, FACTS.get(key, ("", "plain"))[1])
    return anything(value)


def fact_name(key: str) -> str:
    """A fact's name in plain words."""
    return FACTS[key][0] if key in FACTS else plain_name(key)


def check_name(code: str) -> str:
    """A check's name in plain words."""
    return CHECKS.get(code.replace("_", " "), plain_name(code))


def signal_name(code: str) -> str:
    """A signal outcome's name in plain words."""
    return SIGNALS.get(code) or ANY_SIGNAL.get(code) or plain_name(code)


def dimension(code: str) -> tuple[str, Unit, str]:
    """A sub-dimension's name, unit and meaning; an unknown one is a plain number without a meaning."""
    return DIMENSIONS.get(_SHORT.get(code, code), (plain_name(code), "plain", ""))


def outcome_unit(r: Ranking) -> Unit:
    """`points` when the outcome lies in [0, 1], as every outcome but the count score does; else `units`."""
    if r.outcome == "score":
        return "units"
    means = [m.mean.value for m in r.models if m.mean is not None]
    return "points" if all(0 <= value <= 1 for value in means) else "units"


def mean_unit(r: Ranking) -> Unit:
    """The unit of a model's mean outcome."""
    return "percent" if outcome_unit(r) == "points" else "plain"


def is_causal(r: Ranking) -> bool:
    """Whether the word may be used at all."""
    return r.design.verdict in ("randomised", "crossed")


def ranking_level(r: Ranking) -> str:
    """The confidence level of the ranking's intervals, ``95%`` when there is none."""
    for model in r.models:
        for e in (model.net_improvement, model.mean):
            if e is not None:
                return level(e.level)
    return "95%"


def baseline(r: Ranking) -> str:
    """The baseline policy in words."""
    shares = list(r.baseline.values())
    if not shares:
        return "the baseline"
    if max(shares) - min(shares) < 1e-9:
        return f"the average of all {len(shares)} models" if len(shares) != 2 else "the average of both models"
    from seatrial.report.text import name

    parts = ", ".join(f"{name(m)} {100 * q:.3g}%" for m, q in sorted(r.baseline.items(), key=lambda mq: -mq[1])[:6])
    return f"this mix of models: {parts}" + (", …" if len(r.baseline) > 6 else "")


def reading(r: Ranking) -> tuple[str, ...]:
    """How to read the numbers, as a list of sentences."""
    unit = "percentage points" if outcome_unit(r) == "points" else "units of the outcome"
    at = ranking_level(r)
    causal = is_causal(r)
    return (
        (
            f"Net improvement: a model's mean outcome on the common task mix minus that of {baseline(r)}, in {unit}. "
            "Above zero is better than the baseline. Adding or removing a model moves every value, because the "
            "baseline moves; differences between two models stay."
        ),
        (
            f"Interval: in {at} of such studies it holds the true value. The wider, simultaneous interval holds for "
            "all models at once: use it when you pick one model after having looked at all of them."
        ),
        (
            "Rank [low–high]: the place by point estimate, and the places that the data leave open. Two models whose "
            "brackets overlap are not told apart."
        ),
        (
            "Clusters / G*: sessions of one person, or attempts at one task, resemble each other, so people or tasks "
            "are counted, not sessions. G* is how many equally large clusters would carry the same information."
        ),
        (
            "No interval is shown where too few clusters stand behind a model; n/a always comes with its reason and "
            "never means zero."
        ),
        (
            "Null: what the same analysis gives when model names are shuffled. It centres on zero, or near it where "
            "groups are pooled; it is a check, not a result."
        ),
        "Assignment was part of the design, so a difference is what the model makes."
        if r.design.verdict == "randomised"
        else "The tasks were the same for all; whatever else differed between runs stays in the difference."
        if causal
        else "Without random assignment a difference may come from who used a model, or for what, as much as from the "
        "model. To change that, let 'seatrial assign' draw the model when a task starts.",
    )
