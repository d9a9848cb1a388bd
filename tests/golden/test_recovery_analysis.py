"""The recovery paper's tables come out of the analysis itself, from pairs that hold the published counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seatrial.records import ContrastRow, PolicyRow
from seatrial.recovery.cir import acts
from seatrial.recovery.contrast import contrast, row
from seatrial.recovery.episodes import Episodes
from seatrial.recovery.evaluate import policy_rows
from seatrial.recovery.router import Model, Router
from seatrial.recovery.table import Pairs, Row, from_rows

VECTORS: dict[str, Any] = json.loads((Path(__file__).parent / "recovery.json").read_text())
CELLS = {"rescue": (0, 1), "harm": (1, 0), "success": (1, 1), "failure": (0, 0)}


def rows_of(n: int, rescue: int, harm: int, *, condition: str = "clean", operation: str = "refresh", delay: int = 0,
            success: int | None = None) -> list[Row]:  # fmt: skip
    stable = (n - rescue - harm) // 2 if success is None else success
    kinds = ["rescue"] * rescue + ["harm"] * harm + ["success"] * stable
    kinds += ["failure"] * (n - len(kinds))
    return [
        Row(i + 2, {"task": f"t{i:03d}", "condition": condition, "operation": operation, "delay": delay,
                    "y0": CELLS[kind][0], "y1": CELLS[kind][1]})
        for i, kind in enumerate(kinds)
    ]  # fmt: skip


def pairs_of(rows: list[Row]) -> Pairs:
    return from_rows(rows)


def only(rows: list[Row]) -> ContrastRow:
    return contrast(pairs_of(rows)).rows[0]


@pytest.mark.parametrize("given", VECTORS["paired"], ids=lambda r: r["name"])
def test_every_paired_row(given: dict[str, Any]) -> None:
    n = given["n"]
    # Where only the net is published, the split is free: the points do not depend on it.
    rescue, harm = (given["R"], given["H"]) if "R" in given else (given["net"] + 2, 2)
    found = only(rows_of(n, rescue, harm))
    assert (round(n * found.rescue), round(n * found.harm), found.n) == (rescue, harm, n)
    assert 100 * found.effect.value == pytest.approx(given["points"], abs=6e-3)
    assert found.stable_success + found.rescue + found.harm + found.stable_failure == pytest.approx(1.0)
    if "ci" in given:
        assert found.effect.low is not None
        assert found.effect.high is not None
        assert [100 * found.effect.low, 100 * found.effect.high] == pytest.approx(given["ci"], abs=100 / n)


@pytest.mark.parametrize("given", VECTORS["interaction"], ids=lambda r: r["cohort"])
def test_every_interaction(given: dict[str, Any]) -> None:
    n, clean, stale = {
        "factual-success, delay 0": (93, (0, 6), (9, 2)),
        "complete primary": (106, (2, 6), (17, 10)),
        "independent": (75, (0, 0), (5, 2)),
    }[given["cohort"]]
    found = contrast(pairs_of(rows_of(n, *clean) + rows_of(n, *stale, condition="stale-2")))
    (interaction,) = found.interactions
    expected = given.get("stale2_minus_clean_points", given.get("points"))
    assert 100 * interaction.difference.value == pytest.approx(expected, abs=6e-3)
    assert interaction.difference.low is not None
    assert interaction.difference.high is not None
    assert interaction.difference.low < interaction.difference.value < interaction.difference.high


def test_overlap_of_65_tasks() -> None:
    given = VECTORS["overlap_65"]
    cells = (
        ("success", "success", given["stable_success"]), ("failure", "failure", given["stable_failure"]),
        ("rescue", "rescue", given["shared_rescues"]), ("rescue", "failure", given["full_only"]["R"]),
        ("harm", "success", given["full_only"]["H"]), ("failure", "rescue", given["ablated_only"]["R"]),
        ("success", "harm", given["ablated_only"]["H"]),
    )  # fmt: skip
    rows: list[Row] = []
    task = 0
    for full, ablated, times in cells:
        for _ in range(times):
            for operation, kind in (("refresh", full), ("content-ablated", ablated)):
                y0, y1 = CELLS[kind]
                rows.append(Row(None, {"task": f"t{task:02d}", "condition": "stale-2", "operation": operation,
                                       "delay": 4, "y0": y0, "y1": y1}))  # fmt: skip
            task += 1
    # Two more tasks had already ended: they count in each operation's row and not in the joint table.
    for extra in ("u1", "u2"):
        for operation in ("refresh", "content-ablated"):
            rows.append(Row(None, {"task": extra, "condition": "stale-2", "operation": operation, "delay": 4,
                                   "y0": 0, "y1": 0, "terminated": "true"}))  # fmt: skip
    found = contrast(pairs_of(rows))
    (overlap,) = found.overlaps
    assert (overlap.first, overlap.second, overlap.n) == ("refresh", "content-ablated", 65)
    assert (overlap.stable_success, overlap.stable_failure, overlap.shared_rescues) == (38, 13, 8)
    assert overlap.first_only == given["full_only"]
    assert overlap.second_only == given["ablated_only"]
    assert overlap.agree == given["agree"]
    net = given["expect_net"]
    assert (overlap.net_first, overlap.net_second) == (net["full_vs_none"], net["ablated_vs_none"])
    assert overlap.difference.value * 65 == pytest.approx(net["full_vs_ablated"])
    assert 100 * overlap.difference.value == pytest.approx(net["full_vs_ablated_points"], abs=6e-3)
    (parts,) = found.decompositions
    assert parts.act.value + parts.content.value == pytest.approx(parts.total.value, abs=1e-12)
    assert parts.content.value == pytest.approx(2 / 65)
    for operation, points in (("refresh", 13.43), ("content-ablated", 10.45)):
        whole = row(found, "stale-2", operation, 4)
        assert (whole.n, whole.n_terminated) == (67, 2)
        assert 100 * whole.effect.value == pytest.approx(points, abs=6e-3)
        assert whole.without_terminated is not None
        assert whole.without_terminated.n == 65


CONDITIONS = ("clean", "stale-1", "stale-2", "missing")


def held_out(by_condition: dict[str, list[int]], sums: dict[str, int], successes: int | dict[str, int]) -> Episodes:
    """75 tasks under four conditions with these rescues and harms, in tasks whose sums are those."""
    changes = np.zeros((75, 4), dtype=np.int64)
    wanted = [int(v) for v, times in sums.items() for _ in range(times)]
    left = {(c, sign): by_condition[name][k] for c, name in enumerate(CONDITIONS) for k, sign in enumerate((1, -1))}
    for task, total in enumerate(wanted):
        for _ in range(abs(total)):
            sign = 1 if total > 0 else -1
            column = max((c for c in range(4) if changes[task, c] == 0 and left[c, sign]), key=lambda c: left[c, sign])
            changes[task, column] = sign
            left[column, sign] -= 1
    assert not any(left.values())
    y0 = np.where(changes == -1, 1, 0)
    free = [(t, c) for c in range(4) for t in range(75) if changes[t, c] == 0]
    if isinstance(successes, dict):
        for c, name in enumerate(CONDITIONS):
            own = [f for f in free if f[1] == c]
            for t, _ in own[: successes[name] - int(y0[:, c].sum())]:
                y0[t, c] = 1
    else:
        for t, c in free[: successes - int(y0.sum())]:
            y0[t, c] = 1
    y1 = np.where(changes == 0, y0, 1 - y0).astype(np.float64).reshape(-1, 1)
    none = y0.astype(np.float64).reshape(-1, 1)
    every = np.ones(y1.shape, dtype=np.bool_)
    return Episodes(
        task=np.repeat(np.array([f"t{i:02d}" for i in range(75)]), 4), condition=np.tile(np.array(CONDITIONS), 75),
        delays=(1,), features=(), x=np.zeros((300, 1, 0)), y0=none, y1=y1, rescue=(1 - none) * y1,
        harm=none * (1 - y1), alive=every, given=every, base=none[:, 0],
    )  # fmt: skip


def cir_rows(e: Episodes, interventions: int) -> dict[str, PolicyRow]:
    changed = e.rescue[:, 0] + e.harm[:, 0] > 0
    others = np.flatnonzero(~changed & (e.condition != "clean"))[: interventions - int(changed.sum())]
    at = np.where(changed, 0, -1)
    at[others] = 0
    made = policy_rows(e, {"never": np.full(300, -1), "cir": at})
    return {r.condition: r for r in made if r.policy == "cir"}


def test_headline() -> None:
    head = VECTORS["cir_headline"]
    e = held_out(head["by_condition"], head["consistent_task_sums"],
                 {"clean": 56, "stale-1": 55, "stale-2": 45, "missing": 55})  # fmt: skip
    assert 100 * e.base.mean() == pytest.approx(head["never"], abs=6e-3)
    rows = cir_rows(e, 49)
    whole = rows["all"]
    assert whole.success is not None
    assert whole.gain is not None
    assert whole.gain.low is not None
    assert whole.gain.high is not None
    assert whole.p_value is not None
    assert 100 * whole.success.value == pytest.approx(head["cir"], abs=6e-3)
    assert 100 * whole.gain.value == pytest.approx(head["points"], abs=1e-9)
    assert [100 * whole.gain.low, 100 * whole.gain.high] == pytest.approx(head["ci"], abs=0.34)
    assert whole.p_value == pytest.approx(136 / 4096, abs=1e-12)
    assert (round(300 * whole.rescue), round(300 * whole.harm)) == (head["R"], head["H"])
    assert 100 * whole.intervention_rate == pytest.approx(head["intervention_rate"], abs=0.05)
    for condition, (rescue, harm) in head["by_condition"].items():
        r = rows[condition]
        assert (round(75 * r.rescue), round(75 * r.harm)) == (rescue, harm)
    stale = rows["stale-2"]
    assert stale.success is not None
    assert stale.gain is not None
    assert 100 * (stale.success.value - stale.gain.value) == pytest.approx(head["stale_2"]["never"], abs=1e-9)
    assert 100 * stale.success.value == pytest.approx(head["stale_2"]["cir"], abs=6e-3)
    assert 100 * stale.gain.value == pytest.approx(head["stale_2"]["points"], abs=6e-3)
    # 0 of 75 clean tasks harmed bounds harm at 3.9%, not at 0.
    assert rows["clean"].harm_upper == pytest.approx(1 - 0.05 ** (1 / 75), abs=1e-9)


@pytest.mark.parametrize("name", ["anomaly", "rate_matched_anomaly"])
def test_baselines_of_the_headline(name: str) -> None:
    given = VECTORS["cir_headline"]["baselines"][name]
    sums = {"+1": given["R"], "-1": given["H"], "0": 75 - given["R"] - given["H"]}
    spread = {"clean": [0, 0], "stale-1": [0, 0], "stale-2": [given["R"], given["H"]], "missing": [0, 0]}
    whole = cir_rows(held_out(spread, sums, 211), round(3 * given["rate"]))["all"]
    assert whole.gain is not None
    assert 300 * whole.gain.value == pytest.approx(given["R"] - given["H"])
    assert 100 * whole.intervention_rate == pytest.approx(given["rate"], abs=0.05)


def test_policies_that_did_not_carry_over() -> None:
    given = VECTORS["negative_replication_qwen3_8b"]
    spread = {"clean": [0, 2], "stale-1": [1, 1], "stale-2": [3, 3], "missing": [1, 1]}
    moved = cir_rows(held_out(spread, given["transferred"]["consistent_task_sums"], 180), 12)["all"]
    assert moved.gain is not None
    assert moved.gain.low is not None
    assert moved.gain.high is not None
    assert 100 * moved.gain.value == pytest.approx(given["transferred"]["points"], abs=6e-3)
    assert [100 * moved.gain.low, 100 * moved.gain.high] == pytest.approx(given["transferred"]["ci"], abs=0.34)
    nothing = {c: [0, 0] for c in CONDITIONS}
    fitted = cir_rows(held_out(nothing, {"0": 75}, 180), 5)["all"]
    assert fitted.gain is not None
    assert 100 * fitted.gain.value == given["fitted"]["points"]
    assert 100 * fitted.intervention_rate == pytest.approx(given["fitted"]["rate"], abs=0.01)
    # No episode changed, and yet the interval has a width.
    assert fitted.gain.high == pytest.approx(1 - 0.025 ** (1 / 75))


RULE = VECTORS["decision_rule"]


@pytest.mark.parametrize("case", RULE["cases"], ids=str)
def test_decision_rule(case: dict[str, Any]) -> None:
    made = acts(case["p_err"], case["p0"], case["p1"], t_err=RULE["p_err_min"], t_fail=RULE["fail_min"],
                lam=RULE["lambda"])  # fmt: skip
    assert bool(made) is case["refresh"]


@pytest.mark.parametrize("case", RULE["cases"], ids=str)
def test_decision_rule_as_deployed(case: dict[str, Any]) -> None:
    def at(p: float) -> Model:
        return Model(intercept=float(np.log(p / (1 - p))), weights={}, logistic=True)

    router = Router(
        kind="cir", operation="refresh", delays=(1,), features=(),
        models={"err": at(case["p_err"]), "p0": at(case["p0"]), "p1": at(case["p1"])},
        thresholds={"t_err": RULE["p_err_min"], "t_fail": RULE["fail_min"], "lambda": RULE["lambda"]},
    )  # fmt: skip
    assert (router.decide({}, delay=1) == "act") is case["refresh"]
