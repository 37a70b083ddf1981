"""What simulated servers and the world stand on: virtual time, callbacks that nobody can kill, and
one stream of random numbers for each concern.

The loop provides it. What is scheduled here belongs to the world, not to a service's incarnation:
a request that a service handed over arrives even when the service is killed a moment later.
"""

from collections.abc import Callable
from random import Random
from typing import Protocol


class Surroundings(Protocol):
    """Time and chance."""

    def now_ms(self) -> int:
        """Virtual wall clock, in milliseconds since the epoch."""
        ...

    def later(self, delay_ms: float, callback: Callable[..., None], *args: object) -> None:
        """Call back after so long, outside of every incarnation. Equal instants keep their order.
        """
        ...

    def random(self, concern: str) -> Random:
        """The generator of a concern ("kube.latency"): a function of the run's seed and the name,
        so that drawing more for one concern changes nothing for the others.
        """
        ...
