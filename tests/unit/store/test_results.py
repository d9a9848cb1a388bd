"""Results of commands in a store: kept once, listed newest first, gone with what they name."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import pytest

from seatrial.errors import ErasedError, InputError, StoreError, UsageError
from seatrial.records import Trace
from seatrial.store import Store
from seatrial.store.erase import erase
from seatrial.store.results import Results

Make = Callable[..., Trace]
Put = Callable[[Store, Sequence[Trace]], str]


def envelope(result: object, version: str | None = None) -> dict[str, object]:
    return {"seatrial": "1", "command": "rank", "data_version": version, "result": result, "warnings": []}


def test_a_result_comes_back_as_it_was(store: Store) -> None:
    ident = store.save_result("rank", "all sessions", envelope({"models": [1.5, None, "ü"]}, "7-abc"))
    back = store.result(ident)
    assert back.envelope["result"] == {"models": [1.5, None, "ü"]}
    assert (back.kind, back.name, back.command, back.data_version) == ("rank", "all sessions", "rank", "7-abc")
    (head,) = store.results()
    assert head.id == ident
    assert head.size > 0


def test_an_equal_answer_is_kept_once_with_its_last_time(store: Store) -> None:
    results = Results(store.path / "results")
    first = results.save("rank", "a", envelope(1), now=100.0)
    other = results.save("rank", "a", envelope(2), now=200.0)
    assert results.save("rank", "a", envelope(1), now=300.0) == first
    assert [(h.id, h.time) for h in results.heads()] == [(first, 300.0), (other, 200.0)]
    assert results.save("rank", "b", envelope(1)) != first


def test_results_are_listed_by_kind(store: Store) -> None:
    store.save_result("rank", "a", envelope(1))
    store.save_result("gate", "b", envelope(2))
    assert [h.kind for h in store.results("gate")] == ["gate"]
    assert store.results("drift") == []


@pytest.mark.parametrize("ident", ["../key", "rank-0000000000000000", "rank", "", "rank-0000000000000000/../../key"])
def test_an_id_reaches_no_other_file(store: Store, ident: str) -> None:
    with pytest.raises(InputError):
        store.result(ident)


@pytest.mark.parametrize("kind", ["", "Rank", "../x", "a b"])
def test_a_kind_is_a_word(store: Store, kind: str) -> None:
    with pytest.raises(UsageError):
        store.save_result(kind, "a", envelope(1))


def test_erasing_a_session_takes_the_results_that_name_it(store: Store, trace: Make, put: Put) -> None:
    gone, stays = (hashlib.sha256(n.encode()).hexdigest()[:20] for n in ("gone", "stays"))
    put(store, [trace(gone, user="user-jane00000000"), trace(stays), trace("s-7")])
    by_id = store.save_result("judge", "a", envelope({"session": gone, "quote": "my secret"}))
    in_text = store.save_result("judge", "b", envelope({"text": f"see {gone}."}))
    by_person = store.save_result("judge", "c", envelope({"user": "user-jane00000000"}))
    short = store.save_result("judge", "d", envelope({"session": "s-7"}))
    kept = store.save_result("judge", "e", envelope({"session": stays, "n": "s-71"}))
    done = erase(store, [gone, "s-7"], subjects=["user-jane00000000"])
    assert done.proof.ok, done.proof.found
    assert [h.id for h in store.results()] == [kept]
    for ident in (by_id, in_text, by_person, short):
        with pytest.raises(InputError):
            store.result(ident)


def test_a_result_of_erased_data_is_not_kept(store: Store, trace: Make, put: Put) -> None:
    name = hashlib.sha256(b"x").hexdigest()[:20]
    before = put(store, [trace(name), trace("other")])
    erase(store, [name])
    with pytest.raises(ErasedError):
        store.save_result("judge", "late", envelope({"quote": "what was erased"}, before))
    assert store.results() == []


def test_records_are_kept_as_the_objects_that_they_print(store: Store, trace: Make) -> None:
    one = trace("a")
    ident = store.save_result("rank", "a", envelope(one))
    assert store.result(ident).envelope["result"]["agent"] == {"name": "a"}
    assert store.verify().ok


def test_verify_tells_a_changed_result(store: Store) -> None:
    ident = store.save_result("rank", "a", envelope(1))
    assert store.verify().ok
    path = store.path / "results" / f"{ident}.json"
    path.write_bytes(path.read_bytes().replace(b'"result":1', b'"result":2'))
    assert not store.verify().ok
    path.write_bytes(b"{")
    assert any("result" in p for p in store.verify().problems)
    assert store.results() == []
    with pytest.raises(StoreError):
        store.result(ident)
