"""What is said in the user's name, and by whom."""

from __future__ import annotations

import pytest

from seatrial.ingest.user_text import spoken


@pytest.mark.parametrize(
    ("text", "event_class", "kind"),
    [
        ("please fix it", "human", None),
        ("why does <system-reminder> show up?", "human", None),
        ("[Request interrupted by user for tool use]", "interrupted", "interrupted"),
        ("<command-name>/clear</command-name>", "harness", "command"),
        ("<system-reminder>a</system-reminder>", "harness", "system_reminder"),
        ("<environment_context>\n<cwd>/</cwd>\n</environment_context>", "harness", "system_reminder"),
        ("This session is being continued from a previous conversation that ...", "harness", "compact_summary"),
        ("  # AGENTS.md instructions for x", "harness", "system_prompt"),
    ],
)
def test_who_spoke(text: str, event_class: str, kind: str | None) -> None:
    said = spoken(text)
    assert (said.event_class, said.kind, said.text) == (event_class, kind, text)


def test_injected_passages_are_taken_out_of_a_persons_turn() -> None:
    said = spoken("<system-reminder>a</system-reminder>no, <ide_selection x='1'>b</ide_selection>wrong file")
    assert said.text == "no, wrong file"
    assert said.event_class == "human"
    assert said.injected == ("<system-reminder>a</system-reminder>", "<ide_selection x='1'>b</ide_selection>")


def test_a_simulated_user_stays_simulated() -> None:
    assert spoken("hello", "simulated_user").event_class == "simulated_user"


def test_many_unclosed_marks_cost_little() -> None:
    text = "x" + "<system-reminder>" * 50_000
    assert spoken(text).text == text
