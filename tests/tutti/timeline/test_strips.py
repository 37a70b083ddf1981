"""An event history in a terminal."""

import io

import msgspec
import pytest
from rich.console import Console, RenderableType

from tutti.timeline.history import History, Stay, Wait
from tutti.timeline.strips import by_gang, by_node, lasted

HOUR_MS = 1_795_305_600_000
HISTORY = History(
    from_ms=HOUR_MS,
    to_ms=HOUR_MS + 40_000,
    waits=(
        Wait(gang="t/a", began_ms=HOUR_MS, ended_ms=HOUR_MS + 10_000),
        Wait(gang="t/late", began_ms=HOUR_MS + 20_000, why="NotEnoughPods"),
    ),
    stays=(
        Stay(
            gang="t/a",
            node="n1",
            pods=2,
            began_ms=HOUR_MS + 10_000,
            ended_ms=HOUR_MS + 30_000,
            end="evicted",
        ),
        Stay(gang="t/b", node="n1", pods=1, began_ms=HOUR_MS + 20_000),
    ),
)


def printed(renderable: RenderableType, width: int = 80) -> list[str]:
    text = io.StringIO()
    Console(file=text, width=width, color_system=None).print(renderable)
    return [line.rstrip() for line in text.getvalue().splitlines()]


def test_a_gang_is_shaded_while_it_waits_and_full_while_it_is_there() -> None:
    head, a, b, late = sorted(printed(by_gang(HISTORY, 80, 10)), key=lambda line: line[:3] != "GAN")
    assert "00:00:00" in head
    assert "00:00:40" in head
    strip = a.split()[1]
    assert strip.startswith("░")
    assert strip.strip("░█") == "✗"
    # Ten seconds of waiting, twenty of being there.
    assert abs(strip.count("█") + 1 - 2 * strip.count("░")) <= 2
    assert a.endswith("2 pods, 1 node")
    assert b.endswith("1 pod, 1 node")
    assert late.endswith("waits: NotEnoughPods")


@pytest.mark.parametrize(
    ("now", "where"),
    [
        pytest.param(
            Stay(gang="t/a", node="n1", pods=3, began_ms=HOUR_MS + 35_000),
            "3 pods, 1 node",
            id="runs",
        ),
        pytest.param(
            Stay(
                gang="t/a",
                node="n1",
                pods=3,
                began_ms=HOUR_MS + 35_000,
                ended_ms=HOUR_MS + 36_000,
                end="done",
            ),
            "3 pods, 1 node",
            id="has ended",
        ),
        pytest.param(
            Wait(gang="t/a", began_ms=HOUR_MS + 31_000, why="NotEnoughQuota"),
            "waits: NotEnoughQuota",
            id="waits",
        ),
    ],
)
def test_a_gang_has_no_pods_of_its_predecessor_of_the_same_name(
    now: Stay | Wait, where: str
) -> None:
    history = msgspec.structs.replace(
        HISTORY,
        waits=(*HISTORY.waits, now) if isinstance(now, Wait) else HISTORY.waits,
        stays=(*HISTORY.stays, now) if isinstance(now, Stay) else HISTORY.stays,
    )
    (row,) = [line for line in printed(by_gang(history, 80, 10)) if line.startswith("t/a ")]
    assert row.endswith(where)


def test_a_node_has_a_lane_for_each_that_is_there_at_once() -> None:
    lines = printed(by_node(HISTORY, 80, 10))
    assert lines[1].startswith("n1 ")
    assert "a" in lines[1]
    assert lines[2].strip().strip("·").strip() == "b"
    assert lines[3] == "waiting: t/late"


def test_rows_that_have_no_room_are_counted() -> None:
    assert printed(by_gang(HISTORY, 80, 1))[-1] == "and 2 gangs more"
    assert "and 1 rows more" in printed(by_node(HISTORY, 80, 1))


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [(340, "340ms"), (12_900, "12s"), (250_000, "4m10s"), (7_500_000, "2h05m")],
)
def test_durations_are_short(milliseconds: int, text: str) -> None:
    assert lasted(milliseconds) == text
