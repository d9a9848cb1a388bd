"""A gate's decision as JUnit, SARIF, Markdown, terminal and page, with hostile names."""

from __future__ import annotations

import io
import json
import xml.etree.ElementTree as ET

import pytest

from seatrial.records import Comparison, Estimate, MetricRow, Population, RegressedTask
from seatrial.report import page
from seatrial.report.chapters.gate import diff, gate
from seatrial.report.junit import junit
from seatrial.report.markdown import section_lines
from seatrial.report.sarif import Finding, sarif
from seatrial.report.terminal import section_block

EVIL = "t\x1b[31m\x00</testcase><script>alert(1)</script>]]>&\ud800\u202e\ufffe | @team `x`\n# head"


def row(verdict: str, metric: str = "passed") -> MetricRow:
    e = Estimate(value=-0.1, low=-0.2, high=-0.05, level=0.9, n=300, n_clusters=30, method="t")
    return MetricRow(metric=metric, baseline=0.9, candidate=0.8, difference=e, p_value=0.01, p_holm=0.02,
                     verdict=verdict, mde=0.05, more_runs=None, margin=0.02, why=EVIL)  # type: ignore[arg-type] # fmt: skip


def comparison(verdict: str = "REGRESSION") -> Comparison:
    shown = {
        "baseline": "a", "candidate": "b", "summary": EVIL, "first": 0, "rows_before": 0, "rows_after": 0,
        "left_out": 0,
        "consequences": {"outcome": ["passed", None]},
        "rows": [{"change": "arguments",
                  "baseline": {"step": 1, "kind": "call", "name": EVIL, "arguments": {"x": EVIL}, "result": EVIL,
                               "outcome": "ok"},
                  "candidate": {"step": 1, "kind": "agent", "name": "agent", "text": EVIL}}],
    }  # fmt: skip
    return Comparison(
        verdict=verdict, single_run=False, changed=("prompt",), rule="noninferiority", margin=0.02,  # type: ignore[arg-type]
        population=Population(missing=(EVIL,)), metrics=(row(verdict), row("INCONCLUSIVE", EVIL), row("PASS", "fine")),
        regressed_tasks=(RegressedTask(task=EVIL, metric="passed", baseline=1.0, candidate=0.0, diff=shown),),
        must_pass_failed=(EVIL,), missing_evidence=(EVIL,), warnings=(EVIL,), why=EVIL,
    )  # fmt: skip


def test_junit_is_well_formed_and_counts() -> None:
    text = junit(comparison())
    assert not set(text) & {chr(i) for i in range(32) if chr(i) not in "\t\n\r"}
    root = ET.fromstring(text)
    suite = root[0]
    cases = suite.findall("testcase")
    assert int(suite.get("tests", "")) == len(cases)
    for what, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        assert int(suite.get(what, "")) == len(suite.findall(f"testcase/{tag}"))
    assert suite.get("failures") == "3"  # the metric, the must-pass case and the regressed task
    assert "script" not in {e.tag for e in root.iter()}


def test_sarif_has_rules_places_and_stable_fingerprints() -> None:
    safety = Finding(rule="safety", subject="delete", text=EVIL)
    log = json.loads(sarif(comparison(), file="./base line.json", safety=[safety]))
    (one,) = log["runs"]
    assert log["version"] == "2.1.0"
    rules = [r["id"] for r in one["tool"]["driver"]["rules"]]
    for result in one["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "base%20line.json"
    prints = [r["partialFingerprints"]["seatrial/v1"] for r in one["results"]]
    assert len(set(prints)) == len(prints)
    assert {r["ruleId"] for r in one["results"]} >= {"regression", "must-pass", "missing-evidence", "safety"}
    again = json.loads(sarif(comparison(), file="x"))
    assert {r["partialFingerprints"]["seatrial/v1"] for r in again["runs"][0]["results"]} <= set(prints)


def test_a_pass_has_no_sarif_results() -> None:
    good = Comparison(verdict="PASS", single_run=False, changed=(), rule="noninferiority", margin=0.02,
                      population=Population(), metrics=(row("PASS"),))  # fmt: skip
    assert json.loads(sarif(good, file="x"))["runs"][0]["results"] == []


@pytest.mark.parametrize("verdict", ["PASS", "REVIEW", "REGRESSION", "INCONCLUSIVE"])
def test_sections_draw_everywhere_without_harm(verdict: str) -> None:
    from rich.console import Console

    sections = gate(comparison(verdict))
    html = page.page(sections, title="Gate")
    assert "<script>alert" not in html
    assert "\x1b" not in html
    lines = "\n".join(line for s in sections for line in section_lines(s))
    assert "<script" not in lines.replace("\\<script", "")
    assert "\x1b" not in lines
    console = Console(width=100, record=True, file=io.StringIO())
    for section in sections:
        console.print(section_block(section))
    shown = console.export_text()
    assert "\x1b[31m" not in shown
    assert f"Gate: {verdict}" in shown
    assert max(len(line) for line in shown.splitlines()) <= 100


def test_the_difference_marks_the_divergence() -> None:
    first = comparison().regressed_tasks[0]
    assert first.diff is not None
    section = diff(first.diff, task="x")
    assert section.tables[0].rows[0][0] == "▶ arguments"
    assert section.tables[1].rows == (("outcome", "passed", None),)
