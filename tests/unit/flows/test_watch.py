"""What changed in a store of weeks, with a change that is planted, and one that is not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import msgspec
import numpy as np
import polars as pl
import pytest

from seatrial import scoring
from seatrial.engine.choice import LocalEngine
from seatrial.errors import EvidenceError, UsageError
from seatrial.flows import watch
from seatrial.flows.extract import extract_store
from seatrial.records import Agent, Provenance, Step, Trace
from seatrial.report.chapters.drift import minute
from seatrial.store import Store, frames, session_row, step_rows

T0 = 1_790_000_000.0
DAY = 86_400.0
ONE = LocalEngine(1)
GOOD, BAD = "perfect, thank you, that works", "no, that is wrong, undo it"


def _traces(weeks: tuple[float, ...], *, version: tuple[str, ...] = ("1",) * 9, mix: tuple[float, ...] = (0.5,) * 9,
            users: int = 30) -> Iterator[Trace]:  # fmt: skip
    """Every user has three sessions a week; `weeks` are the chances of a pleased user, `mix` the share of model a."""
    rng = np.random.default_rng(7)
    for week, pleased in enumerate(weeks):
        for user in range(users):
            for n in range(3):
                at = T0 + (7 * week + 2 * n + 0.01 * user) * DAY
                model = "a" if rng.random() < mix[week] else "b"
                said = GOOD if rng.random() < pleased else BAD
                steps = (
                    Step(index=0, event_class="human", text="please fix the parser in reader.py", time=at),
                    Step(index=1, event_class="agent", text="I changed the parser.", time=at + 60, model=model),
                    Step(index=2, event_class="human", text=said, time=at + 120),
                    Step(index=3, event_class="agent", text="Understood.", time=at + 180, model=model),
                )
                yield Trace(
                    id=f"w{week}-u{user}-{n}", agent=Agent(name="h", version=version[week]), model=model,
                    user=f"user-{user}", steps=steps,
                    provenance=Provenance(format="f", reader="r", reader_version="1"),
                )  # fmt: skip


def _store(path: Path, traces: Iterator[Trace]) -> Store:
    store = Store.open(path, create=True, durable=False)
    kept = list(traces)
    store.commit(frames([session_row(t, store.put(t)) for t in kept], [row for t in kept for row in step_rows(t)]))
    return store


def test_two_equal_weeks_could_be_chance(tmp_path: Path) -> None:
    found = watch.drift(_store(tmp_path / "s", _traces((0.7, 0.7))), draws=199, engine=ONE)
    assert [c.measure for c in found.changes if c.changed] == []
    assert {c.said for c in found.changes} <= {"could be chance", "cannot be told"}
    assert (found.before.n_clusters, found.now.n_clusters) == (30, 30)
    assert found.separable_p is not None
    assert found.separable_p > 0.05


def test_a_worse_week_is_told_from_one_after_a_deploy(tmp_path: Path) -> None:
    store = _store(tmp_path / "s", _traces((0.9, 0.3)))
    found = {c.measure: c for c in watch.drift(store, draws=199, engine=ONE).changes}
    worse = found["corrections per session"]
    assert worse.changed
    assert worse.said == "without a deploy: the inputs changed"
    assert worse.difference is not None
    assert worse.difference.low is not None
    assert worse.difference.low > 0.3
    assert found["task mix"].changed is False
    watch.mark(store, "prompt v12", T0 + 6.9 * DAY)
    told = {c.measure: c for c in watch.drift(store, draws=199, engine=ONE).changes}["corrections per session"]
    assert (told.said, told.marks) == ("after a deploy", ("prompt v12",))


def test_a_new_version_in_the_traces_is_a_deploy_and_the_first_is_not(tmp_path: Path) -> None:
    found = watch.drift(_store(tmp_path / "s", _traces((0.7, 0.7), version=("1", "2"))), draws=199, engine=ONE)
    assert [(m.text, m.by) for m in found.marks] == [("h 2", "traces")]


def test_a_changed_route_is_seen_and_makes_the_baseline_stale(tmp_path: Path) -> None:
    found = watch.drift(_store(tmp_path / "s", _traces((0.7, 0.7), mix=(0.8, 0.2))), draws=999, engine=ONE)
    route = next(c for c in found.changes if c.measure == "route")
    assert route.changed
    assert route.shares["a"][0] > 0.7
    assert any("route" in why for why in found.stale)


def test_a_baseline_is_kept_when_it_is_redrawn(tmp_path: Path) -> None:
    store = _store(tmp_path / "s", _traces((0.9, 0.9, 0.4)))
    first = watch.refresh(store, watch.Span(T0, T0 + 7 * DAY), n=40)
    assert first.old is None
    assert first.new.n_sampled == len(first.sample) == 40
    assert all(0 < row["inclusion_probability"] <= 1 for row in first.sample)
    against = watch.drift(store, days=7, draws=199, engine=ONE)
    assert (against.before.start, against.before.end) == (T0, T0 + 7 * DAY)
    second = watch.refresh(store, watch.Span(T0 + 14 * DAY, T0 + 21 * DAY), n=40)
    assert second.old == first.new
    assert [b.start for b in watch.baselines(store)] == [T0 + 14 * DAY, T0]
    again = watch.refresh(store, watch.Span(T0 + 14 * DAY, T0 + 21 * DAY), n=40)
    assert again.sample == second.sample, "the same seed and data draw the same set"


def test_a_small_window_is_its_own_evaluation_set(tmp_path: Path) -> None:
    store = _store(tmp_path / "s", _traces((0.7,), users=6))
    made = watch.refresh(store)
    assert made.new.n_sampled == made.new.n_sessions < watch.EVALUATION
    with pytest.raises(UsageError, match="cannot draw"):
        watch.refresh(store, n=watch.EVALUATION)


def test_a_set_that_cannot_be_written_leaves_the_old_baseline_in_force(tmp_path: Path) -> None:
    store = _store(tmp_path / "s", _traces((0.7,), users=6))
    old = watch.refresh(store, n=5).new

    def full(sample: object) -> None:
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        watch.refresh(store, n=6, first=full)
    assert watch.baselines(store) == [old]


@pytest.mark.parametrize("text", ["0001-01-01T00:00+05:00", "9999-12-31T23:59-05:00"])
def test_a_time_that_has_no_year_in_utc_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="outside the years"):
        watch.moment(text)


def test_times_at_the_ends_of_the_calendar_can_be_shown() -> None:
    assert minute(watch.moment("0001-01-01")) == "0001-01-01 00:00"
    assert minute(watch.moment("9999-12-31T23:59")) == "9999-12-31 23:59"
    assert minute(watch.moment("2026-03-10T01:30+02:00")) == "2026-03-09 23:30"


def test_a_mark_is_one_line(tmp_path: Path) -> None:
    store = _store(tmp_path / "s", _traces((0.7,), users=2))
    assert watch.mark(store, " prompt\n v12 ", 0.0).text == "prompt v12"


def test_an_old_baseline_is_stale(tmp_path: Path) -> None:
    store = _store(tmp_path / "s", _traces((0.7,) * 6))
    found = watch.drift(store, before=watch.Span(T0, T0 + 7 * DAY), max_age_days=20, draws=199, engine=ONE)
    assert any("days ago" in why for why in found.stale)


def test_the_board_lets_a_user_in_once_and_freezes_its_plan(tmp_path: Path) -> None:
    store = _store(tmp_path / "s", _traces((0.9, 0.9, 0.9), users=90))
    board = watch.watch(store, draws=199, engine=ONE).board
    assert {w.model for w in board} == {"a", "b"}
    assert all(w.low is not None and w.high is not None for w in board)
    rows, _ = watch._rows(store)
    plan = watch._plan(store, rows, None, None)
    inside = watch._board(rows.filter(rows["start"] < T0 + 14 * DAY), plan, 0.95, 0)
    assert [(w.model, w.value) for w in inside] == [(w.model, w.value) for w in board], "later weeks add nobody again"
    with pytest.raises(UsageError, match="frozen"):
        watch.watch(store, detect=0.05, draws=199, engine=ONE)


@pytest.mark.parametrize("text", ["2026-11-01", "x..y", "2026-11-02..2026-11-01", "2026-11-01..2026-11-01"])
def test_a_range_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        watch.span(text)


def test_windows_must_hold_something_and_not_overlap(tmp_path: Path) -> None:
    store = _store(tmp_path / "s", _traces((0.7, 0.7)))
    with pytest.raises(EvidenceError, match="holds no session"):
        watch.drift(store, before=watch.Span(0, 1), draws=199, engine=ONE)
    with pytest.raises(UsageError, match="overlap"):
        watch.drift(
            store,
            before=watch.Span(T0, T0 + 9 * DAY),
            now=watch.Span(T0 + 7 * DAY, T0 + 14 * DAY),
            draws=199,
            engine=ONE,
        )
    with pytest.raises(UsageError, match="needs a name"):
        watch.mark(store, "  ")


def test_a_plan_that_cannot_be_kept_is_refused_before_it_is_frozen(tmp_path: Path) -> None:
    store = _store(tmp_path / "s", _traces((0.7, 0.7), users=6))
    for bad in (float("inf"), float("nan"), 0.0, -1.0):
        for arguments in ({"detect": bad}, {"user_window_days": bad}, {"days": bad}):
            with pytest.raises(UsageError, match="positive"):
                watch.watch(store, draws=199, engine=ONE, **arguments)  # type: ignore[arg-type]
            assert store.results("watchplan") == [], arguments
    assert watch.watch(store, draws=199, engine=ONE).before.n_sessions > 0


def test_a_baseline_that_ends_with_the_newest_session_leaves_a_window_to_look_at(tmp_path: Path) -> None:
    store = _store(tmp_path / "s", _traces((0.7, 0.7), users=6))
    watch.refresh(store, days=30, n=10)
    found = watch.drift(store, draws=199, engine=ONE)
    assert any("no session came after the stored baseline" in w for w in found.warnings)
    assert found.now.n_sessions > 0


def test_a_session_of_the_future_does_not_set_the_window(tmp_path: Path) -> None:
    first = next(_traces((0.7,), users=1))
    steps = tuple(msgspec.structs.replace(step, time=4_100_000_000.0) for step in first.steps)
    late = msgspec.structs.replace(first, id="late", steps=steps)
    store = _store(tmp_path / "s", iter([*_traces((0.7, 0.7), users=6), late]))
    found = watch.drift(store, draws=199, engine=ONE)
    assert found.now.n_sessions > 1
    assert any("future" in w for w in found.warnings)
    assert [d.n for d in found.dropped if d.why == "in neither window"] == [1]


def test_a_session_of_the_future_closes_nobodys_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The board lets in whose window of seven days has closed by the newest session that is not of the future,
    also where one session is."""
    first = next(_traces((0.7,), users=1))
    steps = tuple(msgspec.structs.replace(step, time=4_100_000_000.0) for step in first.steps)
    late = msgspec.structs.replace(first, id="late", steps=steps)
    week = [*_traces((0.9, 0.9), users=90)]
    # Whoever comes in the second week only has no closed window yet.
    week = [t for t in week if (t.id.startswith("w0")) == (int(str(t.user)[5:]) < 60)]
    boards = []
    for name, traces in (("past", week), ("future", [*week, late])):
        store = _store(tmp_path / name, iter(traces))
        extract_store(store, scoring.UNIT, engine=ONE)
        rows, _ = watch._rows(store)
        assert rows.height == len(traces)
        plan = watch._plan(store, rows, None, None)
        monkeypatch.setattr(watch, "time", SimpleNamespace(time=lambda: T0 + 40 * DAY))
        boards.append(watch._board(rows, plan, 0.95, 0))
    assert boards[0] == boards[1]
    assert all(w.low is not None for w in boards[0])
    # Were that session of last week, it would close everybody's window and move the board.
    closed = watch._board(rows.with_columns(pl.col("start").clip(upper_bound=T0 + 40 * DAY)), plan, 0.95, 0)
    assert closed != boards[0]


def test_a_window_that_overlaps_the_stored_baseline_or_lies_before_it_is_refused(tmp_path: Path) -> None:
    store = _store(tmp_path / "s", _traces((0.7, 0.7, 0.7), users=8))
    watch.refresh(store, watch.Span(T0 + 7 * DAY, T0 + 10 * DAY), n=10)
    for start, end in ((8, 16), (8, 9), (5, 8), (5, 16)):
        with pytest.raises(UsageError, match="overlap: the stored baseline") as told:
            watch.drift(store, now=watch.Span(T0 + start * DAY, T0 + end * DAY), draws=199, engine=ONE)
        assert "--baseline" in str(told.value.hint)
    with pytest.raises(UsageError, match="ends before the stored baseline"):
        watch.drift(store, now=watch.Span(T0 + 2 * DAY, T0 + 4 * DAY), draws=199, engine=ONE)
    with pytest.raises(UsageError, match="ends before the baseline"):
        watch.drift(store, before=watch.Span(T0 + 7 * DAY, T0 + 9 * DAY), now=watch.Span(T0, T0 + 2 * DAY), engine=ONE)
    # What was asked for is what is compared, and nothing is said about it.
    found = watch.drift(store, now=watch.Span(T0 + 10 * DAY, T0 + 16 * DAY), draws=199, engine=ONE)
    assert (found.before.start, found.before.end) == (T0 + 7 * DAY, T0 + 10 * DAY)
    assert (found.now.start, found.now.end) == (T0 + 10 * DAY, T0 + 16 * DAY)
    assert not any("stored baseline" in w for w in found.warnings)
    against = watch.Span(T0, T0 + 7 * DAY)
    assert watch.drift(store, before=against, now=watch.Span(T0 + 8 * DAY, T0 + 9.5 * DAY), draws=199, engine=ONE)


def test_a_last_week_that_the_stored_baseline_cuts_says_so(tmp_path: Path) -> None:
    store = _store(tmp_path / "s", _traces((0.7, 0.7), users=8))
    watch.refresh(store, watch.Span(T0, T0 + 8 * DAY), n=10)
    found = watch.drift(store, days=7, draws=199, engine=ONE)
    assert found.now.start == found.before.end == T0 + 8 * DAY
    # The newest session is on day 7 + 4 + 0.07.
    assert "the window begins where the stored baseline ends: 3.1 days" in found.warnings


def test_days_have_a_bound(tmp_path: Path) -> None:
    store = _store(tmp_path / "s", _traces((0.7, 0.7), users=6))
    for days in (1e300, 36_526.0):
        with pytest.raises(UsageError, match="at most 36,525"):
            watch.drift(store, days=days, draws=199, engine=ONE)
    with pytest.raises(EvidenceError, match=r"\(\d{4}-.* holds no session"):
        watch.drift(store, days=36_525, draws=199, engine=ONE)


def test_values_without_any_spread_get_no_interval(tmp_path: Path) -> None:
    found = {
        c.measure: c for c in watch.drift(_store(tmp_path / "s", _traces((0.7, 0.7))), draws=199, engine=ONE).changes
    }
    same = found["escalations per session"]
    assert same.difference is not None
    assert (same.difference.low, same.changed) == (None, False)
