"""Any trace survives ATIF: the document is valid, and reading it gives the trace back."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import atif
import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seatrial.ingest.atif import traces as read
from seatrial.ingest.atif_write import write
from seatrial.records import Provenance, Trace

HERE = Provenance(format="atif", reader="atif", reader_version="1")
quiet = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


def bare(trace: Trace) -> Trace:
    """A trace without its provenance: reading a new document gives it a new one."""
    return msgspec.structs.replace(trace, provenance=HERE)


@quiet
@given(data=st.data())
def test_a_family_of_traces_is_a_valid_document_and_survives_the_round_trip(
    strategies: ModuleType, data: st.DataObject
) -> None:
    family = data.draw(strategies.families())
    written = write(family[0], family[1:])
    document = json.loads(msgspec.json.encode(written.document))
    atif.Trajectory.model_validate(document)
    back = read(document, HERE, [])
    assert sorted(map(bare, back), key=lambda t: t.id) == sorted(map(bare, family), key=lambda t: t.id)
    for trace in back:
        original = next(t for t in family if t.id == trace.id).provenance
        assert trace.provenance.extra["original"] == msgspec.to_builtins(original) or "original" in original.extra


@quiet
@given(data=st.data())
def test_what_json_cannot_hold_is_said_to_be_lost(strategies: ModuleType, data: st.DataObject) -> None:
    trace = data.draw(strategies.traces())
    broken = msgspec.structs.replace(trace, extra={"a": strategies.spoil("x"), "b": [strategies.spoil(1)]})
    written = write(broken)
    (gone,) = [loss for loss in written.losses if not loss.kept]
    assert set(gone.fields) >= {"extra.a", "extra.b[0]"}
    (back,) = read(json.loads(msgspec.json.encode(written.document)), HERE, [])
    assert back.extra == {"a": "\N{REPLACEMENT CHARACTER}", "b": [None]}


@quiet
@given(data=st.data())
def test_a_loss_names_every_field_that_atif_alone_does_not_give_back(
    strategies: ModuleType, data: st.DataObject
) -> None:
    """Take out what our writer put aside: what then differs in a step is what the account names."""
    trace = data.draw(strategies.traces())
    written = write(trace)
    document = json.loads(msgspec.json.encode(written.document))
    for raw in document["steps"]:
        raw.get("extra", {}).pop("seatrial", None)
    (back,) = read(document, HERE, [])
    named = {loss.where: set(loss.fields) for loss in written.losses}
    for n, (before, after) in enumerate(zip(trace.steps, back.steps, strict=True)):
        differing = {f for f in before.__struct_fields__ if getattr(before, f) != getattr(after, f)}
        assert differing == named.get(f"steps[{n}]", set())


def test_strategies_are_found(strategies: ModuleType) -> None:
    assert Path(str(strategies.__file__)).name == "strategies.py"
