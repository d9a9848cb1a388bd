"""What no gate may do, whatever the counts: depend on order or names, pass what is worse, or block a gain."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from seatrial.gate import GateSettings, MetricRuns, Run, TaskRuns, decide
from seatrial.gate.baseline import Baseline, dumps, loads
from seatrial.gate.noninferiority import compare

counts = st.integers(2, 12).flatmap(
    lambda tasks: st.tuples(
        st.lists(st.integers(0, 4), min_size=tasks, max_size=tasks),
        st.lists(st.integers(0, 4), min_size=tasks, max_size=tasks),
        st.permutations(range(tasks)),
    )
)


def run(passes: list[int], order: list[int] | None = None, runs: int = 4, prefix: str = "t") -> Run:
    index = order if order is not None else list(range(len(passes)))
    tasks = {
        f"{prefix}{i:02d}": TaskRuns(values=(1.0,) * passes[i] + (0.0,) * (runs - passes[i])) for i in index
    }  # fmt: skip
    return Run(label="x", metrics={"passed": MetricRuns(tasks=tasks)}, tasks=dict.fromkeys(tasks))


@given(counts)
def test_order_and_names_of_tasks_do_not_matter(case: tuple[list[int], list[int], list[int]]) -> None:
    b, c, order = case
    one = decide(run(b), run(c)).metrics[0]
    other = decide(run(b, order), run(c, order[::-1])).metrics[0]
    assert one == other
    renamed = decide(run(b, prefix="z"), run(c, prefix="z")).metrics[0]
    assert one == renamed


@given(counts)
def test_a_run_is_never_a_regression_of_itself_and_gains_are_never_one(
    case: tuple[list[int], list[int], list[int]],
) -> None:
    b, c, _ = case
    assert decide(run(b), run(b)).verdict in ("PASS", "INCONCLUSIVE")
    better = [max(x, y) for x, y in zip(b, c, strict=True)]
    answer = decide(run(b), run(better))
    assert answer.verdict != "REGRESSION"
    assert answer.regressed_tasks == ()


@given(counts)
def test_pass_and_regression_need_what_they_say(case: tuple[list[int], list[int], list[int]]) -> None:
    b, c, _ = case
    row = decide(run(b), run(c)).metrics[0]
    assert row.difference is not None
    d = (np.array(c) - np.array(b)) / 4
    assert abs(row.difference.value - d.mean()) < 1e-12
    if row.verdict == "PASS":
        assert row.lower is not None
        assert row.lower >= -0.02
        assert d.mean() >= -0.02
    if row.verdict == "REGRESSION":
        assert d.mean() < -0.02
        assert row.p_holm is not None
        assert row.p_holm <= 0.05


@given(counts)
def test_exclusions_never_help(case: tuple[list[int], list[int], list[int]]) -> None:
    """Turning a candidate's failure into an excluded attempt never makes a PASS."""
    b, c, _ = case
    if decide(run(b), run(c)).verdict == "PASS":
        return
    hidden = {
        t: TaskRuns(values=(1.0,) * int(sum(x.values)), excluded={"error_infra": x.values.count(0.0)})
        for t, x in run(c).metrics["passed"].tasks.items()
    }
    unscored = tuple(t for t, x in hidden.items() if not x.values)
    if len(unscored) == len(hidden):
        return
    candidate = Run(label="c", metrics={"passed": MetricRuns(tasks=hidden)}, tasks=dict.fromkeys(hidden),
                    unscored=unscored)  # fmt: skip
    assert decide(run(b), candidate, GateSettings(missing="note")).verdict != "PASS"


@given(counts, st.integers(1, 3))
def test_a_worse_candidate_has_a_smaller_bound_and_p(case: tuple[list[int], list[int], list[int]], shift: int) -> None:
    b, c, _ = case
    d = (np.array(c, dtype=float) - np.array(b)) / 4
    t = compare(d, len(b) * 4, 0.02, binary=True)
    lower = compare(d - shift / 10, len(b) * 4, 0.02, binary=True, changed=np.abs(d) > 1e-12)
    if t.se > 0:
        assert lower.p <= t.p + 1e-12
        if int(t.discordant):
            assert lower.lower < t.lower


@given(counts)
def test_a_committed_baseline_is_the_run_that_it_was_made_of(case: tuple[list[int], list[int], list[int]]) -> None:
    b, c, _ = case
    kept = loads(dumps(Baseline(run=run(b))), "x").run
    assert decide(kept, run(c)).metrics == decide(run(b), run(c)).metrics
