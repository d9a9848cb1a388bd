"""The whole story on small tables: who participates, what is refused, what is counted, what is printed beside."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
import polars as pl
import pytest

from seatrial.causal import monitor, rank
from seatrial.errors import EvidenceError, SchemaError, UsageError
from seatrial.records import Ranking

Table = Callable[..., pl.DataFrame]


def _rank(frame: pl.DataFrame, **options: object) -> Ranking:
    given = {"outcome": "outcome", "draws": 999, "by": ()} | options
    return rank(frame, **given)  # type: ignore[arg-type]


def _row(found: Ranking, model: str):
    return next(m for m in found.models if m.model == model)


def test_a_result_is_plain_data_and_the_same_every_time(table: Table) -> None:
    frame = table(assigned=True, effect=0.1)
    one, two = _rank(frame), _rank(frame.sample(fraction=1.0, shuffle=True, seed=9))
    assert msgspec.json.encode(one) == msgspec.json.encode(two)
    assert b"NaN" not in msgspec.json.encode(one)


def test_versus_others_scales_tau(table: Table) -> None:
    for row in _rank(table(assigned=True, effect=0.1)).models:
        assert row.net_improvement is not None
        assert row.versus_others is not None
        assert row.versus_others.value == pytest.approx(row.net_improvement.value * 1.5)
        assert row.versus_others.low == pytest.approx(row.net_improvement.low * 1.5)


def test_baselines(table: Table) -> None:
    frame = table(assigned=True, effect=0.1)
    uniform, traffic = _rank(frame), _rank(frame, baseline="traffic")
    own = _rank(frame, baseline={"model-a": 1.0})
    assert sum(uniform.baseline.values()) == pytest.approx(1)
    assert traffic.baseline["model-a"] == frame.filter(pl.col("arm") == "model-a").height / frame.height
    a, c = _row(own, "model-a"), _row(own, "model-c")
    assert a.net_improvement is not None
    assert a.net_improvement.value == 0.0
    assert a.net_improvement.low is None
    assert a.versus_others is None
    assert a.simultaneous is None
    means = {m.model: m.mean.value for m in uniform.models if m.mean}
    assert c.net_improvement is not None
    assert c.net_improvement.value == pytest.approx(means["model-c"] - means["model-a"])
    with pytest.raises(UsageError, match="not a participating model"):
        _rank(frame, baseline={"model-z": 1.0})
    with pytest.raises(UsageError, match="sum to 1"):
        _rank(frame, baseline={"model-a": 0.4})


def test_one_known_user_is_for_this_user(table: Table) -> None:
    found = _rank(table(300).with_columns(user=pl.lit("me")))
    assert found.basis["for"] == "this user"
    assert found.basis["cluster"] == "session"
    assert any("for this user" in c for c in found.design.caveats)
    assert found.models[0].net_improvement is not None
    assert found.models[0].net_improvement.n_clusters == 300


def test_unknown_users_are_session_clusters_without_that_flag(table: Table) -> None:
    found = _rank(table(300).drop("user"))
    assert found.basis["cluster"] == "session"
    assert found.basis["for"] is None


def test_tasks_that_repeat_across_sessions_are_the_cluster_where_they_give_the_larger_error() -> None:
    """Models differ by task and nothing else varies: 600 sessions are 30 tasks' worth of evidence (METHODS 0.4).

    Tasks are the cluster where users are unknown; where they are known, the larger error is taken.
    """
    rng = np.random.default_rng(0)
    task, arm = rng.integers(0, 30, 600), rng.integers(0, 2, 600)
    suits = rng.normal(0, 1.5, (30, 2))
    y = (rng.random(600) < 1 / (1 + np.exp(-suits[task, arm]))) * 1.0
    frame = pl.DataFrame(
        {
            "session": [f"s{i:03d}" for i in range(600)],
            "arm": np.array(["a", "b"])[arm],
            "task": [f"t{t:02d}" for t in task],
            "user": [f"u{u:03d}" for u in rng.integers(0, 200, 600)],
            "outcome": y,
        }
    ).filter(~((pl.col("task") < "t18") & (pl.col("arm") == "a")))
    found = _rank(frame)
    assert found.design.verdict == "observational"
    assert found.basis["cluster"] == "task"
    assert any("clustered by task" in w for w in found.warnings)
    unknown = _rank(frame.drop("user"))
    assert unknown.basis["cluster"] == "task"
    assert unknown.models[0].net_improvement == found.models[0].net_improvement
    assert unknown.models[0].signals == found.models[0].signals
    without = _rank(frame.drop("task"))
    mine, theirs = found.models[0].net_improvement, without.models[0].net_improvement
    assert mine is not None
    assert theirs is not None
    assert mine.value == pytest.approx(theirs.value)
    assert mine.se > 1.5 * theirs.se  # type: ignore[operator]
    assert mine.n_clusters == 30


def test_the_assignment_unit_is_the_cluster_where_it_is_coarser(table: Table) -> None:
    teams = pl.col("user").str.slice(1).cast(pl.Int64) // 3
    found = _rank(table(900).with_columns(unit=teams.cast(pl.String)))
    assert found.basis["cluster"] == "unit"
    assert found.basis["n_clusters"] == 20


def test_thin_models_are_listed_unranked_and_do_not_move_the_baseline(table: Table) -> None:
    frame = table(600, users=60, effect=0.1)
    extra = frame.head(6).with_columns(session=pl.concat_str(pl.lit("x"), "session"), arm=pl.lit("rare"))
    alone, both = _rank(frame), _rank(pl.concat([frame, extra]))
    assert set(both.baseline) == {"model-a", "model-b", "model-c"}
    rare = _row(both, "rare")
    assert rare.rank is None
    assert rare.why is not None
    assert "listed, unranked" in rare.why
    assert rare.mean is not None
    assert rare.mean.n_clusters == 6
    assert "its value rests on" in rare.why
    assert "p-value" not in msgspec.json.encode(rare).decode()
    assert both.models[-1].model == "rare"
    for name in both.baseline:
        mine, theirs = _row(alone, name).net_improvement, _row(both, name).net_improvement
        assert mine is not None
        assert theirs is not None
        assert mine.value == pytest.approx(theirs.value)


def test_a_listed_model_with_enough_clusters_for_an_interval_gets_its_contrast() -> None:
    rng = np.random.default_rng(0)
    arm = ["a"] * 60 + ["b"] * 60 + ["c"] * 8
    frame = pl.DataFrame(
        {"session": [f"s{i:03d}" for i in range(128)], "arm": arm, "outcome": (rng.random(128) < 0.5) * 1.0}
    )
    row = _row(_rank(frame), "c")
    assert row.net_improvement is not None
    assert row.net_improvement.low is not None
    assert row.rank is None
    mean = frame.group_by("arm").agg(pl.col("outcome").mean())
    by = dict(mean.rows())
    assert row.net_improvement.value == pytest.approx(by["c"] - (by["a"] + by["b"]) / 2)


def test_under_five_effective_clusters_only_the_sharp_null_speaks() -> None:
    frame = pl.DataFrame(
        {
            "session": [f"s{i:03d}" for i in range(80)],
            "arm": ["a", "b"] * 40,
            "user": [f"u{i // 20}" for i in range(80)],
            "outcome": [float((i * 7) % 3 == 0) for i in range(80)],
        }
    )
    found = _rank(frame)
    for row in found.models:
        assert row.net_improvement is not None
        assert row.net_improvement.low is None
        assert row.net_improvement.why is not None
        assert "only the randomisation p-value" in row.net_improvement.why
        assert row.simultaneous is None
        assert row.rank is None
        assert row.p_value is not None
    assert found.power is not None
    assert found.power.mde["a"] is None


def test_excluded_attempts_are_counted_and_bounded(table: Table) -> None:
    frame = table(600, effect=0.1).with_columns(
        status=pl.when(pl.int_range(pl.len()) < 30).then(pl.lit("error_infra")).otherwise(pl.lit("passed"))
    )
    found = _rank(frame)
    assert [(d.n, d.why) for d in found.dropped] == [(30, "status error_infra: excluded, see the bounds")]
    for row in found.models:
        low, high = found.robustness["excluded_bounds"][row.model]
        assert row.net_improvement is not None
        assert low < row.net_improvement.value < high
    timeouts = frame.with_columns(status=pl.lit("timeout"))
    assert _rank(timeouts).dropped == ()


def test_sessions_without_an_outcome_show_in_coverage_with_a_test(table: Table) -> None:
    frame = table(900)
    lost = (pl.col("arm") == "model-a") & (pl.col("session").str.slice(-1).cast(pl.Int64) < 4)
    found = _rank(frame.with_columns(outcome=pl.when(lost).then(None).otherwise(pl.col("outcome"))))
    row = found.coverage_table[0]
    assert row.signal == "outcome"
    assert row.by_model["model-a"] == pytest.approx(0.6, abs=0.06)
    assert row.by_model["model-b"] == 1.0
    assert row.p_value is not None
    assert row.p_value < 1e-6
    assert found.dropped[0].why.startswith("no outcome")


def test_a_constant_outcome_has_no_interval_rather_than_a_point(table: Table) -> None:
    found = _rank(table(300).with_columns(outcome=pl.lit(1.0)))
    for row in found.models:
        assert row.net_improvement is not None
        assert row.net_improvement.low is None
        assert row.mean is not None
        assert row.mean.low is not None
        assert 0.9 < row.mean.low < 1.0
        assert row.p_value == 1.0


def test_a_stratum_without_some_model_is_named_with_its_share_and_bounded(table: Table) -> None:
    frame = table(600).filter(~((pl.col("task_type") == "workflow") & (pl.col("arm") == "model-c")))
    found = _rank(frame)
    assert 0.4 < found.basis["retained_share"] < 0.7
    assert any("fewer than two clusters of model-c" in d.why for d in found.dropped)
    for row in found.models:
        low, high = found.robustness["manski"][row.model]
        assert low < high
        assert row.net_improvement is not None
    assert set(found.baseline) == {"model-a", "model-b", "model-c"}


def test_models_linked_only_through_others_use_the_additive_model_and_say_so(table: Table) -> None:
    frame = table(600).filter(
        ((pl.col("task_type") == "workflow") & (pl.col("arm") != "model-c"))
        | ((pl.col("task_type") == "coding") & (pl.col("arm") != "model-a"))
    )
    found = _rank(frame)
    assert found.estimator.startswith("additive stratum model")
    assert any("extrapolation" in w for w in found.warnings)
    assert next(c for c in found.design.checks if c.name == "overlap").ok is False
    assert all(m.net_improvement is not None and m.net_improvement.low is not None for m in found.models)
    assert "manski" in found.robustness


def test_overlap_weights_and_estimators_on_request(table: Table) -> None:
    frame = table(900, assigned=True, effect=0.1)
    plain = _rank(frame)
    for options in (
        {"overlap": "overlap_weights"}, {"estimator": "lin"}, {"estimator": "aipw"}, {"estimator": "hajek"},
        {"overlap": "additive"},
    ):  # fmt: skip
        other = _rank(frame, **options)
        assert other.estimator != plain.estimator
        for row in plain.models:
            mine, theirs = row.net_improvement, _row(other, row.model).net_improvement
            assert mine is not None
            assert theirs is not None
            assert theirs.value == pytest.approx(mine.value, abs=0.03)
            assert theirs.low is not None
    with pytest.raises(UsageError, match="needs the recorded probability"):
        _rank(table(300), estimator="hajek")


def test_bootstrap_t_on_request(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    from seatrial.causal import bootstrap

    monkeypatch.setattr(bootstrap, "REPLICATES", 399)
    frame = table(400, users=40, assigned=True)
    plain, boot = _rank(frame), _rank(frame, interval="bootstrap-t")
    for row in boot.models:
        net, base = row.net_improvement, _row(plain, row.model).net_improvement
        assert net is not None
        assert base is not None
        assert "bootstrap-t" in net.method
        assert "CR1" in net.method
        assert net.high - net.low == pytest.approx(base.high - base.low, rel=0.3)  # type: ignore[operator]


def test_by_task_type_states_its_multiplicity(table: Table) -> None:
    found = _rank(table(900, assigned=True, effect=0.2), by=("task_type",))
    assert set(found.by["task_type"]) == {"coding", "workflow"}
    assert any("6 contrasts over 2 values x models" in w for w in found.warnings)
    raw = [m.p_value for r in found.by["task_type"].values() for m in r.models]
    adjusted = [p for t in found.robustness["p_holm_by_task_type"].values() for p in t.values()]
    assert all(a >= p for a, p in zip(sorted(adjusted), sorted(raw), strict=True))
    assert max(adjusted) > min(raw)


def test_observational_rows_carry_sensitivity_and_randomised_ones_do_not(table: Table) -> None:
    loose, tight = _rank(table(600, effect=0.2)), _rank(table(600, effect=0.2, assigned=True))
    assert all(m.sensitivity is None for m in tight.models)
    for row in loose.models:
        assert row.sensitivity is not None
        assert set(row.sensitivity) >= {"robustness_value", "e_value", "e_value_limit", "gamma"}
        assert "ignores clusters" in row.sensitivity["gamma_note"]
    assert loose.models[0].sensitivity["gamma"] > 1.2  # type: ignore[index]
    assert loose.design.title == "Associations, not a ranking"


def test_any_column_can_be_the_arm(table: Table) -> None:
    frame = table(300).with_columns(
        prompt=pl.when(pl.col("session") < "s00150").then(pl.lit("v1")).otherwise(pl.lit("v2"))
    )
    assert {m.model for m in _rank(frame, arm="prompt").models} == {"v1", "v2"}


def test_one_model_gives_its_mean_and_no_comparison(table: Table) -> None:
    found = _rank(table(100).with_columns(arm=pl.lit("only")))
    assert found.design.verdict == "not_identified"
    assert found.models[0].mean is not None
    assert found.models[0].net_improvement is None


def test_the_mixed_share_is_printed_by_model(table: Table) -> None:
    frame = table(300).with_columns(mixed=(pl.col("arm") == "model-a") & (pl.col("session").str.ends_with("1")))
    found = _rank(frame)
    assert 0.02 < (_row(found, "model-a").mixed_share or 0) < 0.2
    assert _row(found, "model-b").mixed_share == 0.0


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"outcome": "colour"}, SchemaError, "no column 'colour'"),
        ({"outcome": "task_type"}, SchemaError, "expected numbers"),
        ({"outcome": None}, UsageError, "which outcome"),
        ({"level": 1.2}, UsageError, "level"),
        ({"estimator": "magic"}, UsageError, "unknown estimator"),
        ({"overlap": "magic"}, UsageError, "unknown overlap"),
        ({"interval": "magic"}, UsageError, "unknown interval"),
        ({"strata": ("colour",)}, UsageError, "unknown stratum"),
        ({"roster": ("model-z",)}, UsageError, "no scored session"),
        ({"by": ("colour",)}, UsageError, "no column 'colour'"),
        ({"covariates": ("colour",), "estimator": "lin"}, UsageError, "no covariate column"),
    ],
)
def test_nonsense_is_refused_by_name(
    table: Table, change: dict[str, object], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        _rank(table(120), **change)


def test_malformed_tables_are_refused(table: Table) -> None:
    with pytest.raises(SchemaError, match="more than once"):
        _rank(pl.concat([table(60), table(60)]))
    with pytest.raises(SchemaError, match="no column 'arm'"):
        _rank(table(60).drop("arm"))
    with pytest.raises(EvidenceError, match="no session has both"):
        _rank(table(60).with_columns(outcome=pl.lit(None, dtype=pl.Float64)))
    with pytest.raises(EvidenceError):
        _rank(table(60).head(0))


def test_sessions_without_a_model_are_counted(table: Table) -> None:
    frame = table(300).with_columns(arm=pl.when(pl.col("session") < "s00005").then(None).otherwise(pl.col("arm")))
    assert (_rank(frame).dropped[0].n, _rank(frame).dropped[0].why) == (5, "no agent turn names a model")


def test_monitoring_is_wider_than_one_look_and_waits_for_forty_clusters(table: Table) -> None:
    found = _rank(table(900, users=300, assigned=True, effect=0.2))
    target = {m.model: 1 / m.net_improvement.se**2 for m in found.models}  # type: ignore[operator,union-attr]
    for looked, row in zip(monitor(found, target), found.models, strict=True):
        assert row.net_improvement is not None
        assert looked.low < row.net_improvement.low < row.net_improvement.high < looked.high  # type: ignore[operator]
    few = monitor(_rank(table(900, users=20)), 100.0)
    assert all(w.low is None and "nothing is claimed" in (w.why or "") for w in few)
    with pytest.raises(UsageError, match="frozen"):
        monitor(found, 0.0)
