"""A pytest test to k trials: ``@pytest.mark.seatrial(trials=5)`` runs it five times and judges the trials together.

Each trial has its own set-up and tear-down, so function-scoped fixtures are fresh. The test passes when at least
`at_least` of its trials pass (default: all). Trials are run one after the other as one test, so that workers of
pytest-xdist never share one. The fixture `seatrial_trial` tells a test which trial it is. Inert without the marker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

MARK = "seatrial"
_KEY = pytest.StashKey["_Trial"]()
_SAID = "seatrial"


class _Trial:
    def __init__(self, number: int, of: int, seed: int) -> None:
        self.number = number
        self.of = of
        self.seed = seed
        self.verdicts: list[tuple[str, bool | None, str]] = []


class Trial:
    """What a test may ask and tell: `number` (from 0) of `of`, and a `seed` that differs between trials and is the
    same in every run."""

    def __init__(self, state: _Trial) -> None:
        self._state = state
        self.number = state.number
        self.of = state.of
        self.seed = state.seed

    def grade(self, task: Any, trace: Any) -> dict[str, Any]:
        """`seatrial.grade_trajectory`, remembered: the summary reports every metric by itself."""
        from seatrial.grading import grade_trajectory

        verdicts = grade_trajectory(task, trace)
        for name, verdict in verdicts.items():
            self._state.verdicts.append((name, verdict.passed, verdict.reason))
        return verdicts

    def note(self, metric: str, passed: bool | None, reason: str = "") -> None:
        """A verdict of the test's own, reported beside the others; it decides nothing."""
        self._state.verdicts.append((metric, passed, reason))


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line(
        "markers",
        f"{MARK}(trials=5, at_least=None): run the test so many times; it passes when at_least trials do (None: all)",
    )


@pytest.fixture
def seatrial_trial(request: pytest.FixtureRequest) -> Trial:
    """Which trial of a test marked with ``seatrial`` is running; one of one without the marker."""
    state = request.node.stash.get(_KEY, None)
    return Trial(state if state is not None else _Trial(0, 1, _seed(request.node.nodeid, 0)))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run a marked test's trials; every other test is left to pytest."""
    marker = item.get_closest_marker(MARK)
    if marker is None or not hasattr(item, "_initrequest"):
        return None
    from _pytest.runner import runtestprotocol

    try:
        trials, at_least = _asked(marker)
    except ValueError as error:
        _refuse(item, nextitem, str(error))
        return True
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    every: list[list[pytest.TestReport]] = []
    verdicts: list[list[tuple[str, bool | None, str]]] = []
    for number in range(trials):
        state = _Trial(number, trials, _seed(item.nodeid, number))
        item.stash[_KEY] = state
        following: Any = nextitem if number == trials - 1 else _Sibling(item)
        every.append(runtestprotocol(item, nextitem=following, log=False))
        verdicts.append(state.verdicts)
        if item.session.shouldstop:
            break
    for report in _judged(every, verdicts, trials, at_least):
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _refuse(item: pytest.Item, nextitem: pytest.Item | None, why: str) -> None:
    """Fail a test whose marker means nothing, without running it; the others go on."""
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    report = pytest.TestReport(
        nodeid=item.nodeid,
        location=item.location,
        keywords=dict.fromkeys(item.keywords, 1),
        outcome="failed",
        longrepr=why,
        when="call",
    )
    item.ihook.pytest_runtest_logreport(report=report)
    # Fixtures that earlier tests share with no later one still have to be torn down.
    item.session._setupstate.teardown_exact(nextitem)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


class _Sibling:
    """The next trial as the item to come: beside the test, so that the test alone is torn down between trials and
    fixtures of a wider scope stay."""

    def __init__(self, item: pytest.Item) -> None:
        self._item = item

    def listchain(self) -> list[Any]:
        """The test's parents, and this in the test's place."""
        return [*self._item.listchain()[:-1], self]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._item, name)


def _asked(marker: pytest.Mark) -> tuple[int, int]:
    """Trials, and how many of them must pass.

    Raises:
        ValueError: the marker says nothing that can be done.
    """
    known = {"trials", "at_least"}
    unknown = set(marker.kwargs) - known
    if unknown or len(marker.args) > 1:
        found = ", ".join(sorted(unknown)) or f"{len(marker.args)} values"
        raise ValueError(f"the marker seatrial takes trials and at_least, not {found}")
    trials = marker.kwargs.get("trials", marker.args[0] if marker.args else 5)
    at_least = marker.kwargs.get("at_least")
    wanted = trials if at_least is None else at_least
    whole = all(isinstance(n, int) and not isinstance(n, bool) for n in (trials, wanted))
    if not whole or not 1 <= wanted <= trials:
        raise ValueError(
            f"the marker seatrial needs whole numbers, 1 <= at_least <= trials; got at_least={at_least!r}, "
            f"trials={trials!r}"
        )
    return trials, wanted


def _seed(nodeid: str, number: int) -> int:
    from hashlib import blake2b

    return int.from_bytes(blake2b(f"{nodeid}:{number}".encode(), digest_size=4).digest(), "big")


def _judged(
    every: Sequence[Sequence[pytest.TestReport]],
    verdicts: Sequence[Sequence[tuple[str, bool | None, str]]],
    trials: int,
    at_least: int,
) -> list[pytest.TestReport]:
    """One set of reports for all trials: the last trial's, its call standing for all of them.

    A trial whose set-up or tear-down failed is no verdict on the test: it is excluded, counted, and an error.
    """
    calls = [next((r for r in reports if r.when == "call"), None) for reports in every]
    broken = [r for reports in every for r in reports if r.when != "call" and r.failed]
    passed = sum(c is not None and c.passed for c in calls)
    scored = sum(c is not None and (c.passed or c.failed) for c in calls)
    failures = [c for c in calls if c is not None and c.failed]
    last = list(every[-1])
    call = next((r for r in last if r.when == "call"), None) or next((c for c in calls if c is not None), None)
    if call is None:
        return last
    reports = [r for r in last if r.when == "setup"] + [call] + [r for r in last if r.when == "teardown"]
    if broken and not any(r.failed for r in reports if r.when != "call"):
        reports = [broken[0] if r.when == broken[0].when else r for r in reports]
    call.duration = sum(c.duration for c in calls if c is not None)
    summary = {
        "trials": trials,
        "scored": scored,
        "passed": passed,
        "at_least": at_least,
        "errors": len(broken),
        "metrics": _metrics(verdicts),
    }
    call.user_properties.append((_SAID, summary))
    if scored == 0:
        return reports
    if passed >= at_least:
        call.outcome = "passed"
        call.longrepr = None
    else:
        call.outcome = "failed"
        first = failures[0] if failures else call
        call.longrepr = first.longrepr
        said = f"{passed} of {scored} scored trials passed, {at_least} of {trials} needed"
        call.sections.append(("seatrial", said))
    return reports


def _metrics(verdicts: Sequence[Sequence[tuple[str, bool | None, str]]]) -> dict[str, list[int]]:
    """Passed, judged and not applicable, by metric."""
    out: dict[str, list[int]] = {}
    for trial in verdicts:
        for name, passed, _ in trial:
            row = out.setdefault(name, [0, 0, 0])
            row[0] += passed is True
            row[1] += passed is not None
            row[2] += passed is None
    return out


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """A line for each marked test: trials, pass^k, and every metric by itself. Nothing without marked tests."""
    rows = []
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", None) != "call":
                continue
            rows += [(report.nodeid, value) for key, value in report.user_properties if key == _SAID]
    if not rows:
        return
    terminalreporter.section("seatrial")
    for nodeid, said in sorted(rows, key=lambda row: row[0]):
        terminalreporter.write_line(f"{nodeid}: {_line(said)}")
        for metric, (passed, judged, none) in sorted(said["metrics"].items()):
            left = f", {none} not applicable" if none else ""
            terminalreporter.write_line(f"    {metric} {passed}/{judged}{left}")


def _line(said: Mapping[str, Any]) -> str:
    n, c = said["scored"], said["passed"]
    text = f"{c} of {n} trials passed ({said['at_least']} needed)"
    if n:
        from seatrial.stats import pass_hat_k, wilson

        share = wilson(c, n)
        ks = sorted({k for k in (1, 2, 3, 5, 10, n) if k <= n})
        text += "; " + ", ".join(f"pass^{k} {pass_hat_k(n, c, k):.2f}" for k in ks)
        if share is not None:
            text += f"; pass rate {share.value:.2f} [{share.low:.2f}, {share.high:.2f}]"
    if said["scored"] < said["trials"]:
        text += f"; {said['trials'] - said['scored']} not scored"
    return text
