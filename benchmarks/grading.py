"""How long grading takes: 10,000 attempts of 50 steps, every check, a reference to match; and the runner's own cost.

python benchmarks/grading.py [ATTEMPTS] [STEPS] [--quick] [--json]
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from contract import row, told
from seatrial import grading
from seatrial.flows.run import RunOptions, run_suite
from seatrial.records import Agent, AgentTurn, Provenance, Step, Task, ToolCall, ToolResult, Trace
from seatrial.suites import Suite


def attempt(number: int, steps: int) -> Trace:
    """An attempt with a call a step, every seventh of which fails."""
    made = [Step(index=0, event_class="simulated_user", text="go")]
    for i in range(1, steps):
        call = ToolCall(
            id=f"c{i}", name=f"tool_{i % 9}", arguments={"id": f"T-{i % 23}", "n": number % 7, "text": "x" * 40}
        )
        failed = i % 7 == 0
        result = ToolResult(
            call_id=call.id, outcome="error" if failed else "ok", text="refused: bad id" if failed else "ok"
        )
        made.append(Step(index=i, event_class="agent", tool_calls=(call,), results=(result,)))
    made.append(Step(index=steps, event_class="agent", text="All done."))
    source = Provenance(format="benchmark", reader="benchmark", reader_version="1")
    return Trace(id=str(number), agent=Agent(name="a"), provenance=source, steps=tuple(made))


TASK = Task(
    id="t",
    input="go",
    expected_tools=["tool_1", "tool_2", "tool_3"],
    forbidden_tools=["drop"],
    max_turns=60,
    max_tool_calls=60,
    order="subsequence",
    reference={
        "calls": [{"tool": f"tool_{i}", "arguments": {"id": f"T-{i}"}} for i in range(1, 6)],
        "arguments": "superset",
    },
    check_final=[{"path": "answer", "op": "contains", "value": "done"}, {"path": "n", "op": "eq", "value": 1}],
)


class Nothing:
    """An agent that answers at once."""

    name, version = "nothing", "1"

    def begin(self, tools: Sequence[Any], seed: int) -> Nothing:
        """No session to speak of."""
        return self

    def send(self, incoming: Any) -> AgentTurn:
        """The answer."""
        return AgentTurn(text="All done.")


def main(quick: bool) -> None:
    """Print what was measured."""
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 500 if quick else 10_000
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 50
    traces = [attempt(i, steps) for i in range(min(n, 500))]
    grading.grade(TASK, grading.of_trace(traces[0], final={"n": 1}))
    began, used = time.perf_counter(), time.process_time()
    verdicts = sum(
        len(grading.grade(TASK, grading.of_trace(traces[i % len(traces)], final={"n": 1}))) for i in range(n)
    )
    spent, used = time.perf_counter() - began, time.process_time() - used
    print(f"graded {n:,} attempts of {steps} steps: {spent:.1f} s, {used:.1f} s of processor ({verdicts:,} verdicts)")
    row(f"grade an attempt of {steps} steps, every check", 1000 * used / n, "CPU ms")
    tasks = tuple(Task(id=f"t{i}", input="go", check_final=TASK.check_final[:1]) for i in range(100))  # type: ignore[index]
    with tempfile.TemporaryDirectory() as folder:
        wall, cpu = time.perf_counter(), time.process_time()
        run_suite(Suite("s", tasks), agent=Nothing(), store=Path(folder) / "s", options=RunOptions(k=10))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    row("run an attempt of an agent that does nothing (1,000)", cpu, "CPU ms")
    print(
        f"ran 1,000 attempts of an agent that does nothing: {wall:.2f} ms each by the clock, {cpu:.2f} ms of processor"
    )


if __name__ == "__main__":
    with told("grading") as small:
        main(small)
