"""Does redaction find what it claims to find, and leave the rest alone?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from seatrial.privacy import Redactor, redact_text
from seatrial.stats.proportions import wilson

MARK = re.compile(r"\[\[([A-Z]+) (.*?)\]\]", re.S)
Found = Counter[tuple[str, str]]


def labelled() -> list[tuple[str, Found]]:
    out = []
    for line in (Path(__file__).parent / "labelled.txt").read_text("utf-8").splitlines():
        if line.startswith("# ") or not line:
            continue
        line = line.replace("‖", "").replace("\\n", "\n").replace("\\t", "\t")
        wanted = Counter((m.group(1), m.group(2)) for m in MARK.finditer(line))
        out.append((MARK.sub(lambda m: m.group(2), line), wanted))
    return out


class Recorder(Redactor):
    def __init__(self) -> None:
        super().__init__()
        self.found: Found = Counter()

    def _name(self, kind: str, found: bytes, times: int = 1) -> bytes:
        self.found[kind, found.decode()] += times
        return super()._name(kind, found, times)


@pytest.fixture(scope="module")
def confusion() -> dict[str, tuple[int, int, int]]:
    """By type: found rightly, found wrongly, missed."""
    hits: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    for text, wanted in labelled():
        recorder = Recorder()
        recorder.text(text)
        for (kind, _), n in (recorder.found & wanted).items():
            hits[kind] += n
        for (kind, _), n in (recorder.found - wanted).items():
            wrong[kind] += n
        for (kind, _), n in (wanted - recorder.found).items():
            missed[kind] += n
    return {k: (hits[k], wrong[k], missed[k]) for k in sorted(hits | wrong | missed)}


def test_precision_and_recall_over_all_types(
    confusion: dict[str, tuple[int, int, int]], record_property: Callable[[str, object], None]
) -> None:
    hits, wrong, missed = (sum(row[i] for row in confusion.values()) for i in range(3))
    precision, recall = wilson(hits, hits + wrong), wilson(hits, hits + missed)
    record_property("confusion", confusion)
    record_property("precision", (precision.value, precision.low))
    record_property("recall", (recall.value, recall.low))
    assert hits + missed >= 75
    assert precision.value >= 0.95
    assert recall.value >= 0.93


def test_every_type_is_found_and_mostly_right(confusion: dict[str, tuple[int, int, int]]) -> None:
    assert set(confusion) == {"CARD", "EMAIL", "HOME", "IP", "KEY", "PHONE", "SECRET", "TOKEN"}
    for kind, (hits, wrong, missed) in confusion.items():
        assert hits >= 5, kind
        assert hits / (hits + missed) >= 0.8, kind
        assert hits / (hits + wrong) >= 0.85, kind


def test_texts_without_anything_personal_stay_byte_for_byte(confusion: dict[str, tuple[int, int, int]]) -> None:
    clean = [text for text, wanted in labelled() if not wanted]
    assert len(clean) >= 35
    altered = [text for text in clean if redact_text(text)[0] != text]
    assert len(altered) <= 1, altered


def test_the_table_in_the_documentation_is_what_is_measured(confusion: dict[str, tuple[int, int, int]]) -> None:
    """Precision and recall by type, as docs/explanation/privacy.md prints them."""
    page = (Path(__file__).parents[3] / "docs" / "explanation" / "privacy.md").read_text("utf-8")
    for line in table(confusion):
        assert line in page, line


def table(confusion: dict[str, tuple[int, int, int]]) -> list[str]:
    out = []
    for kind, (hits, wrong, missed) in sorted(confusion.items()):
        precision, recall = wilson(hits, hits + wrong), wilson(hits, hits + missed)
        assert precision.low is not None
        assert recall.low is not None
        out.append(
            f"| `{kind}` | {hits + missed} | {100 * (precision.value or 0):.0f}% ({100 * precision.low:.0f}%) "
            f"| {100 * (recall.value or 0):.0f}% ({100 * recall.low:.0f}%) |"
        )
    return out
