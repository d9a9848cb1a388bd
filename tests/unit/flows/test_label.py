"""Labelling: blind, resumable, with recorded chances, and two annotators compared."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from seatrial.errors import EvidenceError, InputError, UsageError
from seatrial.flows import label
from seatrial.flows.labels import read
from seatrial.records import Agent, Consent, Provenance, Step, ToolCall, Trace
from seatrial.signals.accuracy import LabelledTurn, evaluate, read_labels
from seatrial.store import Store, frames, session_row, set_consent, step_rows


def _trace(name: str) -> Trace:
    steps = (
        Step(index=0, event_class="human", text="fix the parser"),
        Step(index=1, event_class="agent", text="Done by claude-opus-4-6.",
             tool_calls=(ToolCall(id="1", name="Bash", arguments={"command": "make"}),)),
        Step(index=2, event_class="human", text="works, thanks Claude"),
        Step(index=3, event_class="agent", text="Glad to hear."),
    )  # fmt: skip
    provenance = Provenance(format="f", reader="f", reader_version="1")
    return Trace(id=name, agent=Agent(name="a-harness"), model="claude-opus-4-6", provenance=provenance, steps=steps)


def test_each_unit_has_its_items_and_none_names_the_model() -> None:
    for unit, n in (("turn", 1), ("action", 1), ("output", 1)):
        found = list(label.items([_trace("s")], unit))  # type: ignore[arg-type]
        assert len(found) == n
        for item in found:
            assert "claude" not in (item.shown + item.before).lower()


def test_recorded_chances_give_unbiased_totals() -> None:
    rng = np.random.default_rng(0)
    items = [
        label.Item(id=str(i), unit="turn", session="s", step=i, shown="x", uncertainty=float(u))
        for i, u in enumerate(rng.random(400) ** 4)
    ]
    truth = np.array([item.uncertainty > 0.3 for item in items])
    totals = []
    for seed in range(300):
        drawn = label.draw(items, 60, seed=seed)
        assert all(0 < item.probability <= 1 for item in drawn)
        totals.append(sum(truth[int(item.id)] / item.probability for item in drawn))
    assert np.mean(totals) == pytest.approx(truth.sum(), rel=0.05)
    assert label.draw(items, 60, seed=1) == label.draw(items, 60, seed=1)


def test_a_share_of_nothing_is_refused() -> None:
    with pytest.raises(UsageError):
        label.draw([label.Item(id="1", unit="turn", session="s", step=0, shown="x")], 1, random_share=0.0)
    with pytest.raises(EvidenceError):
        label.draw([], 5)


def test_answers_are_kept_as_given_and_a_stopped_flow_goes_on(tmp_path: Path) -> None:
    items = [label.Item(id=str(i), unit="turn", session="s", step=i, shown=f"turn {i}") for i in range(4)]
    path = tmp_path / "labels.jsonl"
    said: list[str] = []
    keys = iter(["z", "cp", "s", "q"])
    assert label.ask(items, path, "ana", lambda *_: None, lambda: next(keys), said.append) == 1
    assert len(said) == 1
    rest = iter(["x", "o", "o"])
    assert label.ask(items, path, "ana", lambda *_: None, lambda: next(rest), said.append) == 3
    held = label.read_answers(path)
    assert [a.id for a in held] == ["0", "1", "2", "3"]
    assert held[0].labels == ("confirmation", "praise")
    assert label.ask(items, path, "ana", lambda *_: None, lambda: "q", said.append) == 0
    assert [row.labels for row in read_labels(path)] == [a.labels for a in held]


def test_a_torn_last_line_is_cut_off_and_a_bad_one_is_named(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    item = label.Item(id="1", unit="output", session="s", step=0, shown="x")
    label.save(path, label.answer(item, "p", "ana"))
    with path.open("ab") as file:
        file.write(b'{"id": "2", "un')
    assert len(label.read_answers(path)) == 1
    label.save(path, label.answer(item, "f", "ana"))
    assert [a.labels for a in label.read_answers(path)] == [("pass",), ("fail",)]
    path.write_bytes(b"nonsense\n" + path.read_bytes())
    with pytest.raises(InputError):
        label.read_answers(path)


def test_keys_that_exclude_each_other_are_refused() -> None:
    turn = label.Item(id="1", unit="turn", session="s", step=0, shown="x")
    for keys in ("", "co", "9"):
        with pytest.raises(UsageError):
            label.answer(turn, keys, "ana")


def test_outputs_become_session_labels_for_ranking(tmp_path: Path) -> None:
    path = tmp_path / "outputs.jsonl"
    for name, key in (("a", "p"), ("b", "f")):
        item = label.Item(id=name, unit="output", session=name, step=0, shown="x", probability=0.25)
        label.save(path, label.answer(item, key, "ana"))
    table = read(path)
    assert table["label"].to_list() == [1.0, 0.0]
    assert table["probability"].to_list() == [0.25, 0.25]


def test_two_annotators_are_compared_on_what_both_answered() -> None:
    items = [label.Item(id=str(i), unit="output", session="s", step=i, shown="x") for i in range(10)]
    one = [label.answer(item, "p" if i < 5 else "f", "ana") for i, item in enumerate(items)]
    two = [label.answer(item, "p" if i < 6 else "f", "ben") for i, item in enumerate(items[:9])]
    found = label.agreement(one, two)
    assert found.n == 9
    assert found.same == pytest.approx(8 / 9)
    kappa = found.kappa["pass"]
    assert kappa is not None
    assert kappa.value == pytest.approx((8 / 9 - (5 * 6 + 4 * 3) / 81) / (1 - (5 * 6 + 4 * 3) / 81))
    with pytest.raises(EvidenceError):
        label.agreement(one, [])


def test_evaluation_tells_confusions_curves_and_models() -> None:
    rows = [
        LabelledTurn(turn="works now", labels=("confirmation",), before="Done.", model="m1", id="1"),
        LabelledTurn(turn="no, that's wrong", labels=("praise",), before="Done.", model="m2", id="2"),
        LabelledTurn(turn="what is this?", labels=("complaint",), before="Done.", disputed=("complaint",), id="3"),
    ]
    found = evaluate(rows)
    assert set(found.by_model) == {"m1", "m2"}
    assert found.with_disputed["complaint"]["n_positive"] == 1
    assert found.kinds["complaint"]["n_positive"] == 0
    mistake = next(c for c in found.confusion if c.labelled == "praise")
    assert mistake.found == "correction"
    assert mistake.examples[0].id == "2"
    assert next(p.recall for p in found.curves["confirmation"]) == 1.0
    assert found.calibration["confirmation"].bins[0].right == 1.0


def test_only_sessions_whose_people_agreed_are_labelled(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "s", create=True)
    traces = [_trace(name) for name in ("a", "b")]
    sessions = [session_row(t, store.put(t)) for t in traces]
    store.commit(frames(sessions, [row for t in traces for row in step_rows(t)]))
    set_consent(store, [Consent(subject="a", purposes=("rank",), basis="said so", time=0.0)])
    found = label.queue(store, "turn", 10, random_share=1.0)
    assert {item.session for item in found.items} == {"b"}
    assert [(d.n, d.what) for d in found.left_out] == [(1, "sessions without consent to label")]
    set_consent(store, [Consent(subject="b", purposes=(), basis="said so", time=0.0)])
    with pytest.raises(EvidenceError, match="nothing may be labelled"):
        label.queue(store, "turn", 10)
