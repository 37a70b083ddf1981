"""Counts and logs foreign messages: messages in a stream that none of its writers wrote.

ADR 0044 says why they are skipped.
"""

import logging
from typing import Final

from shared.contracts import subjects
from shared.telemetry.metrics import Metrics

log = logging.getLogger(__name__)

#: The log has the first bytes of a foreign message.
_BYTES_MAX: Final = 200


class ForeignMessageCounter:
    """One service's count by stream, and a log line per message as far as the log's rate allows."""

    def __init__(self, metrics: Metrics) -> None:
        self._counts: dict[str, int] = dict.fromkeys(subjects.STREAMS, 0)
        metrics.component.totals(
            "strays_total",
            "Messages met in a stream that no writer of it wrote, by stream.",
            ("stream",),
            lambda: {(stream,): count for stream, count in self._counts.items()},
        )

    def met(self, stream: str, seq: int, subject: str, payload: bytes) -> None:
        """Count and log a message that a reader skipped, or that a writer found in the stream."""
        self._counts[stream] += 1
        log.error(
            "record %d of %s on %s was not written by its writer and is skipped: "
            "another process uses the NATS credentials of a service; %d bytes, beginning with %r",
            seq,
            stream,
            subject,
            len(payload),
            payload[:_BYTES_MAX],
        )
