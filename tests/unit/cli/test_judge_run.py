"""`seatrial judge run` against a real local server, and the action's own script."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from seatrial.cli.app import run
from seatrial.ingest import read

ROOT = Path(__file__).resolve().parents[3]
JUDGE = """name = "refunds"
model = "judge-1"
usd_per_million_input = 1.0
usd_per_million_output = 2.0
[[criteria]]
id = "refunded"
statement = "The agent calls refund."
"""


class _Server(BaseHTTPRequestHandler):
    asked = 0

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        type(self).asked += 1
        text = body["messages"][1]["content"]
        nonce = text.rpartition('{"id": "')[2][:16]
        if "second record" in text:
            self._answer({"id": nonce, "choice": type(self).choose(text), "because": "it refunds"})
            return
        verdicts = [{"criterion": "refunded", "met": "call refund" in text, "because": "the calls"}]
        self._answer({"id": nonce, "verdicts": verdicts})

    @staticmethod
    def choose(text: str) -> str:
        """The record that refunds; a tie where both do; the first where neither does, which is a bias."""
        first, second = ("call refund" in part for part in text.partition("<<<second record")[::2])
        return "tie" if first and second else "second" if second else "first"

    def _answer(self, said: dict[str, object]) -> None:
        answer = {"choices": [{"message": {"content": json.dumps(said)}}],
                  "usage": {"prompt_tokens": 1000, "completion_tokens": 500}}  # fmt: skip
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.chdir(tmp_path)
    _Server.asked = 0
    made = ThreadingHTTPServer(("127.0.0.1", 0), _Server)
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{made.server_address[1]}/v1"
    made.shutdown()
    made.server_close()
    thread.join()


def traces(tools: list[str], model: str = "agent-1") -> None:
    simulations = [
        {"id": f"s{i}", "task_id": str(i), "trial": 0, "reward_info": {"reward": 1.0}, "duration": 1.0,
         "termination_reason": "user_stop",
         "messages": [{"role": "user", "content": "my money please"},
                      {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "name": t, "arguments": {}}]},
                      {"role": "tool", "id": "c", "content": "ok", "error": False}]}
        for i, t in enumerate(tools)
    ]  # fmt: skip
    info = {"agent_info": {"llm": model, "implementation": "a"}, "user_info": {"llm": "u"},
            "environment_info": {"domain_name": "d"}, "num_trials": 1}  # fmt: skip
    tasks = [{"id": str(i)} for i in range(len(tools))]
    Path("traces.json").write_text(json.dumps({"info": info, "tasks": tasks, "simulations": simulations}))
    Path("judge.toml").write_text(JUDGE)


def test_verdicts_cost_and_cache(server: str, capsys: pytest.CaptureFixture[str]) -> None:
    traces(["refund", "transfer"])
    command = ["judge", "run", "traces.json", "--judge", "judge.toml", "--url", server, "--out", "v.jsonl", "--json"]
    assert run(command) == 0
    told = capsys.readouterr()
    assert told.err == ""
    body = json.loads(told.out)["result"]
    assert body["criteria"] == {"refunded": {"met": 1, "not_met": 1, "unscored": 0}}
    assert body["cost_usd"] == pytest.approx(2 * (1000 * 1.0 + 500 * 2.0) / 1e6)
    rows = [json.loads(line) for line in Path("v.jsonl").read_text().splitlines()]
    assert [(r["task"], r["metric"], r["passed"], r["by"]) for r in rows] == [
        ("0", "refunded", True, "judge:refunds"),
        ("1", "refunded", False, "judge:refunds"),
    ]
    assert run(command) == 0
    assert json.loads(capsys.readouterr().out)["result"]["asked"] == 0
    assert _Server.asked == 2
    assert run(["gate", "--baseline", "v.jsonl", "--candidate", "v.jsonl"]) == 3
    assert "no stamp" in capsys.readouterr().out


def test_money_and_family_limits(server: str, capsys: pytest.CaptureFixture[str]) -> None:
    traces(["refund"] * 5)
    command = ["judge", "run", "traces.json", "--judge", "judge.toml", "--url", server, "--max-cost", "0.003"]
    assert run(command) == 2
    assert "limit" in capsys.readouterr().err
    assert _Server.asked == 2
    traces(["refund"], model="gpt-4o")
    Path("judge.toml").write_text(JUDGE.replace("judge-1", "gpt-4o-mini"))
    assert run(command[:-2]) == 2
    assert "one family" in capsys.readouterr().err
    assert run([*command[:-2], "--allow-own-family"]) == 0


def test_text_without_consent_does_not_leave_the_machine(server: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Consents of the named store, and the setting where there is none; what is left out is counted, never asked."""
    traces(["refund", "transfer", "refund"])
    ids = [trace.id for trace in read(Path("traces.json"))]
    assert run(["consent", "set", "--file", _consents(ids), "--store", "store"]) == 0
    capsys.readouterr()
    command = ["judge", "run", "traces.json", "--judge", "judge.toml", "--url", server, "--json"]
    assert run([*command, "--store", "store"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [v["task"] for v in told["result"]["verdicts"]] == ["0"]
    assert told["warnings"] == [
        "1 sessions without consent to judge: consent was given for other purposes only",
        "1 sessions without consent to judge: consent was withdrawn",
    ]
    assert _Server.asked == 1
    assert run([*command, "--plan", "--store", "store"]) == 0
    assert json.loads(capsys.readouterr().out)["result"]["plan"]["outputs"] == 1
    # Without the store nothing is known of them, and the setting decides.
    Path("seatrial.toml").write_text('consent = "require"\n')
    assert run(command) == 3
    assert "3 sessions without consent to judge: there is no record of consent" in capsys.readouterr().err
    assert _Server.asked == 1


def _consents(ids: list[str]) -> str:
    rows = [f"{ids[0]},rank;judge,", f"{ids[1]},rank,", f"{ids[2]},judge,2026-01-01"]
    Path("consents.csv").write_text("session,purposes,withdrawn\n" + "\n".join(rows) + "\n")
    return "consents.csv"


def test_the_actions_script_gates(tmp_path: Path) -> None:
    """The step that decides, run by bash as the runner would."""
    text = (ROOT / "action.yml").read_text()
    script = re.search(r"      run: \|\n((?:        .*\n|\n)+?)\n    - name: Comment", text)
    assert script is not None
    code = "\n".join(line[8:] for line in script.group(1).splitlines())
    rows = [f"t{t:02d},{k},{{}}" for t in range(30) for k in range(5)]
    (tmp_path / "a.csv").write_text("task,trial,passed\n" + "\n".join(r.format(1) for r in rows) + "\n")
    bad = "\n".join(r.format(int(i > 60)) for i, r in enumerate(rows))
    (tmp_path / "b.csv").write_text(f"task,trial,passed\n{bad}\n")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    found = {}
    for candidate, more in (("a.csv", ""), ("b.csv", "--must-pass\nt00"), ("absent.csv", "")):
        outputs = tmp_path / f"{candidate}.out"
        env = {"PATH": path, "BASELINE": "a.csv", "CANDIDATE": candidate, "ARGUMENTS": more, "REPORTS": "reports",
               "GITHUB_OUTPUT": str(outputs), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}  # fmt: skip
        done = subprocess.run(["bash", "-eo", "pipefail", "-c", code], cwd=tmp_path, env=env, capture_output=True,
                              text=True, check=False)  # fmt: skip
        assert done.returncode == 0, done.stderr
        found[candidate] = dict(line.split("=", 1) for line in outputs.read_text().splitlines())
    assert found["a.csv"] == {"verdict": "PASS", "exit-code": "0"}
    assert found["b.csv"] == {"verdict": "REGRESSION", "exit-code": "1"}
    assert found["absent.csv"] == {"verdict": "", "exit-code": "2"}
    assert (tmp_path / "summary.md").read_text().count("<!-- seatrial-gate -->") == 2
    assert {p.suffix for p in (tmp_path / "reports").iterdir()} == {".html", ".md", ".xml", ".sarif", ".json"}


PAIRWISE = JUDGE.replace('model = "judge-1"', 'model = "judge-1"\nkind = "pairwise"')


def two_runs(old: list[str], new: list[str]) -> list[str]:
    for name, tools in (("old", old), ("new", new)):
        traces(tools)
        Path("traces.json").rename(f"{name}.json")
    Path("pairs.toml").write_text(PAIRWISE)
    return ["judge", "compare", "old.json", "new.json", "--judge", "pairs.toml"]


def test_pairs_are_asked_in_both_orders(server: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = two_runs(["transfer", "refund", "refund", "transfer"], ["refund", "refund", "transfer", "transfer"])
    assert run([*command, "--plan", "--json"]) == 0
    planned = json.loads(capsys.readouterr().out)["result"]["plan"]
    assert (planned["pairs"], planned["cached"]) == (4, 0)
    assert planned["cost_usd"] > 0
    assert _Server.asked == 0
    assert run([*command, "--url", server, "--out", "p.jsonl", "--json"]) == 0
    body = json.loads(capsys.readouterr().out)["result"]
    assert (body["a"], body["b"], body["ties"], body["position"], body["unscored"]) == (1, 1, 1, 1, 0)
    assert body["asked"] == _Server.asked == 6, "two records that are alike are the same question in either order"
    assert body["cost_usd"] == pytest.approx(6 * (1000 * 1.0 + 500 * 2.0) / 1e6)
    assert body["preferred"]["value"] == pytest.approx(0.5)
    assert body["moved"]["value"] == pytest.approx(1 / 4)
    assert body["first"]["value"] == pytest.approx((1 + 1 + 2) / 6), "of six answers that are no tie"
    rows = [json.loads(line) for line in Path("p.jsonl").read_text().splitlines()]
    assert [r["winner"] for r in rows] == ["b", "tie", "a", None]
    assert (rows[3]["as_given"], rows[3]["swapped"]) == ("a", "b")
    assert "order" in rows[3]["reason"]
    assert run([*command, "--url", server]) == 0
    shown = capsys.readouterr().out
    assert _Server.asked == 6, "what was asked is kept"
    assert "by position" in shown
    assert "25.0%" in shown
    assert max(map(len, shown.splitlines())) <= 100


def test_pairs_that_cannot_be_judged(server: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = two_runs(["transfer"], ["transfer"])
    assert run([*command, "--url", server]) == 3
    assert "no pair has a winner" in capsys.readouterr().err
    assert run([*command[:-1], "judge.toml", "--url", server]) == 2
    assert "pairwise" in capsys.readouterr().err
    more = two_runs(["refund", "refund"], ["refund"])
    assert run([*more, "--url", server, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["result"]["unmatched"] == 1
    Path("pairs.toml").write_text(PAIRWISE.replace("judge-1", "agent-1-gpt"))
    traces(["refund"], model="gpt-4o")
    Path("traces.json").rename("old.json")
    assert run([*more, "--url", server]) == 2
    assert "one family" in capsys.readouterr().err
    cheap = [*two_runs(["transfer", "refund"] * 3, ["refund", "transfer"] * 3), "--url", server, "--max-cost", "0.005"]
    assert run(cheap) == 2
    assert "limit" in capsys.readouterr().err
