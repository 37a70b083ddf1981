"""The ledger: the used, deserved, promised and reserved amounts of each queue, and its limit.

It is computed from the gangs, so that a standby, which runs no cycles and has no backlog, can
answer.
"""

from collections.abc import Iterable, Iterator, Sequence
from heapq import nsmallest
from typing import Final

from services.gang_planner.core.placement.session import Session
from services.gang_planner.core.queries.queue_figures import amounts_of_subtrees
from services.gang_planner.core.queueing import fair_share
from services.gang_planner.core.queueing.need import need_of
from services.gang_planner.core.state.amounts import in_words, listed
from services.gang_planner.core.state.columns import add_amounts
from services.gang_planner.core.state.gang_table import GangTable
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.needs import Need
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from services.gang_planner.core.state.queued_demand import QueuedDemand
from services.gang_planner.core.state.queues import QueueEntry
from services.gang_planner.core.state.titles import title_of
from services.gang_planner.core.verdicts.new_nodes import Forecast
from services.gang_planner.core.verdicts.quota_messages import queue_refusal
from shared.contracts import codec, reasons
from shared.contracts.annotations import RUN_LIMIT_MAX
from shared.contracts.questions import (
    LedgerAmount,
    LedgerAnswer,
    LedgerQueue,
    LedgerReservation,
    LedgerTotal,
)
from shared.contracts.subjects import PAGE_BYTES_MAX

#: Maximum number of resources listed for one queue; clusters have fewer.
_RESOURCES_MAX = 32
#: Maximum number of gangs listed with the most pods of a queue.
_HOLDERS_MAX = 5
#: Maximum number of reservations listed for one queue; the rest are counted.
_RESERVATIONS_MAX: Final = 20
#: Maximum number of needs that are tried for one ledger. Queues with further ones may wait for
#: capacity.
_NEEDS_MAX: Final = 100
#: Reason of reservations for pods that wait for their victims to leave.
_PREEMPTING: Final = "Preempting"
#: Bytes of the queues of a page, less the last one: the totals of their resources are smaller, so
#: both are a page.
_QUEUES_BYTES_MAX: Final = PAGE_BYTES_MAX // 2


def ledger(state: State, session: Session, after: str = "") -> LedgerAnswer:
    """A page of the amounts of queues that exist or that gangs name which have not ended, sorted by
    name: those with names greater than `after`.
    """
    session.begin()
    state.queues.limit(state.nodes.changes.position, lambda: session.totals)
    demand = QueuedDemand()
    lines: dict[str, _Line] = {name: _Line(entry) for name, entry in state.queues.entries.items()}
    for gang in state.gangs.gangs.values():
        line = lines.get(gang.queue.name)
        if line is not None and not gang.silent:
            line.count(state, gang, demand)
    fair_share.share_out(state, session, demand, alone=True)
    # `fair_share.wanted` has demand only while several queues share.
    waits, promises = (
        amounts_of_subtrees(state.queues, state.shapes.entries, demand.by_queue),
        _promises(state.gangs),
    )
    gangs: dict[str, list[Gang]] = {}
    for line in lines.values():
        for entry in line.entry.chain:
            gangs.setdefault(entry.name, []).extend(line.waiting)
    impossible = _ImpossibleGangs(state, session)
    names = sorted(name for name, line in lines.items() if name > after and line.is_listed)
    queues = _page(
        lines[name].summary(
            state,
            session,
            waits.get(name, {}),
            promises.get(name, {}),
            impossible.in_words(gangs.get(name, ())),
        )
        for name in names
    )
    return LedgerAnswer(
        queues=queues,
        shared=session.policies.deserve is not None,
        totals=_totals(state, session, demand, queues),
        more=len(queues) < len(names),
    )


def _page(queues: Iterable[LedgerQueue]) -> tuple[LedgerQueue, ...]:
    page: list[LedgerQueue] = []
    size = 0
    for queue in queues:
        page.append(queue)
        size += len(codec.encode(queue))
        if size >= _QUEUES_BYTES_MAX:
            break
    return tuple(page)


def _totals(
    state: State, session: Session, demand: QueuedDemand, queues: tuple[LedgerQueue, ...]
) -> tuple[LedgerTotal, ...]:
    """The total of each listed resource, and how much of it gangs can use: no more, although they
    may hold more, of nodes that are gone or became smaller.
    """
    names = sorted({amount.resource for queue in queues for amount in queue.amounts})
    usable = fair_share.usable_amounts(state.queues, state.reservations, session, demand)
    totals = session.totals
    rows = [(name, state.resources.row(name)) for name in names]
    return tuple(
        LedgerTotal(resource=name, total=totals[row], usable=min(usable[row], totals[row]))
        for name, row in rows
        if row < min(len(totals), len(usable))
    )


def _promises(gangs: GangTable) -> dict[str, dict[int, int]]:
    """Minima of admitted gangs of which no member is placed, by queue name and resource row,
    including each queue's subtree.

    A standby's `QueueEntry.promised` is not used: only cycles withdraw a promise when its gang is
    placed.
    """
    promises: dict[str, dict[int, int]] = {}
    for gang in gangs.gangs.values():
        promised = gang.queue.promises.get(gang.gang_id)
        if promised is None or gang.history.started or gang.have():
            continue
        for entry in gang.queue.chain:
            of_queue = promises.setdefault(entry.name, {})
            for row, amount in promised.items():
                of_queue[row] = of_queue.get(row, 0) + amount
    return promises


class _ImpossibleGangs:
    """Answers for one state of the nodes and queues, which must not change in its lifetime."""

    def __init__(self, state: State, session: Session) -> None:
        self._state = state
        self._forecast = Forecast(state, session)
        self._exceeded: dict[Need, str] = {}

    def in_words(self, gangs: Sequence[Gang]) -> str:
        """A message why none of a queue's waiting gangs could be placed even if all nodes and
        queues were empty; "" if one could, or if that is not known.
        """
        causes: set[str] = set()
        for gang in gangs:
            need = need_of(self._state, gang)
            if need not in self._exceeded:
                if len(self._exceeded) >= _NEEDS_MAX:
                    return ""
                self._exceeded[need] = self._exceeds(gang, need)
            if not self._exceeded[need]:
                return ""
            causes.add(self._exceeded[need])
        words = " or ".join(sorted(causes))
        return f"each of its waiting gangs {words}" if words else ""

    def _exceeds(self, gang: Gang, need: Need) -> str:
        """Why it cannot be placed; "": it could, or it lacks pods, or avoids nodes for a while."""
        if need.reserved:
            need = need.without_reserved()
        if need.quorum > need.members or need.avoid:
            return ""
        alone = gang.queue.scratch({}, keep_used=False)
        if alone.exceeded_by(need.amounts(self._state.shapes)):
            return "needs more than its limit"
        if self._state.nodes.count and self._forecast.exceeds_nodes(need, gang.queue):
            return "does not fit on the present nodes, even when they are empty"
        return ""


class _Line:
    """Counts the gangs of one queue."""

    def __init__(self, entry: QueueEntry) -> None:
        self.entry = entry
        #: Its admitted gangs with waiting members.
        self.waiting: list[Gang] = []
        self._gangs = 0
        self._running = 0
        self._outside = 0
        self._owed: dict[int, int] = {}
        self._holders: list[tuple[int, str, Gang]] = []
        self._reservations: list[LedgerReservation] = []

    def count(self, state: State, gang: Gang, demand: QueuedDemand) -> None:
        """Count one gang of the queue, unless it has ended, and add its demand to `demand`."""
        holds = state.holds.of(gang)
        if (gang.completed or gang.history.started) and not (gang.held or gang.waiting or holds):
            return
        self._gangs += 1
        self._running += gang.history.started and bool(gang.held)
        self._outside += not gang.admitted
        waiting = [
            (role, shape_id, len(members)) for (role, shape_id), members in gang.waiting.items()
        ]
        if waiting and gang.admitted:
            self.waiting.append(gang)
            if self.entry.queue is not None and self.entry.fault is None:
                demand.add(self.entry.name, waiting, 1)
        if gang.held:
            self._holders.append((-sum(gang.held.values()), gang.full_name, gang))
        for hold in holds:
            add_amounts(self._owed, hold.shape.pairs)
        kept = [(hold.reason, hold.shape, hold.until_ms) for hold in holds if hold.reservation]
        kept += [
            (_PREEMPTING, held.shape, held.until_ms) for held in state.preemptions.held_of(gang)
        ]
        if kept:
            self._reservations += _reservations(state, gang, kept)

    @property
    def is_listed(self) -> bool:
        """Whether the queue exists, or a gang that has not ended names it."""
        return self.entry.queue is not None or self._gangs > 0

    def summary(
        self,
        state: State,
        session: Session,
        waits: dict[int, int],
        promises: dict[int, int],
        impossible: str,
    ) -> LedgerQueue:
        """The queue's entry in the ledger; `waits` is its demand by resource row, `promises` what
        was promised to its gangs, `impossible` why none of its waiting gangs can be placed.
        """
        entry = self.entry
        names = state.resources.names
        sums = (
            entry.used,
            promises,
            entry.capability,
            entry.guarantee,
            entry.declared,
            self._owed,
            waits,
        )
        rows = {row for by_row in sums for row, amount in by_row.items() if amount}
        amounts = tuple(
            self._amount(row, names[row], waits, promises)
            for row in sorted(rows, key=lambda row: names[row])[:_RESOURCES_MAX]
        )
        queue = entry.queue
        return LedgerQueue(
            name=entry.name,
            exists=queue is not None,
            parent=queue.parent if queue is not None else "",
            state=queue.state if queue is not None else "",
            weight=entry.weight,
            priority=entry.priority,
            strict=entry.strict,
            reclaimable=entry.reclaimable,
            run_limit_max=dict(queue.settings).get(RUN_LIMIT_MAX, "") if queue is not None else "",
            running=self._running,
            waiting=len(self.waiting),
            outside=self._outside,
            amounts=amounts,
            holders=tuple(
                title_of(state, gang)
                for _, _, gang in nsmallest(_HOLDERS_MAX, self._holders, _order)
            ),
            why=_why(entry, amounts, impossible, shares=session.policies.deserve is not None),
            reservations=tuple(sorted(self._reservations, key=_by_end)[:_RESERVATIONS_MAX]),
            reservations_count=len(self._reservations),
        )

    def _amount(
        self, row: int, name: str, waits: dict[int, int], promises: dict[int, int]
    ) -> LedgerAmount:
        entry = self.entry
        return LedgerAmount(
            resource=name,
            used=entry.used.get(row, 0),
            wanted=waits.get(row, 0),
            promised=promises.get(row, 0),
            owed=self._owed.get(row, 0),
            deserved=entry.deserved.get(row),
            guarantee=entry.guarantee.get(row, 0),
            ceiling=entry.ceiling.get(row),
        )


def _reservations(
    state: State, gang: Gang, kept: Iterable[tuple[str, ShapeEntry, int]]
) -> Iterator[LedgerReservation]:
    """One for each reason, of the gang's reservations as (reason, shape, end)."""
    names = state.resources.names
    title = title_of(state, gang)
    by_reason: dict[str, list[tuple[ShapeEntry, int]]] = {}
    for reason, shape, until_ms in kept:
        by_reason.setdefault(reason, []).append((shape, until_ms))
    for reason, rows in sorted(by_reason.items()):
        amounts: dict[str, int] = {}
        for shape, _ in rows:
            for row, amount in shape.pairs:
                amounts[names[row]] = amounts.get(names[row], 0) + amount
        yield LedgerReservation(
            gang=title,
            reason=reason,
            amounts=tuple(sorted(amounts.items())[:_RESOURCES_MAX]),
            count=len(rows),
            until_ms=max(until_ms for _, until_ms in rows),
        )


def _order(holder: tuple[int, str, Gang]) -> tuple[int, str]:
    return holder[:2]


def _by_end(held: LedgerReservation) -> tuple[int, str, str]:
    return -held.until_ms, held.gang, held.reason


def _why(
    entry: QueueEntry, amounts: tuple[LedgerAmount, ...], impossible: str, *, shares: bool
) -> str:
    """What limits the queue now, in one sentence; `impossible` as of `_ImpossibleGangs`."""
    if (refusal := queue_refusal(entry)) is not None:
        return reasons.in_words(refusal)
    if impossible:
        return impossible
    full = [row for row in amounts if row.ceiling is not None and row.used >= row.ceiling]
    if full and any(row.wanted for row in full):
        limits = [in_words(row.resource, row.ceiling or 0) for row in full]
        return f"it is at its limit of {listed(limits)}"
    shared = [row for row in amounts if row.deserved is not None]
    over = [row for row in shared if row.deserved is not None and row.used > row.deserved]
    if over:
        return f"it holds more than it deserves of {listed([row.resource for row in over])}"
    claims = [
        row for row in shared if row.deserved is not None and row.wanted and row.used < row.deserved
    ]
    if claims:
        return f"it claims {_missing(claims)} more, up to what it deserves"
    if any(row.wanted for row in amounts):
        waits = "its gangs wait for capacity"
        return waits if shares else f"{waits}; nothing is shared"
    return ""


def _missing(amounts: list[LedgerAmount]) -> str:
    return listed([in_words(row.resource, (row.deserved or 0) - row.used) for row in amounts])
