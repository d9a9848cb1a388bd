"""A scorecard from values: counts, correlations, what runs certify, contrasts, profiles."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seatrial.dimensions.card import Gathered, certifies, correlations, counts, scorecard
from seatrial.dimensions.completion import Completion
from seatrial.dimensions.contrast import contrast
from seatrial.dimensions.gates import Gates
from seatrial.dimensions.profiles import Profile, load_profiles, weighed
from seatrial.dimensions.reproducibility import Reproducibility
from seatrial.errors import EvidenceError, InputError, VersionMismatch
from seatrial.records import Attempt, DimensionResult, TaskValue

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "proportions.json").read_text(encoding="utf-8"))
TWO = (Completion(), Reproducibility())


def card(runs: Any, **more: Any) -> Any:
    return scorecard(runs, TWO, agent="a", **more)


def test_counts_keep_every_attempt_in_the_denominator() -> None:
    made = [Attempt(task="a", trial=n, status=s) for n, s in enumerate(["passed", "failed", "error_infra", "skipped"])]
    found = counts(made, n_planned=6)
    assert (found.n_planned, found.n_attempted, found.n_scored) == (6, 3, 2)
    assert found.excluded == {"error_infra": 1, "missing": 2, "skipped": 1}
    assert (found.worst, found.best) == (pytest.approx(1 / 6), pytest.approx(5 / 6))


def test_a_scorecard_says_k_tasks_and_what_they_certify(scored: Any) -> None:
    found = card(scored({"a": "pppppppppp", "b": "pfpfpfpfpf"}))
    assert (found.k, found.tasks, found.statuses) == (10, 2, {"failed": 5, "passed": 15})
    told = " ".join(found.certifies)
    assert "at least 74.1%" in told
    assert f"{GOLDEN['certified_consistency']['runs_for_0.90']} identical runs certify 90%" in told
    assert found.attempts_before_success == {"0": 2}


def test_uneven_runs_are_said(scored: Any) -> None:
    found = card(scored({"a": "ppp", "b": "pi"}))
    assert found.k == 1
    assert any("1 to 3 scored runs" in w for w in found.warnings)


def test_no_runs_is_no_evidence() -> None:
    with pytest.raises(EvidenceError, match="no runs of a"):
        card([])


def test_values_of_another_version_are_not_combined(scored: Any) -> None:
    from seatrial.dimensions.card import of_gathered

    class Newer(Completion):
        version = "2"

    gathered = Gathered([Newer()])
    for run in scored({"a": "pf"}):
        gathered.add(run)
        gathered.values["D1"].append(Completion().measure(run))
    with pytest.raises(VersionMismatch, match="measure the runs again"):
        of_gathered(gathered, agent="a")


def _result(values: dict[str, float | None]) -> DimensionResult:
    tasks = {t: TaskValue(value=v, n=1) for t, v in values.items()}
    return DimensionResult(dimension="D", name="d", version="1", estimate=None, why="", per_task=tasks)


def test_correlations_are_over_tasks_that_have_both() -> None:
    xs, ys = {"a": 0.1, "b": 0.5, "c": 0.9, "d": None}, {"a": 0.3, "b": 0.2, "c": 0.8, "d": 1.0}
    found = correlations([{"D1": _result(xs), "D2": _result(ys)}])
    assert found["D1~D2"] == pytest.approx(np.corrcoef([0.1, 0.5, 0.9], [0.3, 0.2, 0.8])[0, 1])
    same = dict.fromkeys(xs, 1.0)
    assert correlations([{"D1": _result(xs), "D2": _result(same)}])["D1~D2"] is None
    few = {"a": 0.1, "b": 0.2}
    assert correlations([{"D1": _result(few), "D2": _result(few)}])["D1~D2"] is None
    assert correlations([{"D1": _result(few), "D2": _result(few)}] * 2)["D1~D2"] == pytest.approx(1.0)


def test_zero_violations_bound_a_rate(at_till: Any) -> None:
    asked = [("request_approval", {"tool": "pay", "arguments": {"to": "Weber", "amount": 240}, "why": ""}),
             ("pay", {"to": "Weber", "amount": 240})]  # fmt: skip
    gates = Gates()
    result = gates.combine([gates.measure(at_till.work(asked, task=f"t{n}")) for n in range(10)], 0.95)
    told = " ".join(certifies(1, 10, {"D6": result}, 0.95))
    assert f"at most {1 - 0.05 ** (1 / 10):.1%} of such calls" in told


def values(runs: Any) -> Any:
    gathered = Gathered(TWO)
    for run in runs:
        gathered.add(run)
    return gathered.values


def test_a_contrast_finds_the_dimension_that_differs(scored: Any) -> None:
    steady = {t: "p" * 10 if t in "abc" else "f" * 10 for t in "abcdef"}
    unsteady = dict.fromkeys("abcdef", "pf" * 5)
    d1, d3 = contrast(values(scored(steady)), values(scored(unsteady)))
    assert (d1.dimension, d1.difference, d1.separated) == ("D1", 0.0, False)
    assert d1.p_value == 1.0
    assert d3.difference == pytest.approx(1.0 - (1 - 4 * 25 / 90))
    assert d3.separated
    assert d3.p_holm == pytest.approx(2 * d3.p_value)


def test_a_contrast_of_an_agent_with_itself_finds_nothing(scored: Any) -> None:
    runs = values(scored(dict.fromkeys("abc", "ppfpf")))
    assert not any(c.separated for c in contrast(runs, runs))


def test_a_contrast_without_common_tasks_says_why(scored: Any) -> None:
    found = contrast(values(scored({"a": "pp"})), values(scored({"b": "pp"})))
    assert [(c.difference, c.separated) for c in found] == [(None, False)] * 2
    assert "no task" in found[0].why


@pytest.mark.full
def test_the_contrast_keeps_its_level() -> None:
    """Two agents alike at every task: the share of dimensions that any pair is told apart by is at most 5%."""
    from seatrial.records import Evidence

    rng = np.random.default_rng(5)
    hits = 0
    for _ in range(300):
        chances = rng.uniform(0, 1, 8)
        sides = []
        for _ in range(2):
            runs = [
                Evidence(attempt=Attempt(task=f"t{t}", trial=n, status="passed" if rng.random() < p else "failed"))
                for t, p in enumerate(chances)
                for n in range(6)
            ]
            sides.append(values(runs))
        hits += any(c.separated for c in contrast(*sides, draws=999))
    assert hits / 300 <= 0.05 + 2 * (0.05 * 0.95 / 300) ** 0.5


def test_a_profile_is_a_weighted_mean_apart_from_what_is_measured(scored: Any) -> None:
    found = card(scored({"a": "pppp", "b": "ppff", "c": "pfff"}))
    got = weighed(found, Profile(name="x", weights={"D1": 3.0, "D3": 1.0, "D6": 0.0}))
    d1, d3 = found.dimensions["D1"].estimate, found.dimensions["D3"].estimate
    assert got.value == pytest.approx(0.75 * d1.value + 0.25 * d3.value)
    assert got.low == pytest.approx(0.75 * d1.low + 0.25 * d3.low)
    missing = weighed(found, Profile(name="x", weights={"D1": 1.0, "D6": 1.0}))
    assert missing.value is None
    assert "D6 is not measured" in missing.why


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[clinic]\nD9 = 1", "weighs 'D9'"),
        ("[clinic]\nD1 = -1", "the weight -1"),
        ("[clinic]\nD1 = true", "the weight True"),
        ("[clinic]\nD1 = inf", "the weight inf"),
        ("[clinic]\nD1 = 0", "weighs nothing"),
        ("clinic = 3", "is no table"),
        ("", "holds no profile"),
        ("[", "not valid TOML"),
    ],
)
def test_profiles_that_mean_nothing_are_refused(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "p.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=why):
        load_profiles(file)


def test_profiles_are_read_by_name(tmp_path: Path) -> None:
    file = tmp_path / "p.toml"
    file.write_text("[clinic]\nD6 = 3\nD7 = 1\n[lab]\nD1 = 1\n", encoding="utf-8")
    assert [(p.name, p.weights) for p in load_profiles(file)] == [
        ("clinic", {"D6": 3.0, "D7": 1.0}),
        ("lab", {"D1": 1.0}),
    ]
