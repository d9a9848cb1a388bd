"""What a suite file cannot mean is refused when it is loaded, with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.errors import InputError, UsageError
from seatrial.flows.suite import open_suite
from seatrial.records import Task

TASK = "- id: a\n  input: x\n"


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("- &t\n  id: a\n  input: x\n  extra:\n    me: *t\n", 1, "leads back"),
        ("- id: a\n  input: x\n  setup: &s {a: [*s]}\n", 3, "leads back"),
        ("&all\n- id: a\n  input: x\n- *all\n", 1, "leads back"),
        (TASK + "  id: b\n", 3, "'id' stands twice"),
        (TASK + "  setup:\n    n: 1\n    n: 2\n", 5, "'n' stands twice"),
        (TASK + "  extra:\n" + "    a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n"
         + "".join(f"    a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 9)), 9, "more than"),
    ],
)  # fmt: skip
def test_yaml_that_is_no_tree_is_refused(text: str, line: int, said: str, tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    file = tmp_path / "s.yaml"
    file.write_text(text)
    with pytest.raises(InputError, match=said) as caught:
        open_suite(file)
    assert (caught.value.file, caught.value.line) == (str(file), line)


def test_aliases_and_merges_that_are_a_tree_are_read(tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    file = tmp_path / "s.yaml"
    file.write_text(
        "- &t\n  id: a\n  input: x\n  setup: &s {n: 1}\n- <<: *t\n  id: b\n- id: c\n  input: y\n  setup: *s\n"
    )
    assert [(t.id, t.setup) for t in open_suite(file).tasks] == [(i, {"n": 1}) for i in "abc"]


@pytest.mark.parametrize("wrong", [
    '"check_final": [{"about": "answer", "op": "matches", "value": "(a"}]',
    '"check_final": [{"about": "answer", "op": "matches", "value": "(?=x)"}]',
    '"check_final": [{"about": "answer", "op": "not_matches", "value": "\\\\ud800["}]',
    '"gates": [{"nome": "x"}]',
    '"gates": [{"name": "x", "when": [{"path": "a", "op": "like", "value": 1}]}]',
    '"extra": {"approver": "perhaps"}',
    '"extra": {"approver": {"a": 1}}',
])  # fmt: skip
def test_what_a_task_cannot_mean_is_told_with_its_line(
    wrong: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "s.jsonl"
    file.write_text('{"id": "a", "input": "x"}\n{"id": "b", "input": "x", ' + wrong + "}\n")
    with pytest.raises(InputError) as caught:
        open_suite(file)
    assert (caught.value.file, caught.value.line) == (str(file), 2)
    assert "b'" not in caught.value.message
    assert caught.value.exit_code == 2
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("field", ["max_turns", "max_tool_calls"])
@pytest.mark.parametrize("value", [0, -1])
def test_a_budget_below_one_makes_no_task(field: str, value: int) -> None:
    with pytest.raises(UsageError, match=field):
        Task(id="a", input="x", **{field: value})  # type: ignore[arg-type]
