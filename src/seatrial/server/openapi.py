"""The OpenAPI document of the JSON API: what can be asked, by whom, and what comes back."""

from __future__ import annotations

from typing import Any

from seatrial._version import __version__
from seatrial.server.index import FACETS, ORDERS, SIGNS
from seatrial.server.words import LONGEST_NAME, RANKINGS

_TEXT = {"type": "string", "maxLength": 2000}
_WHOLE = {"type": "integer", "minimum": 0, "maximum": 10**9}
_ID = {"type": "string", "minLength": 1, "maxLength": LONGEST_NAME}
_ANY_OBJECT = {"type": "object", "additionalProperties": True}
_OBJECTS = {"type": "array", "items": _ANY_OBJECT}
_NULLABLE = {"type": ["string", "null"]}
_NUMBER = {"type": ["number", "null"]}


def document() -> dict[str, Any]:
    """The document, as plain values."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "seatrial",
            "version": __version__,
            "description": "What a store of agent sessions holds, and the jobs that measure it. Beyond this machine "
            "every request needs a bearer token; each operation says which role it needs.",
        },
        "servers": [{"url": "/"}],
        "security": [{"bearer": []}, {}],
        "paths": _paths(),
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            "schemas": _schemas(),
        },
    }


def _paths() -> dict[str, Any]:
    session = [_parameter("id", _ID, "a session's id", required=True)]
    window = [
        _parameter("from", _WHOLE, "first step, by position from 0"),
        _parameter("to", _WHOLE, "one past the last step; at most 500 after the first"),
    ]
    jobs, outcomes = {"enum": ["rank", "signals", "drift", "verify"]}, {"enum": list(RANKINGS)}
    start = _object({"what": jobs, "outcome": outcomes}, ["what"])
    return {
        "/api/openapi.json": {"get": _get("openapi", "This document", _ANY_OBJECT)},
        "/api/version": {"get": _get("version", "Which state of the store is shown; answers 304 to its ETag. What "
                                     "`sessions` says stays while only labels and decisions are added",
                                     _object({"data_version": {"type": "string"}, "sessions": {"type": "string"}},
                                             ["data_version", "sessions"]))},
        "/api/sessions": {"get": _get("sessions", "Sessions that fit, and the counts of each facet",
                                      _ref("Sessions"), _query())},
        "/api/session": {"get": _get("session", "A session without its steps, with its signals",
                                     _ref("Session"), session, missing=True)},
        "/api/session/steps": {"get": _get("steps", "Steps of a session", _ref("Steps"), [*session, *window],
                                           missing=True)},
        "/api/results": {"get": _get("results", "Results that commands left, newest first",
                                     _object({"results": {"type": "array", "items": _ref("ResultHead")},
                                              "unreadable": {"type": "array", "items": _TEXT}},
                                             ["results", "unreadable"]),
                                     [_parameter("kind", _TEXT, "only of this kind, such as rank or gate")])},
        "/api/result": {"get": _get("result", "One result, with the JSON envelope of its command", _ref("Result"),
                                    [_parameter("id", _ID, "a result's id", required=True)], missing=True)},
        "/api/jobs": {"get": _get("jobs", "Jobs since the server began, newest first",
                                  _object({"jobs": {"type": "array", "items": _ref("Job")}}, ["jobs"]))},
        "/api/jobs/start": {"post": _post("start", "Start a job (role admin)", start, "202", _ref("Job"))},
        "/api/jobs/cancel": {"post": _post("cancel", "Stop a job (role admin)",
                                           _object({"job": {"type": "string"}}, ["job"]), "200",
                                           _object({"cancelled": {"type": "boolean"}}, ["cancelled"]))},
    }  # fmt: skip


def _query() -> list[dict[str, Any]]:
    many = {"type": "array", "items": {"type": "string", "maxLength": LONGEST_NAME}, "maxItems": 50}
    return [
        _parameter("q", {"type": "string", "maxLength": 200}, "part of an id, a task, a suite or a person's pseudonym"),
        *(_parameter(name, many, f"only with this {column}; may be repeated") for name, column in FACETS.items()),
        _parameter(
            "with", {"type": "array", "items": {"enum": list(SIGNS)}, "maxItems": len(SIGNS)}, "only with such signals"
        ),
        _parameter("agents", {"enum": ["main", "sub", "all"]}, "main agents (default), sub-agents, or both"),
        _parameter("order", {"enum": list(ORDERS)}, "newest first by default"),
        _parameter("offset", _WHOLE, "how many to leave out"),
        _parameter("limit", {"type": "integer", "minimum": 1, "maximum": 500}, "how many to give (50)"),
    ]


def _schemas() -> dict[str, Any]:
    head = {
        "id": {"type": "string"}, "kind": {"type": "string"}, "name": {"type": "string"}, "time": {"type": "number"},
        "command": {"type": "string"}, "data_version": _NULLABLE,
    }  # fmt: skip
    job = {
        "id": {"type": "string"}, "title": {"type": "string"}, "by": {"type": "string"},
        "arguments": {"type": "array", "items": {"type": "string"}},
        "state": {"enum": ["waiting", "running", "done", "failed", "cancelled", "interrupted", "unseen"]},
        "created": {"type": "number"}, "started": _NUMBER, "ended": _NUMBER, "status": {"type": ["integer", "null"]},
        "progress": {"anyOf": [{"type": "null"}, _object({"done": {"type": "integer"},
                                                         "total": {"type": ["integer", "null"]},
                                                         "what": {"type": "string"}}, ["done", "what"])]},
        "said": {"type": "array", "items": {"type": "string"}},
    }  # fmt: skip
    count = {"type": "object", "additionalProperties": {"type": "integer"}}
    return {
        "Error": _object(
            {"error": _object({"code": {"type": "string"}, "message": {"type": "string"}, "hint": _NULLABLE},
                              ["code", "message"])},
            ["error"],
        ),
        "Sessions": _object(
            {
                "data_version": {"type": "string"}, "total": {"type": "integer"}, "offset": {"type": "integer"},
                "withheld": {"type": "integer"}, "sessions": {"type": "array", "items": _ANY_OBJECT},
                "facets": {"type": "object", "additionalProperties": count},
            },
            ["data_version", "total", "offset", "sessions", "facets", "withheld"],
        ),
        "Session": _object(
            {"session": _ANY_OBJECT, "n_steps": {"type": "integer"}, "signals": _OBJECTS},
            ["session", "n_steps", "signals"],
        ),
        "Steps": _object(
            {"total": {"type": "integer"}, "from": {"type": "integer"}, "steps": _OBJECTS},
            ["total", "from", "steps"],
        ),
        "ResultHead": _object({**head, "size": {"type": "integer"}}, ["id", "kind", "name", "time", "command"]),
        "Result": _object({**head, "envelope": _ANY_OBJECT}, ["id", "kind", "name", "time", "command", "envelope"]),
        "Job": _object(job, ["id", "title", "arguments", "by", "state", "created"]),
    }  # fmt: skip


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required}


def _parameter(name: str, schema: dict[str, Any], about: str, *, required: bool = False) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": required, "schema": schema, "description": about}


def _answer(about: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": about, "content": {"application/json": {"schema": schema}}}


_REFUSALS = {
    "400": "a value does not fit",
    "401": "no token",
    "403": "not allowed",
    "404": "not here",
    "413": "too large",
    "415": "not JSON",
    "429": "too many requests",
    "503": "the store cannot be read",
}


def _refusals(*codes: str) -> dict[str, Any]:
    return {code: _answer(_REFUSALS[code], _ref("Error")) for code in codes}


def _get(name: str, about: str, answer: dict[str, Any], parameters: list[dict[str, Any]] | None = None, *,
         missing: bool = False) -> dict[str, Any]:  # fmt: skip
    codes = ("400", "401", "403", *(("404",) if missing else ()), "429", "503")
    return {
        "operationId": name,
        "summary": about,
        "parameters": parameters or [],
        "responses": {"200": _answer(about, answer), **_refusals(*codes)},
    }


def _post(name: str, about: str, body: dict[str, Any], code: str, answer: dict[str, Any]) -> dict[str, Any]:
    return {
        "operationId": name,
        "summary": about,
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
        "responses": {
            code: _answer(about, answer),
            **_refusals("400", "401", "403", "404", "413", "415", "429", "503"),
        },
    }
