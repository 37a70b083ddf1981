from services.gang_planner.cold_start import ColdStart
from shared.contracts.cluster import StreamOpened


def opened(*, at_ms: int, replaces: str) -> StreamOpened:
    return StreamOpened(stream="DECISIONS", incarnation="b", at_ms=at_ms, replaces=replaces)


def test_a_first_start_waits_for_nothing() -> None:
    cold = ColdStart(120)
    cold.look(opened(at_ms=1_000, replaces=""), 1_500)
    assert cold.until_ms(1_500) is None


def test_a_memory_made_in_place_of_a_lost_one_decides_when_old_requests_are_over() -> None:
    cold = ColdStart(120)
    cold.look(opened(at_ms=1_000, replaces="a"), 1_500)
    assert cold.until_ms(120_999) == 121_000
    assert cold.until_ms(121_000) is None


def test_a_memory_whose_first_record_has_aged_out_is_old_enough() -> None:
    cold = ColdStart(120)
    cold.look(None, 1_500)
    assert cold.until_ms(1_500) is None


def test_a_clock_ahead_of_ours_does_not_make_us_wait_for_ever() -> None:
    cold = ColdStart(120)
    ahead = opened(at_ms=9_000_000_000, replaces="a")
    cold.look(ahead, 1_000)
    cold.look(ahead, 60_000)
    assert cold.until_ms(60_000) == 121_000
