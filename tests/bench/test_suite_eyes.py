"""Eyes that stop looking must be seen: a verdict about an hour once stood on 25 minutes of it."""

import asyncio
from typing import Any, cast

import pytest

from bench.suite_eyes import Look, blind_s, keep_looking
from shared.bus.errors import NoAnswer
from tests.support.waiting import eventually


def look(at_s: float, tasks: int = 5) -> Look:
    return Look(
        at_s=at_s, instance="a-0", pid=1, memory_bytes=1, descriptors=1, threads=1, tasks=tasks
    )


@pytest.mark.parametrize(
    ("instants_s", "expected"),
    [
        pytest.param([0, 10, 20, 30], 10, id="all the time"),
        pytest.param([0, 5], 25, id="not to the end"),
        pytest.param([20, 30], 20, id="not from the beginning"),
        pytest.param([], 30, id="never"),
    ],
)
def test_the_longest_time_without_a_look_is_reported(
    instants_s: list[float], expected: float
) -> None:
    assert blind_s([look(at_s) for at_s in instants_s], 0, 30) == expected


def test_a_look_at_what_answers_no_questions_is_no_look_at_our_services() -> None:
    assert blind_s([look(at_s, tasks=0) for at_s in range(30)], 0, 30) == 30


async def test_a_look_that_is_not_answered_does_not_end_the_looking() -> None:
    class Eyes:
        times = 0

        async def look(self) -> None:
            self.times += 1
            raise NoAnswer("STREAM.INFO.CLUSTER")

    eyes = Eyes()
    looking = asyncio.create_task(keep_looking(cast("Any", eyes), 0.0))
    await eventually(lambda: eyes.times > 2)
    looking.cancel()
    await asyncio.wait([looking])
    assert looking.cancelled()
