"""Which task a tau2 simulation really worked on: the one by whose criteria it was judged.

Some published runs number their simulations in the order in which they ran. Every simulation carries what it was
judged by (evaluated actions, assertions in plain language), and the file carries every task's criteria, so the true
task can be told when exactly one fits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Criteria = tuple[frozenset[str], frozenset[str]]
"""Ids of the expected actions, and the assertions in plain language."""


def evaluated(tasks: Mapping[str, Mapping[str, Any]], recorded: str, reward_info: Mapping[str, Any]) -> str:
    """The id of the task that the simulation was judged by.

    `recorded` stays where nothing was evaluated, where its own criteria fit, or where not exactly one other task's do.
    """
    judged = (
        _texts(reward_info.get("action_checks"), "action", "action_id"),
        _texts(reward_info.get("nl_assertions"), "nl_assertion"),
    )
    if not any(judged) or recorded not in tasks or _fits(_criteria(tasks[recorded]), judged):
        return recorded
    fitting = [name for name, task in tasks.items() if _fits(_criteria(task), judged)]
    return fitting[0] if len(fitting) == 1 else recorded


def _fits(criteria: Criteria, judged: Criteria) -> bool:
    """Everything that was judged is asked for, and every part that was judged at all was judged in full."""
    return all(not found or found == wanted for wanted, found in zip(criteria, judged, strict=True))


def _criteria(task: Mapping[str, Any]) -> Criteria:
    asked = task.get("evaluation_criteria")
    asked = asked if isinstance(asked, dict) else {}
    assertions = asked.get("nl_assertions")
    texts = [a for a in assertions if isinstance(a, str)] if isinstance(assertions, list) else []
    return _texts(asked.get("actions"), "action_id"), frozenset(texts)


def _texts(rows: Any, *keys: str) -> frozenset[str]:
    found = set()
    for row in rows if isinstance(rows, list) else []:
        for key in keys:
            row = row.get(key) if isinstance(row, dict) else None
        if isinstance(row, str):
            found.add(row)
    return frozenset(found)
