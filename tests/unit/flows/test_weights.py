"""Weights from a label file and a store to a file that rank accepts, and how the board moves with the weights."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import polars as pl
import pytest

from seatrial import intake
from seatrial.cli.app import run
from seatrial.errors import EvidenceError, InputError, UsageError
from seatrial.flows import weights
from seatrial.report import accuracy
from seatrial.scoring import fitting
from seatrial.store import Store


def _log(name: str, model: str, last: str) -> str:
    rows = [
        ("user", {"role": "user", "content": "please fix the parser in the reader module"}),
        (
            "assistant",
            {"role": "assistant", "model": model, "id": name, "content": [{"type": "text", "text": "Done."}]},
        ),
        ("user", {"role": "user", "content": last}),
    ]
    return "".join(
        json.dumps(
            {
                "type": who, "uuid": f"{name}{i}", "parentUuid": None, "sessionId": name, "cwd": "/x",
                "timestamp": f"2026-01-02T10:0{i}:00.000Z", "version": "2.0.0", "message": message,
            }
        )
        + "\n"
        for i, (who, message) in enumerate(rows)
    )  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A store with 120 sessions of two models and a file of labels for them."""
    root = tmp_path_factory.mktemp("weights")
    folder = root / "logs"
    folder.mkdir()
    lines = []
    for i in range(120):
        model, good = ("good", i % 4 != 0) if i % 2 else ("bad", i % 4 == 0)
        name = f"session-{i:03}"
        said = "works now, thanks" if good else "no, that's wrong, it still fails"
        (folder / f"{name}.jsonl").write_text(_log(name, model, said), encoding="utf-8")
        lines.append(json.dumps({"session": name, "label": int(good if i % 10 else not good), "probability": 0.5}))
    lines.append(json.dumps({"session": "elsewhere", "label": 1}))
    labels = root / "labels.jsonl"
    labels.write_text("\n".join(lines), encoding="utf-8")
    store = Store.open(root / "store", create=True)
    intake.ingest(store, [folder])
    return root / "store", labels


def test_labels_and_a_store_give_weights_that_rank_takes(place: tuple[Path, Path], tmp_path: Path) -> None:
    store, labels = place
    run = weights.fit(labels, store=store, draws=20)
    assert run.unknown == 1
    assert run.fitted.used
    assert run.fitted.n_labels == 120
    assert run.fitted.auc is not None
    assert run.fitted.auc > 0.8
    assert run.stability.boards[0].order == ("good", "bad")
    assert run.stability.top["good"] == 1.0
    orders = accuracy.weights(run).tables[2]
    assert [row for row in orders.rows if row[0] == "fitted"] == [("fitted", "1", "good"), ("fitted", "2", "bad")]
    file = tmp_path / "weights.json"
    file.write_bytes(msgspec.json.encode(run.fitted))
    assert weights.load(file) == run.fitted
    stale = msgspec.structs.replace(run.fitted.weights, fingerprint="old")
    file.write_bytes(msgspec.json.encode(msgspec.structs.replace(run.fitted, weights=stale)))
    with pytest.raises(UsageError):
        weights.load(file)


def test_a_bayesian_search_of_a_store_gives_weights_that_rank_takes(
    place: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, labels = place
    file = tmp_path / "weights.json"
    where = ["--labels", str(labels), "--store", str(store)]
    options = ["--method", "bayesian", "--draws", "20", "--out", str(file), "--json"]
    assert run(["weights", "fit", *where, *options]) == 0
    told = json.loads(capsys.readouterr().out)["result"]
    fitted = weights.load(file)
    assert fitted == weights.fit(labels, store=store, method="bayesian", draws=20).fitted
    assert told["fitted"]["method"] == fitted.method == "bayesian"
    assert fitted.used
    assert fitted.auc is not None
    assert fitted.auc > 0.8
    assert [board["order"] for board in told["stability"]["boards"] if board["weights"] == "fitted"] == [
        ["good", "bad"]
    ]
    assert run(["rank", "--store", str(store), "--outcome", "fitted", "--weights", str(file), "--json"]) == 0


def test_labels_of_no_known_session_and_files_that_are_no_weights_are_refused(
    place: tuple[Path, Path], tmp_path: Path
) -> None:
    strangers = tmp_path / "labels.jsonl"
    strangers.write_text('{"session": "x", "label": 1}\n', encoding="utf-8")
    with pytest.raises(EvidenceError):
        weights.fit(strangers, store=place[0])
    with pytest.raises(InputError):
        weights.load(strangers)


def test_without_a_fit_the_draws_are_even_and_the_order_can_turn() -> None:
    rows = pl.DataFrame({"session": list("abcd"), "arm": ["x", "x", "y", "y"], "task_type": "t"}).with_columns(
        *(pl.lit(0).alias(f"n_{kind}") for kind in fitting.KINDS)
    )
    rows = rows.with_columns(
        pl.when(pl.col("arm") == "x").then(1).otherwise(0).alias("n_confirmation"),
        pl.when(pl.col("arm") == "x").then(0).otherwise(1).alias("n_praise"),
    )
    found = weights.stability(rows)
    assert found.drawn_from == "even over all weights"
    assert found.top["x"] == pytest.approx(0.5, abs=0.06)
    assert {board.weights for board in found.boards} == {"unit", "emphasis"}
    assert found.boards[1].order == ("y", "x")
