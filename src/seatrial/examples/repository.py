"""The workspace's source files and tests, the bugs that can be planted in them, and what makes a test pass."""

from __future__ import annotations

import re
from typing import Any

import msgspec


class Bug(msgspec.Struct, frozen=True, kw_only=True):
    """A planted bug: `test` passes only while `right` stands in `file`; `wrong_fix` is a plausible other line."""

    test: str
    file: str
    right: str
    planted: str
    wrong_fix: str


BUGS: tuple[Bug, ...] = (
    Bug(
        test="test_minutes_to_seconds",
        file="src/app/durations.py",
        right="    return int(text) * 60",
        planted="    return int(text) * 6",
        wrong_fix="    return int(text) * 600",
    ),
    Bug(
        test="test_discount_keeps_cents",
        file="src/app/prices.py",
        right="    return round(total * (1 - rate), 2)",
        planted="    return round(total * (1 - rate))",
        wrong_fix="    return round(total * (1 + rate), 2)",
    ),
    Bug(
        test="test_first_rows",
        file="src/app/rows.py",
        right="    return rows[:limit]",
        planted="    return rows[1:limit]",
        wrong_fix="    return rows[:limit - 1]",
    ),
    Bug(
        test="test_empty_report",
        file="src/app/report.py",
        right="    if not items:",
        planted="    if items is None:",
        wrong_fix="    if len(items) == 1:",
    ),
)

RENAMES: dict[str, tuple[str, ...]] = {
    "load_rows": ("read_rows", "fetch_rows", "iter_rows"),
    "parse_minutes": ("minutes_from_text", "read_minutes", "to_minutes"),
    "net_price": ("price_before_tax", "untaxed_price", "bare_price"),
}
"""Functions that can be renamed, each used in several files, and names to give them."""

_FILES = {
    "src/app/durations.py": '''"""Durations."""


def parse_minutes(text):
    return int(text) * 60


def show_hours(seconds):
    return f"{seconds // 3600}h"
''',
    "src/app/prices.py": '''"""Prices."""


def net_price(gross, tax):
    return round(gross / (1 + tax), 2)


def with_discount(total, rate):
    return round(total * (1 - rate), 2)
''',
    "src/app/rows.py": '''"""Rows of a table."""

from app.durations import parse_minutes


def load_rows(source):
    return [(name, parse_minutes(minutes)) for name, minutes in source]


def first_rows(rows, limit):
    return rows[:limit]
''',
    "src/app/report.py": '''"""The monthly report."""

from app.prices import net_price
from app.rows import load_rows


def monthly_report(source, tax):
    items = load_rows(source)
    if not items:
        return "nothing this month"
    return [(name, net_price(seconds, tax)) for name, seconds in items]
''',
    "src/app/billing.py": '''"""Bills."""

from app.durations import parse_minutes
from app.prices import net_price
from app.rows import load_rows


def bill_lines(source, tax):
    rate = parse_minutes("1")
    return [net_price(seconds / rate, tax) for _, seconds in load_rows(source)]
''',
    "tests/test_app.py": '''"""Tests."""

from app.durations import parse_minutes
from app.prices import net_price, with_discount
from app.report import monthly_report
from app.rows import first_rows, load_rows


def test_minutes_to_seconds():
    assert parse_minutes("2") == 120


def test_discount_keeps_cents():
    assert with_discount(19.99, 0.1) == 17.99


def test_first_rows():
    assert first_rows(load_rows([("a", "1"), ("b", "2")]), 1) == [("a", 60)]


def test_empty_report():
    assert monthly_report([], 0.2) == "nothing this month"


def test_net_price():
    assert net_price(12, 0.2) == 10
''',
    "CHANGELOG.md": "# Changes\n",
    "README.md": "# Harbour\n\nBilling for small ports.\n",
}


def repository() -> tuple[dict[str, str], dict[str, Any]]:
    """Files by path, and tests by name: the file under test and the line that it needs."""
    tests = {bug.test: {"file": bug.file, "needs": bug.right.strip()} for bug in BUGS}
    return dict(_FILES), tests


_IMPORT = re.compile(r"^from app\.(\w+) import (.+)$", re.MULTILINE)
_DEF = re.compile(r"^def (\w+)\(", re.MULTILINE)
_CALL = re.compile(r"\b([a-z]+_[a-z_]+)\(")


def failures(state: dict[str, Any]) -> dict[str, str]:
    """Failing tests and why: a name that no longer resolves anywhere fails all, a wrong line fails its own.

    A test of the file under test looks for its line as a whole line, as the real assertion would.
    """
    files = state["files"]
    for path, text in files.items():
        if not path.endswith(".py"):
            continue
        known = set(_DEF.findall(text))
        for module, names in _IMPORT.findall(text):
            defined = set(_DEF.findall(files.get(f"src/app/{module}.py", "")))
            for name in names.split(", "):
                if name not in defined:
                    return dict.fromkeys(
                        state["tests"], f"ImportError: cannot import name '{name}' from 'app.{module}'"
                    )
                known.add(name)
        for name in _CALL.findall(text):
            if name not in known:
                return dict.fromkeys(state["tests"], f"NameError: name '{name}' is not defined ({path})")
    out = {}
    for test, need in state["tests"].items():
        lines = [line.strip() for line in files.get(need["file"], "").splitlines()]
        if need["needs"] not in lines:
            out[test] = f"AssertionError in {test}"
    return out
