from hypothesis import given
from hypothesis import strategies as st

from services.controller.core.pace import Pace


def test_a_burst_passes_and_then_the_rate_holds() -> None:
    pace = Pace(10, 3)
    assert [pace.take(0) for _ in range(5)] == [0, 0, 0, 100, 200]


def test_what_was_not_used_is_saved_up_to_the_burst_and_no_further() -> None:
    pace = Pace(10, 3)
    for _ in range(3):
        pace.take(0)
    assert [pace.take(60_000) for _ in range(4)] == [0, 0, 0, 100]


def test_trying_takes_nothing_when_there_is_nothing() -> None:
    pace = Pace(10, 1)
    assert pace.try_take(0)
    assert not pace.try_take(0)
    assert not pace.try_take(99)
    assert pace.try_take(100)


def test_a_pause_holds_everybody_up_once() -> None:
    pace = Pace(10, 3)
    pace.pause(5_000)
    assert pace.take(0) == 5_100
    assert pace.take(0) == 5_200


@given(st.integers(1, 500), st.integers(1, 50), st.lists(st.integers(0, 300), max_size=60))
def test_no_second_has_more_turns_than_rate_and_burst(
    rate: int, burst: int, steps_ms: list[int]
) -> None:
    pace, now_ms, turns_ms = Pace(rate, burst), 0, []
    for step_ms in steps_ms:
        now_ms += step_ms
        turns_ms.append(now_ms + pace.take(now_ms))
    for first_ms in turns_ms:
        within = [turn_ms for turn_ms in turns_ms if first_ms <= turn_ms < first_ms + 1_000]
        # Rounded to whole milliseconds, one turn may fall into the second before.
        assert len(within) <= rate + burst + 1
