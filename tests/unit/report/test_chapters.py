"""The plan of the report: the sentences say what the intervals say, no more."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from seatrial.records import Ranking, RankInterval
from seatrial.report import chapters, words
from seatrial.report.chapters import answer, robust, trust, types

Example = Callable[[str], Ranking]


def test_the_summary_reads_the_simultaneous_intervals(example: Example) -> None:
    best, told, places = answer.summary(example("observational"))
    assert best == (
        "claude-opus-4-20250514 did best in these sessions: +12.3 percentage points against the average of all 5 "
        "models (95% interval +4.1 to +20.5)."
    )
    assert "above the baseline: claude-opus-4-20250514; below it: gemini-2.5-pro; not told apart from it: gpt-5" in told
    assert places.startswith("First place lies between claude-opus-4-20250514 and gpt-5-codex")


def test_nothing_is_told_apart_without_simultaneous_intervals(example: Example) -> None:
    assert answer.summary(example("refusals"))[0].startswith("No model has an interval that can be defended")
    assert answer.summary(example("not_identified")) == (
        "No net improvement can be estimated from these sessions; the reasons are below.",
    )
    apart, best, _ = answer.summary(example("one_user"))
    assert apart == "No model is told apart from the average of both models, all considered together."
    assert "has the highest estimate, which may be chance" in best


def test_an_unranked_model_is_never_called_the_best(example: Example) -> None:
    r = example("observational")
    lucky = tuple(
        msgspec.structs.replace(m, net_improvement=msgspec.structs.replace(m.net_improvement, value=0.9))
        if m.model == "kimi-k2" and m.net_improvement
        else m
        for m in r.models
    )
    assert answer.summary(msgspec.structs.replace(r, models=lucky))[0].startswith("claude-opus-4-20250514 did best")


def test_a_first_place_that_is_certain_is_said_to_be(example: Example) -> None:
    assert "Only gpt-4.1" not in " ".join(answer.summary(example("crossed")))
    r = example("hostile")
    assert "Only <script>alert(1)</script> can hold first place" in answer.summary(r)[-1]
    r = example("one_user")
    assert "leave open which model is first" in answer.summary(r)[-1]


def test_models_stand_in_rank_order_whatever_order_they_come_in(example: Example) -> None:
    r = example("observational")
    turned = msgspec.structs.replace(r, models=tuple(reversed(r.models)))
    names = [m.model for m in answer.ordered(turned)]
    assert names == [m.model for m in answer.ordered(r)]
    assert names[-1] == "kimi-k2"


def test_narrow_intervals_get_a_second_decimal(example: Example) -> None:
    assert answer.decimals(example("observational")) is None
    assert answer.decimals(example("randomised")) is None
    r = example("one_user")
    tight = tuple(
        msgspec.structs.replace(m, net_improvement=msgspec.structs.replace(m.net_improvement, low=0.0501, high=0.0539))
        for m in r.models
        if m.net_improvement
    )
    assert answer.decimals(msgspec.structs.replace(r, models=tight)) == 2


def test_an_outcome_outside_0_1_is_not_called_points(example: Example) -> None:
    assert words.outcome_unit(example("observational")) == "points"
    assert words.outcome_unit(msgspec.structs.replace(example("observational"), outcome="score")) == "units"


def test_the_baseline_is_named(example: Example) -> None:
    r = example("one_user")
    assert words.baseline(r) == "the average of both models"
    traffic = msgspec.structs.replace(r, baseline={"a": 0.25, "b": 0.75})
    assert words.baseline(traffic) == "this mix of models: b 75%, a 25%"


def test_weights_are_called_unfitted_until_they_are_fitted(example: Example) -> None:
    r = example("one_user")
    assert trust.weights(r) == "unfitted (unit)"
    assert trust.weights(msgspec.structs.replace(r, weights="fitted")) == "fitted"
    assert trust.weights(msgspec.structs.replace(r, weights="unfitted")) == "unfitted"


def test_null_is_labelled_with_the_share_of_draws_between_its_percentiles(example: Example) -> None:
    r = example("observational")
    section = trust.null(r)
    assert section is not None
    assert "check, not a result" in section.heading
    assert section.tables[0].columns[3].head == "Null 95%"
    assert r.null is not None
    odd = msgspec.structs.replace(r.null, percentiles={"claude-opus-4-20250514": {"p5": -0.1, "p95": 0.1}})
    section = trust.null(msgspec.structs.replace(r, null=odd))
    assert section is not None
    assert section.tables[0].columns[3].head == "Null 90%"


def test_task_types_carry_their_adjusted_p_and_their_reasons(example: Example) -> None:
    r = example("observational")
    holm = {"coding": {"gpt-5-codex": 0.0321}}
    section = types.by_type(msgspec.structs.replace(r, robustness={"p_holm_by_task_type": holm}))
    assert section is not None
    assert "p is adjusted over all of them" in section.paragraphs[0]
    rows = [dict(zip((c.head for c in section.tables[0].columns), row, strict=True)) for row in section.tables[0].rows]
    assert [row["p (Holm)"] for row in rows if row["Model"] == "gpt-5-codex"] == ["0.032", "n/a", "n/a"]
    assert section.notes == ("Fewer than 5 effective clusters (1.0): coding, workflow and conversation",)
    plain = types.by_type(r)
    assert plain is not None
    assert "p (Holm)" not in [c.head for c in plain.tables[0].columns]


def test_robustness_writes_effects_in_points_and_sizes_without_sign(example: Example) -> None:
    r = example("one_user")
    model = r.models[0].model
    section = robust.robustness(
        msgspec.structs.replace(
            r,
            robustness={
                "winsorised": {model: 0.04},
                "leave_one_stratum_out": {model: [-0.01, 0.05]},
                "null_sd": {model: {"closed_form": 0.033, "draws": 0.0334}},
                "p_any": 0.0004,
            },
        )
    )
    assert section is not None
    cells = [cell for table in section.tables for row in table.rows for cell in row]
    for text in ("+4.0", "[−1.0, +5.0]", "3.3 / 3.3"):
        assert text in cells
    assert section.items == ("p of the null that no model matters: <0.001.",)


def test_every_reason_of_a_refusal_is_told(example: Example) -> None:
    text = msgspec.json.encode(chapters.ranking(example("refusals"))).decode()
    for why in (
        "2.8): no interval",
        "One cluster",
        "no human verdict in any session",
        "no judging word in any session",
    ):
        assert why.lower() in text.lower()


def test_sections_that_have_nothing_to_say_are_left_out(example: Example) -> None:
    keys = [section.key for section in chapters.ranking(example("not_identified"))]
    assert "null" not in keys
    assert "sensitivity" not in keys
    assert keys[:2] == ["verdict", "models"]
    assert keys[-2:] == ["reading", "basis"]


def test_a_rank_is_never_wider_than_the_ranked_models(example: Example) -> None:
    r = example("observational")
    chart = answer.models(r).charts[0]
    assert chart.n_ranks == 4
    assert chart.panels[0].marks[0].rank == RankInterval(value=1, low=1, high=2)
