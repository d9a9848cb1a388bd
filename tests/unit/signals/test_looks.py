from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.signals import commands, faults, looks, shell, task_type

WORDS = (
    "permission denied", "error", "ERROR:", "Error 403", "http 401", "404", "ENOSPC", "EACCES", "No ſuch file",
    "isK", "fatal:", "rate limit exceeded", "502 Bad Gateway", "index.lock': File exists", "timed out after",
    "CONFLICT (", "user rejected", "! [rejected] x (fetch first)", "✗", "✘", "❌", "PANIC:", "TypeError", "ÉError",
    "Erreur", "connection refused", "é", "٣", "\xa0", "\u2028", "\x85", "\x1c", "\x0b", "İnvalid", "ınvalid", "K",
    "\n", " ", ":", "_", "7", "q", "\x7f", "\ud800", "unexpected", "usage:", "E2BIG:", "ERR_X", "Tool calls errored",
    "sibling tool call errored", "bad x", "style issues found", "is not defined", "tool 'x' not found",
    "request interrupted by user", "a.b: not",
)  # fmt: skip
TEXT = st.lists(st.sampled_from(WORDS) | st.text(max_size=4), max_size=12).map("".join)


@settings(max_examples=400, deadline=None)
@given(TEXT)
def test_a_look_misses_nothing(text: str) -> None:
    found = {i for i, pattern in enumerate(commands._FAILURES) if pattern.search(text)}
    assert found <= set(commands._failures()(looks.plain(text)))
    assert len(looks.plain(text)) == len(text)


@settings(max_examples=300, deadline=None)
@given(st.lists(TEXT, min_size=1, max_size=3))
def test_what_is_looked_for_first_is_what_the_pattern_finds(texts: list[str]) -> None:
    for pattern in commands._FAILURES:
        for text in (*texts, *texts, texts[-1]):
            found, own = commands._search(pattern, text), pattern.search(text)
            assert (found and (found.span(), found.string)) == (own and (own.span(), own.string))


ASKED = st.lists(
    st.sampled_from(("fix", "código", "CÓDIGO", "写", "写代码", "你好", "olá", "what", "?", " ", "\n", "\u3000",
                     "not", ".", "a.py", "why is", "slow", "wor\u212aing", "TypeError", "É",
                     "实现", "my order", "ci/cd", "summari\u017fe"))
    | st.text(max_size=3),
    max_size=9,
).map("".join)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(ASKED)
def test_a_look_misses_no_word_of_a_request(text: str) -> None:
    found = {i for i, (_, _, pattern) in enumerate(task_type._COMPILED) if pattern.search(text)}
    assert found <= set(task_type._look()(looks.plain(text)))


def test_looks_tell_patterns_apart() -> None:
    look = looks.Look([faults.MISUSE, faults.CONFLICT])
    assert list(look(looks.plain("all is well"))) == []
    assert list(look(looks.plain("CONFLICT (content): é.py"))) == [0, 1]


@pytest.mark.parametrize("source", [r"[^q]", r"a$", r"(?=a)", r"\B", r"[^K]"])
def test_what_a_look_might_miss_is_refused(source: str) -> None:
    with pytest.raises(Exception, match=r"look|Set"):
        looks.Look([re.compile(source)])


LINE = st.lists(
    st.sampled_from(("git", "push", "-C", "x", "grep", "a#b", "=", "A=1", "2>x", "<", "sudo", "timeout", "5", "!", "if",
                     "bash", "-c", "\t", "\n", "\u00a0", "\\", "'", '"', "&&", "|", ";", "#", "<<E", "é", "for")),
    max_size=9,
).map(" ".join)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(LINE)
def test_plain_lines_are_read_like_others(text: str) -> None:
    whole = shell._parse_whole(text)
    assert shell.parse(text) == whole
