"""What is printed of an answer, line by line."""

import io
from datetime import UTC, datetime

import msgspec
import pytest
from rich.console import Console

from shared.contracts.verdicts import Condition, Reason, ShapeReport
from tutti.why.command import show
from tutti.why.explanation import Answer, GangAnswer


def printed(*conditions: Condition) -> list[str]:
    gang = GangAnswer(gang="ns/g", state="waiting", sentence="ns/g waits", conditions=conditions)
    found = Answer(asked="g", namespace="ns", sentence="said", state="waiting", gangs=(gang,))
    console = Console(file=io.StringIO(), width=40, color_system=None)
    show(found, console, datetime(2026, 11, 21, tzinfo=UTC))
    assert isinstance(console.file, io.StringIO)
    return [line.strip() for line in console.file.getvalue().splitlines() if "condition" in line]


@pytest.mark.parametrize(
    ("condition", "line"),
    [
        pytest.param(
            Condition(
                type="Releasing", status="True", reason="Deadline", message="Deadline: 3 of 4"
            ),
            "condition  Releasing=True Deadline: 3 of 4",
            id="a release names its cause once",
        ),
        pytest.param(
            Condition(
                type="Releasing", status="False", reason="Released", message="Deadline: 3 of 4"
            ),
            "condition  Releasing=False Released: Deadline: 3 of 4",
            id="and still does when it has ended",
        ),
        pytest.param(
            Condition(type="RoomHeld", status="False", reason="Expired"),
            "condition  RoomHeld=False Expired",
            id="a condition without a message",
        ),
        pytest.param(
            Condition(type="Scheduled", status="True", message="ready"),
            "condition  Scheduled=True: ready",
            id="a condition without a reason",
        ),
    ],
)
def test_a_condition_is_one_whole_line(condition: Condition, line: str) -> None:
    assert printed(condition) == [line]


def test_gangs_ahead_are_listed_apart_from_gangs_that_use_the_missing_capacity() -> None:
    gang = GangAnswer(
        gang="ns/g",
        state="waiting",
        sentence="ns/g waits",
        reason="NotEnoughQuota",
        ahead=("ns/first",),
        ahead_count=1,
        holders=("ns/old", "ns/older"),
        holders_count=7,
        shapes=(ShapeReport(role="w", wanted=1, nodes=1),),
        shapes_count=2_800,
    )
    found = Answer(asked="g", namespace="ns", sentence="said", state="waiting", gangs=(gang,))
    console = Console(file=io.StringIO(), width=80, color_system=None)
    show(found, console, datetime(2026, 11, 21, tzinfo=UTC))
    assert isinstance(console.file, io.StringIO)
    lines = [line.split() for line in console.file.getvalue().splitlines()]
    assert ["ahead", "1:", "first"] in lines
    assert ["held", "by", "7:", "old,", "older"] in lines
    assert ["…", "and", "2,799", "more", "roles", "and", "shapes"] in lines


def test_an_amount_is_printed_in_the_units_of_the_sentence() -> None:
    cpu = Reason(reason="Insufficient cpu", count=4, resource="cpu", short=17_000)
    memory = Reason(reason="CapabilityExceeded", resource="memory", short=3 << 30)
    gang = GangAnswer(
        gang="team/g",
        state="waiting",
        sentence="waits: 17 more cpu needed",
        shapes=tuple(
            ShapeReport(role="worker", wanted=2, fit=1, nodes=nodes, reasons=(each,))
            for nodes, each in ((4, cpu), (1, msgspec.structs.replace(cpu, count=1)))
        ),
        quota=(memory,),
    )
    answer = Answer(
        asked="job/g", namespace="team", sentence="waits", state="waiting", gangs=(gang,)
    )
    output = io.StringIO()
    show(answer, Console(file=output, width=200), datetime.now(UTC))
    assert "4 nodes: Insufficient cpu (cpu short by 17)" in output.getvalue()
    assert "1 of 2 would fit alone, 1 node\n" in output.getvalue()
    assert "1 node: Insufficient cpu (cpu short by 17)" in output.getvalue()
    assert "CapabilityExceeded (memory short by 3Gi)" in output.getvalue()
