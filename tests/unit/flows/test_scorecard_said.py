"""What a scorecard leaves out, numbers anew or cannot read is counted and said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from seatrial.canon import canonical
from seatrial.dimensions.annotations import Annotations
from seatrial.errors import FormatError
from seatrial.flows.scorecard import ScorecardOptions, Scored, score_sources
from seatrial.ingest import atif_write
from seatrial.records import Agent, Provenance, RecordedOutcome, Step, TaskRef, ToolCall, ToolResult, Trace


def _log(folder: Path, name: str, task: str, attempt: int | None, model: str = "m") -> Path:
    steps = (
        Step(index=0, event_class="human", text="pay"),
        Step(
            index=1,
            event_class="agent",
            text="Done.",
            tool_calls=(ToolCall(id="c", name="pay", arguments={}),),
            results=(ToolResult(call_id="c", outcome="ok", text="paid"),),
        ),
    )
    trace = Trace(
        id=name, agent=Agent(name="h"), model=model, task=TaskRef(id=task), attempt=attempt, steps=steps,
        outcome=RecordedOutcome(status="passed"),
        provenance=Provenance(format="seatrial", reader="r", reader_version="1"),
    )  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.json"
    file.write_bytes(canonical(atif_write.write(trace).document))
    return file


def _score(*sources: Path, **more: Any) -> Scored:
    return score_sources([str(s) for s in sources], ScorecardOptions(only=("D1",), **more))


def test_one_attempt_in_two_files_is_never_merged(tmp_path: Path) -> None:
    one, two = (_log(tmp_path / "logs", name, "t", 0) for name in ("one", "two"))
    _log(tmp_path / "logs", "zero", "u", 0)
    found = _score(tmp_path / "logs")
    assert [(card.agent, card.counts.n_scored) for card in found.cards] == [
        ("m (one.json and 1 more)", 2), ("m (two.json)", 1),
    ]  # fmt: skip
    said = "1 attempts are recorded in more than one file, the first attempt 0 of task t, in one.json and two.json"
    assert any(said in w for w in found.warnings)
    assert [card.agent for card in _score(one, two).cards] == ["m (one.json)", "m (two.json)"]


def test_files_of_one_name_and_agent_keep_names_of_their_own(tmp_path: Path) -> None:
    files = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        files.append(tmp_path / name / "r.csv")
        files[-1].write_text("task,trial,passed\nt,0,1\nu,0,0\n", encoding="utf-8")
    names = [card.agent for card in _score(*files).cards]
    assert len(set(names)) == 2


def test_runs_without_attempt_numbers_are_counted_as_further_attempts_and_said(tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        _log(tmp_path / "logs", name, "t", None)
    (card,) = _score(tmp_path / "logs").cards
    assert card.counts.n_scored == 3
    assert any("2 runs bear no attempt number" in w and "first t" in w for w in card.warnings)


def test_annotations_that_fit_no_action_are_counted(tmp_path: Path) -> None:
    _log(tmp_path / "logs", "one", "t", 0)
    rows = [{"task": t, "attempt": n, "index": 0, "relevant": True} for t, n in (("t", 0), ("t", 7), ("zz", 0))]
    file = tmp_path / "a.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    found = _score(tmp_path / "logs", annotations=Annotations(file))
    assert [w for w in found.warnings if "annotations" in w] == [
        "2 of 3 annotations match no action, the first task t, attempt 7, call 0"
    ]
    (tmp_path / "r.csv").write_text("task,trial,passed\nt,0,1\n", encoding="utf-8")
    bare = _score(tmp_path / "r.csv", annotations=Annotations(file))
    assert any("3 of 3 annotations match no action" in w for w in bare.warnings)


def test_annotations_of_another_program_s_log_count(tmp_path: Path) -> None:
    _log(tmp_path / "logs", "one", "t", 0)
    file = tmp_path / "a.jsonl"
    file.write_text('{"task": "t", "attempt": 0, "index": 0, "relevant": false}\n', encoding="utf-8")
    chosen = ScorecardOptions(only=("D2",), annotations=Annotations(file))
    (card,) = score_sources([str(tmp_path / "logs")], chosen).cards
    assert card.dimensions["D2"].detail["sources"] == {"annotation": 1}


def test_a_call_before_the_first_is_no_call(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"task": "t", "attempt": 0, "index": -1, "relevant": true}\n', encoding="utf-8")
    with pytest.raises(FormatError, match="counted from 0"):
        Annotations(file)


def test_scores_that_are_no_share_are_counted(scored_outside: Scored) -> None:
    assert any("2 scores lie outside [0, 1], the first 1.7 at task t, attempt 0" in w for w in scored_outside.warnings)


@pytest.fixture
def scored_outside() -> Scored:
    """Three runs, two with scores that are no share of completion."""
    from seatrial.dimensions.card import scorecard
    from seatrial.dimensions.catalogue import dimensions
    from seatrial.flows.scorecard import side_by_side
    from seatrial.records import Attempt, Evidence

    scores = (1.7, -0.2, 0.5)
    runs = [Evidence(attempt=Attempt(task="t", trial=n, status="failed", score=s)) for n, s in enumerate(scores)]
    return side_by_side([scorecard(runs, dimensions(), agent="a")])


def test_runs_that_a_judge_may_not_see_are_counted(tmp_path: Path) -> None:
    class Shy:
        left_out = 0

        def of(self, run: Any) -> tuple[()]:
            self.left_out += 1
            return ()

    _log(tmp_path / "logs", "one", "t", 0)
    chosen = msgspec.structs.replace(ScorecardOptions(only=("D1",)), judge=Shy())
    assert any("1 runs were not shown to the judge" in w
               for w in score_sources([str(tmp_path / "logs")], chosen).warnings)  # fmt: skip
