"""From a file to rescue and harm, to a router, to its trial, by the flow and by the command line."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import pytest

from seatrial.cli.app import run
from seatrial.errors import EvidenceError, InputError, SchemaError, UsageError
from seatrial.flows import recover as flow
from seatrial.recovery import simulate
from seatrial.recovery.fit import FitOptions
from seatrial.recovery.router import load, never


def write(path: Path, parts: dict[str, tuple[int, int]], process: str = "three models, coupled") -> Path:
    rows = []
    for cohort, (tasks, seed) in parts.items():
        e = simulate.episodes(process, tasks, seed=seed)
        for i in range(len(e)):
            for k, delay in enumerate(e.delays):
                rows.append(
                    {"task": f"{cohort}-{e.task[i]}", "condition": e.condition[i], "operation": "refresh",
                     "delay": delay, "y0": int(e.y0[i, k]), "y1": int(e.y1[i, k]), "cohort": cohort}
                    | dict(zip(e.features, e.x[i, k].round(4).tolist(), strict=True))
                )  # fmt: skip
    with path.open("w", newline="") as stream:
        out = csv.DictWriter(stream, fieldnames=list(rows[0]))
        out.writeheader()
        out.writerows(rows)
    return path


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("pairs") / "pairs.csv", {"fit": (90, 1), "unseen": (30, 2)})


def say(capsys: pytest.CaptureFixture[str], *argv: str, status: int = 0) -> dict[str, object]:
    assert run([*argv, "--json"]) == status
    captured = capsys.readouterr()
    made: dict[str, object] = json.loads(captured.out if status == 0 else captured.err)
    return made


def test_contrast_has_the_contracts_rows(pairs: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    made = say(capsys, "recover", "contrast", str(pairs), "--cohort", "fit", "--html", str(page))
    assert made["command"] == "recover contrast"
    result = made["result"]
    assert isinstance(result, dict)
    assert len(result["rows"]) == 4 * 3
    first = result["rows"][0]
    for key in ("condition", "operation", "delay", "n", "stable_success", "rescue", "harm", "stable_failure", "effect",
                "p_value", "placebo"):  # fmt: skip
        assert key in first, key
    assert (first["condition"], first["n"]) == ("clean", 90)
    assert "<svg" in page.read_text()


def test_fit_and_evaluate(pairs: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file, page = tmp_path / "router.json", tmp_path / "fit.html"
    made = say(capsys, "recover", "fit", str(pairs), "--limit", "0.05", "--out", str(file), "--html", str(page))
    result = made["result"]
    assert isinstance(result, dict)
    assert {"thresholds", "features", "folds", "certificate"} <= result.keys()
    assert result["certificate"] == {"limit": 0.05, "confidence": 0.95, "n_clean": 59, "harms": 0.0, "feasible": True,
                                     "need": 59}  # fmt: skip
    assert result["n_fit"] + result["n_certify"] == 90
    assert load(file).kind == "direct"
    assert "Gain against harm" in page.read_text()
    tried = say(capsys, "recover", "evaluate", str(pairs), "--limit", "0.05", "--router", str(file), "--mix",
                "clean=0.8")["result"]  # fmt: skip
    assert isinstance(tried, dict)
    rows = {(r["policy"], r["condition"]): r for r in tried["rows"]}
    for key in ("policy", "condition", "n", "success", "gain", "rescue", "harm", "intervention_rate", "harm_upper",
                "versus"):  # fmt: skip
        assert key in rows["cir", "all"]
    # The file was fitted as the certified router of the trial is: moment by moment it decides the same.
    assert rows["file router.json", "all"]["gain"] == rows["router certified", "all"]["gain"]
    assert ("router", "clean=0.8") in rows
    assert (tried["n_fit"], tried["n_test"]) == (90, 30)


def test_terminal_output_fits(pairs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for argv in (["contrast"], ["fit", "--no-certify"], ["evaluate"]):
        assert run(["recover", argv[0], str(pairs), *argv[1:]]) == 0
        out = capsys.readouterr().out
        assert out.strip()
        assert max(len(line) for line in out.splitlines()) <= 100


def test_gzip_and_json_lines_say_the_same(pairs: Path, tmp_path: Path) -> None:
    plain = flow.read_pairs(pairs).pairs
    packed = tmp_path / "pairs.csv.gz"
    packed.write_bytes(gzip.compress(pairs.read_bytes()))
    lines = tmp_path / "pairs.jsonl"
    with pairs.open() as stream, lines.open("w") as out:
        for row in csv.DictReader(stream):
            known = {k: row.pop(k) for k in ("task", "condition", "operation", "cohort")}
            numbers = {k: float(row.pop(k)) for k in ("delay", "y0", "y1")}
            out.write(json.dumps(known | numbers | {"features": {k: float(v) for k, v in row.items()}}) + "\n")
    for other in (packed, lines):
        again = flow.read_pairs(other).pairs
        assert again.features == plain.features
        assert (again.x == plain.x).all()
        assert (again.y1 == plain.y1).all()
    packed.write_bytes(b"not gzip")
    with pytest.raises(InputError, match="cannot be unpacked"):
        flow.read_pairs(packed)


def test_bad_input_is_told_with_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_text("task,condition,operation,delay,y0,y1\na,clean,refresh,1,0,1\nb,clean,refresh,1,0,2\n")
    error = say(capsys, "recover", "contrast", str(bad), status=2)["error"]
    assert isinstance(error, dict)
    assert (error["line"], error["file"]) == (3, str(bad))
    with pytest.raises(InputError, match="no such file"):
        flow.read_pairs(tmp_path / "none.csv")
    bad.write_text("task,condition\na,clean\n")
    with pytest.raises(SchemaError, match="no column operation"):
        flow.read_pairs(bad)


def test_choices_that_do_not_exist(pairs: Path) -> None:
    with pytest.raises(UsageError, match="no cohort 'x'"):
        flow.contrast(pairs, flow.Choice(cohorts=("x",)))
    with pytest.raises(UsageError, match="no agent 'x'"):
        flow.contrast(pairs, flow.Choice(agent="x"))
    with pytest.raises(UsageError, match="no feature x"):
        flow.fit_router(pairs, flow.Choice(features=("x",)))
    with pytest.raises(UsageError, match="a mix is written"):
        flow.parse_mixes(["clean"])


def test_a_task_of_two_cohorts_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "twice.csv"
    file.write_text(
        "task,condition,operation,delay,y0,y1,cohort,f\na,clean,refresh,1,0,1,one,1\na,clean,refresh,1,0,1,two,1\n"
    )
    with pytest.raises(UsageError, match="several cohorts"):
        flow.fit_router(file, options=FitOptions(certified=False))


def test_certify_cohort_is_left_out_of_the_fit(pairs: Path) -> None:
    made = flow.fit_router(pairs, flow.Choice(cohorts=("fit",)), FitOptions(limit=0.1), certify=("unseen",))
    assert (made.fitted.record.n_fit, made.fitted.record.n_certify) == (90, 30)


def test_result_is_kept_in_a_store(pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from seatrial.store import Store

    assert run(["recover", "contrast", str(pairs), "--store", str(tmp_path / "store"), "--json"]) == 0
    capsys.readouterr()
    kept = Store.open(tmp_path / "store").results("recover")
    assert [h.command for h in kept] == ["recover contrast"]


def test_a_router_is_not_tried_on_tasks_that_it_was_made_on(pairs: Path, tmp_path: Path) -> None:
    whole, apart = tmp_path / "whole.json", tmp_path / "apart.json"
    options = FitOptions(limit=0.05)
    whole.write_text(flow.fit_router(pairs, flow.Choice(cohorts=("fit", "unseen")), options).fitted.router.to_json())
    with pytest.raises(EvidenceError, match="all 30 held-out tasks"):
        flow.try_policies(pairs, router=whole)
    made = flow.fit_router(pairs, flow.Choice(cohorts=("fit",)), options)
    apart.write_text(made.fitted.router.to_json())
    assert "fit-" not in apart.read_text()
    tasks = load(apart).tasks
    assert tasks is not None
    assert (len(tasks.fit), len(tasks.certify)) == (made.fitted.record.n_fit, made.fitted.record.n_certify)
    assert not any("left out" in w for w in flow.try_policies(pairs, router=apart).warnings)
    # At random over both cohorts: what the router knows is left out for all policies, and what it does not is kept.
    part = flow.try_policies(pairs, flow.Choice(cohorts=("fit", "unseen")), held_out=0.4, router=apart)
    assert 0 < part.evaluation.n_test < 48
    assert f"{48 - part.evaluation.n_test} of 48 held-out tasks were left out" in " ".join(part.evaluation.warnings)
    assert len({r.n for r in part.evaluation.rows if r.condition == "all"}) == 1


def test_a_router_that_does_not_say_its_tasks_is_tried_with_a_warning(pairs: Path, tmp_path: Path) -> None:
    file = tmp_path / "old.json"
    plain = never("refresh", (1, 2, 4)).plain()
    del plain["tasks"]
    file.write_text(json.dumps(plain))
    tried = flow.try_policies(pairs, router=file).evaluation
    assert any("does not say which tasks" in w for w in tried.warnings)
    row = next(r for r in tried.rows if r.policy == "file old.json")
    assert row.gain is not None
    assert (row.gain.low, row.gain.high, row.harm_upper) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("cell", ["inf", "-Infinity", "1e999"])
def test_an_infinite_feature_is_refused_by_name(cell: str, tmp_path: Path) -> None:
    file = tmp_path / "endless.csv"
    head = "task,condition,operation,delay,y0,y1,f,g\n"
    file.write_text(head + f"a,clean,refresh,1,0,1,1,1\nb,clean,refresh,1,0,1,{cell},2\n")
    with pytest.raises(SchemaError, match="f: expected a finite number") as caught:
        flow.read_pairs(file)
    assert caught.value.line == 3
    file.write_text(head + f"a,clean,refresh,1,0,1,words,1\nb,clean,refresh,1,0,1,{cell},nan\n")
    read = flow.read_pairs(file)
    assert read.pairs.features == ("g",)
    assert "no features: f" in read.warnings[0]


def test_a_column_that_is_no_feature_is_told_wherever_it_matters(pairs: Path, tmp_path: Path) -> None:
    with pairs.open() as stream:
        rows = [row | {"note": "words"} for row in csv.DictReader(stream)]
    file = tmp_path / "noted.csv"
    with file.open("w", newline="") as stream:
        out = csv.DictWriter(stream, fieldnames=list(rows[0]))
        out.writeheader()
        out.writerows(rows)
    fitted = flow.fit_router(file, options=FitOptions(certified=False)).fitted
    for warnings in (fitted.record.warnings, flow.contrast(file).warnings):
        assert any("no features: note" in w for w in warnings)


HEAD = "task,condition,operation,delay,y0,y1,f\n"
ROW = "a,clean,refresh,1,0,1,2\n"


@pytest.mark.parametrize(
    ("name", "data", "line", "words"),
    [
        ("p.csv", (HEAD + ROW + "b,clean,refresh,1\n").encode(), 3, "expected 7 cells, found 4"),
        ("p.csv", (HEAD + ROW + "b,clean,refresh,1,0,1\n").encode(), 3, "expected 7 cells, found 6"),
        ("p.csv", (HEAD + ROW).encode("utf-16"), 1, "UTF-16"),
        ("p.csv", (HEAD + ROW).encode("utf-16-be"), 1, "UTF-16"),
        ("p.csv", (HEAD + ROW).encode() + b"\xe9t\xe9,clean,refresh,1,0,1,2\n", 3, "byte 0xe9 at place 1"),
        ("p.json", b'[{"task": "a"},\n{"task": ]', 2, "not a pairs table"),
        ("p.json", '[{"task": "a"}]'.encode("utf-16"), 1, "UTF-16"),
        ("p.jsonl", b'{"task": "a"}\n{"task": "\xff"}\n', 2, "byte 0xff"),
        ("p.parquet", b"PAR1 not really", None, "not a Parquet file"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("packed", [False, True])
def test_a_table_that_cannot_be_read_is_told_in_its_own_words(
    name: str, data: bytes, line: int | None, words: str, packed: bool, tmp_path: Path
) -> None:
    file = tmp_path / (name + (".gz" if packed else ""))
    file.write_bytes(gzip.compress(data) if packed else data)
    with pytest.raises(InputError, match=words) as caught:
        flow.read_pairs(file)
    assert (caught.value.file, caught.value.line) == (str(file), line)
    assert "trial" not in str(caught.value).replace(str(file), "")
