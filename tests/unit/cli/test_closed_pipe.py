"""A reader that leaves is no error: nothing is said, and no verdict is claimed."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("command", [["suite", "schema"], ["--help"], ["run", "--help"], ["doctor", "--json"]])
def test_a_closed_pipe_ends_a_command_quietly(command: list[str]) -> None:
    program = "import sys, time; sys.stdin.read(1); from seatrial.cli.app import main; main(sys.argv[1:])"
    with subprocess.Popen(
        [sys.executable, "-c", program, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as made:
        assert made.stdout is not None
        made.stdout.close()
        made.stdout = None
        _, said = made.communicate(b"x", timeout=60)
    assert said == b""
    assert made.returncode in (0, 141)
