import random

from tutti.up.supervisor import FIRST_S, HEALTHY_AFTER_S, MAX_S, Restarts


def test_the_first_end_is_mended_at_once() -> None:
    assert Restarts(random.Random(1)).delay_s(0.0) <= FIRST_S


def test_delays_grow_to_a_bound_while_a_process_cannot_live() -> None:
    restarts = Restarts(random.Random(1))
    delays = [restarts.delay_s(0.2) for _ in range(30)]
    assert delays[4] > 4 * delays[0]
    assert max(delays) <= MAX_S
    assert min(delays[-10:]) >= MAX_S / 2


def test_a_process_that_lived_is_mended_at_once_again() -> None:
    restarts = Restarts(random.Random(1))
    for _ in range(10):
        restarts.delay_s(0.2)
    assert restarts.delay_s(HEALTHY_AFTER_S) <= FIRST_S
