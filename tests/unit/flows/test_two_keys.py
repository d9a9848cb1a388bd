"""Two stores of the same files have different keys, so other pseudonyms: their numbers are the same bytes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from seatrial.cli.app import run
from seatrial.flows import demo, weights
from seatrial.store import Store


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("keys")
    demo.make_sessions(folder, sessions=60, seed=4)
    out = []
    for name in ("one", "two"):
        path = folder / name
        said = ["--store", str(path), "--assignments", str(folder / demo.ASSIGNMENTS), "--workers", "1"]
        assert run(["ingest", str(folder / demo.SESSIONS), *said]) == 0
        out.append(path)
    return out


def _users(path: Path) -> list[str]:
    table = Store.open(path).table("sessions").select("session", "user").sort("session").collect()
    return [str(user) for user in table["user"]]


@pytest.mark.parametrize("command", [["rank"], ["drift", "--days", "3"]])
def test_the_key_of_a_store_moves_no_byte(
    stores: list[Path], command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = (_users(path) for path in stores)
    assert len(set(one)) == len(set(two)) > 10
    assert not set(one) & set(two)
    # The order of the pseudonyms, by which clusters were once numbered, is another one.
    assert [sorted(set(one)).index(u) for u in one] != [sorted(set(two)).index(u) for u in two]
    said = []
    for path in stores:
        capsys.readouterr()
        assert run([*command, "--store", str(path), "--draws", "999", "--json"]) == 0
        text = capsys.readouterr().out
        said.append(text.replace(Store.open(path).data_version, "VERSION"))
        assert json.loads(text)["result"]["models"]
    assert said[0] == said[1]


def test_the_key_of_a_store_moves_no_fitted_weight(stores: list[Path], tmp_path: Path) -> None:
    """Folds and the bootstrap leave out whole users."""
    kept = Store.open(stores[0]).table("sessions").select("session").collect()["session"].sort()
    labels = tmp_path / "labels.jsonl"
    lines = [json.dumps({"session": name, "label": int(i % 3 > 0)}) for i, name in enumerate(kept)]
    labels.write_text("\n".join(lines), encoding="utf-8")
    one, two = (weights.fit(labels, store=path, draws=2) for path in stores)
    assert one.fitted.n_users < one.fitted.n_labels
    assert one.fitted.draws
    assert one.fitted == two.fitted
    assert one.stability == two.stability
