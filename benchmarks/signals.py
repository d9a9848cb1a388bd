"""How fast and how well human turns are judged, beside a Python `re` alternation and VADER, on the same labelled turns.

    python benchmarks/signals.py LABELS.jsonl [--turns 1000000] [--write docs/reference/signal-benchmarks.md]

Turns and the agent's words before them come from the label file, repeated as often as needed; nothing is remembered
between them. Times are CPU time of one thread in one process: the decision for every turn, with kinds, confidences and
the place of the evidence. VADER is left out, with a message, where `vaderSentiment` is not installed.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from seatrial.records import Signal
from seatrial.signals import accuracy, columns, language, lexicon, matching
from seatrial.signals.settings import SignalSettings

KINDS = language.HUMAN_KINDS
Found = list[set[str]]


def clock(work: Callable[[], object], times: int = 3) -> float:
    """CPU seconds of one call, the best of some."""
    best = float("inf")
    for _ in range(times):
        started = time.process_time()
        work()
        best = min(best, time.process_time() - started)
    return best


def f1(found: Found, rows: Sequence[accuracy.LabelledTurn], kind: str) -> float:
    """F1 of one kind."""
    hit = sum(kind in f and kind in r.labels for f, r in zip(found, rows, strict=True))
    return 2 * hit / max(1, sum(kind in f for f in found) + sum(kind in r.labels for r in rows))


def alternations() -> dict[str, re.Pattern[str]]:
    """For each kind, one `re` alternation of all phrases that speak for it with two points or more."""
    out = {}
    for kind in KINDS:
        cues = [c for c in lexicon.builtin().cue if c.weights.get(kind, 0.0) >= 2.0]
        body = "|".join(c.alternation() for c in cues).replace("$", r"\Z")
        out[kind] = re.compile(rf"(?<!\w)(?:{body})(?!\w)", re.IGNORECASE)
    return out


def by_columns(found: columns.Columns, n: int) -> Found:
    """Kinds by turn at the default thresholds."""
    settings = SignalSettings()
    out: Found = [set() for _ in range(n)]
    for turn, kind, confidence in zip(found.turn.tolist(), found.kind.tolist(), found.confidence.tolist(), strict=True):
        name = lexicon.KINDS[kind]
        if confidence >= (settings.correction_threshold if name == "correction" else settings.threshold):
            out[turn].add(name)
    return out


def records(found: columns.Columns, texts: Sequence[str]) -> list[Signal]:
    """Every verdict as a signal."""
    version = language.version()
    return [
        Signal(kind=lexicon.KINDS[k], session="s", step=t, detector=language.NAME, version=version, confidence=c,
               quote=texts[t][a:b])  # type: ignore[arg-type]
        for t, k, c, a, b in zip(*(column.tolist() for column in found), strict=True)
    ]  # fmt: skip


def vader(rows: Sequence[accuracy.LabelledTurn]) -> tuple[Found, float] | None:
    """Praise from a compound score of .5, complaint from -.5; seconds a turn. None: not installed."""
    try:
        from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer
    except ImportError:
        return None
    tool = SentimentIntensityAnalyzer()
    scores: list[float] = []
    taken = clock(lambda: scores.extend(tool.polarity_scores(r.turn)["compound"] for r in rows), 1)
    return [{"praise"} if s >= 0.5 else {"complaint"} if s <= -0.5 else set() for s in scores], taken / len(rows)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("labels", type=Path)
    parser.add_argument("--turns", type=int, default=1_000_000)
    parser.add_argument("--write", type=Path)
    asked = parser.parse_args()
    rows = [r for r in accuracy.read_labels(asked.labels) if not r.harness and not r.disputed]
    texts, befores = [r.turn for r in rows], [r.before for r in rows]
    stopped = np.array([r.interrupted for r in rows])
    once = columns.Spoken(texts, befores, stopped)
    times = max(1, asked.turns // len(rows))
    many = columns.Spoken(texts * times, befores * times, np.tile(stopped, times))
    n = len(many.texts)
    lines: list[tuple[str, Found, float]] = []
    for name, engine, learned, turns in (
        ("rules, compiled", "compiled", False, many), ("rules and classifier, compiled", "compiled", True, many),
        ("rules, without the extra", "plain", False, once),
        ("rules and classifier, without the extra", "plain", True, once),
    ):  # fmt: skip
        judged = columns.judge(once, learned=learned, engine=engine)  # type: ignore[arg-type]
        taken = clock(lambda t=turns, e=engine, y=learned: columns.judge(t, learned=y, engine=e))  # type: ignore[misc]
        lines.append((name, by_columns(judged, len(rows)), taken / len(turns.texts)))
        if engine == "compiled":
            whole = columns.judge(turns, learned=learned, engine="compiled")
            built = clock(lambda f=whole, t=turns: records(f, t.texts), 1) / n  # type: ignore[misc]
            lines.append((f"{name}, `Signal` records built", lines[-1][1], lines[-1][2] + built))
    patterns = alternations()
    low = [matching.normalise(t) for t in texts]
    found: Found = []
    taken = clock(lambda: found.extend({k for k, p in patterns.items() if p.search(t)} for t in low), 1)
    lines.append(("Python `re`, one alternation a kind", found, taken / len(rows)))
    other = vader(rows)
    if other is None:
        print("VADER is left out: pip install vaderSentiment")
    else:
        lines.append(("VADER, compound beyond ±.5", *other))
    size = sum(map(len, texts)) / len(texts)
    before = sum(map(len, befores)) / len(befores)
    table = [
        f"{n:,} turns ({len(rows):,} different ones), {size:.0f} characters a turn and {before:.0f} of the agent's "
        "before it on average; one thread.", "",
        "| | turns/s | " + " | ".join(KINDS) + " |", "|---|---|" + "---|" * len(KINDS),
    ]  # fmt: skip
    for name, kinds, seconds in lines:
        comparable = ("praise", "complaint") if name.startswith("VADER") else KINDS
        scores = [f"{f1(kinds, rows, k):.2f}" if k in comparable else "–" for k in KINDS]
        table.append(f"| {name} | {1 / seconds:,.0f} | " + " | ".join(scores) + " |")
    print("\n".join(table))
    if asked.write:
        text = asked.write.read_text("utf-8")
        begin, end = "<!-- table -->\n", "<!-- /table -->"
        body = begin + "\n".join(table) + "\n" + end
        asked.write.write_text(text.split(begin)[0] + body + text.split(end)[1], "utf-8")


if __name__ == "__main__":
    main()
