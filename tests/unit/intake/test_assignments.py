"""The assignment file and its join to sessions."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import pytest

from seatrial.errors import InputError
from seatrial.intake import Assignments, attrition, ingest
from seatrial.intake.assignments import own_ids
from seatrial.intake.pipeline import run
from seatrial.store import Store


def table(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "arms.csv"
    path.write_text(text)
    return path


def test_units_are_sessions_users_or_tasks(store: Store, fake: ModuleType, tmp_path: Path) -> None:
    files = [
        fake.write(tmp_path / "s1.jsonl", fake.say("1", who="agent", model="m1", user="ann")),
        fake.write(tmp_path / "s2.jsonl", fake.say("2", who="agent", model="m2", user="ann")),
        fake.write(tmp_path / "s3.jsonl", fake.say("3", user="bob")),
        fake.write(tmp_path / "s4.jsonl", fake.say("4")),
    ]
    arms = table(
        tmp_path,
        "unit,arm,p_m1,p_m2,stratum,epoch\ns1,m1,0.5,0.5,x,e1\nann,m1,0.25,0.75,,\n"
        "task of s4,m2,0.5,0.5,,\nnobody,m1,1,0,,\n",
    )
    result = run(store, files, fake.read_file, assignments=Assignments(arms))
    report = result.assignments
    assert report is not None
    assert report.matched_by == {"session": 1, "task": 1, "user": 1}
    assert (report.units, report.unmatched_units, report.unmatched_sessions) == (4, ("nobody",), 1)
    assert report.other_arm == 1
    assert "1 of 4 assigned units" in result.warnings[0]
    drawn = store.trace("s1").assignment
    assert drawn is not None
    assert (drawn.arm, drawn.probability, drawn.stratum, drawn.epoch) == ("m1", 0.5, "x", "e1")
    assert drawn.probabilities == {"m1": 0.5, "m2": 0.5}
    by_user = store.trace("s2").assignment
    assert by_user is not None
    assert by_user.unit == store.trace("s2").user
    rows = store.table("sessions").collect()
    assert rows["assigned_arm"].to_list() == ["m1", "m1", None, "m2"]
    assert rows["probability"].to_list() == [0.5, 0.25, None, 0.5]
    assert "ann" not in rows.select("user", "unit").write_csv()
    # Reading again without the file forgets nothing.
    assert run(store, files, fake.read_file).data_version == result.data_version
    assert run(store, files, fake.read_file, assignments=Assignments(arms)).data_version == result.data_version


def test_an_assignment_can_name_the_user(store: Store, fake: ModuleType, tmp_path: Path) -> None:
    files = [fake.write(tmp_path / f"s{n}.jsonl", fake.say(f"{n}")) for n in "12"]
    arms = table(tmp_path, "unit,arm,p_a,user\ns1,a,1,ann\ns2,a,1,\n")
    run(store, files, fake.read_file, assignments=Assignments(arms))
    assert store.trace("s1").user == store.pseudonyms()[0].of("ann")
    assert store.trace("s2").user is None


def test_the_draw_in_force_is_the_last_before_the_session(tmp_path: Path) -> None:
    found = Assignments(
        table(
            tmp_path,
            "unit,arm,p_a,p_b,time,epoch\nu,a,.5,.5,2026-01-01T00:00:00Z,1\nu,b,.5,.5,2026-02-01T00:00:00+00:00,2\nv,a,.5,.5,100,1\n",
        )
    )
    january = 1767225600.0
    assert found.find("u", january - 1) is None
    for start, arm in ((january, "a"), (january + 31 * 86400 - 1, "a"), (january + 31 * 86400, "b"), (None, "b")):
        drawn = found.find("u", start)
        assert drawn is not None
        assert drawn.assignment.arm == arm
    assert found.find("v", 99.0) is None
    assert found.find("w", None) is None


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("", 1, "lack unit and arm"),
        ("unit,arm\nu,a\n", 1, "lack p_<arm> columns"),
        ("unit,p_a\nu,1\n", 1, "lack arm"),
        ("unit,arm,p_a\nu,a,1\n,a,1\n", 3, "without unit or arm"),
        ("unit,arm,p_a\nu,a,x\n", 2, "p_a is 'x', not a number"),
        ("unit,arm,p_a\nu,a,nan\n", 2, "not a probability"),
        ("unit,arm,p_a,p_b\nu,a,1.5,-.5\n", 2, "not a probability"),
        ("unit,arm,p_a,p_b\nu,a,.5,.4\n", 2, "add up to 0.9"),
        ("unit,arm,p_a,p_b\nu,c,.5,.5\n", 2, "arm 'c' has no probability"),
        ("unit,arm,p_a,p_b\nu,b,1,0\n", 2, "arm 'b' has no probability"),
        ("unit,arm,p_a\nu,a,1\nu,a,1\n", 3, "was assigned before"),
        ("unit,arm,p_a,time\nu,a,1,noon\n", 2, "cannot be read"),
    ],
)
def test_a_mistake_is_refused_with_its_line(tmp_path: Path, text: str, line: int, says: str) -> None:
    with pytest.raises(InputError) as caught:
        Assignments(table(tmp_path, text))
    assert caught.value.line == line
    assert says in caught.value.message
    assert caught.value.file == str(tmp_path / "arms.csv")


def test_a_file_that_is_not_there_or_not_text(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        Assignments(tmp_path / "none.csv")
    (tmp_path / "b.csv").write_bytes(b"unit,arm,p_a\n\xff\xfe,a,1\n")
    with pytest.raises(InputError, match="UTF-8"):
        Assignments(tmp_path / "b.csv")


def test_a_byte_order_mark_is_no_part_of_the_first_column(tmp_path: Path) -> None:
    path = tmp_path / "bom.csv"
    path.write_bytes(b"\xef\xbb\xbfunit,arm,p_a\nu,a,1\n")
    assert len(Assignments(path)) == 1


def test_a_unit_is_the_id_that_the_source_gave(store: Store, tmp_path: Path) -> None:
    """Traces carry a mark behind the source's id; who drew the arms knows the id alone."""
    folder = tmp_path / "in"
    folder.mkdir()
    talk = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    for name in ("s0000", "s~1", "s0002"):
        (folder / f"{name}.json").write_text(json.dumps({"id": name, "model": "m1", "messages": talk}))
    arms = table(tmp_path, "unit,arm,p_m1,p_m2\ns0000,m1,0.5,0.5\ns~1,m2,0.25,0.75\n0002,m1,1,0\n")
    report = ingest(store, [folder], assignments=arms).assignments
    assert report is not None
    assert (report.matched_by, report.unmatched_units, report.unmatched_sessions) == ({"session": 2}, ("0002",), 1)
    rows = store.table("sessions").collect()
    assert sorted(zip(rows["unit"], rows["assigned_arm"], rows["probability"], strict=True), key=str) == [
        ("s0000", "m1", 0.5),
        ("s~1", "m2", 0.75),
        (None, None, None),
    ]


@pytest.mark.parametrize(
    ("session", "own"),
    [("s1~0e14", "s1"), ("a~b~0e14", "a~b"), ("u-u@34e7:a2", "u-u"), ("harbor~t1", "t1"), ("plain", "plain")],
)
def test_own_ids(session: str, own: str) -> None:
    assert own_ids(session)[0] == session
    assert own in own_ids(session)
    assert "" not in own_ids(session)


def test_units_without_a_session_are_those_of_the_whole_store(store: Store, fake: ModuleType, tmp_path: Path) -> None:
    files = [
        fake.write(tmp_path / f"s{n}.jsonl", fake.say(f"{n}", who="agent", model="m1", user=user))
        for n, user in enumerate(("ann", "bob", "cleo", "ann"))
    ]
    arms = Assignments(
        table(tmp_path, "unit,arm,p_m1,p_m2\nann,m1,0.5,0.5\ns1,m1,0.5,0.5\ntask of s2,m1,1,0\nu,m1,1,0\n")
    )
    for group in ([files[0]], files, [files[3]], files[1:3], []):
        before = run(store, group, fake.read_file, assignments=arms).assignments
        assert before is not None
        if group == [files[0]]:
            assert before.unmatched_units == ("s1", "task of s2", "u")
            continue
        assert (before.unmatched_units, before.n_unmatched_units, before.n_unjoined) == (("u",), 1, 0)
    assert attrition(store, arms.path) == ("1 of 4 assigned units have no session here",)


def test_sessions_that_were_read_without_the_assignments_are_told(
    store: Store, fake: ModuleType, tmp_path: Path
) -> None:
    run(store, [fake.write(tmp_path / "s1.jsonl", fake.say("1", who="agent", model="m1"))], fake.read_file)
    (told,) = attrition(store, table(tmp_path, "unit,arm,p_m1,p_m2\ns1,m1,0.5,0.5\n"))
    assert told.startswith("1 stored sessions belong to assigned units but were read without the assignments")
