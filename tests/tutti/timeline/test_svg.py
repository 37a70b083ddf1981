"""An event history as an SVG drawing."""

from xml.etree import ElementTree as ET

from tests.tutti.timeline.test_strips import HISTORY, HOUR_MS
from tutti.timeline.history import History, Stay
from tutti.timeline.svg import LANES_MAX, draw_svg

SPACE = "{http://www.w3.org/2000/svg}"


def titles(svg: str) -> dict[str, dict[str, str]]:
    """Boxes by what they say of themselves."""
    found: dict[str, dict[str, str]] = {}
    for box in ET.fromstring(svg).iter(f"{SPACE}rect"):
        title = box.find(f"{SPACE}title")
        if title is not None and title.text:
            found[title.text] = dict(box.attrib)
    return found


def test_boxes_begin_and_end_where_stays_did() -> None:
    found = titles(draw_svg(HISTORY, "Gangs"))
    assert set(found) == {
        "t/a waited 10s",
        "t/late waited 20s NotEnoughPods",
        "t/a: 2 pods, 20s, evicted",
        "t/b: 1 pods, 20s, still there",
    }
    wait, stay = found["t/a waited 10s"], found["t/a: 2 pods, 20s, evicted"]
    assert float(stay["x"]) == float(wait["x"]) + float(wait["width"])
    assert abs(float(stay["width"]) - 2 * float(wait["width"])) < 2
    assert stay["class"] == "bad"
    assert stay["fill"] != found["t/b: 1 pods, 20s, still there"]["fill"]


def test_names_cannot_break_out_of_the_drawing() -> None:
    stay = Stay(gang='t/<script>"&', node="<n>", pods=1, began_ms=HOUR_MS)
    svg = draw_svg(History(from_ms=HOUR_MS, to_ms=HOUR_MS + 9, stays=(stay,)), 'a "title" <b>')
    assert "<script>" not in svg
    assert 't/<script>"&: 1 pods, 9ms, still there' in titles(svg)


def test_nodes_beyond_a_readable_number_are_left_out_and_that_is_said() -> None:
    stays = tuple(
        Stay(gang="t/g", node=f"n{index}", pods=1, began_ms=HOUR_MS)
        for index in range(LANES_MAX + 20)
    )
    svg = draw_svg(History(from_ms=HOUR_MS, to_ms=HOUR_MS + 9, stays=stays), "large")
    assert len(titles(svg)) == 1
    assert svg.count('fill="#') == LANES_MAX
    assert "more nodes are left out" in svg
