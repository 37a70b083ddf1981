"""A delivery lease expires by the monotonic clock alone."""

from typing import Any, cast

from services.binder.active_decision import PROGRESS_EVERY_S, DeliveryLease
from shared.bus.setup import BINDER_ACK_WAIT_S

NO_DELIVERY = cast("Any", None)


def test_a_delivery_is_held_until_shortly_before_the_ack_wait_ends() -> None:
    lease = DeliveryLease(NO_DELIVERY, 100.0)
    assert lease.is_held(100.0 + 2 * PROGRESS_EVERY_S)
    assert not lease.is_held(100.0 + BINDER_ACK_WAIT_S)


def test_a_sign_of_life_renews_the_lease() -> None:
    lease = DeliveryLease(NO_DELIVERY, 100.0)
    lease.renew(101.0)
    assert lease.is_held(101.0 + 2 * PROGRESS_EVERY_S)


def test_a_binder_that_was_paused_beyond_the_ack_wait_has_lost_the_lease() -> None:
    lease = DeliveryLease(NO_DELIVERY, 100.0)
    assert not lease.is_held(700.0)


def test_an_abandoned_delivery_is_not_held_whatever_the_clock_says() -> None:
    lease = DeliveryLease(NO_DELIVERY, 100.0)
    lease.abandoned = True
    assert not lease.is_held(100.0)


def test_a_lease_that_has_expired_once_is_never_held_again() -> None:
    """Found by the simulation (seed 102107): a request was left out after the lease had expired,
    a late sign of life renewed it, and its machine waited for that answer for ever.
    """
    lease = DeliveryLease(NO_DELIVERY, 100.0)
    assert not lease.is_held(102.0)
    lease.renew(101.5)
    assert not lease.is_held(102.1)
