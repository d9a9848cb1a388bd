"""Scorecards from stored runs, results tables and suites: what is found, measured, planned and set side by side."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from seatrial.errors import EvidenceError, InputError, UsageError
from seatrial.examples import conduct
from seatrial.flows.audits import verify_audits
from seatrial.flows.evidence import setting, task_in
from seatrial.flows.run import RunOptions, run_suite
from seatrial.flows.scorecard import ScorecardOptions, score_sources
from seatrial.flows.scorecard_runs import Bounds, planned, run_and_score
from seatrial.flows.worlds import BUILD, world_of
from seatrial.records import Agent, Provenance, Trace
from seatrial.store import Store

TASKS = ("desk-close", "desk-trial-refund", "desk-all-of-one", "desk-count")
FAST = ("D1", "D3", "D4", "D6", "D7")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both agents of the desk at four tasks, three times each."""
    where = tmp_path_factory.mktemp("scorecard") / "store"
    for agent in conduct.pair("ticketdesk"):
        run_suite("example:ticketdesk", agent=agent, store=where, options=RunOptions(k=3, tasks=TASKS))
    return where


def options(store: Path | None = None, **more: Any) -> ScorecardOptions:
    return ScorecardOptions(store=store, **{"only": FAST, **more})


def test_stored_runs_side_by_side(store: Path) -> None:
    found = score_sources(["ticketdesk-ticketdesk-tidy", "ticketdesk-ticketdesk-slapdash"], options(store))
    tidy, slapdash = found.cards
    assert (tidy.agent, tidy.suite, tidy.k, tidy.tasks) == ("ticketdesk-tidy", "ticketdesk", 3, 4)
    for card in found.cards:
        assert card.dimensions["D7"].estimate is not None
        assert card.dimensions["D7"].estimate.value == 1.0
    assert tidy.dimensions["D6"].raw == 1.0
    assert slapdash.dimensions["D6"].raw == 0.0
    assert set(found.separation) == {"ticketdesk-slapdash"}
    assert found.data_version == Store.open(store).data_version
    summary = found.summary()
    assert summary["agent"] == "ticketdesk-tidy"
    assert [a["agent"] for a in summary["agents"]] == ["ticketdesk-tidy", "ticketdesk-slapdash"]


def test_the_json_contract(store: Path) -> None:
    result = json.loads(msgspec.json.encode(score_sources(["ticketdesk-ticketdesk-tidy"], options(store)).summary()))
    assert {"k", "tasks", "dimensions", "counts"} <= result.keys()
    assert result["counts"] == {"failed": 3, "passed": 9}
    for found in result["dimensions"].values():
        assert {"estimate", "why", "per_task"} <= found.keys()
        if found["estimate"] is not None:
            assert {"value", "low", "high", "level", "n", "n_clusters", "method"} <= found["estimate"].keys()
    assert result["dimensions"]["D1"]["per_task"] == {
        "desk-all-of-one": 1.0, "desk-close": 0.0, "desk-count": 1.0, "desk-trial-refund": 1.0,
    }  # fmt: skip
    assert result["dimensions"]["D4"]["estimate"]["value"] == 1.0


def test_replays_need_the_suite_and_say_so(store: Path) -> None:
    found = score_sources(["ticketdesk-ticketdesk-tidy"], options(store, only=("D5",)))
    assert found.cards[0].dimensions["D5"].estimate is not None
    runs = Store.open(store)
    from seatrial.flows import evidence

    judged = evidence.Setting(None, None)
    from seatrial.flows.attempts import resolve, stored_run
    from seatrial.flows.scorecard import gather

    name = resolve(runs, "ticketdesk-ticketdesk-tidy")
    gathered = gather(evidence.of_judged(stored_run(runs, name), runs, judged), options(only=("D5",)))
    assert {v.value for v in gathered.values["D5"]} == {None}


def test_a_task_out_of_a_log_names_no_code(store: Path) -> None:
    """What a stored trace says of its task is data: nothing in it is looked up or run."""
    spec = {"id": "t", "input": "x", "setup": "os:getcwd", "check_final": "os:getcwd", "rubric": "os:getcwd",
            "gates": [{"name": "g", "tool": "pay"}]}  # fmt: skip
    trace = Trace(id="x", agent=Agent(name="a"), extra={"task_spec": spec},
                  provenance=Provenance(format="seatrial-attempt", reader="r", reader_version="1"))  # fmt: skip
    task = task_in(trace)
    assert task is not None
    assert (task.setup, task.check_final, task.rubric) == (None, None, None)
    assert task.gates == [{"name": "g", "tool": "pay"}]


def test_the_process_that_forks_loads_no_library_with_threads() -> None:
    module, _, function = BUILD.partition(":")
    code = (
        f"import sys, seatrial.dimensions.fresh, {module} as worlds\n"
        f"assert callable(worlds.{function})\n"
        "worlds.warm({'suite': 'example:coderepo'})\n"
        "print(sorted({'polars', 'deltalake', 'pyarrow', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_world_of_a_run_can_be_made_in_another_process() -> None:
    world = world_of({"suite": "example:coderepo", "task": "repo-publish", "seed": 3})
    assert world.state()["tests"]["test_discount"] is True  # the setup of this task


def test_a_changed_task_is_scored_without_its_world(store: Path) -> None:
    from seatrial.records import Attempt

    where = setting("example:ticketdesk")
    assert where.task(Attempt(task="desk-close", trial=0, status="passed", task_hash="0" * 64)) is None
    assert where.changed == {"desk-close"}
    assert where.task(Attempt(task="desk-close", trial=0, status="passed")) is not None


def test_audits_are_written_and_hold_together(store: Path, tmp_path: Path) -> None:
    score_sources(["ticketdesk-ticketdesk-slapdash"], options(store, only=("D7",), audits=tmp_path / "audits"))
    found = verify_audits([tmp_path / "audits"])
    assert len(found) == 12
    assert all(one.ok for one in found)
    file = Path(found[0].file)
    assert verify_audits([file], found[0].head)[0].ok
    record = json.loads(file.read_text(encoding="utf-8"))
    record["run"]["outcome"]["status"] = "passed" if record["run"]["outcome"]["status"] == "failed" else "failed"
    file.write_text(json.dumps(record), encoding="utf-8")
    assert [one.ok for one in verify_audits([tmp_path / "audits"])].count(False) == 1


def table(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_results_table_has_completion_and_reproducibility_and_reasons_for_the_rest(tmp_path: Path) -> None:
    rows = "".join(f"t{t},{n},{int(n < c)}\n" for t, c in enumerate((7, 5, 10)) for n in range(10))
    found = score_sources([table(tmp_path / "r.csv", "task,trial,passed\n" + rows)], ScorecardOptions())
    card = found.cards[0]
    assert (card.agent, card.k, card.tasks) == ("r", 10, 3)
    assert card.dimensions["D1"].raw == pytest.approx(22 / 30)
    assert card.dimensions["D3"].raw == pytest.approx((0.0666666667 - 0.1111111111 + 1) / 3)
    for name in ("D2", "D4", "D5", "D6", "D7"):
        assert card.dimensions[name].estimate is None
        assert card.dimensions[name].why


def test_models_of_a_table_stand_side_by_side(tmp_path: Path) -> None:
    text = "task,trial,model,passed\n" + "".join(f"t{t},{n},{m},1\n" for t in "ab" for n in range(2) for m in "xy")
    source = table(tmp_path / "r.csv", text)
    assert [c.agent for c in score_sources([source], ScorecardOptions()).cards] == ["x", "y"]
    assert [c.agent for c in score_sources([source], ScorecardOptions(model="y")).cards] == ["y"]
    with pytest.raises(UsageError, match="no model 'z'"):
        score_sources([source], ScorecardOptions(model="z"))


def test_rows_that_cannot_be_used_stay_in_the_denominator(tmp_path: Path) -> None:
    source = table(tmp_path / "r.csv", "task,trial,passed\na,0,1\na,1,perhaps\nb,0,0\nb,1,1\n")
    card = score_sources([source], ScorecardOptions()).cards[0]
    assert (card.counts.n_planned, card.counts.n_scored, card.counts.excluded) == (4, 3, {"unscored": 1})
    assert any("cannot be used" in w for w in card.warnings)


def test_passing_recorded_apart_from_the_score_is_the_criterion(tmp_path: Path) -> None:
    source = table(tmp_path / "r.csv", "task,trial,passed,score\na,0,1,0.8\nb,0,0,0.4\n")
    assert score_sources([source], ScorecardOptions()).cards[0].dimensions["D1"].raw == 0.5
    graded = table(tmp_path / "g.csv", "task,trial,score\na,0,0.8\nb,0,0.4\n")
    assert score_sources([graded], ScorecardOptions()).cards[0].dimensions["D1"].raw == pytest.approx(0.6)


def test_recorded_repair_costs_of_a_table(tmp_path: Path) -> None:
    text = "task,trial,passed,repair_minutes,repair_r_max,irreversible\na,0,0,12,60,\na,1,0,0,60,true\nb,0,0,30,60,\n"
    d4 = score_sources([table(tmp_path / "r.csv", text)], ScorecardOptions()).cards[0].dimensions["D4"]
    assert d4.unit == "minutes"
    assert d4.raw == pytest.approx((0.8 + 0.0 + 0.5) / 3)


def test_what_is_not_there(tmp_path: Path, store: Path) -> None:
    with pytest.raises(InputError, match="no such file, folder or stored run"):
        score_sources([str(tmp_path / "none")], ScorecardOptions())
    with pytest.raises(InputError, match="begins with"):
        score_sources(["nothing"], ScorecardOptions(store=store))
    with pytest.raises(UsageError, match="no dimension 'D8'"):
        score_sources(["ticketdesk-ticketdesk-tidy"], options(store, only=("D8",)))
    (tmp_path / "empty").mkdir()
    with pytest.raises(EvidenceError, match="no runs of tasks"):
        score_sources([str(tmp_path / "empty")], ScorecardOptions())
    with pytest.raises(UsageError, match="name runs"):
        score_sources([], ScorecardOptions())


def test_runs_are_planned_made_and_resumed(tmp_path: Path) -> None:
    running = RunOptions(k=3, tasks=("assistant-day", "assistant-budget"))
    chosen = ScorecardOptions(store=tmp_path / "store", only=("D1", "D3"))
    before = planned("example:assistant", ["assistant-clean"], running, chosen)
    assert (before.tasks, before.agents[0].attempts, before.agents[0].seconds) == (2, 6, None)
    assert "no earlier attempt" in before.agents[0].by
    told: list[Any] = []
    found = run_and_score("example:assistant", ["assistant-clean"], running, chosen, told=told.append)
    assert (found.cards[0].k, found.cards[0].counts.n_scored) == (3, 6)
    assert "a first round of 2" in told[0].by
    after = planned("example:assistant", ["assistant-clean"], running, chosen)
    assert after.agents[0].seconds is not None
    assert after.agents[0].measured == 6
    more = run_and_score("example:assistant", ["assistant-clean"], msgspec.structs.replace(running, k=4), chosen)
    assert (more.cards[0].k, more.cards[0].counts.n_scored) == (4, 8)


def test_what_is_estimated_beyond_the_bounds_is_not_started(tmp_path: Path) -> None:
    running = RunOptions(k=50, tasks=("assistant-day",))
    chosen = ScorecardOptions(store=tmp_path / "store", only=("D1",))
    with pytest.raises(UsageError, match="more than 1e-09"):
        run_and_score("example:assistant", ["assistant-clean"], running, chosen, bounds=Bounds(hours=1e-9))
    with pytest.raises(UsageError, match="price of an agent is not known"):
        run_and_score("example:assistant", ["assistant-clean"], running, chosen, bounds=Bounds(usd=1.0))
