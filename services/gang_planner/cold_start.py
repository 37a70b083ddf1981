"""What a planner does after NATS lost its storage: it waits before it decides anything.

DECISIONS is the memory of what is in flight. When it was made again, bindings that the lost one
ordered may still arrive at the API server, and no service knows their reservations any more. So
nothing is decided until the longest request can have come to its end; the cluster state is current
by then. Setup knows that a stream replaces another one (`StreamOpened.replaces`), because services
that worked with that one still ran. A first start waits for nothing.
"""

from shared.contracts.cluster import StreamOpened


class ColdStart:
    """Until when nothing is decided."""

    def __init__(self, wait_s: int) -> None:
        """Wait for `wait_s` after a stream was made in place of a lost one."""
        self._wait_ms = wait_s * 1000
        self._until_ms = 0

    def look(self, opened: StreamOpened | None, now_ms: int, age_ms: int) -> None:
        """Take in the first record of DECISIONS, which was stored `age_ms` ago; None: it has aged
        out, and every danger with it.

        The record's own instant is not looked at: it is of another machine's clock.
        """
        if opened is not None and opened.replaces:
            until_ms = now_ms - age_ms + self._wait_ms
            self._until_ms = min(until_ms, self._until_ms or until_ms)

    def until_ms(self, now_ms: int) -> int | None:
        """When deciding may begin; None: it may."""
        return self._until_ms if now_ms < self._until_ms else None
