"""How fast human turns are judged, beside a plain Python `re` search for the same cues, in one run.

    python benchmarks/signals.py [LABELS.jsonl]

Turns come from a label file if one is given, else they are put together from a few sentences; either way every turn
is made unlike the others, so that nothing is remembered. Times are CPU time on one core.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

from seatrial.records import Agent, Provenance, Step, ToolCall, ToolResult, Trace
from seatrial.signals import extract, language, matching

SENTENCES = (
    "ok", "the list is empty when I open the page", "please add a filter for the date", "works now, thanks",
    "commit this", "why did you remove the header?", "no, that is not what I meant",
    "what does the second argument do?", "looks good",
    "use the other table instead", "I still get the same error", "can we also show the total?",
    "let us go with option b",
)  # fmt: skip


def turns(path: Path | None, n: int) -> list[tuple[str, str]]:
    """`n` turns with the agent's words before them; the last word of each is its own."""
    draw = random.Random(0)
    if path is not None:
        rows = [json.loads(line) for line in path.read_bytes().split(b"\n") if line.strip()]
        base = [(row["turn"], row.get("before", "")) for row in rows]
    else:
        base = [(". ".join(draw.sample(SENTENCES, draw.randint(1, 4))), "Done, all tests pass.") for _ in range(500)]
    return [(f"{text} x{i}", before) for i, (text, before) in enumerate(draw.choices(base, k=n))]


def clock(work: Callable[[], object]) -> float:
    """CPU seconds of one call."""
    started = time.process_time()
    work()
    return time.process_time() - started


def long_trace(steps: int) -> Trace:
    """A session with one human turn in ten steps and a tool call in every agent step."""
    made = []
    for i in range(steps):
        if i % 10 == 0:
            made.append(Step(index=i, event_class="human", text=SENTENCES[i // 10 % len(SENTENCES)], time=float(i)))
        else:
            call = ToolCall(id=str(i), name="Bash", arguments={"command": f"make target{i} && grep x y"})
            result = ToolResult(call_id=str(i), outcome="ok", exit_code=0, text="line of output\n" * 20)
            made.append(
                Step(index=i, event_class="agent", text="Done.", time=float(i), tool_calls=(call,), results=(result,))
            )
    provenance = Provenance(format="f", reader="f", reader_version="1")
    return Trace(id="t", agent=Agent(name="a"), model="m", provenance=provenance, steps=tuple(made))


def main() -> None:
    """Print turns per second and ratios."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    sample = turns(path, 4_000)
    texts = [text for text, _ in sample]
    engine = matching.matcher()
    prepared = [(normal, matching.mask(normal)) for normal in map(matching.normalise, texts)]
    for text, before in sample:
        language.judge(text, before)
    n = len(sample)
    few = prepared[:400]
    slow = clock(lambda: [engine.oracle(*pair) for pair in few]) / len(few)
    fast = clock(lambda: [engine.match(*pair) for pair in prepared]) / n
    whole = clock(lambda: [language.judge(text, before) for text, before in sample]) / n
    print(f"characters a turn      {sum(map(len, texts)) / n:10.0f}")
    print(f"matching, RE2          {1 / fast:10,.0f} turns/s")
    print(f"matching, Python re    {1 / slow:10,.0f} turns/s   RE2 is {slow / fast:.0f} times as fast")
    heard = [language.Heard(text, before) for text, before in sample]
    language.read_many(heard[:10])
    rules = clock(lambda: [language.score(r) for r in language.read_many(heard, learned=False)]) / n
    both = clock(lambda: [language.score(r) for r in language.read_many(heard)]) / n
    print(f"batch, rules           {1 / rules:10,.0f} turns/s")
    print(f"batch, with classifier {1 / both:10,.0f} turns/s")
    print(f"one by one, evidence   {1 / whole:10,.0f} turns/s")
    trace = long_trace(1_000)
    extract(trace)
    print(f"a trace of 1,000 steps {min(clock(lambda: extract(trace)) for _ in range(5)) * 1000:10.1f} ms")


if __name__ == "__main__":
    main()
