"""The summary of an observation: a pure function of its rows.

Waits are counted from the instant at which a gang had all members that it needs, and only for gangs
that were observed from their creation.
"""

from collections.abc import Iterable

import msgspec

from shared.contracts.observing import GangObserved, Observation


class Waits(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds from complete to bound, of `count` gangs."""

    count: int
    median_s: float
    p99_s: float


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of gangs, and how long they waited."""

    gangs: int
    #: Already bound when the observation began; excluded from all other counts.
    before: int
    #: Of the remaining gangs: bound whole by the other scheduler; decided by Tutti.
    whole: int
    decided: int
    #: Decided by Tutti, and not (or only in part) bound by the other scheduler.
    only_tutti: int
    #: Bound whole by the other scheduler before Tutti decided.
    only_rival: int
    #: Bound in part at some time, and now; for how long in total.
    partial_ever: int
    partial_now: int
    partial_s: float
    other: Waits | None
    tutti: Waits | None
    #: Gangs for which Tutti would have evicted other pods, or released their own.
    evicting: int
    releasing: int
    #: Decisions, and those that failed verification.
    decisions: int
    failed: int


def summarize(observation: Observation) -> Summary:
    rows = observation.gangs
    fresh = [row for row in rows if not row.before]
    waiting = [row for row in fresh if not row.whole_ms and not row.ended_ms]
    return Summary(
        gangs=len(rows),
        before=len(rows) - len(fresh),
        whole=sum(1 for row in fresh if row.whole_ms),
        decided=sum(1 for row in fresh if row.decided_ms),
        only_tutti=sum(1 for row in waiting if row.decided_ms),
        only_rival=sum(1 for row in fresh if row.whole_ms and not row.decided_ms),
        partial_ever=sum(1 for row in rows if partial_ms(row, observation.at_ms)),
        partial_now=sum(1 for row in rows if row.partial_since_ms),
        partial_s=sum(partial_ms(row, observation.at_ms) for row in rows) / 1000,
        other=_waits(row.whole_ms - row.complete_ms for row in fresh if row.whole_ms),
        tutti=_waits(row.decided_ms - row.complete_ms for row in fresh if row.decided_ms),
        evicting=sum(1 for row in rows if row.evicts),
        releasing=sum(1 for row in rows if row.release),
        decisions=sum(row.proved + row.overtaken + row.failed for row in rows),
        failed=sum(row.failed for row in rows),
    )


def partial_ms(row: GangObserved, at_ms: int) -> int:
    """How long a gang has been bound in part, until now."""
    since = max(at_ms - row.partial_since_ms, 0) if row.partial_since_ms else 0
    return row.partial_ms + since


def _waits(found: Iterable[int]) -> Waits | None:
    """A gang that was bound before all its members existed counts as a wait of 0 s."""
    waits = sorted(max(one, 0) / 1000 for one in found)
    if not waits:
        return None
    last = len(waits) - 1
    return Waits(
        count=len(waits), median_s=waits[last // 2], p99_s=waits[min(last, len(waits) * 99 // 100)]
    )
