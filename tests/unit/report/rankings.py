"""Rankings as the estimators make them, one per situation that a report must tell apart."""

from __future__ import annotations

from typing import Any

import msgspec

from seatrial.records import (
    Check,
    CoverageRow,
    Design,
    Dimension,
    Dropped,
    Estimate,
    ModelRow,
    NullDistribution,
    Power,
    Ranking,
    RankInterval,
    SignalRate,
)

SIGNALS = {
    "confirmed_success": (0.61, 0.58),
    "praise_over_complaint": (0.70, 0.22),
    "steerability": (0.81, 0.97),
    "command_recovery": (0.74, 0.93),
    "no_tool_hallucination": (0.99, 1.0),
}


def est(
    value: float, half: float | None, n: int = 200, g: int = 60, method: str = "post-stratified, CR3 t", **more: Any
) -> Estimate:
    low, high = (None, None) if half is None else (value - half, value + half)
    return Estimate(value=value, low=low, high=high, level=0.95, n=n, n_clusters=g, method=method, **more)


def share(value: float, half: float, n: int = 200, g: int = 60) -> Estimate:
    return Estimate(
        value=value,
        low=max(0.0, value - half),
        high=min(1.0, value + half),
        level=0.95,
        n=n,
        n_clusters=g,
        method="clustered Wilson",
    )


def model(
    name: str,
    tau: float,
    half: float | None,
    rank: tuple[int, int, int] | None,
    *,
    n: int = 220,
    g: int = 64,
    effective: float = 41.3,
    mean: float = 0.6,
    why: str | None = None,
    **more: Any,
) -> ModelRow:
    quality = min(max(mean, 0.05), 0.97)
    places = RankInterval(value=rank[0], low=rank[1], high=rank[2]) if rank else None
    dimensions = {
        "command_reliability": Dimension(
            estimate=share(min(0.99, 0.72 + quality / 4), 0.031),
            rank=places,
            detail={
                "counted": 4_120 + n,
                "ok": 4_000,
                "environment": 37,
                "rejected": 12,
                "interrupted": 0,
                "recovery": 0.71,
                "recovery_sessions": 80,
                "worst": [
                    {
                        "tool": "Bash",
                        "command": "npm test",
                        "n": 40,
                        "failed": 18,
                        "examples": [{"session": "s-17", "step": 4}, {"session": "s-20", "step": 9}],
                        "reliability": 0.55,
                    },
                    {"tool": "apply_patch", "command": "", "n": 31, "failed": 10, "examples": [], "reliability": 0.68},
                ],
            },
        ),
        "corrective_responsiveness": Dimension(estimate=share(0.2 + quality / 3, 0.09), rank=places),
        "positivity": Dimension(estimate=share(quality, 0.07), rank=places),
    }
    return ModelRow(
        model=name,
        n_sessions=n,
        n_clusters=g,
        g_effective=effective,
        mean=share(quality, 0.06, n, g),
        net_improvement=est(tau, half, n, g, why=why if half is None else None),
        versus_others=est(tau * 1.31, None if half is None else half * 1.31, n, g),
        simultaneous=None if half is None else (tau - 1.29 * half, tau + 1.29 * half),
        p_value=None if half is None else max(1e-4, min(1.0, (half / (abs(tau) + 1e-9)) ** 3 * 0.05)),
        rank=places,
        raw=est(tau * 1.12, half, n, g),
        dimensions=dimensions,
        signals={
            key: SignalRate(estimate=share(min(1.0, rate * (0.7 + quality / 2)), 0.05), coverage=coverage)
            for key, (rate, coverage) in SIGNALS.items()
        }
        | {
            f"any_{kind}": SignalRate(estimate=share(0.1 + quality / 3, 0.04), coverage=1.0)
            for kind in ("confirmation", "praise", "complaint", "correction", "execution_error")
        },
        composite={
            "value": 0.7,
            "weights": {"command_reliability": 0.4, "corrective_responsiveness": 0.3},
            "parts": {"command_reliability": 0.89, "corrective_responsiveness": 0.44},
            "why": "contains the net improvement itself: never ranks",
        },
        mixed_share=0.02,
        why=why,
        **more,
    )


def coverage(models: tuple[ModelRow, ...]) -> tuple[CoverageRow, ...]:
    return tuple(
        CoverageRow(
            signal=key,
            by_model={m.model: min(1.0, max(0.0, c - 0.03 * i)) for i, m in enumerate(models)},
            p_value=0.00004 if key == "praise_over_complaint" else None if c == 1 else 0.31,
        )
        for key, (_, c) in SIGNALS.items()
    )


def ranking(verdict: str, title: str, checks: tuple[Check, ...], models: tuple[ModelRow, ...], **more: Any) -> Ranking:
    fields: dict[str, Any] = {
        "design": Design(verdict=verdict, checks=checks, title=title, caveats=more.pop("caveats", ())),  # type: ignore[arg-type]
        "basis": {
            "seatrial": "0.1.0",
            "data_version": "outcomes 3, signals 3",
            "window": [1_750_000_000.0, 1_757_300_000.0],
            "roster": [m.model for m in models],
            "harnesses": ["claude-code", "codex"],
            "detectors": {"language": "3", "commands": "2"},
            "seed": 0,
            "where": {},
        },
        "outcome": "signals",
        "baseline": {m.model: 1 / len(models) for m in models},
        "estimator": "post-stratified on task type and difficulty, CR3",
        "weights": "unit",
        "g_effective": 58.4,
        "largest_cluster_share": 0.064,
        "coverage_table": coverage(models),
        "models": models,
        "null": NullDistribution(
            draws=9_999,
            mean={m.model: 0.0002 * (-1) ** i for i, m in enumerate(models)},
            percentiles={m.model: {"2.5": -0.035, "50": 0.0, "97.5": 0.034} for m in models},
            method="clusters permuted inside task type, CR1-studentised",
        ),
        "power": Power(
            mde={m.model: 0.051 for m in models}, sessions_for={"1": 14_210, "2": 3_560, "5": 575}, level=0.95
        ),
        "robustness": {
            "bootstrap_median": {m.model: m.net_improvement.value * 0.98 for m in models if m.net_improvement},
            "winsorised": {m.model: m.net_improvement.value * 0.9 for m in models if m.net_improvement},
            "leave_one_stratum_out": {
                m.model: [m.net_improvement.value - 0.01, m.net_improvement.value + 0.012]
                for m in models
                if m.net_improvement
            },
            "cr3_over_cr1": {m.model: 1.07 for m in models},
        },
        "dropped": (
            Dropped(what="sub-agent traces", n=31, why="part of their parent's session, not rows of their own"),
            Dropped(what="sessions without a model", n=4, why="no agent turn, or none that names its model"),
        ),
    }
    return Ranking(**{**fields, **more})


GROUP = ("coding", "workflow", "conversation")


def observational() -> Ranking:
    def with_sensitivity(m: ModelRow, value: float) -> ModelRow:
        return msgspec.structs.replace(
            m,
            sensitivity={
                "robustness_value": value,
                "e_value": 1.4 + value,
                "e_value_limit": 1.0 + value,
                "gamma": 1.2,
                "gamma_note": "ignores clusters",
            },
        )

    models = (
        with_sensitivity(model("claude-opus-4-20250514", 0.123, 0.082, (1, 1, 2), mean=0.71, n=412), 0.12),
        with_sensitivity(model("gpt-5-codex", 0.031, 0.064, (2, 1, 3), mean=0.62, n=287, effective=33.0), 0.03),
        with_sensitivity(model("claude-sonnet-4-20250514", -0.012, 0.07, (3, 2, 4), mean=0.58, n=301), 0.01),
        with_sensitivity(model("gemini-2.5-pro", -0.142, 0.09, (4, 3, 4), mean=0.45, n=90, effective=18.2), 0.16),
        model(
            "kimi-k2", 0.05, None, None, mean=0.66, n=9, g=3, effective=2.6, why="fewer than 5 effective clusters (2.6)"
        ),
    )
    checks = (
        Check(
            name="assignment record",
            ok=False,
            value=None,
            why="no assignment record: nobody wrote down how models were given their sessions",
        ),
        Check(name="same tasks", ok=False, value=0.0, why="sessions without a task id"),
        Check(name="overlap", ok=True, value=0.94, why="94% of sessions lie in kinds of task that every model had"),
    )
    by = {
        "task_type": {
            group: ranking(
                "observational",
                "Associations, not a ranking",
                checks,
                tuple(
                    model(
                        m.model,
                        m.net_improvement.value * f,
                        0.11,
                        (i + 1, max(1, i), min(4, i + 2)),
                        n=m.n_sessions // 3,
                    )
                    if m.rank and m.net_improvement
                    else model(
                        m.model, 0.02, None, None, n=3, g=1, effective=1.0, why="fewer than 5 effective clusters (1.0)"
                    )
                    for i, m in enumerate(models)
                ),
            )
            for group, f in zip(GROUP, (1.3, 0.8, 0.5), strict=True)
        }
    }
    return ranking(
        "observational",
        "Associations, not a ranking",
        checks,
        models,
        caveats=(
            "models were not assigned by a recorded draw: differences may come from who used which model for what",
        ),
        by=by,
        warnings=(
            "kimi-k2 has 2.6 effective clusters: listed, unranked",
            "praise beats complaint exists in 22% of sessions and its coverage differs by model (p < 0.001)",
        ),
    )


def crossed() -> Ranking:
    names = ("claude-3-7-sonnet", "gpt-4.1", "gpt-4.1-mini", "o4-mini")
    means = (0.56, 0.72, 0.46, 0.18)
    middle = sum(means) / 4
    order = sorted(range(4), key=lambda i: -means[i])
    models = tuple(
        model(
            names[i],
            means[i] - middle,
            0.075,
            (k + 1, max(1, k), min(4, k + 1)),
            n=200,
            g=50,
            effective=50.0,
            mean=means[i],
        )
        for k, i in enumerate(order)
    )
    checks = (
        Check(name="assignment record", ok=False, value=None, why="no assignment record"),
        Check(
            name="same tasks",
            ok=True,
            value=50.0,
            why="50 tasks were run by every model (100% of the sessions of each)",
        ),
        Check(name="only the model differed", ok=False, value=None, why="more than the model differed: simulator"),
    )
    return ranking(
        "crossed",
        "Net improvement by model on the same tasks: causal as far as nothing but the model differed",
        checks,
        models,
        outcome="outcome",
        estimator="paired within task, leave-one-task-out jackknife",
        caveats=("simulator differed: gpt-4.1 for o4-mini; gpt-4o for the others",),
        dropped=(),
    )


def randomised() -> Ranking:
    models = tuple(
        model(
            f"vendor-{i % 5}/model-family-{chr(97 + i)}-{2025 + i % 2}-preview",
            0.2 - 0.02 * i,
            0.004 + 0.0004 * i,
            (i + 1, max(1, i), min(20, i + 2)),
            n=52_310 - 113 * i,
            g=9_220,
            effective=8_120.5,
            mean=0.75 - 0.02 * i,
        )
        for i in range(20)
    )
    checks = (
        Check(
            name="assignment record",
            ok=True,
            value=1.0,
            why="every session has its recorded draw and every arm's probability",
        ),
        Check(
            name="sample ratio", ok=True, value=0.41, why="arms came up as often as their probabilities say (p = 0.41)"
        ),
        Check(name="covariate balance", ok=True, value=0.73, why="arms do not differ before the start (p = 0.73)"),
        Check(name="overlap", ok=None, value=None, why="every arm had a chance in every stratum by design"),
    )
    return ranking(
        "randomised",
        "Net improvement by model: randomised assignment, causal",
        checks,
        models,
        weights="fitted",
        estimator="Hájek, recorded probabilities, CR3",
        power=Power(mde={m.model: 0.003 for m in models}, sessions_for={"1": 9_100, "2": 2_270, "5": None}, level=0.95),
    )


def not_identified() -> Ranking:
    models = tuple(
        msgspec.structs.replace(
            model(name, 0.0, None, None, mean=mean, n=40, why="no kind of task was served by another model too"),
            net_improvement=None,
            versus_others=None,
            raw=None,
        )
        for name, mean in (("alpha", 0.5), ("beta", 0.7))
    )
    checks = (Check(name="overlap", ok=False, value=0.0, why="no two models share a stratum"),)
    return ranking(
        "not_identified",
        "Not identified: no two models share a stratum",
        checks,
        models,
        null=None,
        power=Power(mde={"alpha": None, "beta": None}, sessions_for={}, level=0.95, why="nothing can be compared yet"),
        robustness={},
    )


def refusals() -> Ranking:
    """Everything that can be None is None, with its reason."""
    bare = ModelRow(
        model="tiny",
        n_sessions=3,
        n_clusters=1,
        g_effective=1.0,
        mean=None,
        net_improvement=None,
        why="one cluster",
        dimensions={"positivity": Dimension(estimate=None, why="no judging word in any session")},
        signals={"confirmed_success": SignalRate(estimate=None, coverage=0.0, why="no human verdict in any session")},
    )
    models = (
        model(
            "small", 0.4, None, None, n=6, g=3, effective=2.8, why="fewer than 5 effective clusters (2.8): no interval"
        ),
        model(
            "small-too",
            -0.4,
            None,
            None,
            n=5,
            g=3,
            effective=2.5,
            why="fewer than 5 effective clusters (2.5): no interval",
        ),
        bare,
    )
    return ranking(
        "observational",
        "Associations, not a ranking",
        (Check(name="assignment record", ok=False, value=None, why="no assignment record"),),
        models,
        null=None,
        power=None,
        coverage_table=(),
        robustness={},
        dropped=(Dropped(what="source records or files", n=2, why="torn line"),),
    )


def one_user() -> Ranking:
    models = (
        model("claude-opus-4-20250514", 0.05, 0.21, (1, 1, 2), n=34, g=34, effective=34.0, mean=0.7),
        model("claude-sonnet-4-20250514", -0.05, 0.21, (2, 1, 2), n=61, g=61, effective=61.0, mean=0.6),
    )
    return ranking(
        "observational",
        "Associations, not a ranking",
        (Check(name="assignment record", ok=False, value=None, why="no assignment record"),),
        models,
        caveats=("one known user: sessions are the clusters and every number is for this user",),
    )


HOSTILE = "<script>alert(1)</script>"
NASTY = (
    HOSTILE,
    '"><img src=x onerror=alert(1)>',
    "abc\u202egnp.exe\u2069 \u200b\x1b[31mred\x07",
    "[link](javascript:alert(1)) `code` |pipe| [bold]rich[/bold] &amp; @everyone #1 www.evil.example",
    "שלום-מודל-ארוך",
    "漢字" * 60,
    "z" + "\u0301" * 200,
    "A" * 500,
)


def hostile() -> Ranking:
    """Names and reasons that try to be markup, to reverse text, to clear the screen or to be enormous."""
    models = tuple(
        model(text, 0.3 - 0.08 * i, 0.05, (i + 1, i + 1, i + 1), mean=0.5, why=text) for i, text in enumerate(NASTY)
    )
    checks = tuple(Check(name=text, ok=None, value=text, why=text) for text in NASTY)
    return ranking(
        "observational",
        HOSTILE,
        checks,
        models,
        caveats=NASTY,
        warnings=NASTY,
        outcome=HOSTILE,
        estimator=HOSTILE,
        weights=HOSTILE,
        basis={text: text for text in NASTY} | {"nested": {HOSTILE: {HOSTILE: [HOSTILE]}}},
        robustness={HOSTILE: HOSTILE},
        dropped=tuple(Dropped(what=text, n=1, why=text) for text in NASTY),
        by={HOSTILE: {text: one_user() for text in NASTY}},
    )


RANKINGS = {
    "observational": observational,
    "crossed": crossed,
    "randomised": randomised,
    "not_identified": not_identified,
    "refusals": refusals,
    "one_user": one_user,
    "hostile": hostile,
}
