"""Columns of verdicts: the compiled loops and the plain path give the same, whatever is in the batch."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.errors import UsageError
from seatrial.signals import automata, columns, language, lexicon, matching

pytest.importorskip("numba", reason="the fast extra is not installed")

TEXTS = (
    "", "ok", "it works now, thanks!", "no, that's wrong", "commit this", "NO NO NO STOP DOING THAT", "?", "!",
    "```\nthanks\n```\nwhat is this?", "> perfect\nno", '"great job" is what it prints', "不对，改回去", "ça marche",
    "👍🏽 ok", "🤬", "see @file:a.py and https://x.y/z (works)", "TypeError: x is undefined\n    at a.b (c.js:1:2)",
    "user@host:~$ make test\nfails", "12:30:11 started\nit still fails", "| a | b | c |\nwrong", "İstanbul ΑΣ ß ŉ",
    "a\u0130b", "\x00\x01\x02\x03\x1a\x1b\x1c", "\ud800 no", "<b>great</b> <i>no</i> </b>", "+ if (x) {\n- y;\nwhy?",
    "x " * 70 + "great job, it works", "fix" * 2500 + " it is wrong", "perfect " * 900,
    "no " * 40 + "not what i asked for",
    "we should use the other one instead, not this one", "still failing. why did you remove the header? please revert",
    "１２３ Ａ", "and now it is " + "very " * 30 + "broken", "commit\n\n\npush\tit", "é" * 130 + " works now",
)  # fmt: skip
BEFORES = (
    "", "Done. All tests pass.", "Want me to commit and push?", "Which option would you like?\n", "Fixed ✅\u2028",
    "user rejected the call", "I can open a PR. Shall I?\n\n", "é" * 800 + " now", "\ud800", "x" * 690 + " Let me know",
    "Should i merge " + "z" * 70 + " deploy?", "SOLL ICH weitermachen？ ok",
)  # fmt: skip


def both(texts: list[str], befores: list[str], learned: bool = True) -> tuple[columns.Columns, columns.Columns]:
    stopped = np.arange(len(texts)) % 3 == 0
    refused = np.arange(len(texts)) % 5 == 0
    turns = columns.Spoken(texts, befores, stopped, refused)
    compiled, plain = (columns.judge(turns, learned=learned, engine=e) for e in ("compiled", "plain"))
    return compiled, plain


def same(a: columns.Columns, b: columns.Columns) -> bool:
    return all(x.shape == y.shape and x.tobytes() == y.tobytes() for x, y in zip(a, b, strict=True))


def test_the_shipped_tables_belong_to_the_lexicon() -> None:
    assert automata.load(automata.fingerprint(lexicon.builtin())) is not None


@pytest.mark.parametrize("learned", [True, False])
def test_compiled_and_plain_agree(learned: bool) -> None:
    texts = [t for t in TEXTS for _ in BEFORES]
    compiled, plain = both(texts, list(BEFORES) * len(TEXTS), learned)
    assert compiled.turn.size > 100
    assert same(compiled, plain)


SIGNS = (" ", "\n", ". ", "`", '"', "<", ">", "@", "- ", ", ", "not", "working", "é", "\x1b", "🎉", "x" * 119)
PIECES = (*TEXTS[:24], *SIGNS)
TURN = st.lists(st.sampled_from(PIECES) | st.text(max_size=8), max_size=9).map("".join)


@settings(max_examples=60, deadline=None)
@given(st.lists(TURN, min_size=1, max_size=6), st.sampled_from(BEFORES) | st.text(max_size=30))
def test_they_agree_on_anything(texts: list[str], before: str) -> None:
    assert same(*both(texts, [before] * len(texts)))


CUES = [p for cue in lexicon.builtin().cue for p in ("no", "it", cue.id.replace("-", " "))]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(CUES) | st.sampled_from(PIECES), max_size=40).map(" ".join))
def test_cues_are_those_that_re_finds(text: str) -> None:
    normal = matching.normalise(text)
    said = matching.mask(normal)
    assert matching.matcher().match(normal, said) == matching.matcher().oracle(normal, said)
    assert same(*both([text], [""]))


def test_columns_are_what_one_turn_at_a_time_gives() -> None:
    befores = [BEFORES[i % len(BEFORES)] for i in range(len(TEXTS))]
    found = columns.judge(columns.Spoken(TEXTS, befores), engine="compiled")
    for i, (text, before) in enumerate(zip(TEXTS, befores, strict=True)):
        at = found.turn == i
        rows = [
            (lexicon.KINDS[k], c, s, e)
            for k, c, s, e in zip(found.kind[at], found.confidence[at], found.start[at], found.end[at], strict=True)
        ]
        assert sorted(rows) == sorted((v.kind, v.confidence, v.start, v.end) for v in language.judge(text, before))


def test_runs_and_threads_give_the_same() -> None:
    turns = columns.Spoken(list(TEXTS) * 30, ["Done."] * (30 * len(TEXTS)))
    first = columns.judge(turns, engine="compiled")
    found: list[columns.Columns] = []
    threads = [threading.Thread(target=lambda: found.append(columns.judge(turns, engine="compiled"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert all(same(first, other) for other in found)


def test_batches_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = columns.Spoken(TEXTS, ["All done."] * len(TEXTS))
    whole = columns.judge(turns, engine="compiled")
    monkeypatch.setattr(columns, "BATCH", 3)
    assert same(columns.judge(turns, engine="compiled"), whole)


@pytest.mark.parametrize("engine", ["compiled", "plain", "auto"])
def test_no_turns_give_no_verdicts(engine: columns.Engine) -> None:
    assert columns.judge(columns.Spoken([], []), engine=engine).turn.size == 0


def test_lengths_must_agree() -> None:
    with pytest.raises(UsageError):
        columns.judge(columns.Spoken(["a"], []))
