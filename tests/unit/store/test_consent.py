"""Consent on record decides, in one place, what a purpose may use."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import pytest

from seatrial.errors import UsageError
from seatrial.records import Consent, Trace
from seatrial.store import Store, consents, permission, permission_of, set_consent, withdraw
from seatrial.store.consent import newer

Make = Callable[..., Trace]
Put = Callable[[Store, Sequence[Trace]], str]


@pytest.fixture
def filled(store: Store, trace: Make, put: Put) -> Store:
    """Jane has a session with a sub-agent and its sub-agent, Bob one, and one is nobody's."""
    child = msgspec.structs.replace(trace("child"), parent="janes")
    grandchild = msgspec.structs.replace(trace("grandchild"), parent="child")
    put(store, [trace("janes", user="user-jane"), child, grandchild, trace("bobs", user="user-bob"), trace("nobodys")])
    return store


def denied(store: Store, purpose: str, default: str = "assume") -> dict[str, str]:
    return permission(store, purpose, default).denied  # type: ignore[arg-type]


def test_without_a_record_the_setting_decides(filled: Store) -> None:
    assert denied(filled, "rank") == {}
    assert set(denied(filled, "rank", "require")) == {"janes", "child", "grandchild", "bobs", "nobodys"}
    assert set(denied(filled, "rank", "require").values()) == {"there is no record of consent"}


def test_the_setting_in_force_is_used(filled: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEATRIAL_CONSENT", "require")
    assert not permission(filled, "rank").allows("bobs")
    monkeypatch.setenv("SEATRIAL_CONSENT", "assume")
    assert permission(filled, "rank").allows("bobs")


def test_a_record_covers_its_purposes_and_subagents(filled: Store) -> None:
    set_consent(filled, [Consent(subject="user-jane", purposes=("rank", "label"))])
    for default in ("assume", "require"):
        assert not {"janes", "child", "grandchild"} & set(denied(filled, "rank", default))
        assert {"janes", "child", "grandchild"} <= set(denied(filled, "judge", default))
    assert denied(filled, "judge")["grandchild"] == "consent was given for other purposes only"
    assert "bobs" not in denied(filled, "judge")


def test_person_and_session_must_both_allow(filled: Store) -> None:
    set_consent(
        filled, [Consent(subject="user-bob", purposes=("rank", "judge")), Consent(subject="bobs", purposes=("rank",))]
    )
    assert denied(filled, "rank") == {}
    assert set(denied(filled, "judge")) == {"bobs"}


def test_withdrawn_allows_nothing_and_stays(filled: Store, trace: Make, put: Put) -> None:
    set_consent(filled, [Consent(subject="user-jane", purposes=("rank",), basis="form", time=1.0)])
    withdraw(filled, "user-jane", 5.0)
    assert consents(filled) == [Consent(subject="user-jane", basis="form", time=1.0, withdrawn=5.0)]
    assert set(denied(filled, "rank")) == {"janes", "child", "grandchild"}
    version = withdraw(filled, "user-jane", 9.0)
    assert consents(filled)[0].withdrawn == 5.0
    assert version == filled.data_version
    put(filled, [trace("later", user="user-jane")])
    assert "later" in denied(filled, "rank")


def test_a_new_record_takes_the_place_of_the_old(filled: Store) -> None:
    set_consent(filled, [Consent(subject="user-bob", purposes=("rank",))])
    version = set_consent(filled, [Consent(subject="user-bob", purposes=("rank",))])
    assert version == filled.data_version
    set_consent(filled, [Consent(subject="user-bob", purposes=("label",))])
    assert [c.purposes for c in consents(filled)] == [("label",)]
    assert filled.verify().ok
    assert filled.table("sessions").collect().height == 5


def test_an_unknown_purpose_is_refused(filled: Store) -> None:
    with pytest.raises(UsageError, match="purpose 'sell'"):
        set_consent(filled, [Consent(subject="x", purposes=("sell",))])


def test_left_out_sessions_are_counted_by_reason(filled: Store) -> None:
    set_consent(filled, [Consent(subject="user-bob", purposes=())])
    withdraw(filled, "user-jane")
    kept, left = permission(filled, "export", "assume").among(["bobs", "child", "janes", "nobodys"])
    assert kept == ["nobodys"]
    assert [(d.n, d.why) for d in left] == [
        (1, "consent was given for other purposes only"),
        (2, "consent was withdrawn"),
    ]


def test_sessions_that_start_each_other_end(store: Store, trace: Make, put: Put) -> None:
    put(store, [msgspec.structs.replace(trace(a), parent=b) for a, b in (("a", "b"), ("b", "a"))])
    assert set(denied(store, "rank", "require")) == {"a", "b"}


def test_what_traces_carry_adds_to_the_record_and_undoes_no_withdrawal(store: Store) -> None:
    old, new = (Consent(subject="s", purposes=("rank",), time=t) for t in (1.0, 2.0))
    assert newer(store, []) == []
    assert newer(store, [old, new, old]) == [new]
    set_consent(store, [new])
    assert newer(store, [old, Consent(subject="s")]) == []
    withdraw(store, "s")
    assert newer(store, [Consent(subject="s", purposes=("rank",), time=9.0)]) == []


def test_traces_from_files_are_governed_by_what_they_carry_and_by_a_store(store: Store, trace: Make) -> None:
    def given(subject: str, *purposes: str, withdrawn: float | None = None) -> Consent:
        return Consent(subject=subject, purposes=purposes, time=1.0, withdrawn=withdrawn)

    free = trace("free", user="jane")
    carries = msgspec.structs.replace(trace("carries"), consent=given("bob", "rank"))
    below = msgspec.structs.replace(trace("below"), parent="carries")
    agrees = msgspec.structs.replace(trace("agrees"), consent=given("bob", "judge"))
    traces = [free, carries, below, agrees]
    other = "consent was given for other purposes only"
    assert permission_of(traces, "judge", default="assume").denied == {"carries": other, "below": other}
    assert permission_of(traces, "judge", default="require").denied == {
        "free": "there is no record of consent", "carries": other, "below": other,
    }  # fmt: skip
    # What the store knows counts too: by the pseudonym of the person, and by the session.
    jane = store.pseudonyms()[0].of("jane")
    set_consent(store, [given(jane, "rank"), given("agrees", "judge", withdrawn=2.0)])
    assert permission_of(traces, "judge", store=store, default="assume").denied == {
        "free": other, "carries": other, "below": other, "agrees": "consent was withdrawn",
    }  # fmt: skip
    assert permission_of([free], "rank", store=store, default="require").denied == {}
