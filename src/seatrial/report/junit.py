"""A gate's decision to JUnit XML, as build servers read it."""

from __future__ import annotations

import re
from xml.sax.saxutils import escape, quoteattr

from seatrial.records import Comparison, MetricRow
from seatrial.report import numbers
from seatrial.report.text import visible

_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""XML 1.0 has no way to write these, escaped or not."""


def junit(c: Comparison, *, suite: str = "seatrial gate") -> str:
    """One test case per metric, per must-pass failure, per finding about cases, and per regressed task.

    REGRESSION is a failure, missing evidence an error, INCONCLUSIVE and REVIEW are skipped with a message.
    """
    cases: list[str] = []
    failures = errors = skipped = 0
    for row in c.metrics:
        said = _sentence(row)
        if row.verdict == "REGRESSION":
            failures += 1
            cases.append(_case("metric", row.metric, _child("failure", said)))
        elif row.verdict == "PASS":
            cases.append(_case("metric", row.metric, f"<system-out>{_text(said)}</system-out>"))
        else:
            skipped += 1
            cases.append(_case("metric", row.metric, _child("skipped", f"{row.verdict}: {said}")))
    for task in c.must_pass_failed:
        failures += 1
        cases.append(_case("must-pass", task, _child("failure", "a must-pass case failed")))
    for text in c.missing_evidence:
        errors += 1
        cases.append(_case("evidence", text, _child("error", text)))
    if any(row.verdict == "REGRESSION" for row in c.metrics):
        for t in c.regressed_tasks:
            if t.metric in {r.metric for r in c.metrics if r.verdict == "REGRESSION"}:
                failures += 1
                what = f"{t.metric} {t.baseline:.2f} -> {t.candidate:.2f}"
                more = f"; {t.diff['summary']}" if t.diff else ""
                cases.append(_case(f"task.{t.metric}", t.task, _child("failure", what + more)))
    counts = f'tests="{len(cases)}" failures="{failures}" errors="{errors}" skipped="{skipped}"'
    body = "\n".join(cases)
    verdict = (f'<properties><property name="verdict" value={_attribute(c.verdict)}/>'
               f'<property name="why" value={_attribute(c.why)}/></properties>')  # fmt: skip
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f"<testsuites {counts}>\n<testsuite name={_attribute(suite)} {counts}>\n{verdict}\n{body}\n"
        "</testsuite>\n</testsuites>\n"
    )


def _sentence(row: MetricRow) -> str:
    said = (
        f"baseline {numbers.anything(row.baseline)}, candidate {numbers.anything(row.candidate)}, difference "
        f"{numbers.estimate(row.difference, 'units', 4)}, margin {row.margin:g}, p (Holm) {numbers.p_value(row.p_holm)}"
    )
    return numbers.plain_minus(f"{said}; {row.why}" if row.why else said)


def _case(group: str, title: str, inner: str) -> str:
    return f"<testcase classname={_attribute(f'gate.{group}')} name={_attribute(title)}>{inner}</testcase>"


def _child(kind: str, message: str) -> str:
    return f"<{kind} message={_attribute(message)}>{_text(message)}</{kind}>"


def _legal(text: str) -> str:
    return _ILLEGAL.sub(lambda m: f"<U+{ord(m.group()):04X}>", visible(text))


def _attribute(text: str) -> str:
    return quoteattr(_legal(text), {"\n": "&#10;"})


def _text(text: str) -> str:
    return escape(_legal(text))
