"""Whether a delivery still is ours, by the monotonic clock alone."""

from typing import Any, cast

from services.binder.active_decision import PROGRESS_EVERY_S, DeliveryLease
from shared.bus.setup import BINDER_ACK_WAIT_S

NOBODYS = cast("Any", None)


def test_a_delivery_is_ours_until_shortly_before_the_ack_wait_ends() -> None:
    lease = DeliveryLease(NOBODYS, 100.0)
    assert lease.is_held(100.0 + 2 * PROGRESS_EVERY_S)
    assert not lease.is_held(100.0 + BINDER_ACK_WAIT_S)


def test_a_sign_of_life_keeps_it_ours() -> None:
    lease = DeliveryLease(NOBODYS, 100.0)
    lease.renew(101.0)
    assert lease.is_held(101.0 + 2 * PROGRESS_EVERY_S)


def test_a_binder_that_slept_through_the_ack_wait_knows_it_at_once() -> None:
    lease = DeliveryLease(NOBODYS, 100.0)
    assert not lease.is_held(700.0)


def test_what_was_given_up_is_not_ours_whatever_the_clock_says() -> None:
    lease = DeliveryLease(NOBODYS, 100.0)
    lease.abandoned = True
    assert not lease.is_held(100.0)


def test_what_may_have_been_another_binders_is_never_ours_again() -> None:
    """Found by the simulation (seed 102107): a request was left out while the message was not ours,
    a late sign of life made it ours again, and its machine waited for that answer for ever.
    """
    lease = DeliveryLease(NOBODYS, 100.0)
    assert not lease.is_held(102.0)
    lease.renew(101.5)
    assert not lease.is_held(102.1)
