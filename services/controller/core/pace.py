"""Rates: how many writes a second, so that bindings come first."""


class Pace:
    """A token bucket in integer microseconds: `rate` turns a second, `burst` of them at once."""

    def __init__(self, rate: int, burst: int) -> None:
        """Begin full. Both at least 1."""
        self._turn_us = 1_000_000 // rate
        self._depth_us = self._turn_us * burst
        #: The instant at which the bucket is full again.
        self._full_at_us = 0

    def take(self, now_ms: int) -> int:
        """Take a turn; returns how many milliseconds to wait for it. Turns come in this order."""
        now_us = now_ms * 1000
        self._full_at_us = max(self._full_at_us, now_us) + self._turn_us
        wait_us = self._full_at_us - now_us - self._depth_us
        return max(0, -(-wait_us // 1000))

    def try_take(self, now_ms: int) -> bool:
        """Take a turn if there is one now."""
        if max(self._full_at_us, now_ms * 1000) + self._turn_us - now_ms * 1000 > self._depth_us:
            return False
        self.take(now_ms)
        return True

    def pause(self, until_ms: int) -> None:
        """Give no turn before `until_ms`: the API server asked for it."""
        self._full_at_us = max(self._full_at_us, until_ms * 1000 + self._depth_us)
