"""The sentences that simulated users type: a data file, its shape checked when it is loaded."""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import cache
from importlib import resources
from string import Formatter

import msgspec

from seatrial.errors import SchemaError

REGISTERS = ("polite", "terse", "chatty", "blunt")

SLOTS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    name: (frozenset(required.split()), frozenset(optional.split()))
    for name, required, optional in (
        ("confirmation", "", ""),
        ("praise", "", ""),
        ("complaint", "", ""),
        ("accept_implicit", "", ""),
        ("correction.wrong_value", "where wanted", "got"),
        ("correction.wrong_place", "wanted", "got"),
        ("correction.incomplete", "missing", ""),
        ("correction.not_done", "where", ""),
        ("correction.wrong_answer", "where", "got"),
        ("correction.unasked", "extra", ""),
        ("correction.still_broken", "where", ""),
        ("permission", "", ""),
        ("decline", "", ""),
        ("neutral.question", "", ""),
        ("neutral.remark", "", ""),
        ("bridge", "", ""),
        ("request.set_config", "key file value", ""),
        ("request.fix_test", "test", "file"),
        ("request.rename", "old new", ""),
        ("request.triage", "ticket priority person", ""),
        ("request.close_label", "label", ""),
        ("request.roll_out", "service version replicas ticket", ""),
        ("request.find_owner", "ticket", ""),
        ("request.count_open", "priority", ""),
        ("request.compare", "key file other", ""),
    )
}
"""Every category with the slots that each of its sentences must hold, and those that it may hold."""


class Sentences:
    """category -> register -> sentences."""

    def __init__(self, table: Mapping[str, Mapping[str, list[str]]]) -> None:
        self._table = table

    def say(self, category: str, register: str, slots: Mapping[str, str], draws: random.Random) -> str:
        """One sentence of the category in this register, its slots filled in. Takes exactly one draw."""
        choices = self._table[category][register]
        template = choices[int(draws.random() * len(choices))]
        for name, value in slots.items():
            template = template.replace("{" + name + "}", value)
        return template

    def all(self, category: str) -> list[str]:
        """Every sentence of the category, slots unfilled, register by register."""
        return [text for register in REGISTERS for text in self._table[category][register]]


def parse(data: bytes, file: str = "sentences.json") -> Sentences:
    """Sentences from JSON bytes.

    Raises:
        SchemaError: not of the shape of `sentences_guide.md`: a category or register is missing or unknown,
            or a sentence lacks a slot or holds one that its category does not have.
    """
    try:
        table = msgspec.json.decode(data, type=dict[str, dict[str, list[str]]])
    except msgspec.DecodeError as error:
        raise SchemaError(f"not the sentences of sentences_guide.md: {error}", file=file) from error
    if table.keys() != SLOTS.keys():
        raise SchemaError(f"categories missing or unknown: {sorted(table.keys() ^ SLOTS.keys())}", file=file)
    for category, by_register in table.items():
        required, optional = SLOTS[category]
        if set(by_register) != set(REGISTERS) or not all(by_register.values()):
            raise SchemaError(f"{category}: needs sentences for each of {', '.join(REGISTERS)}", file=file)
        for text in (text for texts in by_register.values() for text in texts):
            try:
                used = {name for _, name, _, _ in Formatter().parse(text) if name is not None}
            except ValueError as error:
                raise SchemaError(f"{category}: unbalanced brace in {text!r}", file=file) from error
            if not required <= used or not used <= required | optional:
                raise SchemaError(f"{category}: wrong slots {sorted(used)} in {text!r}", file=file)
    return Sentences(table)


@cache
def built_in() -> Sentences:
    """The sentences that come with the package."""
    return parse(resources.files("seatrial.examples").joinpath("sentences.json").read_bytes())
