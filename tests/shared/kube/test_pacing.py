"""What is drawn from a bucket goes at once in a burst, and at the bucket's rate for ever."""

from shared.kube.pacing import TokenBucket


def test_a_burst_after_a_pause_never_waits() -> None:
    bucket = TokenBucket(burst=4, per_s=100)
    assert [bucket.wait_s(5.0) for _ in range(4)] == [0.0] * 4


def test_a_lasting_stream_is_held_to_the_rate_and_not_below() -> None:
    bucket = TokenBucket(burst=4, per_s=100)
    now_s, draws = 0.0, 0
    while now_s < 2.0:
        now_s += bucket.wait_s(now_s) + 0.001
        draws += 1
    assert 190 <= draws <= 210


def test_what_costs_four_tokens_comes_at_a_quarter_of_the_rate() -> None:
    bucket = TokenBucket(burst=4, per_s=100)
    now_s, draws = 0.0, 0
    while now_s < 2.0:
        now_s += bucket.wait_s(now_s, 4) + 0.001
        draws += 1
    assert 48 <= draws <= 53


def test_the_bucket_is_full_again_after_a_quiet_while() -> None:
    bucket = TokenBucket(burst=4, per_s=100)
    for _ in range(10):
        bucket.wait_s(0.0)
    assert bucket.wait_s(0.0) > 0.05
    assert [bucket.wait_s(1.0) for _ in range(4)] == [0.0] * 4


def test_a_token_put_back_is_there_for_the_next() -> None:
    bucket = TokenBucket(burst=1, per_s=100)
    assert [bucket.wait_s(0.0), bucket.wait_s(0.0)] == [0.0, 0.01]
    bucket.put_back()
    assert bucket.wait_s(0.0) == 0.01


def test_a_clock_that_steps_back_gains_nothing_and_breaks_nothing() -> None:
    bucket = TokenBucket(burst=1, per_s=100)
    assert bucket.wait_s(10.0) == 0.0
    assert 0.0 < bucket.wait_s(3.0) <= 0.01
