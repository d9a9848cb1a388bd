"""A gate's decision, and safety findings, to SARIF 2.1.0 for code-scanning pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from seatrial._version import __version__
from seatrial.canon import content_hash
from seatrial.records import Comparison
from seatrial.report import numbers
from seatrial.report.text import clean

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
RULES: dict[str, tuple[str, str]] = {
    "regression": ("Regression", "A metric is worse than in the baseline by more than its margin."),
    "must-pass": ("MustPassFailed", "A case that must always pass failed."),
    "missing-evidence": ("MissingEvidence", "Evidence that the decision needs is missing."),
    "inconclusive": ("Inconclusive", "The runs do not decide whether the agent got worse."),
    "review": ("CostOrLatency", "Quality holds, but cost or latency worsened beyond its margin."),
    "safety": ("Safety", "The agent did something that its limits forbid."),
}


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One result: `rule` is a key of `RULES`, `subject` what it is about, which with the rule tells results apart."""

    rule: str
    subject: str
    text: str
    level: Literal["error", "warning", "note"] = "error"


def sarif(c: Comparison, *, file: str, safety: Sequence[Finding] = ()) -> str:
    """The log as text. `file` is the path, relative to the repository, that results point at: SARIF needs a place,
    and the baseline or the suite is the one that a reviewer can change."""
    found = [*_findings(c), *safety]
    used = sorted({f.rule for f in found})
    driver = {
        "name": "seatrial",
        "version": __version__,
        "semanticVersion": __version__,
        "rules": [{"id": rule, "name": RULES[rule][0], "shortDescription": {"text": RULES[rule][1]}} for rule in used],
    }
    log = {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": driver},
                "results": [_result(f, file, used) for f in found],
                "properties": {"verdict": c.verdict, "why": clean(c.why)},
            }
        ],
    }
    return msgspec.json.format(msgspec.json.encode(log), indent=1).decode() + "\n"


def _result(f: Finding, file: str, used: Sequence[str]) -> dict[str, Any]:
    return {
        "ruleId": f.rule,
        "ruleIndex": used.index(f.rule),
        "level": f.level,
        "message": {"text": numbers.plain_minus(clean(f.text))},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": _uri(file)}, "region": {"startLine": 1}}}],
        "partialFingerprints": {"seatrial/v1": content_hash([f.rule, clean(f.subject)])[:32]},
    }


def _uri(file: str) -> str:
    from urllib.parse import quote

    return quote(file.replace("\\", "/").removeprefix("./"))


def _findings(c: Comparison) -> list[Finding]:
    out = []
    for r in c.metrics:
        if r.verdict == "PASS":
            continue
        text = f"{r.metric}: {numbers.estimate(r.difference, 'units', 4)}, margin {r.margin:g}"
        rule, level = {
            "REGRESSION": ("regression", "error"), "REVIEW": ("review", "warning"),
            "INCONCLUSIVE": ("inconclusive", "note"),
        }[r.verdict]  # fmt: skip
        told = f"{text}; {r.why}" if r.why else text
        out.append(Finding(rule=rule, subject=r.metric, text=told, level=level))  # type: ignore[arg-type]
    regressed = {r.metric for r in c.metrics if r.verdict == "REGRESSION"}
    for t in c.regressed_tasks:
        if t.metric in regressed:
            what = f"task {t.task}: {t.metric} {t.baseline:.2f} -> {t.candidate:.2f}"
            more = f"; {t.diff['summary']}" if t.diff else ""
            out.append(Finding(rule="regression", subject=f"{t.metric}/{t.task}", text=what + more))
    out += [Finding(rule="must-pass", subject=t, text=f"must-pass case {t} failed") for t in c.must_pass_failed]
    out += [Finding(rule="missing-evidence", subject=t, text=t) for t in c.missing_evidence]
    return out
