"""A row that has `passed` and `score` says two things, and both are gated."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.flows.check import check


def table(path: Path, rows: list[tuple[int, float]], metric: str = "") -> Path:
    lines = [
        f"t{n // 5},{n % 5},{passed},{score}{',' + metric if metric else ''}" for n, (passed, score) in enumerate(rows)
    ]
    path.write_text("\n".join([f"task,trial,passed,score{',metric' if metric else ''}", *lines]) + "\n")
    return path


@pytest.mark.parametrize("metric", ["", "quality"])
@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ((1, 0.9), (0, 0.9)),  # passing falls, the score holds
        ((1, 0.9), (1, 0.1)),  # the score falls, passing holds
        ((1, 1.0), (0, 1.0)),  # scores are 0 or 1 and say otherwise than passed
        ((0, 1.0), (0, 0.0)),
        ((1, 1.0), (0, 0.999)),  # the two agree, and passing alone falls beyond the margin
    ],
)
def test_a_fall_in_either_is_a_regression(
    good: tuple[int, float], bad: tuple[int, float], metric: str, tmp_path: Path
) -> None:
    before = table(tmp_path / "b.csv", [good] * 150, metric)
    after = table(tmp_path / "c.csv", [good] * 50 + [bad] * 100, metric)
    found = check(before, after).comparison
    assert found.verdict == "REGRESSION"
    same = check(before, before).comparison
    assert same.verdict == "PASS", (same.metrics, same.missing_evidence)


def test_both_are_metrics_even_where_they_agree(tmp_path: Path) -> None:
    one = table(tmp_path / "b.csv", [(1, 1.0), (0, 0.0)] * 30)
    assert [m.metric for m in check(one, one).comparison.metrics] == ["passed", "score"]
    fallen = table(tmp_path / "c.csv", [(1, 0.2), (0, 0.0)] * 30)
    assert check(one, fallen).comparison.verdict == "REGRESSION"
