"""What the summary of drift says agrees with the p-values beside it."""

from __future__ import annotations

import pytest

from seatrial.records.drift import Baseline, Change, Drift, ModelChange, Window
from seatrial.report.chapters import drift as chapter


def _drift(p: float | None, holm: float | None, **fields: object) -> Drift:
    window = Window(start=0.0, end=86_400.0, n_sessions=40, n_clusters=20)
    found = {
        "before": window, "now": window, "models": (), "outcome": "outcome", "separable": 0.7, "separable_p": p,
        "separable_p_holm": holm, "changes": (Change(measure="task mix", kind="mix", psi=0.98, p_value=1.0, p_holm=1.0,
                                                     changed=False, said="could be chance"),),
    }  # fmt: skip
    return Drift(**(found | fields))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("p", "holm", "said"),
    [
        (0.002, 0.024, "No single measure changed by more than chance would do. A classifier can tell"),
        (0.02, 0.24, "Nothing changed by more than chance would do. A classifier cannot tell"),
        (0.02, None, "No single measure changed by more than chance would do. A classifier can tell"),
    ],
)
def test_the_classifier_is_judged_by_its_adjusted_p(p: float, holm: float | None, said: str) -> None:
    summary = chapter.drift(_drift(p, holm)).paragraphs[0]
    assert f"{said} the windows apart (area under the curve 0.70, p {p if holm is None else holm:.3f})" in summary


def test_a_model_without_a_change_shows_why() -> None:
    why = "then: fewer than 5 effective clusters (a 3.1): no interval is defensible"
    found = _drift(0.5, 1.0, models=(ModelChange(model="a", before=None, now=None, change=None, why=why),))
    models = next(part for part in chapter.drift(found).parts if part.heading == "Models")
    assert models.tables[0].rows[0][-1] == why
    assert models.charts == ()


def test_a_baseline_names_its_whole_data_version() -> None:
    version = "12345-af3413d821ba"
    kept = Baseline(
        start=0.0, end=86_400.0, made=9e4, data_version=version, outcome="outcome", n_sessions=9, n_sampled=5, seed=0,
        strata=("task_type",), models={"a": None}, means={"a": None},
    )  # fmt: skip
    assert f"data version {version}, " in chapter.baseline(None, kept, []).items[0]
    assert chapter.baselines([kept]).tables[0].rows[0][-1] == version
