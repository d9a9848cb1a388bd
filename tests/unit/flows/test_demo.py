"""The demo from end to end, small: real logs, the public flow, the truth beside the estimate."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import polars as pl
import pytest

from seatrial.canon import canonical
from seatrial.cli.demo import keep
from seatrial.errors import InputError
from seatrial.examples import fleet, habits, truth
from seatrial.examples.sentences import built_in
from seatrial.flows import demo, demo_recovery
from seatrial.flows.demo_result import DemoRun
from seatrial.report.chapters import ranking
from seatrial.report.chapters.recovery import contrast
from seatrial.report.chapters.router import fit
from seatrial.report.section import Section
from seatrial.server import shown
from seatrial.store import Store

N = 120
NAMES = [profile.name for profile in habits.FLEET]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> DemoRun:
    """Recovery in few homes: that chapter has tests of its own."""
    few = partial(demo_recovery.run, fitted=24, fresh=6)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo_recovery, "run", few)
        return demo.run(tmp_path_factory.mktemp("demo") / "out", sessions=N, seed=7, draws=999, workers=1)


def test_it_ranks_the_fleet_as_a_randomised_comparison(run: DemoRun) -> None:
    assert run.ranking.design.verdict == "randomised"
    assert {row.model for row in run.ranking.models} == set(NAMES)
    assert 0.8 * N <= sum(row.n_sessions for row in run.ranking.models) <= N
    for row in run.ranking.models:
        assert row.rank is not None
        assert row.rank.low <= NAMES.index(row.model) + 1 <= row.rank.high


def test_every_arm_was_drawn_by_the_public_assigner_before_its_session(run: DemoRun) -> None:
    with (run.folder / demo.ASSIGNMENTS).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    plans = {planned.id: planned for planned in fleet.plan(N, 7)}
    assert {row["unit"] for row in rows} == plans.keys()
    for row in rows:
        assert [float(row[f"p_{name}"]) for name in NAMES] == [0.25] * 4
        assert float(row["time"]) <= plans[row["unit"]].time
        assert row["user"] == plans[row["unit"]].persona.name
        assert row["stratum"] == f"{plans[row['unit']].jobs[0].type}/{plans[row['unit']].jobs[0].difficulty}"
    counts = [sum(row["arm"] == name for row in rows) for name in NAMES]
    assert max(counts) - min(counts) <= 30


def test_the_truth_stands_beside_the_estimate(run: DemoRun) -> None:
    section = next(s for s in run.sections if s.heading == "The truth that was planted")
    assert [row[0] for row in section.tables[0].rows] == NAMES
    assert set(run.here) == set(NAMES)
    assert sum(values["signals_mean"] for values in run.here.values()) == pytest.approx(0.0, abs=1e-9)
    assert run.ranking.outcome in run.truth.agents[NAMES[0]]
    page = run.report.read_text("utf-8")
    assert "The truth that was planted" in page
    assert "How well the users were understood" in page
    assert page.index("Would a gate have stopped a bad change?") < page.index("How well the users were understood")
    assert "First divergence: the candidate called" in page
    assert not re.findall(r"https?://(?!www\.w3\.org)", page)


def test_detection_is_measured_for_every_kind(run: DemoRun) -> None:
    assert set(run.detectors) == set(truth.VERDICTS)
    for found in run.detectors.values():
        assert found.n_meant > 0
        assert found.recall is not None
        assert found.recall.n == found.n_meant
        assert 0.0 <= found.recall.value <= 1.0
    assert run.agreement is not None
    assert run.agreement > 0.5


def test_two_agents_of_one_completion_rate_are_told_apart(run: DemoRun) -> None:
    tidy, slapdash = run.scorecard.cards
    assert tidy.dimensions["D1"].raw == pytest.approx(slapdash.dimensions["D1"].raw)
    (contrasts,) = run.scorecard.separation.values()
    assert {c.dimension for c in contrasts if c.separated} == {"D2", "D3", "D4", "D6"}
    chapter = next(s for s in run.sections if s.key == "demo-scorecard")
    assert "D2, D3, D4 and D6 can" in chapter.paragraphs[0]
    assert chapter.parts[0].key == "scorecard-separation"


def test_the_json_result_is_plain(run: DemoRun) -> None:
    result = json.loads(canonical(run.summary()))
    assert result["truth"][NAMES[0]]["success"]["mean"] > 0.8
    assert {"report", "order_recovered", "detectors", "ranking", "agreement"} <= result.keys()
    assert result["gate"] == {"unchanged": "PASS", "broken": "REGRESSION"}


def said(sections: Sequence[Section]) -> list[tuple[str, list[list[str]]]]:
    """Headings with their tables' rows, as words."""
    return [
        (s.heading, [[str(cell) for cell in row] for t in s.tables for row in ([c.head for c in t.columns], *t.rows)])
        for s in sections
    ]


def test_what_was_found_is_kept_where_the_browser_looks(run: DemoRun) -> None:
    keep(str(run.folder / demo.STORE), run)
    store = Store.open(run.folder / demo.STORE)
    kept = store.results()
    assert sorted(head.command for head in kept) == [
        "gate", "gate", "rank", "recover contrast", "recover fit", "scorecard",
    ]  # fmt: skip
    direct = {
        "rank": ranking(run.ranking),
        "recover contrast": contrast(run.recovery.contrast),
        "recover fit": fit(run.recovery.router),
    }
    for head in kept:
        again = shown.sections(store.result(head.id))
        assert again, head.command
        if head.command in direct:
            for kept_one, made in zip(said(again), said(direct[head.command]), strict=True):
                assert kept_one == made, f"{head.command} reads the same from the store"


def test_counting_a_turn_once_per_kind() -> None:
    """Three detections in three turns, one right, one wrong, one meant but missed."""
    made = [fleet.work(p, habits.FLEET[3], built_in()) for p in fleet.plan(60, 3)]
    meant = [(w, step) for w in made for step, kinds in truth.meant(w) if "correction" in kinds]
    others = [(w, step) for w in made for step, kinds in truth.meant(w) if "correction" not in kinds]
    hits = [meant[0], meant[1], others[0]]
    rows = [{"session": w.plan.id, "step": step, "kind": "correction"} for w, step in [*hits, hits[0]]]
    found = demo.accuracy(made, pl.DataFrame(rows), 0.95)["correction"]
    assert (found.n_meant, found.n_found) == (len(meant), 3)
    assert found.recall is not None
    assert found.recall.value == pytest.approx(2 / len(meant))
    assert found.precision is not None
    assert found.precision.value == pytest.approx(2 / 3)
    assert demo.accuracy(made, pl.DataFrame(rows).clear(), 0.95)["correction"].precision is None


def test_a_second_run_replaces_the_first_and_gives_the_same_result(
    run: DemoRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last three chapters are given back as the first run made them: nothing of them is compared here."""
    for room, found in (("demo_gate", run.gate), ("demo_recovery", run.recovery), ("demo_scorecard", run.scorecard)):
        monkeypatch.setattr(getattr(demo, room), "run", lambda *_, found=found, **__: found)
    logs = {p.name: p.read_bytes() for p in (run.folder / demo.SESSIONS).rglob("*.jsonl")}
    again = demo.run(run.folder, sessions=N, seed=7, draws=999, workers=1)
    assert {p.name: p.read_bytes() for p in (run.folder / demo.SESSIONS).rglob("*.jsonl")} == logs
    for one, two in zip(run.ranking.models, again.ranking.models, strict=True):
        assert (one.model, one.n_sessions, one.rank) == (two.model, two.n_sessions, two.rank)
        assert one.net_improvement is not None
        assert two.net_improvement is not None
        # Pseudonyms differ from store to store and with them the order in which users are summed.
        assert one.net_improvement.value == pytest.approx(two.net_improvement.value, abs=1e-9)
    assert again.detectors == run.detectors
    assert again.here == run.here


def test_a_folder_that_is_not_a_demo_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "sessions").mkdir()
    (tmp_path / "sessions" / "mine.jsonl").write_text("precious", encoding="utf-8")
    with pytest.raises(InputError, match="not empty"):
        demo.run(tmp_path, sessions=100)
    assert (tmp_path / "sessions" / "mine.jsonl").read_text(encoding="utf-8") == "precious"
    file = tmp_path / "file"
    file.write_text("x", encoding="utf-8")
    with pytest.raises(InputError):
        demo.run(file, sessions=100)
