import asyncio
from collections.abc import Awaitable

import pytest

from tests.support.waiting import eventually


async def test_the_first_true_value_is_returned() -> None:
    values = iter([0, None, 7, 8])
    assert await eventually(lambda: next(values)) == 7


async def test_a_probe_may_be_async_and_may_assert_what_is_not_yet_so() -> None:
    calls = 0

    async def probe() -> str:
        nonlocal calls
        calls += 1
        assert calls == 2, "only once so far"
        return "seen"

    assert await eventually(probe) == "seen"


async def test_a_probe_may_read_what_is_not_there_yet() -> None:
    read: list[dict[str, list[str]]] = [{}, {"phases": []}, {"phases": ["a", "b"]}]
    statuses = iter([*read, {"phases": ["Ended"]}])

    def probe() -> str:
        (phase,) = next(statuses)["phases"]
        return phase

    assert await eventually(probe) == "Ended"


async def test_at_the_deadline_the_message_holds_reason_and_last_value() -> None:
    def three_pods() -> list[str]:
        assert [] == ["a"], "no pods"
        return []

    with pytest.raises(AssertionError, match=r"not within 0.03 s: pods appear; last seen.*no pods"):
        await eventually(three_pods, timeout_s=0.03, because="pods appear")


async def test_a_probe_that_hangs_is_interrupted() -> None:
    def hang() -> Awaitable[bool]:
        return asyncio.Event().wait()

    with pytest.raises(AssertionError, match="did not return"):
        await eventually(hang, timeout_s=0.03)


async def test_an_error_of_the_probe_passes_through_at_once_even_a_timeout() -> None:
    def fail() -> bool:
        raise TimeoutError("the probe's own")

    with pytest.raises(TimeoutError, match="the probe's own"):
        await eventually(fail)
