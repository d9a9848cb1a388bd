"""The lexicon and its matcher: portable patterns, boundaries, masks, spans, errors."""

from __future__ import annotations

import re
from importlib import resources

import pytest

from seatrial.errors import InputError
from seatrial.signals import lexicon, matching, triggers

LINE = """version = "9"
openers = '(?:ok )*'
[bias]
praise = -1.0
[[cue]]
id = "c"
patterns = ['{pattern}']
{more}
[cue.weights]
{kind} = 2.0
"""


def small(pattern: str, more: str = "", kind: str = "praise") -> matching.Matcher:
    return matching.Matcher(lexicon.parse(LINE.format(pattern=pattern, more=more, kind=kind)))


def hits(matcher: matching.Matcher, text: str) -> bool:
    normal = matching.normalise(text)
    said = matching.mask(normal)
    found = matcher.match(normal, said)
    assert found == matcher.oracle(normal, said)
    return bool(found[0] or found[1])


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("great", "great", True),
        ("great", "Great!", True),
        ("great", "greater", False),
        ("great", "ungreat", False),
        ("great", "grëat", False),
        ("great", "égreat", False),
        ("great", "greaté", False),
        ("great", "great_job", False),
        ("great", "GREAT…", True),
        ("ça marche", "Ça marche !", True),
        (r"\w+ly", "völlly", True),
        (r"don.t", "don’t", True),
        (r"fix (?:it|this)", "please fix\nit", False),
        ("straße", "STRASSE", False),
    ],
)
def test_boundaries_know_all_scripts(pattern: str, text: str, found: bool) -> None:
    assert hits(small(pattern), text) is found


def test_unbound_cues_match_inside_text_without_spaces() -> None:
    assert hits(small("谢谢", "bound = false"), "非常谢谢你")
    assert not hits(small("谢谢"), "非常谢谢你")


@pytest.mark.parametrize(
    ("where", "text", "found"),
    [
        ("start", "ok ok now run", True),
        ("start", "please now run", False),
        ("sentence", "Done. now run", True),
        ("sentence", "- now run", True),
        ("sentence", "it is now", False),
        ("whole", "ok now!!", True),
        ("whole", "now run", False),
        ("end", "run it now.", True),
        ("end", "now run it", False),
    ],
)
def test_places(where: str, text: str, found: bool) -> None:
    assert hits(small("now", f'where = "{where}"'), text) is found


def test_cues_behind_the_lead_are_told_apart() -> None:
    matcher = small("great")
    text = "x " * 80 + "great"
    assert matcher.match(text, text) == ([], [0])
    assert matcher.match("great " + text, "great " + text) == ([0], [])


@pytest.mark.parametrize(
    "text",
    [
        "İstanbul ΑΣ ß ŉ",
        "naïve “quotes” – dash",
        "a\u0130b",
        "\x00\x01\x1a\x1b",
        "👍🏽 ok",
        "ﬁx",
        "１２３ Ａ",
        "\ud800",
        "",
    ],
)
def test_normalising_keeps_every_position(text: str) -> None:
    normal = matching.normalise(text)
    assert len(normal) == len(text)
    assert len(matching.mask(normal)) == len(text)
    assert all(c < "\x80" or (c.isalnum() and c == c.lower()) for c in normal)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("see `great` here", "see here"),
        ('he said "great stuff" today', "he said today"),
        ("> great\nno", "no"),
        ("```\ngreat\n```\nno", "no"),
        ("```\ngreat", ""),
        ("look at https://great.example/x now", "look at now"),
        ("[great image](x) no", "no"),
        ("$ great --now\nno", "no"),
        ("2026-01-01 10:11:12 great\nno", "no"),
        ("| great | a | b | c |\nno", "no"),
        ("<b>great</b> no", "no"),
        ("it's great", "it's great"),
    ],
)
def test_what_is_not_the_humans_voice_is_masked(text: str, left: str) -> None:
    said = matching.mask(matching.normalise(text))
    assert " ".join(said.replace(matching.MASK, " ").split()) == left


def test_a_span_is_the_cue_without_its_surroundings() -> None:
    matcher = small("great job")
    text = "OK, Great job!"
    normal = matching.normalise(text)
    start, end = matcher.spans(0, normal, normal) or (0, 0)
    assert text[start:end] == "Great job"


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("great", {"\x00great"}),
        ("(?:so |very )?great", {"great"}),
        ("a(?:bc|de)f+", {"bc", "de"}),
        ("x?", None),
        ("[ab]cd", {"cd"}),
        ("no|never", {"\x00no", "\x00never"}),
        ("no|x*", None),
        (r"end\.", {"\x00end."}),
        (r"(?:\w+ ){0,3}works?", {"work"}),
    ],
)
def test_trigger_literals(pattern: str, expected: set[str] | None) -> None:
    found = triggers.literals(pattern)
    assert (None if found is None else set(found)) == expected


@pytest.mark.parametrize("cue", lexicon.builtin().cue, ids=lambda c: c.id)
def test_every_cue_compiles_in_both_engines_and_has_points(cue: lexicon.Cue) -> None:
    import re2

    re2.compile(lexicon.builtin().re2_pattern(cue))
    lexicon.builtin().python_pattern(cue)
    assert cue.weights


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("not toml [", "cannot be read"),
        (LINE.format(pattern="(", more="", kind="praise"), "cue 'c'"),
        (LINE.format(pattern=r"\bword", more="", kind="praise"), "not portable"),
        (LINE.format(pattern="x", more='where = "middle"', kind="praise"), "cannot be read"),
        (LINE.format(pattern="x", more="colour = 1", kind="praise"), "cannot be read"),
        (LINE.format(pattern="x", more="", kind="joy"), "unknown kinds"),
        (LINE.format(pattern="x", more="", kind="praise") + '[[context]]\nid="moon"\nweights={}\n', "unknown context"),
    ],
)
def test_a_bad_lexicon_is_refused_with_the_reason(text: str, what: str) -> None:
    with pytest.raises(InputError, match=re.escape(what)) as caught:
        lexicon.parse(text, file="mine.toml")
    assert caught.value.file == "mine.toml"
    assert caught.value.hint


def test_the_built_in_lexicon_is_one_that_would_be_taken() -> None:
    text = resources.files("seatrial.signals").joinpath("lexicon.toml").read_text("utf-8")
    assert lexicon.parse(text) == lexicon.builtin()
