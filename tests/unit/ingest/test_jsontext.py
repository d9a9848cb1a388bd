"""JSON that other programs write: repaired with a note, or refused with a place."""

from __future__ import annotations

import json

import pytest

from seatrial.ingest.jsontext import BadJSON, fields, first_keys, items, loads
from seatrial.ingest.times import iso, moment


@pytest.mark.parametrize(
    ("data", "value", "repair"),
    [
        (b'{"a": [1, "x"]}', {"a": [1, "x"]}, None),
        (b'{"a": NaN}', {"a": None}, "not finite"),
        (b'{"a": 1e999}', {"a": None}, "not finite"),
        (b'{"a": "\\ud800 \xc3\xa9"}', {"a": "\N{REPLACEMENT CHARACTER} é"}, "surrogate"),
        (b'{"a": "\xff"}', {"a": "\N{REPLACEMENT CHARACTER}"}, "UTF-8"),
        (b"\xef\xbb\xbf[]", [], None),
    ],
)
def test_repairs_are_named(data: bytes, value: object, repair: str | None) -> None:
    read, repairs = loads(data)
    assert read == value
    assert len(repairs) == (repair is not None)
    assert repair is None or repair in repairs[0]


@pytest.mark.parametrize(("data", "at"), [(b"[1,\n2", 5), (b'{"a":1} x', 8), (b"", 0), (b"[" * 9000, 0)])
def test_what_is_no_json_says_where(data: bytes, at: int) -> None:
    with pytest.raises(BadJSON) as caught:
        loads(data)
    assert abs(caught.value.at - at) <= 1


def test_depth_is_bounded() -> None:
    assert loads(b"[" * 150 + b"]" * 150)[1] == ()
    with pytest.raises(BadJSON, match="200 levels"):
        loads(b"[" * 300 + b"]" * 300)
    # Repairing comes after the depth is known: half a surrogate pair, a NaN and 400 levels (found by fuzzing).
    with pytest.raises(BadJSON, match="200 levels"):
        loads(b'["\\ud800", NaN, ' + b"[" * 400 + b"]" * 400 + b"]")


def test_items_have_their_own_bytes() -> None:
    data = b' [ {"a": 1},{"a": 1} ,\n "b" ]'
    found = list(items(data))
    assert [json.loads(data[i.start : i.end]) for i in found] == [i.value for i in found] == [{"a": 1}, {"a": 1}, "b"]
    assert found[0].end <= found[1].start


def test_an_array_that_needs_repair_has_items_without_bytes() -> None:
    (item,) = items(b"[NaN]")
    assert (item.start, item.end, item.value) == (0, 0, None)
    assert item.repairs


def test_first_keys_are_those_of_the_outer_object() -> None:
    assert first_keys(b'[{"a": {"b": 1}, "c": "d: {"}, {"e": 1}]') == {"a", "c"}
    assert first_keys(b'{"a": "un\\"closed {') == {"a"}
    assert fields(b'{"a": {"b": 1}}') == ({"a": b'{"b": 1}'}, ())


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2025-10-04 05:53Z", 1759557180.0),
        ("2025-10-31T07:34:54.515337", 1761896094.515337),
        ("1969-12-31T23:59:59+00:00", -1.0),
        (1700000000, 1700000000.0),
        (1700000000000, 1700000000.0),
        ("soon", None),
        (True, None),
        (float("nan"), None),
    ],
)
def test_times(text: object, seconds: float | None) -> None:
    assert moment(text) == seconds
    if isinstance(seconds, float):
        assert moment(iso(seconds)) == seconds
