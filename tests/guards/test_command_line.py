"""Every command and option is documented, and help has an example."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
import typer

from seatrial.cli.app import app, run

ROOT = Path(__file__).resolve().parents[2]


@cache
def commands() -> dict[str, object]:
    found: dict[str, object] = {}

    def walk(name: str, command: object) -> None:
        children = getattr(command, "commands", None)
        if children:
            for child, inner in children.items():
                walk(f"{name} {child}".strip(), inner)
            if getattr(command, "invoke_without_command", False) and name:
                found[name] = command
        else:
            found[name] = command

    walk("", typer.main.get_command(app))
    return found


@pytest.mark.parametrize("name", sorted(commands()))
def test_command_says_what_it_does_with_an_example(name: str) -> None:
    text = getattr(commands()[name], "help", "") or ""
    assert text.strip()
    assert "Example" in text, f"seatrial {name} --help has no example"
    assert f"seatrial {name.split()[0]}" in text


@pytest.mark.parametrize("name", sorted(commands()))
def test_every_option_is_explained(name: str) -> None:
    for parameter in getattr(commands()[name], "params", []):
        assert getattr(parameter, "help", None) or parameter.name in {"help"}, f"{name} {parameter.name}"


@pytest.mark.parametrize("name", sorted(commands()))
def test_every_command_takes_json(name: str) -> None:
    names = {o for p in getattr(commands()[name], "params", []) for o in getattr(p, "opts", [])}
    assert "--json" in names


def test_reference_names_every_command_and_option() -> None:
    text = (ROOT / "docs" / "reference" / "command-line.md").read_text()
    missing = [n for n in commands() if f"seatrial {n}" not in text]
    missing += [
        f"{n} {o}"
        for n, c in commands().items()
        for p in getattr(c, "params", [])
        for o in getattr(p, "opts", [])
        if o.startswith("--") and o not in {"--help"} and f"`{o}`" not in text
    ]
    assert not missing, "run scripts/reference"


@pytest.mark.parametrize("name", sorted(commands()))
def test_an_empty_value_is_refused_not_taken_for_an_option_that_is_absent(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    taken = [p for p in getattr(commands()[name], "params", []) if not getattr(p, "is_flag", False)]
    assert taken or name in {"doctor", "suite schema"}
    for parameter in taken:
        options = [o for o in parameter.opts if o.startswith("-")]
        for given in [[option, ""] for option in options] or [[""]]:
            assert run([*name.split(), *given]) == 2, (name, given)
            said = capsys.readouterr().err
            assert "was given an empty value" in said, (name, given, said)
            assert not options or max(options, key=len) in said


def test_an_empty_value_among_several_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rank", "x", "--where", "a=b", "--where="]) == 2
    assert run(["rank", "x", ""]) == 2
    assert capsys.readouterr().err.count("was given an empty value") == 2
