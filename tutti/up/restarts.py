"""How long to wait before a process that ended is started again."""

import random
from typing import Final

from shared.pacing import Backoff

#: One kill is mended at once; a process that cannot live does not keep a core busy with imports.
FIRST_S: Final = 0.1
MAX_S: Final = 15.0
#: A process that lived this long has worked: its next end counts as the first.
HEALTHY_AFTER_S: Final = 10.0


class Restarts:
    """The delays of one process: growing while it keeps ending early, from the start after it
    lived.
    """

    def __init__(self, rng: random.Random) -> None:
        self._backoff = Backoff(base_s=FIRST_S, max_s=MAX_S, random=rng)

    def delay_s(self, lived_s: float) -> float:
        """The delay after an end.

        Args:
            lived_s: How long the process had lived.
        """
        if lived_s >= HEALTHY_AFTER_S:
            self._backoff.reset()
        return self._backoff.next_s()
