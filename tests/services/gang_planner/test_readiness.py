import pytest

from services.gang_planner.readiness import ColdStart
from shared.contracts.cluster import StreamOpened


def opened(*, at_ms: int, replaces: str) -> StreamOpened:
    return StreamOpened(stream="DECISIONS", generation="b", at_ms=at_ms, replaces=replaces)


def test_a_first_start_waits_for_nothing() -> None:
    cold = ColdStart(120)
    cold.observe(opened(at_ms=1_000, replaces=""), 1_500, 500)
    assert cold.until_ms(1_500) is None


def test_a_planner_decides_behind_a_lost_log_once_old_requests_have_ended() -> None:
    cold = ColdStart(120)
    cold.observe(opened(at_ms=1_000, replaces="a"), 1_500, 500)
    assert cold.until_ms(120_999) == 121_000
    assert cold.until_ms(121_000) is None


def test_a_planner_decides_at_once_behind_a_log_whose_first_record_has_aged_out() -> None:
    cold = ColdStart(120)
    cold.observe(None, 1_500, 0)
    assert cold.until_ms(1_500) is None


@pytest.mark.parametrize("ahead_ms", [-60_000, 0, 9_000_000_000])
def test_the_clock_of_the_machine_that_set_up_neither_shortens_nor_prolongs_the_wait(
    ahead_ms: int,
) -> None:
    cold = ColdStart(120)
    record = opened(at_ms=1_000_000 + ahead_ms, replaces="a")
    cold.observe(record, 1_000_000, 0)
    cold.observe(record, 1_059_000, 59_000)
    assert cold.until_ms(1_059_000) == 1_120_000
    assert cold.until_ms(1_120_000) is None
