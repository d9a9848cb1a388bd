"""`seatrial gate`, `diff` and `judge` from the command line: exit codes, files, and errors that say what to do."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import pytest

from seatrial.cli.app import run
from seatrial.flows.stamps import read_judge
from seatrial.grading.judge import key

JUDGE = """name = "refunds"
model = "judge-1"
[[criteria]]
id = "asks"
statement = "The agent asks 'do you confirm?' before it calls refund."
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def table(name: str, tasks: int = 30, runs: int = 5, lost: int = 0, **columns: object) -> str:
    with Path(name).open("w", newline="") as stream:
        out = csv.writer(stream)
        out.writerow(["task", "trial", "passed", *columns])
        for t in range(tasks):
            for k in range(runs):
                out.writerow([f"t{t:02d}", k, str(t >= lost).lower(), *columns.values()])
    return name


def result(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    body: dict[str, object] = json.loads(capsys.readouterr().out)["result"]
    return body


def test_pass_regression_and_inconclusive(capsys: pytest.CaptureFixture[str]) -> None:
    good, bad, short = table("good.csv"), table("bad.csv", lost=9), table("short.csv", runs=2)
    assert run(["gate", "--baseline", good, "--candidate", good, "--json"]) == 0
    body = result(capsys)
    assert body["verdict"] == "PASS"
    assert set(body) >= {
        "verdict",
        "single_run",
        "changed",
        "rule",
        "margin",
        "population",
        "metrics",
        "regressed_tasks",
    }
    (metric,) = body["metrics"]  # type: ignore[misc]
    assert set(metric) >= {
        "metric",
        "baseline",
        "candidate",
        "difference",
        "p_value",
        "p_holm",
        "verdict",
        "mde",
        "more_runs",
    }
    assert run(["gate", "--baseline", good, "--candidate", bad]) == 1
    shown = capsys.readouterr().out
    assert "Gate: REGRESSION" in shown
    assert run(["gate", "--baseline", short, "--candidate", short]) == 0
    assert "INCONCLUSIVE" in capsys.readouterr().err
    assert run(["gate", "--baseline", short, "--candidate", short, "--on-inconclusive", "fail"]) == 3


def test_missing_cases_stop_the_build(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["gate", "--baseline", table("a.csv"), "--candidate", table("b.csv", tasks=29), "--json"]) == 3
    assert result(capsys)["population"] == {"missing": ["t29"], "new": [], "changed": []}


def test_outputs_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    Path("summary.md").write_text("before\n")
    table("a.csv")
    table("b.csv", lost=9)
    files = ["--html", "g.html", "--markdown", "g.md", "--junit", "g.xml", "--sarif", "g.sarif", "--github-summary"]
    assert run(["gate", "--baseline", "a.csv", "--candidate", "b.csv", *files]) == 1
    assert Path("g.md").read_text().startswith("<!-- seatrial-gate -->")
    assert Path("summary.md").read_text() == "before\n" + Path("g.md").read_text()
    assert "Gate: REGRESSION" in Path("g.html").read_text()
    assert json.loads(Path("g.sarif").read_text())["runs"][0]["results"]
    assert "<failure" in Path("g.xml").read_text()


def test_forbidden_calls_are_safety_findings() -> None:
    table("a.csv", metric="forbidden_absent")
    table("b.csv", metric="forbidden_absent", lost=1)
    run(["gate", "--baseline", "a.csv", "--candidate", "b.csv", "--sarif", "g.sarif"])
    results = json.loads(Path("g.sarif").read_text())["runs"][0]["results"]
    (found,) = [r for r in results if r["ruleId"] == "safety"]
    assert found["message"]["text"] == "task t00: a forbidden tool was called in 5 of 5 attempts"


def test_a_committed_baseline_is_made_used_and_updated_with_a_reason(capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = table("good.csv", model="m"), table("bad.csv", lost=9, model="m")
    assert run(["gate", "--baseline", "base.json", "--candidate", good, "--update-baseline"]) == 2
    assert "reason" in capsys.readouterr().err
    make = ["gate", "--baseline", "base.json", "--update-baseline", "--reason"]
    assert run([*make, "first", "--candidate", good]) == 0
    capsys.readouterr()
    assert run(["gate", "--baseline", "base.json", "--candidate", good, "--json"]) == 0
    body = result(capsys)
    assert (body["verdict"], body["changed"]) == ("PASS", [])
    assert run(["gate", "--baseline", "base.json", "--candidate", bad]) == 1
    assert run([*make, "refunds are now refused", "--candidate", bad]) == 0
    capsys.readouterr()
    assert run(["gate", "--baseline", "base.json", "--candidate", bad, "--json"]) == 0
    history = json.loads(Path("base.json").read_text())["history"]
    assert [h["reason"] for h in history] == ["first", "refunds are now refused"]
    assert history[1]["verdict"] == "REGRESSION"
    assert run(["gate", "--baseline", good, "--candidate", bad, "--update-baseline", "--reason", "x"]) == 2
    assert "left alone" in capsys.readouterr().err


def test_settings_hold_margins_and_unknown_ones_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    table("a.csv", cost_usd=1.0)
    table("b.csv", cost_usd=1.1)
    Path("seatrial.toml").write_text('[gate]\nbaseline = "a.csv"\n[gate.metrics.cost_usd]\nmargin = 0.05\n')
    assert run(["gate", "--candidate", "b.csv", "--json"]) == 0
    assert result(capsys)["verdict"] == "REVIEW"
    Path("seatrial.toml").write_text("[gate]\nmargins = 0.05\n")
    assert run(["gate", "--baseline", "a.csv", "--candidate", "b.csv"]) == 2
    assert "margin" in capsys.readouterr().err


def test_history_proposes_margins(capsys: pytest.CaptureFixture[str]) -> None:
    table("a.csv", tasks=60, runs=10)
    for _ in range(5):
        assert run(["gate", "--baseline", "a.csv", "--candidate", "a.csv", "--history", "h.jsonl"]) == 0
    capsys.readouterr()
    assert run(["gate", "--baseline", "a.csv", "--candidate", "a.csv", "--history", "h.jsonl"]) == 0
    assert "could be 0.005" in capsys.readouterr().out
    Path("h.jsonl").write_text("{}\nnonsense\n")
    assert run(["gate", "--baseline", "a.csv", "--candidate", "a.csv", "--history", "h.jsonl"]) == 2


def test_several_models_need_a_choice(capsys: pytest.CaptureFixture[str]) -> None:
    rows = ["task,trial,passed,model"]
    rows += [f"t{t},{k},{int(m == 'x' or t > 9)},{m}" for m in "xy" for t in range(30) for k in range(5)]
    Path("both.csv").write_text("\n".join(rows) + "\n")
    assert run(["gate", "--baseline", "both.csv", "--candidate", "both.csv"]) == 2
    assert "--baseline-model" in capsys.readouterr().err
    pick = ["--baseline-model", "x", "--candidate-model", "y", "--json"]
    assert run(["gate", "--baseline", "both.csv", "--candidate", "both.csv", *pick]) == 1
    assert result(capsys)["changed"] == ["model"]


@pytest.mark.parametrize("bad", ["absent.csv", "empty.csv", "half.csv"])
def test_bad_sources_are_named(bad: str, capsys: pytest.CaptureFixture[str]) -> None:
    table("a.csv")
    Path("empty.csv").write_text("")
    Path("half.csv").write_text("task,passed\na,1\n")
    assert run(["gate", "--baseline", "a.csv", "--candidate", bad]) == 2
    assert bad in capsys.readouterr().err


def tau2(name: str, rewards: list[float], tool: str = "refund") -> str:
    simulations = [
        {"id": f"{name}{i}", "task_id": str(i), "trial": 0, "reward_info": {"reward": reward}, "duration": 1.0,
         "termination_reason": "user_stop",
         "messages": [{"role": "user", "content": "refund please"},
                      {"role": "assistant", "content": None,
                       "tool_calls": [{"id": "c", "name": tool if not reward else "refund", "arguments": {}}]},
                      {"role": "tool", "id": "c", "content": "ok", "error": False},
                      {"role": "assistant", "content": "done"}]}
        for i, reward in enumerate(rewards)
    ]  # fmt: skip
    info = {"agent_info": {"llm": "m", "implementation": "a"}, "user_info": {"llm": "u"},
            "environment_info": {"domain_name": "d"}, "num_trials": 1}  # fmt: skip
    tasks = [{"id": str(i)} for i in range(len(rewards))]
    Path(name).write_text(json.dumps({"info": info, "tasks": tasks, "simulations": simulations}))
    return name


def test_diff_shows_the_task_that_got_worse(capsys: pytest.CaptureFixture[str]) -> None:
    old, new = tau2("old.json", [1.0] * 3), tau2("new.json", [1.0, 0.0, 1.0], tool="transfer")
    assert run(["diff", old, new, "--json", "--html", "d.html", "--markdown", "d.md"]) == 0
    body = result(capsys)
    assert body["task"] == "1"
    assert "refund" in str(body["summary"])
    assert "transfer" in Path("d.html").read_text()
    assert "transfer" in Path("d.md").read_text()
    assert run(["diff", old, new, "--task", "9"]) == 2


def test_validate_stamp_and_gate(capsys: pytest.CaptureFixture[str]) -> None:
    Path("judge.toml").write_text(JUDGE)
    rows = ["item,criterion,judge,human_1,human_2"]
    rows += [
        f"{i},asks,{int(i % 2 == 0) if i > 2 else int(i % 2)},{int(i % 2 == 0)},{int(i % 2 == 0)}" for i in range(120)
    ]
    Path("labels.csv").write_text("\n".join(rows) + "\n")
    assert run(["judge", "validate", "labels.csv", "--judge", "judge.toml", "--stamp", "stamp.json", "--json"]) == 0
    (criterion,) = result(capsys)["criteria"]  # type: ignore[misc]
    assert criterion["status"] == "usable"
    version = key(read_judge(Path("judge.toml")))
    table("judged.csv", metric="asks", by="judge:refunds", version=version)
    gate = ["gate", "--baseline", "judged.csv", "--candidate", "judged.csv", "--json"]
    assert run(gate) == 3  # no stamp is named
    assert "no stamp" in capsys.readouterr().out
    Path("seatrial.toml").write_text('[gate.metrics.asks]\njudge = "judge.toml"\nstamp = "stamp.json"\n')
    assert run(gate) == 0
    capsys.readouterr()
    Path("judge.toml").write_text(JUDGE.replace("judge-1", "judge-2"))
    assert run(gate) == 3  # the stamp expired
    assert "expired" in capsys.readouterr().out
    Path("judge.toml").write_text(JUDGE)
    os.remove("stamp.json")
    assert run(gate) == 3
    assert "missing" in capsys.readouterr().out


def test_a_provisional_judge_cannot_gate(capsys: pytest.CaptureFixture[str]) -> None:
    Path("judge.toml").write_text(JUDGE)
    rows = ["item,judge,human_1"] + [
        f"{i},{int(i % 2 == 0) if i > 1 else int(i % 2)},{int(i % 2 == 0)}" for i in range(20)
    ]
    Path("labels.csv").write_text("\n".join(rows) + "\n")
    assert run(["judge", "validate", "labels.csv", "--judge", "judge.toml", "--stamp", "stamp.json"]) == 3
    table("judged.csv", metric="asks", by="judge:refunds", version=key(read_judge(Path("judge.toml"))))
    Path("seatrial.toml").write_text('[gate.metrics.asks]\njudge = "judge.toml"\nstamp = "stamp.json"\n')
    assert run(["gate", "--baseline", "judged.csv", "--candidate", "judged.csv"]) == 3
    assert "provisional" in capsys.readouterr().out


def test_lint_and_plan(capsys: pytest.CaptureFixture[str]) -> None:
    Path("judge.toml").write_text(JUDGE)
    assert run(["judge", "lint", "judge.toml"]) == 0
    Path("vague.toml").write_text(
        JUDGE.replace("The agent asks 'do you confirm?' before it calls refund.", "It is nice")
    )
    assert run(["judge", "lint", "vague.toml", "--json"]) == 1
    capsys.readouterr()
    tau2("traces.json", [1.0, 0.0])
    assert run(["judge", "run", "traces.json", "--judge", "judge.toml", "--plan", "--json"]) == 0
    plan = result(capsys)["plan"]
    assert plan["outputs"] == 2  # type: ignore[index]
    assert plan["cost_usd"] is None  # type: ignore[index]
    Path("broken.toml").write_text("name = 'x'\n")
    assert run(["judge", "lint", "broken.toml"]) == 2
    assert run(["judge", "run", "traces.json", "--judge", "judge.toml"]) == 2
    assert "endpoint" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--html", "--sarif", "--junit", "--markdown"])
def test_a_report_that_cannot_be_written_is_told_as_bad_input(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    good = table("good.csv")
    Path("folder").mkdir()
    for place in ("folder", "good.csv/report", "x" * 300):
        assert run(["gate", "--baseline", good, "--candidate", good, option, place]) == 2
        assert "cannot be written" in capsys.readouterr().err


def test_a_step_summary_that_cannot_be_written_is_told_as_bad_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    good = table("good.csv")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", ".")
    assert run(["gate", "--baseline", good, "--candidate", good, "--github-summary"]) == 2
    assert "cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "said"), [("", "--must-pass was given an empty value"), (" ", "names no task")])
def test_a_must_pass_case_without_a_name_is_refused(name: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    good = table("good.csv")
    assert run(["gate", "--baseline", good, "--candidate", good, "--must-pass", name]) == 2
    assert said in capsys.readouterr().err


def test_a_file_without_a_judge_names_the_option_that_names_its_column(capsys: pytest.CaptureFixture[str]) -> None:
    Path("labels.csv").write_text("item,human_1\na,pass\n")
    assert run(["judge", "validate", "labels.csv"]) == 2
    assert "--judge-column COLUMN" in capsys.readouterr().err


def test_a_reason_without_a_new_baseline_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    good = table("good.csv")
    assert run(["gate", "--baseline", good, "--candidate", good, "--reason", "why"]) == 2
    assert "--update-baseline" in capsys.readouterr().err
