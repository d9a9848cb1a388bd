"""Marks stand where their numbers are."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET

import pytest

from seatrial.records import RankInterval
from seatrial.report import svg
from seatrial.report.section import Chart, Mark, Panel


def drawn(chart: Chart) -> list[ET.Element]:
    return [ET.fromstring(f"<r>{markup}</r>") for markup in svg.figure(chart, "c")]


def chart(*marks: Mark, unit: str = "points", **more: object) -> Chart:
    panel = Panel(marks=marks, unit=unit, zero=0.0)  # type: ignore[arg-type]
    return Chart(title="T", description="D", panels=(panel,), **more)  # type: ignore[arg-type]


def test_positions_follow_values() -> None:
    picture = drawn(
        chart(
            Mark(label="a", value=0.1, low=0.05, high=0.15, band_low=0.0, band_high=0.2),
            Mark(label="b", value=-0.1, low=-0.2, high=0.0),
        )
    )[0]
    dots = [float(e.attrib["cx"]) for e in picture.iter("circle")]
    bars = [
        (float(e.attrib["x1"]), float(e.attrib["x2"])) for e in picture.iter("line") if e.get("class") == "interval"
    ]
    zero = next(float(e.attrib["x1"]) for e in picture.iter("line") if e.get("class") == "zero")
    assert dots[0] - zero == pytest.approx(zero - dots[1], abs=0.02)
    assert bars[0][0] < dots[0] < bars[0][1]
    assert bars[1][1] == pytest.approx(zero, abs=0.02)
    assert (dots[0] - bars[0][0]) == pytest.approx(bars[0][1] - dots[0], abs=0.02)


def test_an_image_has_title_and_description() -> None:
    for picture in drawn(chart(Mark(label="a", value=0.1))):
        image = next(picture.iter("svg"))
        assert image.get("role") == "img"
        assert image.find("title") is not None
        assert image.find("desc") is not None
        assert image.attrib["aria-labelledby"] == image.find("title").attrib["id"]  # type: ignore[union-attr]


def test_a_point_without_interval_is_hollow_and_a_missing_one_says_why() -> None:
    picture = drawn(chart(Mark(label="a", value=0.1), Mark(label="b", value=None, why="too few")))[0]
    assert [e.get("class") for e in picture.iter("circle")] == ["hollow"]
    assert "too few" in [e.text for e in picture.iter("text")]


def test_rank_panel_has_every_rank_interval() -> None:
    picture = drawn(
        chart(
            Mark(label="a", value=0.1, rank=RankInterval(value=1, low=1, high=2)),
            Mark(label="b", value=0.0, rank=RankInterval(value=2, low=1, high=2)),
            Mark(label="c", value=-0.1),
            n_ranks=2,
        )
    )[0]
    assert len([e for e in picture.iter("line") if e.get("class") == "ranks"]) == 2
    assert "not ranked" in [e.text for e in picture.iter("text")]


@pytest.mark.parametrize(
    "marks",
    [
        (),
        (Mark(label="a", value=None),),
        (Mark(label="a", value=0.0),),
        (Mark(label="a", value=0.3), Mark(label="b", value=0.3)),
        (Mark(label="a", value=math.inf, low=-math.inf, high=math.inf),),
        (Mark(label="a", value=math.nan),),
        (Mark(label="a", value=1e300, low=-1e300, high=1e300),),
        (Mark(label="a", value=1e-300, low=-1e-300, high=2e-300),),
    ],
)
def test_odd_numbers_still_draw_inside_the_picture(marks: tuple[Mark, ...]) -> None:
    for picture in drawn(chart(*marks)):
        wide = float(next(picture.iter("svg")).attrib["viewBox"].split()[2])
        for e in picture.iter():
            for key in ("x", "x1", "x2", "cx"):
                if key in e.attrib:
                    assert -1 <= float(e.attrib[key]) <= wide + 1
        assert not re.search("nan|inf", ET.tostring(picture, encoding="unicode"))


@pytest.mark.parametrize(("low", "high"), [(-0.3, 0.25), (0.0, 1.0), (0.001, 0.0031), (-1000.0, 3.0)])
def test_ticks_are_round_and_few(low: float, high: float) -> None:
    found = svg.ticks(low, high, "points", 6)
    assert 2 <= len(found) <= 8
    assert len({text for _, text in found}) == len(found)
    for value, text in found:
        assert low - 1e-9 <= value <= high + 1e-9
        assert float(text.replace("−", "-")) == pytest.approx(value * 100)


def test_several_panels_become_small_multiples() -> None:
    panels = tuple(Panel(title=t, marks=(Mark(label="a", value=0.5),), unit="percent", domain=(0, 1)) for t in "xyz")
    picture = drawn(Chart(title="T", description="D", panels=panels))[0]
    assert [e.text for e in picture.iter("h3")] == ["x", "y", "z"]
    idents = [e.attrib["id"] for e in picture.iter() if "id" in e.attrib]
    assert len(set(idents)) == len(idents)
