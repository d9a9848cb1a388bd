"""The deployed router decides as the fitted one, survives JSON, needs no numerical library, and acts at most once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from seatrial.errors import FormatError, InputError, UsageError
from seatrial.recovery import router as routers
from seatrial.recovery import simulate
from seatrial.recovery.episodes import Episodes, first_crossing
from seatrial.recovery.fit import FitOptions, fit
from seatrial.recovery.router import Router, from_json, load, never


def deployed(router: Router, e: Episodes) -> np.ndarray:
    holds = np.zeros(e.alive.shape, dtype=bool)
    for i in range(len(e)):
        for k, delay in enumerate(e.delays):
            features = dict(zip(e.features, e.x[i, k].tolist(), strict=True))
            holds[i, k] = router.decide(features, delay=delay) == "act"
    return first_crossing(holds)


@pytest.fixture(scope="module")
def fitting() -> Episodes:
    return simulate.episodes("three models, coupled", 60, seed=1)


@pytest.mark.parametrize("learner", ["direct", "cir"])
def test_decides_as_the_fit_does(learner: str, fitting: Episodes) -> None:
    made = fit(fitting, "refresh", FitOptions(learner="cir" if learner == "cir" else "direct", certified=False))
    assert made.router.kind == learner
    fresh = simulate.episodes("three models, coupled", 50, seed=2)
    again = from_json(made.router.to_json())
    assert deployed(again, fresh).tolist() == made.at(fresh).tolist()
    assert (made.at(fresh) >= 0).any()
    assert again.to_json() == made.router.to_json()


def test_needs_no_numerical_library(fitting: Episodes, tmp_path: Path) -> None:
    made = fit(fitting, "refresh", FitOptions(certified=False))
    file = tmp_path / "router.json"
    file.write_text(made.router.to_json())
    features = dict.fromkeys(fitting.features, 0.5)
    code = (
        "import sys, json; from seatrial.recovery.router import load; "
        f"print(load({str(file)!r}).decide(json.loads({json.dumps(features)!r}), delay=1)); "
        "print([m for m in ('numpy', 'scipy', 'polars', 'sklearn') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    answer, loaded = done.stdout.splitlines()
    assert answer == made.router.decide(features, delay=1)
    assert loaded == "[]"


def test_watch_acts_once_and_only_at_decision_points() -> None:
    eager = Router(
        "cir", "refresh", (2, 4), ("f",),
        {n: routers.Model(v, {}, True) for n, v in (("err", 9.0), ("p0", -9.0), ("p1", 9.0))},
        {"t_err": 0.5, "t_fail": 0.5, "lambda": 2.0},
    )  # fmt: skip
    watch = eager.watch(lambda history: {"f": float(len(history))})
    assert [watch.decide(["x"] * n) for n in range(1, 6)] == ["wait", "act", "wait", "wait", "wait"]
    assert eager.decide({"f": 1.0, "delay": 4}) == "act"
    assert eager.decide({"f": 1.0}, delay=3) == "wait"


def test_missing_features_are_named() -> None:
    router = Router("cir", "refresh", (1,), ("f",), {}, {})
    with pytest.raises(UsageError, match="feature f"):
        router.decide({"g": 1.0}, delay=1)
    with pytest.raises(UsageError, match="feature f"):
        router.decide({"f": float("nan")}, delay=1)
    with pytest.raises(UsageError, match="delay"):
        router.decide({"f": 1.0})
    with pytest.raises(UsageError, match="turns it into features"):
        router.decide(["a", "b"], delay=1)


def test_never_waits() -> None:
    assert never("refresh", (1,)).decide({}, delay=1) == "wait"
    assert from_json(never("refresh", (1,)).to_json()).kind == "never"


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", "{not json", '{"seatrial_router": 2}', '{"seatrial_router": 1, "kind": "other"}',
     '{"seatrial_router": 1, "kind": "direct", "operation": "r", "delays": [1], "features": [], "models": {}, '
     '"thresholds": {}}',
     '{"seatrial_router": 1, "kind": "never", "operation": "r", "delays": ["x"], "features": [], "models": {}, '
     '"thresholds": {}}', "[" * 100_000],
    ids=range(9),
)  # fmt: skip
def test_what_is_no_router_is_refused(text: str) -> None:
    with pytest.raises(FormatError):
        from_json(text)


@pytest.fixture(scope="module")
def plain(fitting: Episodes) -> str:
    return fit(fitting, "refresh", FitOptions(limit=0.2)).router.to_json()


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("certificate.n_clean", 0, "certify no limit"), ("certificate.harms", 40.0, "harms among"),
        ("certificate.need", 1, "needs"), ("certificate.limit", 1.5, "between 0 and 1"),
        ("certificate.feasible", False, "feasible"), ("certificate.feasible", "yes", "true or false"),
        ("certificate.sworn", True, "unknown 'sworn'"), ("certificate", [], "expected an object"),
        ("delays", [], "no decision point"), ("delays", ["1"], "whole number"), ("delays", [1.5], "whole number"),
        ("delays", [True], "whole number"), ("delays", [1, 1], "twice"), ("delays", "12", "expected a list"),
        ("delays", [-1], "whole number"),
        ("features", "abc", "expected a list"), ("features", [1], "expected a name"),
        ("thresholds.score", "0.5", "expected a number"), ("thresholds.score", True, "expected a number"),
        ("thresholds.score", float("nan"), "finite"), ("thresholds.score", 10**400, "finite"),
        ("thresholds.other", 1.0, "no threshold other"), ("thresholds.least_harm", 0.0, "above 0"),
        ("models.err.intercept", "1", "expected a number"), ("models.err.logistic", 1, "true or false"),
        ("models.err.power", 2, "unknown 'power'"),
        ("models.more", {"intercept": 0.0, "weights": {}}, "no model more"),
        ("models.err.weights", {"nowhere": 1.0}, "no feature"), ("operation", 3, "expected a name"),
        ("surprise", 1, "unknown 'surprise'"), ("tasks", {"salt": "s"}, "no fit"),
        ("tasks.fit", [3], "expected a name"),
    ],
)  # fmt: skip
def test_what_no_fit_writes_is_refused(plain: str, path: str, value: object, words: str) -> None:
    assert from_json(plain).kind == "direct"
    changed = json.loads(plain)
    place = changed
    *way, last = path.split(".")
    for key in way:
        place = place[key]
    place[last] = value
    with pytest.raises(FormatError, match=words):
        from_json(json.dumps(changed))


def test_a_watch_waits_on_a_feature_that_cannot_be_used_and_says_so() -> None:
    """A run that is watched must not die of a feature; it acts at the next decision point that can be judged."""
    eager = Router(
        "cir", "refresh", (1, 2, 3, 4), ("f",),
        {n: routers.Model(v, {}, True) for n, v in (("err", 9.0), ("p0", -9.0), ("p1", 9.0))},
        {"t_err": 0.5, "t_fail": 0.5, "lambda": 2.0},
    )  # fmt: skip
    watch = eager.watch()
    for features in ({}, {"f": float("nan")}, {"f": "1"}):
        assert watch.decide(features) == "wait"
        assert watch.last_reason is not None
        assert "feature f" in watch.last_reason
    assert watch.decide({"f": 1.0}) == "act"
    assert watch.last_reason is None
    with pytest.raises(UsageError, match="turns it into features"):
        eager.watch().decide(["no", "mapping"])


def test_a_router_knows_the_tasks_it_was_made_on(fitting: Episodes) -> None:
    router = from_json(fit(fitting, "refresh", FitOptions()).router.to_json())
    assert router.tasks is not None
    assert router.tasks.seen([*fitting.tasks(), "another"]) == set(fitting.tasks())
    assert router.tasks.fit
    assert router.tasks.certify


def test_absent_file(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        load(tmp_path / "none.json")
