"""The delay before a process that ended is restarted."""

import random
from typing import Final

from shared.pacing import Backoff

#: The first delay: a killed process restarts almost at once, a failing one must not occupy a core.
FIRST_S: Final = 0.1
MAX_S: Final = 15.0
#: After this lifetime a process counts as healthy, and its next end as the first.
HEALTHY_AFTER_S: Final = 10.0


class Restarts:
    """The delays of one process: they grow while it ends early, and start over after a healthy
    lifetime.
    """

    def __init__(self, rng: random.Random) -> None:
        self._backoff = Backoff(base_s=FIRST_S, max_s=MAX_S, random=rng)

    def delay_s(self, lived_s: float) -> float:
        """The delay after an end, by the lifetime of the process."""
        if lived_s >= HEALTHY_AFTER_S:
            self._backoff.reset()
        return self._backoff.next_s()
