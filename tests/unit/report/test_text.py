"""Hidden, moving and stacked characters lose their power; names stay apart."""

from __future__ import annotations

import json

import pytest

from seatrial.report.text import ascii_only, clean, clip, json_text, name, visible, width


@pytest.mark.parametrize("code", [0x202E, 0x2066, 0x200F, 0x061C, 0x200B, 0xFEFF, 0x2028, 0x1B, 0x07, 0x9B, 0xE0041])
def test_hidden_characters_become_visible_codes(code: int) -> None:
    text = f"a{chr(code)}b"
    assert chr(code) not in clean(text)
    assert f"U+{code:04X}" in clean(text)
    assert chr(code) not in visible(text)
    assert clean(text) != clean("ab")


def test_lone_surrogates_can_be_written_as_utf8() -> None:
    assert clean("a\ud800b").encode() == b"a<U+D800>b"


def test_white_space_is_one_space_and_visible_keeps_line_breaks() -> None:
    assert clean("  a\n\tb\r\n c ") == "a b c"
    assert visible("a\nb") == "a\nb"


def test_combining_marks_do_not_pile_up() -> None:
    assert clean("z" + "\u0301" * 50) == "z" + "\u0301" * 3


def test_clip_keeps_both_ends() -> None:
    assert clip("abcdefghij", 10) == "abcdefghij"
    short = clip("provider/model-with-long-name-2025-01-01", 20)
    assert width(short) <= 20
    assert short.startswith("provider")
    assert short.endswith("-01-01")
    assert width(clip("漢字" * 40, 21)) <= 21


def test_an_empty_name_is_said_to_be_empty() -> None:
    assert name(" \n") == "(empty name)"


def test_json_stays_the_same_json() -> None:
    value = {"a": "x\u202ey\U000e0041z\u200b", "b": [1, "\n"]}
    text = json.dumps(value, ensure_ascii=False, indent=1)
    safe = json_text(text)
    assert json.loads(safe) == value
    assert not any(c in safe for c in "\u202e\U000e0041\u200b")


def test_ascii_has_the_same_width() -> None:
    text = "−5.0 [1–3] ●━━─┊ × 漢字 é ∞"
    assert ascii_only(text).isascii()
    assert len(ascii_only(text)) == width(text)
