"""A delivery that this binder has pulled, and whether it still is this binder's.

The message is delivered to another binder when the consumer hears nothing for its ack wait. Our own
clock since our last sign of life shows, after a pause of any kind, that this may have
happened: from then on nothing may be sent for it (docs/adr/0002-what-the-binder-checks.md).
"""

from typing import Final

from shared.bus.pull import Delivery
from shared.bus.setup import BINDER_ACK_WAIT_S

#: Signs of life are sent this often.
PROGRESS_EVERY_S: Final = 0.5
#: Spared of the ack wait: a sign of life needs time to arrive.
_MARGIN_S: Final = 0.3


class DeliveryLease:
    """A delivery, not acknowledged yet."""

    __slots__ = ("_progress_at_s", "connection", "delivery", "given_up")

    def __init__(self, delivery: Delivery, at_s: float, *, connection: int = 0) -> None:
        """Take what was pulled at `at_s` of the monotonic clock, over the n-th `connection`."""
        self.delivery = delivery
        self.connection = connection
        self.given_up = False
        self._progress_at_s = at_s

    def ours(self, at_s: float) -> bool:
        """Whether no other binder can have this message at `at_s` of the monotonic clock; once
        another one can, for good: a request of its machine may have been left out since.
        """
        if at_s - self._progress_at_s >= BINDER_ACK_WAIT_S - _MARGIN_S:
            self.given_up = True
        return not self.given_up

    def progressed(self, at_s: float) -> None:
        """Note that a sign of life was sent at `at_s` over a living connection."""
        self._progress_at_s = at_s
