"""A lease in the bucket LEASES: a hint who should try to write. Safety is the fence's, never the lease's."""

from collections.abc import Callable

from shared.bus.connection import Bus


class Lease:
    """Tries to hold one key for as long as `run` runs."""

    def __init__(self, bus: Bus, key: str, holder: str, *, ttl_s: float = 1.0) -> None:
        raise NotImplementedError

    @property
    def held(self) -> bool:
        """Whether we held it at the last renewal."""
        raise NotImplementedError

    async def run(self, on_change: Callable[[bool], None]) -> None:
        """Acquire, renew, and call `on_change` with True when held and False when lost; until cancelled.

        A standby sees a release at once and a death after `ttl_s` (and at most 0.25 s more). Problems of the bus are
        waited out; they end in False when a renewal is overdue.
        """
        raise NotImplementedError

    async def wait_held(self) -> None:
        """Wait until it is held."""
        raise NotImplementedError

    async def release(self) -> None:
        """Give it up, so that a standby takes over at once; call it after `run` was cancelled. Never raises."""
        raise NotImplementedError
