"""Columns of verdicts: the compiled loops and the plain path give the same, whatever is in the batch."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.errors import UsageError
from seatrial.signals import automata, columns, determinise, language, lexicon, matching, patterns, programs, tree

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
    held = automata.load(automata.fingerprint(lexicon.builtin()))
    assert held is not None
    made = programs.build(lexicon.builtin(), held.symbols)
    for name, shipped in held.programs._asdict().items():
        now = getattr(made, name)
        assert (shipped.dtype, shipped.shape) == (now.dtype, now.shape), name
        assert (shipped == now).all(), f"{name}: run scripts/build_automata"


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


HEARD = [
    language.Heard(t, b, i % 3 == 0, i % 5 == 0)
    for i, (t, b) in enumerate((t, BEFORES[k % len(BEFORES)]) for k in range(4) for t in TEXTS)
]


@pytest.mark.parametrize("learned", [True, False])
def test_readings_are_the_same_by_either_way(learned: bool) -> None:
    compiled, plain = columns.readings(HEARD, learned=learned), language.read_many(HEARD, learned=learned)
    assert [one._replace(places={}, sure=None) for one in compiled] == plain
    assert sum(len(one.places) for one in compiled) > 50
    for one, other, heard in zip(compiled, plain, HEARD, strict=True):
        assert language.verdicts(one, len(heard.text)) == language.verdicts(other, len(heard.text))
    assert sum(len(r.lead) + len(r.later) for r in plain) > 100


def test_a_character_that_was_never_met_may_come_first() -> None:
    for text in ("\U00010400 works now", "\u16a0\u16a1 no, that is wrong"):
        assert same(*both([text], [""]))


def test_a_process_that_reads_much_goes_on_with_the_compiled_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def note(turns: Sequence[language.Heard], *, learned: bool) -> list[language.Reading]:
        asked.append(len(turns))
        return []

    monkeypatch.setattr(columns, "readings", note)
    monkeypatch.setattr(columns, "MANY", 5)
    monkeypatch.setattr(columns, "_so_far", 0)
    assert columns.read_many(HEARD[:4]) == language.read_many(HEARD[:4])
    assert asked == []
    columns.read_many(HEARD[:1])
    columns.read_many(HEARD[:2])
    assert asked == [1, 2]
    monkeypatch.setattr(columns, "_so_far", 0)
    columns.read_many(HEARD[:3], many=True)
    assert asked == [1, 2, 3]


def test_a_tree_and_its_tables_find_what_each_table_finds() -> None:
    patterns_of = ("no way", "no(?: \\w+){0,2} way", "not? it", "on(?:$|[^\\w])")
    tables = [
        determinise.table([determinise.Unit(0, patterns.parse(p))], 1000, anchored=True) for p in patterns_of
    ]  # fmt: skip
    symbols = [*range(128), patterns.REST]
    grown = tree.grow(tables, symbols, [range(4)], 3)
    rows = grown.next.shape[0]
    for text in ("no way", "no such long way", "not it", "no it", "on", "on it", "once", "no", "", "nö way"):
        row, i = int(grown.starts[0]), 0
        alive = [(g, 0) for g in range(4)]
        while i < len(text) and row < rows:
            code = min(ord(text[i]), 128)
            row, i = int(grown.next[row, grown.column[code]]), i + 1
        if row >= rows:
            alive = grown.alive[grown.leaf[row - rows] : grown.leaf[row - rows + 1]].tolist()
        else:
            assert i == len(text)
            assert {g for g in range(4) if grown.at_end[row, g]} == _matching(patterns_of, text)
            continue
        found = set()
        for g, state in alive:
            one = tables[g]
            known = dict(zip(one.symbols, one.classes, strict=True))
            for char in text[i:]:
                if one.found[state]:
                    break
                state = one.next[state][known.get(min(ord(char), 128), known[patterns.REST])]
            if one.found[state] or one.at_end[state]:
                found.add(g)
        assert found == _matching(patterns_of, text)


def _matching(expressions: Sequence[str], text: str) -> set[int]:
    return {g for g, p in enumerate(expressions) if re.match(p, text)}


def test_a_table_that_starts_within_a_text_cannot_look_for_its_beginning() -> None:
    with pytest.raises(ValueError, match="beginning"):
        determinise.table([determinise.Unit(0, patterns.parse("^no"))], 100, anchored=True)


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
