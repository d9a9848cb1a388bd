"""Which kinds of signal head a report: measured ones by default, or by labels, or all on request (METHODS 2)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seatrial import signals
from seatrial.cli.app import run
from seatrial.errors import UsageError
from seatrial.flows import voices
from seatrial.records import OUTCOMES, SIGNAL_KINDS
from seatrial.scoring.outcomes import NEEDS, VOICES
from seatrial.signals import accuracy, measured
from seatrial.stats import wilson


def test_the_shipped_figures_are_those_of_the_present_detectors() -> None:
    """After a change of lexicon, classifier or rules: run scripts/measure."""
    assert measured.present() == measured.shipped()
    assert set(measured.shipped()) == {*accuracy.KINDS, "execution_error"}


def test_by_default_a_kind_counts_by_its_measured_precision() -> None:
    found = voices.shipped()
    assert [use.kind for use in found.kinds if use.part] == [kind for kind in SIGNAL_KINDS if kind in VOICES]
    assert {use.kind for use in found.kinds} == set(SIGNAL_KINDS)
    for use in found.kinds:
        assert use.why
        if use.part:
            assert use.counts == (use.precision is not None and (use.precision.low or 0.0) >= 0.5), use.kind
    assert found.silent == ("complaint", "explicit_feedback")
    assert set(found.barred) == {"praise_over_complaint"}


def test_figures_of_another_version_count_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured, "versions", lambda: signals.versions() | {"language": "another"})
    assert set(measured.present()) == {"execution_error"}
    found = voices.shipped.__wrapped__()
    assert set(found.silent) == set(VOICES) - {"execution_error"}
    assert {u.why for u in found.kinds if u.kind == "praise"} == {"its accuracy was measured for another version"}
    assert set(found.barred) == {"confirmed_success", "praise_over_complaint", "steerability"}


def test_ones_own_labels_take_the_place_of_the_shipped_figures() -> None:
    sure: dict[str, Any] = {"precision": wilson(95, 100), "n_positive": 99}
    none: dict[str, Any] = {"precision": None, "n_positive": 0}
    kinds = {"confirmation": sure, "praise": sure, "correction": sure, "complaint": none, "accept_implicit": none}
    few = voices.by_labels({**kinds, "complaint": {"precision": wilson(2, 5), "n_positive": 4}})
    assert few.silent == ("complaint", "explicit_feedback")
    assert "as low as 0.12" in few.barred["praise_over_complaint"]
    assert voices.by_labels(kinds).barred == {"praise_over_complaint": "complaint: no labels of real cases"}
    missed = voices.by_labels({**kinds, "correction": {"precision": None, "n_positive": 9}})
    assert set(missed.barred) == {"confirmed_success", "praise_over_complaint", "steerability"}
    assert "never found" in missed.barred["steerability"]
    full = voices.by_labels({**kinds, "complaint": sure})
    assert full.silent == ("explicit_feedback",)


def test_every_outcome_says_what_it_needs() -> None:
    assert set(NEEDS) == set(OUTCOMES)
    assert {kind for needed in NEEDS.values() for kind in needed} <= set(VOICES)


def _log(path: Path, model: str, last: str, n: int) -> None:
    for i in range(n):
        name = f"{model}-{i}"
        said = [("user", "fix the parser", None), ("assistant", "Done. All tests pass.", model)]
        said += [("user", "works now" if i % 2 else last, None), ("assistant", "Good.", model)]
        rows = []
        for at, (who, text, by) in enumerate(said):
            message: dict[str, Any] = {"role": who, "content": text}
            if by is not None:
                content = [{"type": "text", "text": text}]
                message = {"role": who, "content": content, "model": by, "id": f"m{at}", "type": "message"}
            row = {"type": who, "sessionId": name, "uuid": f"{name}-{at}", "message": message, "cwd": "/w"}
            row |= {"timestamp": f"2026-05-{1 + i:02}T10:0{at}:00Z", "version": "2.0.0"}
            rows.append(row | {"parentUuid": f"{name}-{at - 1}" if at else None})
        (path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def _rank(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, Any]:
    assert run(["rank", *argv, "--json", "--draws", "999", "--workers", "1"]) == 0
    result: dict[str, Any] = json.loads(capsys.readouterr().out)["result"]
    return result


ANGRY = "This is terrible, you wasted my whole day and I am really annoyed"


def test_rank_without_labels_leaves_a_kind_out_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sessions = tmp_path / "in"
    sessions.mkdir()
    _log(sessions, "claude-opus-4-6", "What is next on the list of things?", 12)
    _log(sessions, "claude-sonnet-4-5", ANGRY, 12)
    store = str(tmp_path / "store")
    plain = _rank(capsys, str(sessions), "--store", store)
    assert plain["outcome"] == "signals_mean"
    uses = {use["kind"]: use for use in plain["kinds"]}
    assert not uses["complaint"]["counts"]
    assert "as low as" in uses["complaint"]["why"]
    assert uses["correction"]["counts"]
    assert uses["correction"]["precision"]["low"] > 0.5
    left = {row["what"]: row["why"] for row in plain["dropped"]}
    assert {"complaint in the headline", "explicit_feedback in the headline"} <= set(left)
    assert "praise_over_complaint in the headline" in left
    means = {row["model"]: row["mean"]["value"] for row in plain["models"]}
    assert means["claude-sonnet-4-5"] == pytest.approx(means["claude-opus-4-6"])

    heard = _rank(capsys, "--store", store, "--every-kind")
    means = {row["model"]: row["mean"]["value"] for row in heard["models"]}
    assert means["claude-sonnet-4-5"] < means["claude-opus-4-6"]
    assert all(use["counts"] for use in heard["kinds"] if use["part"])
    assert heard["basis"]["extraction"] != plain["basis"]["extraction"]
    assert _rank(capsys, "--store", store)["models"] == plain["models"]

    page = tmp_path / "report.html"
    assert run(["rank", "--store", store, "--draws", "999", "--html", str(page), "--workers", "1"]) == 0
    shown = capsys.readouterr().out
    for text in (shown, page.read_text("utf-8")):
        assert "without complaint and explicit feedback" in text
        assert "Which signals count in the headline" in text
    chosen = _rank(capsys, "--store", store, "--outcome", "praise_over_complaint")
    assert any("would not head a report by itself" in warning for warning in chosen["warnings"])
    assert not chosen["kinds"]


def test_labels_that_would_decide_nothing_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="every kind"):
        voices.chosen(tmp_path / "turns.jsonl", every_kind=True)
