"""What a run cannot mean is told before anything runs; what ended an attempt is told afterwards."""

from __future__ import annotations

import http.server
import json
import math
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seatrial.cli.app import run
from seatrial.errors import UsageError
from seatrial.flows.run import RunOptions, run_suite
from seatrial.records import Task
from seatrial.report.chapters import suite as chapter
from seatrial.suites import Limits, Suite, runner
from seatrial.world.agents import parse_agent

SUITE = Suite("s", (Task(id="a", input="x"), Task(id="b", input="y")))


@pytest.mark.parametrize(
    "address",
    ["notaurl", "http://", "http://[::1", "http://a b", "http://h:99999", "http://h:x", "ftp://h", "http://:80"],
)
@pytest.mark.parametrize("form", ["chat:m@{}", "{}"])
def test_an_address_that_cannot_be_asked_is_a_mistake_of_usage(
    form: str, address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if form == "{}" and not address.startswith("http"):
        address = f"http://{address} {address}"
    file = tmp_path / "s.jsonl"
    file.write_text('{"id": "t", "input": "hi"}\n')
    assert run(["run", str(file), "--agent", form.format(address), "--store", str(tmp_path / "st"), "--json"]) == 2
    assert "address" in json.loads(capsys.readouterr().err)["error"]["message"]
    assert not (tmp_path / "st").exists()


@pytest.mark.parametrize("spec", ["cmd:python 'x", 'cmd:"', "cmd:a\\"])
def test_a_command_line_that_cannot_be_read_is_a_mistake_of_usage(spec: str) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        parse_agent(spec)


@pytest.mark.parametrize("limits", [
    Limits(seconds=math.inf), Limits(seconds=math.nan), Limits(seconds=-1.0), Limits(seconds=1e12),
    Limits(cost_usd=math.nan), Limits(cost_usd=math.inf),
])  # fmt: skip
def test_a_limit_that_is_no_number_is_a_mistake_of_usage(limits: Limits) -> None:
    with pytest.raises(UsageError, match="may"):
        run_suite(SUITE, agent="cmd:true", options=RunOptions(limits=limits))


def test_too_many_attempts_are_refused_at_once() -> None:
    with pytest.raises(UsageError, match="1,000,000"):
        runner.plan(SUITE.tasks, SUITE.hashes, 10**12, 0)


def test_a_cassette_below_a_file_is_a_mistake_of_usage(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "tapes"):
        with pytest.raises(UsageError, match="folder"):
            run_suite(SUITE, agent="cmd:true", options=RunOptions(cassette=place))


class _Busy(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.send_response(429)
        self.send_header("retry-after", "30")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


@pytest.fixture
def busy() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Busy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    server.shutdown()
    server.server_close()


def test_a_server_that_is_asked_again_until_the_time_limit_is_infrastructure(busy: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        closed = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        for url, said in ((busy, "429"), (closed, "cannot be reached")):
            made = run_suite(
                Suite("s", SUITE.tasks[:1]),
                agent=f"chat:m@{url}",
                options=RunOptions(k=1, retries=0, limits=Limits(seconds=1.0)),
            )
            task = made.result.tasks[0]
            assert task.statuses == {"error_infra": 1}
            assert said in (task.why or "")


def test_the_report_says_why_attempts_broke(tmp_path: Path) -> None:
    program = f"cmd:{sys.executable} -c 'import sys; sys.exit(\"no key\")'"
    made = run_suite(SUITE, agent=program, options=RunOptions(k=2))
    assert [t.statuses for t in made.result.tasks] == [{"error_agent": 2}] * 2
    assert all("no key" in (t.why or "") for t in made.result.tasks)
    items = [str(i) for s in chapter.run("r", made.result) for i in s.items]
    assert any(i.startswith("a, b: ") and "no key" in i for i in items)


@pytest.mark.parametrize(("n", "said"), [(1, "1 task, the worst first"), (2, "2 tasks, the worst first")])
def test_one_task_is_one_task(n: int, said: str) -> None:
    made = run_suite(Suite("s", SUITE.tasks[:n]), agent="cmd:true", options=RunOptions(k=1))
    captions = [t.caption for s in chapter.run("r", made.result) for t in s.tables]
    assert any(str(c).startswith(said) for c in captions)
