"""Reads the newest records of the logs from NATS, without a subscription or any change.

Records are requested one by one, many at a time, from the newest back to an instant or a limit.
"""

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

import msgspec

from shared.bus.connection import Bus
from shared.bus.jetstream_api import StoredMessage
from shared.contracts import codec
from shared.contracts.cluster import ClusterRecord, PodChanges, Synced
from shared.contracts.decisions import DecisionRecord, EvictionDecision, GangDecision
from shared.contracts.outcomes import Outcome, OutcomeRecord
from shared.contracts.subjects import (
    CLUSTER,
    CLUSTER_SYNCED,
    DECISIONS,
    OUTCOMES,
    VERDICTS,
    cluster,
)
from shared.contracts.verdicts import Verdict
from tutti.timeline.history import Logs

#: Maximum number of records of one stream; an hour of a busy cluster may have more.
RECORDS_MAX: Final = 20_000
_AT_ONCE: Final = 128
_SUBJECTS: Final = frozenset({cluster("pod"), CLUSTER_SYNCED})

T = TypeVar("T")


async def read_logs(bus: Bus, since_ms: int) -> Logs:
    """The records since an instant that the streams still have. Raises BusError."""
    decisions, cut_decisions = await _newest(
        bus, DECISIONS, codec.decode_decision_record, _decided_ms, since_ms
    )
    outcomes, cut_outcomes = await _newest(bus, OUTCOMES, codec.decode_outcome, _bound_ms, since_ms)
    changes, cut_cluster = await _newest(bus, CLUSTER, codec.decode_cluster, _seen_ms, since_ms)
    cuts = {DECISIONS: cut_decisions, OUTCOMES: cut_outcomes, CLUSTER: cut_cluster}
    return Logs(
        decisions=tuple(decisions),
        outcomes=tuple(record for _, record in outcomes),
        cluster=tuple(record for _, record in changes if record is not None),
        verdicts=tuple(await read_verdicts(bus)),
        cut=tuple(stream for stream, cut in cuts.items() if cut),
    )


async def read_verdicts(bus: Bus) -> list[Verdict]:
    """The latest verdict of each gang. Raises BusError."""
    found, _ = await _newest(bus, VERDICTS, codec.decode_verdict, lambda _: None, 0)
    # One per gang: a second subject has those that request a new PodGroup.
    return list({one.gang_id: one for _, one in found}.values())


async def _newest(
    bus: Bus,
    stream: str,
    decode: Callable[[bytes], T],
    at_ms: Callable[[T], int | None],
    since_ms: int,
) -> tuple[list[tuple[int, T]], bool]:
    """Records by sequence, oldest first, and whether older ones since the instant were left out."""
    info = await bus.stream_info(stream)
    found: list[tuple[int, T]] = []
    end, least = info.last_seq, max(info.first_seq, 1, info.last_seq - RECORDS_MAX + 1)
    while end >= least:
        start = max(least, end - _AT_ONCE + 1)
        requests = (bus.get_message(stream, seq) for seq in range(start, end + 1))
        batch = [one for one in await asyncio.gather(*requests) if one is not None]
        records = [(one.seq, record) for one in batch if (record := _decoded(one, decode))]
        found = records + found
        times = [at for _, record in records if (at := at_ms(record)) is not None]
        if times and min(times) < since_ms:
            return found, False
        end = start - 1
    return found, least > max(info.first_seq, 1)


def _decoded(message: StoredMessage, decode: Callable[[bytes], T]) -> T | None:
    """The record; None for an irrelevant or foreign message, or one of a newer version."""
    if message.subject.startswith("cluster.") and message.subject not in _SUBJECTS:
        return None
    try:
        return decode(message.payload)
    except msgspec.MsgspecError:
        return None


def _decided_ms(record: DecisionRecord) -> int | None:
    return record.cycle.now_ms if isinstance(record, GangDecision | EvictionDecision) else None


def _bound_ms(record: OutcomeRecord) -> int | None:
    return record.received_ms or None if isinstance(record, Outcome) else None


def _seen_ms(record: ClusterRecord) -> int | None:
    return record.at_ms if isinstance(record, PodChanges | Synced) else None
