"""Flushes of a burst go at once; a lasting stream comes at the bucket's rate."""

from services.watcher.core.pace import FlushPace


def test_a_burst_after_a_pause_never_waits() -> None:
    pace = FlushPace(burst=4, per_s=100)
    assert [pace.wait_s(5.0) for _ in range(4)] == [0.0] * 4


def test_a_lasting_stream_is_flushed_at_the_rate_and_not_faster() -> None:
    pace = FlushPace(burst=4, per_s=100)
    now_s, flushes = 0.0, 0
    while now_s < 2.0:
        now_s += pace.wait_s(now_s) + 0.001
        flushes += 1
    assert 190 <= flushes <= 210


def test_the_bucket_is_full_again_after_a_quiet_while() -> None:
    pace = FlushPace(burst=4, per_s=100)
    for _ in range(10):
        pace.wait_s(0.0)
    assert pace.wait_s(0.0) > 0.05
    assert [pace.wait_s(1.0) for _ in range(4)] == [0.0] * 4


def test_a_clock_that_steps_back_gains_nothing_and_breaks_nothing() -> None:
    pace = FlushPace(burst=1, per_s=100)
    assert pace.wait_s(10.0) == 0.0
    assert 0.0 < pace.wait_s(3.0) <= 0.01
