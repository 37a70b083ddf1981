"""Makes the streams, consumers and the lease bucket: one idempotent step with rights of its own.

Services only bind to what this makes. `python -m shared.bus.setup --nats-url nats://…` runs it.
"""

import msgspec

from shared.bus.connection import Bus


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    """How much each stream keeps: bytes and seconds; the oldest goes first."""

    cluster_bytes: int = 1 << 30
    cluster_age_s: int = 3600
    decisions_bytes: int = 1 << 30
    decisions_age_s: int = 7 * 86400
    outcomes_bytes: int = 256 << 20
    outcomes_age_s: int = 7 * 86400
    verdicts_bytes: int = 256 << 20


async def ensure_streams(
    bus: Bus,
    *,
    replicas: int = 1,
    planners: int = 2,
    webhooks: int = 2,
    binder_in_flight_max: int = 256,
    sizes: Sizes | None = None,
) -> None:
    """Make or update everything; safe to run again at any time, also beside running services.

    Raises:
        ApiRefused: The server refused (no JetStream, not enough storage, a change that it cannot make).
        BusUnavailable: The server is too old (2.14 or newer is needed) or does not answer.
    """
    raise NotImplementedError
