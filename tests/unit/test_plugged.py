"""A detector and a dimension from another package work like built-in ones, versions included."""

from __future__ import annotations

import pytest

from seatrial import plugins, signals
from seatrial.dimensions.catalogue import dimensions
from seatrial.records import Agent, Provenance, Signal, Span, Step, Trace


class Sighs:
    """Hears a sigh."""

    name, version = "sighs", "3"

    def detect(self, trace: Trace) -> list[Signal]:
        return [
            Signal(
                kind="complaint", session=trace.id, step=step.index, confidence=0.9, detector=self.name,
                version=self.version, span=Span(field="text", start=0, end=4),
            )
            for step in trace.steps
            if step.event_class == "human" and step.text.startswith("sigh")
        ]  # fmt: skip


class Other:
    """Has the name of a built-in one."""

    name, title, version = "D1", "another", "9"

    def measure(self, run: object) -> None: ...

    def combine(self, values: object, level: float) -> None: ...


@pytest.fixture
def brought(monkeypatch: pytest.MonkeyPatch) -> None:
    by_group = {"seatrial.detectors": Sighs(), "seatrial.dimensions": Other()}

    def found(group: str) -> plugins.Plugins:
        value = by_group.get(group)
        one = () if value is None else (plugins.Plugin(name="x", distribution="theirs", value=value),)
        return plugins.Plugins(found=one, broken=())

    monkeypatch.setattr(plugins, "plugins", found)


@pytest.mark.usefixtures("brought")
def test_a_detector_of_another_package_is_heard_and_named_in_the_versions() -> None:
    steps = (
        Step(index=0, event_class="human", text="fix it"),
        Step(index=1, event_class="agent", text="Done."),
        Step(index=2, event_class="human", text="sigh"),
    )
    trace = Trace(
        id="t", agent=Agent(name="a"), provenance=Provenance(format="f", reader="r", reader_version="1"), steps=steps
    )
    heard = [s for s in signals.extract(trace).signals if s.detector == "sighs"]
    assert [(s.step, s.version) for s in heard] == [(2, "3")]
    assert signals.versions()["x"] == "3"


@pytest.mark.usefixtures("brought")
def test_a_dimension_whose_name_is_taken_is_left_out() -> None:
    assert [d.name for d in dimensions()] == [f"D{n}" for n in range(1, 8)]
    assert all(not isinstance(d, Other) for d in dimensions())
