"""The sentences' file keeps to its guide, and a file that does not is refused with the reason."""

from __future__ import annotations

import json
import random
import re
from importlib import resources
from typing import Any

import pytest

from seatrial.errors import SchemaError
from seatrial.examples.sentences import REGISTERS, SLOTS, built_in, parse

GUIDE = resources.files("seatrial.examples").joinpath("sentences_guide.md").read_text("utf-8")
LEAST = {"correction": 20, "permission": 20, "decline": 20, "neutral": 20, "bridge": 20, "request": 12}


def _least(category: str) -> int:
    return LEAST.get(category.split(".")[0], 40)


def _table() -> dict[str, dict[str, list[str]]]:
    filler = {name: " ".join("{" + slot + "}" for slot in sorted(required)) for name, (required, _) in SLOTS.items()}
    return {name: {r: [f"{r} {name} {filler[name]}"] for r in REGISTERS} for name in SLOTS}


def test_the_guide_names_the_categories_and_slots_that_the_loader_asks_for() -> None:
    rows = re.findall(r"^\| `([\w.]+)` \|.*\| (.+) \|$", GUIDE, re.MULTILINE)
    named = {}
    for category, slots in rows:
        found = re.findall(r"`\{(\w+)\}`(\*?)", slots)
        named[category] = (
            frozenset(name for name, star in found if star),
            frozenset(name for name, star in found if not star),
        )
    assert named == SLOTS


@pytest.mark.parametrize("category", sorted(SLOTS))
def test_the_built_in_sentences_are_as_many_as_the_guide_asks_for_and_all_different(category: str) -> None:
    sentences = built_in().all(category)
    assert len(sentences) >= _least(category)
    assert len({" ".join(s.lower().split()) for s in sentences}) == len(sentences)
    assert all(s == s.strip() and s for s in sentences)


def test_slots_are_filled_and_nothing_else_is() -> None:
    draws = random.Random(0)
    for category, (required, optional) in SLOTS.items():
        for register in REGISTERS:
            said = built_in().say(category, register, {name: f"<{name}>" for name in required | optional}, draws)
            assert "{" not in said
            assert all(f"<{name}>" in said for name in required)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda t: t.pop("praise"), "categories"),
        (lambda t: t.update(extra=t["praise"]), "categories"),
        (lambda t: t["praise"].pop("terse"), "praise: needs"),
        (lambda t: t["praise"].update(terse=[]), "praise: needs"),
        (lambda t: t["praise"].update(terse=["nice {wanted}"]), "wrong slots"),
        (lambda t: t["correction.incomplete"].update(terse=["more"]), "wrong slots"),
        (lambda t: t["praise"].update(terse=["nice {"]), "brace"),
        (lambda t: t["praise"].update(terse="nice"), "not the sentences"),
    ],
)
def test_a_file_of_another_shape_is_refused(change: Any, why: str) -> None:
    table: dict[str, Any] = _table()
    parse(json.dumps(table).encode())
    change(table)
    with pytest.raises(SchemaError, match=why) as caught:
        parse(json.dumps(table).encode(), "mine.json")
    assert caught.value.file == "mine.json"
