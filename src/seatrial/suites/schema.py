"""JSON Schema of task files, published as ``docs/reference/task.schema.json`` and checked when a file is read."""

from __future__ import annotations

from typing import Any

_TEXT = {"type": "string"}
_WORDS = {"type": "array", "items": _TEXT}
_LIMIT = {"type": ["integer", "null"], "minimum": 1}
_NAMED = {"type": "string", "pattern": r"^[^:\s]+:[\w.]+$", "description": "module:function or file.py:function"}

ASSERTION: dict[str, Any] = {
    "type": "object",
    "required": ["path", "op"],
    "additionalProperties": False,
    "properties": {
        "path": {**_TEXT, "description": "answer, or a path into the final state: a.b.0.*, or a JSON pointer"},
        "op": {
            "enum": [
                "eq", "ne", "lt", "le", "gt", "ge", "approx", "in", "not_in", "contains", "not_contains",
                "contains_all", "contains_any", "matches", "not_matches", "exists", "absent", "length", "type",
                "unchanged", "changed", "only_changed",
            ]
        },
        "value": {},
        "quantifier": {"enum": ["all", "any", "none"]},
        "tolerance": {"type": "number", "minimum": 0},
        "why": _TEXT,
    },
}  # fmt: skip

_PROPERTIES: dict[str, Any] = {
    "id": {"type": "string", "minLength": 1, "description": "unique within the suite"},
    "input": {**_TEXT, "description": "what the agent is asked"},
    "setup": {
        "oneOf": [{"type": "null"}, _NAMED, {"type": "object"}],
        "description": "the start state itself, or a function that gives it or prepares the world",
    },
    "expected_tools": {**_WORDS, "description": "calls that must succeed; a tool named twice must succeed twice"},
    "forbidden_tools": {**_WORDS, "description": "tools that must not run"},
    "max_turns": {**_LIMIT, "description": "budget of agent turns"},
    "max_tool_calls": {**_LIMIT, "description": "limit of tool calls"},
    "max_cost_usd": {"type": ["number", "null"], "minimum": 0, "description": "USD that an attempt may cost"},
    "max_seconds": {"type": ["number", "null"], "exclusiveMinimum": 0, "description": "seconds that it may take"},
    "order": {
        "type": ["string", "null"],
        "pattern": r"^(none|subsequence|prefix [1-9]\d{0,5})$",
        "description": "none, subsequence (of expected_tools), or prefix N: only the first N are ordered",
    },
    "reference": {
        "type": ["object", "null"],
        "required": ["calls"],
        "additionalProperties": False,
        "description": "calls to match",
        "properties": {
            "calls": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["tool"],
                    "additionalProperties": False,
                    "properties": {
                        "tool": _TEXT,
                        "arguments": {"type": "object"},
                        "mode": {"enum": ["exact", "ignore", "subset", "superset", None]},
                    },
                },
            },
            "mode": {"enum": ["strict", "unordered", "subset", "superset", "in_order"]},
            "arguments": {"enum": ["exact", "ignore", "subset", "superset"]},
        },
    },
    "check_final": {
        "oneOf": [{"type": "null"}, _NAMED, {"type": "array", "items": ASSERTION}],
        "description": "check_final(final_answer, world_state), or assertions over state and answer",
    },
    "rubric": {"type": ["string", "object", "null"], "description": "criteria for a judge"},
    "gates": {"type": "array", "items": {"type": "object"}, "description": "calls that need an approval"},
    "intent": {"type": ["object", "null"], "description": "allowed and required effects, prohibitions"},
    "r_max": {"type": ["number", "null"], "description": "cost of doing the task from scratch"},
    "tags": _WORDS,
    "source": {"enum": ["production_failure", "representative", "adversarial", "synthetic", None]},
    "type": {"type": ["string", "null"]},
    "difficulty": {"type": ["string", "null"]},
    "must_pass": {"type": "boolean", "description": "fails the gate alone"},
    "suite": {"type": ["string", "null"]},
    "extra": {
        "type": "object",
        "description": "anything else: added (date), part (dev, holdout), template, meaning, draft",
    },
}


def task_schema() -> dict[str, Any]:
    """JSON Schema of one task."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A task of a seatrial suite",
        "type": "object",
        "required": ["id", "input"],
        "additionalProperties": False,
        "properties": _PROPERTIES,
    }


def file_schema() -> dict[str, Any]:
    """JSON Schema of a suite file: a list of tasks, or an object with ``suite`` and ``tasks``."""
    task = {k: v for k, v in task_schema().items() if k not in ("$schema", "title")}
    head = {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "name": _TEXT,
            "world": {**_NAMED, "description": "world(seed): makes a fresh world"},
            "counterpart": {**_NAMED, "description": "counterpart(task): whoever the agent works for"},
            "approver": {**_NAMED, "description": "approver(task): decides on gated calls"},
            "packages": {**_WORDS, "description": "installed packages whose functions the tasks may name"},
            "holdout": {"type": "number", "minimum": 0, "exclusiveMaximum": 1},
            "defaults": {"type": "object", "description": "fields that every task has unless it says otherwise"},
            "agents": {"type": "object", "additionalProperties": _TEXT, "description": "agent SPECs by name"},
        },
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A seatrial suite",
        "oneOf": [
            {"type": "array", "items": {"$ref": "#/$defs/task"}},
            {
                "type": "object",
                "required": ["tasks"],
                "additionalProperties": False,
                "properties": {"suite": head, "tasks": {"type": "array", "items": {"$ref": "#/$defs/task"}}},
            },
        ],
        "$defs": {"task": task},
    }
