"""Human turns to verdicts: the guide of METHODS 1.2, sentence by sentence (all sentences are our own)."""

from __future__ import annotations

import pytest

from seatrial.signals import language

DONE = "I updated the parser and all tests pass."
ASKS = "Two ways are possible. Want me to go with the first?"
SHIP = "All tests pass. Want me to commit and push?"


def kinds(turn: str, before: str = DONE, **context: bool) -> set[str]:
    return {
        v.kind
        for v in language.judge(turn, before, **context)
        if v.confidence >= (0.7 if v.kind == "correction" else 0.5)
    }


@pytest.mark.parametrize(
    "turn",
    [
        "It works now",
        "that worked",
        "lgtm",
        "Looks good to me",
        "the login page works as expected now",
        "ok that fixed it",
        "The bug is gone.",
        "funktioniert jetzt",
        "ahora funciona",
        "ça marche",
        "funcionou",
        "可以了",
        "動きました",
    ],
)
def test_confirmations(turn: str) -> None:
    assert "confirmation" in kinds(turn)


@pytest.mark.parametrize(
    "turn",
    [
        "Perfect!",
        "Awesome, next one",
        "great job",
        "Thanks a lot",
        "vielen dank",
        "muchas gracias",
        "谢谢",
        "ありがとう",
        "excellent work",
        "👍",
    ],
)
def test_praise(turn: str) -> None:
    assert "praise" in kinds(turn)


def test_perfect_is_both() -> None:
    assert {"confirmation", "praise"} <= kinds("perfect")


@pytest.mark.parametrize(
    "turn",
    [
        "commit this",
        "please commit and push",
        "open a PR",
        "ok merge it",
        "Push it to main please",
        "提交吧",
        "コミットして",
        "mach einen commit",
    ],
)
def test_acting_on_the_work_accepts_it(turn: str) -> None:
    found = kinds(turn)
    assert "accept_implicit" in found
    assert "confirmation" not in found


def test_agreeing_to_an_offered_commit_accepts_and_agreeing_to_work_does_not() -> None:
    assert kinds("yes please", SHIP) == {"accept_implicit"}
    assert kinds("yes please", ASKS) == set()


@pytest.mark.parametrize(
    "turn",
    [
        "no, that's wrong",
        "That is not what I asked for",
        "it still fails on login",
        "revert that change",
        "the button doesn't show up",
        "you forgot the tests",
        "Why did you delete the config? I never asked for that",
        "I'm getting the same error again",
        "this should be a list instead of a dict",
        "das ist falsch",
        "funktioniert immer noch nicht",
        "no funciona, sigue fallando",
        "ça ne marche pas",
        "não funcionou",
        "不对，改回去",
        "違います、元に戻して",
    ],
)
def test_corrections(turn: str) -> None:
    assert "correction" in kinds(turn)


@pytest.mark.parametrize(
    "turn",
    [
        "This is ridiculous, you keep breaking the build",
        "ugh, what a mess",
        "you are wasting my time",
        "wtf is this garbage",
        "这是什么垃圾",
        "c'est nul",
    ],
)
def test_complaints(turn: str) -> None:
    assert "complaint" in kinds(turn)


@pytest.mark.parametrize(
    ("turn", "before"),
    [
        ("yes", ASKS),
        ("go ahead", ASKS),
        ("1", ASKS),
        ("option b", ASKS),
        ("continue", DONE),
        ("Can you add a dark mode to the settings page?", DONE),
        ("what does this function do?", DONE),
        ("please write a test for the parser", DONE),
        ("how do I run it?", DONE),
        ("does it work on windows?", DONE),
        ("Let's start with the database schema", ASKS),
        ("my order number is 1234", "Could you give me your order number?"),
        ("weiter", DONE),
    ],
)
def test_permission_questions_and_new_requests_are_no_verdict(turn: str, before: str) -> None:
    assert kinds(turn, before) == set()


@pytest.mark.parametrize(
    "turn",
    [
        'add a button labelled "it works, thanks" to the page',
        "```\nthanks, it works\n```\nwhat does this print?",
        "> perfect, that works\nwho wrote this?",
        "rename `this_is_wrong` in the docs",
    ],
)
def test_quoted_and_code_text_is_not_the_humans_voice(turn: str) -> None:
    assert not kinds(turn) & {"confirmation", "praise", "complaint"}


def test_negation_turns_acceptance_round() -> None:
    assert "confirmation" not in kinds("it does not work")
    assert "praise" not in kinds("not great")
    assert "praise" not in kinds("no thanks")


def test_a_bare_pasted_error_is_a_correction() -> None:
    assert "correction" in kinds("TypeError: cannot read properties of undefined (reading 'id')")


def test_boundaries_hold_outside_ascii() -> None:
    assert "praise" not in kinds("dankend")
    assert "accept_implicit" not in kinds("committee")
    assert kinds("éperfect") == set()


def test_refusing_a_call_makes_the_next_words_likelier_a_correction() -> None:
    turn = "this should be in the other file"
    alone = {v.kind: v.confidence for v in language.judge(turn, DONE)}
    after = {v.kind: v.confidence for v in language.judge(turn, DONE, refused=True)}
    assert after["correction"] > alone["correction"]


def test_why_names_the_rules() -> None:
    verdict = next(v for v in language.judge("commit this", DONE) if v.kind == "accept_implicit")
    assert "commit" in verdict.why
    assert "commit this"[verdict.start : verdict.end].startswith("commit")


def test_huge_and_hostile_turns_are_read_in_bounded_time() -> None:
    import time

    started = time.process_time()
    for turn in (
        "a" * 1_000_000,
        "no " * 300_000,
        "`" * 200_000,
        '"' * 200_000,
        "[" * 200_000,
        "<a" * 100_000,
        "!" * 99_999,
    ):
        language.judge(turn, turn)
    assert time.process_time() - started < 10


@pytest.mark.parametrize(
    "turn",
    [
        "non funziona", "werkt niet", "nie działa", "fungerar inte", "not lgtm", "не работает", "nicht gut", "pas bien",
        "çalışmıyor", "不好", "isn't ok", "ei toimi",
    ],
)  # fmt: skip
def test_a_denied_acceptance_is_none(turn: str) -> None:
    assert not kinds(turn) & {"confirmation", "praise", "accept_implicit"}


@pytest.mark.parametrize(
    ("turn", "kind"),
    [
        ("\U0001f642 no, that is wrong", "correction"),
        ("• thanks", "praise"),
        ("\ufffd no, undo this", "correction"),
        ("→ no, revert it", "correction"),
    ],
)
def test_a_sign_before_the_words_does_not_make_them_a_command(turn: str, kind: str) -> None:
    assert kind in kinds(turn)


@pytest.mark.parametrize("turn", ["❯ git revert thanks", "➜ echo perfect", "$ echo that is wrong"])
def test_a_line_behind_a_prompt_is_not_the_humans_voice(turn: str) -> None:
    assert not kinds(turn)
