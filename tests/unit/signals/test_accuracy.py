"""Accuracy on labelled turns: counts by hand, scikit-learn as the second source, bad files."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest
from sklearn.metrics import precision_recall_fscore_support

from seatrial.errors import EvidenceError, InputError
from seatrial.signals import evaluate, read_labels
from seatrial.signals.accuracy import KINDS, LabelledTurn
from seatrial.signals.language import Verdict


def labelled(n: int, seed: int) -> tuple[list[LabelledTurn], list[set[str]]]:
    rng = np.random.default_rng(seed)
    rows, said = [], []
    for i in range(n):
        truth = tuple(k for k in KINDS if rng.random() < 0.3) or ("other",)
        rows.append(LabelledTurn(turn=str(i), labels=truth, source=f"s{i % 4}"))
        said.append({k for k in KINDS if (k in truth) != (rng.random() < 0.25)})
    return rows, said


def test_shares_agree_with_an_independent_library() -> None:
    rows, said = labelled(400, 1)
    result = evaluate(rows, judge=lambda row: [Verdict(k, 1.0, 0, 1, "") for k in said[int(row.turn)]])
    for kind in KINDS:
        truth = [kind in row.labels for row in rows]
        found = [kind in kinds for kinds in said]
        precision, recall, f1, _ = precision_recall_fscore_support(truth, found, average="binary")
        got = result.kinds[kind]
        assert got["n_positive"] == sum(truth)
        assert got["precision"].value == pytest.approx(precision)
        assert got["recall"].value == pytest.approx(recall)
        assert got["f1"].value == pytest.approx(f1)
        for name in ("precision", "recall", "f1"):
            assert got[name].low < got[name].value < got[name].high
    assert set(result.by_source) == {"s0", "s1", "s2", "s3"}
    assert sum(t["praise"]["n_positive"] for t in result.by_source.values()) == result.kinds["praise"]["n_positive"]


def test_thresholds_apply_to_confidences() -> None:
    rows = [LabelledTurn(turn="a", labels=("correction", "praise"), source="s")]
    verdicts = [Verdict("correction", 0.65, 0, 1, ""), Verdict("praise", 0.65, 0, 1, "")]
    result = evaluate(rows, judge=lambda row: verdicts)
    assert result.kinds["correction"]["recall"].value == 0
    assert result.kinds["praise"]["recall"].value == 1


def test_nothing_there_is_none_and_never_zero() -> None:
    result = evaluate([LabelledTurn(turn="a", labels=("other",))], judge=lambda row: [])
    assert result.kinds["praise"] == {"n_positive": 0, "precision": None, "recall": None, "f1": None}
    assert result.false_alarm is not None
    assert result.false_alarm.value == 0
    assert result.false_alarm.high is not None
    assert result.false_alarm.high > 0.5


def test_disputed_and_harness_rows_are_counted_and_left_out() -> None:
    rows = [
        LabelledTurn(turn="lgtm", labels=("confirmation",)),
        LabelledTurn(turn="x", labels=("other",), disputed=("praise",)),
        LabelledTurn(turn="y", labels=("other",), harness=True),
    ]
    strict = evaluate(rows)
    assert (strict.n_turns, strict.n_disputed, strict.n_harness) == (1, 1, 1)
    assert evaluate(rows, disputed=True).n_turns == 2
    with pytest.raises(EvidenceError):
        evaluate(rows[1:])


def test_a_label_file_is_read_and_bad_lines_are_named(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_bytes(
        b'{"turn": "lgtm", "labels": ["confirmation"], "extra": 1}\n\n{"turn": "a\\u2028b", "labels": []}\n'
    )
    assert [row.turn for row in read_labels(path)] == ["lgtm", "a\u2028b"]
    for bad in (b"{", b'{"labels": []}', b'{"turn": "x", "labels": ["joy"]}', b'{"turn": "\xff", "labels": []}'):
        path.write_bytes(b'{"turn": "ok", "labels": ["other"]}\n' + bad + b"\n")
        with pytest.raises(InputError) as caught:
            read_labels(path)
        assert (caught.value.file, caught.value.line) == (str(path), 2)
        assert caught.value.hint
    with pytest.raises(InputError, match="cannot read"):
        read_labels(tmp_path / "absent.jsonl")


def test_the_json_contract() -> None:
    plain = msgspec.to_builtins(evaluate([LabelledTurn(turn="lgtm", labels=("confirmation",), source="s")]))
    assert set(plain["kinds"]) == set(KINDS) == set(plain["by_source"]["s"])
    assert set(plain["kinds"]["praise"]) == {"n_positive", "precision", "recall", "f1"}
    assert {"value", "low", "high", "level", "n", "n_clusters", "method"} <= set(plain["kinds"]["confirmation"]["f1"])
