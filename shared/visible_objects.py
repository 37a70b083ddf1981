"""Objects of the API `visibility.tutti.dev` from answers of the planner."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

from shared.contracts.questions import (
    FitAnswer,
    LedgerAmount,
    LedgerAnswer,
    LedgerQueue,
    LedgerReservation,
    LedgerTotal,
)
from shared.contracts.visibility import (
    API_VERSION,
    Displacement,
    GangFit,
    NamedGangs,
    NodePlacement,
    ObjectMeta,
    Queue,
    QueueAmounts,
    QueueGangs,
    QueueReservation,
    QueueStatus,
)
from shared.kube.quantities import format_quantity

#: Nodes in one gang's placement, and names in one list.
NODES_MAX: Final = 1_000
_NAMES_MAX: Final = 10


def build_queues(ledger: LedgerAnswer, visible: frozenset[str] | None) -> list[Queue]:
    """The objects of the ledger's queues; gangs of `visible` namespaces are named (None: all)."""
    totals = {one.resource: one for one in ledger.totals}
    return [_queue(one, visible, totals, shared=ledger.shared) for one in ledger.queues]


def _queue(
    queue: LedgerQueue,
    visible: frozenset[str] | None,
    totals: Mapping[str, LedgerTotal],
    *,
    shared: bool,
) -> Queue:
    return Queue(
        api_version=API_VERSION,
        kind="Queue",
        metadata=ObjectMeta(name=queue.name),
        status=QueueStatus(
            exists=queue.exists,
            state=queue.state,
            parent=queue.parent,
            weight=queue.weight,
            priority=queue.priority,
            strict=queue.strict,
            reclaimable=queue.reclaimable,
            gangs=QueueGangs(
                running=queue.running, waiting=queue.waiting, not_admitted=queue.outside
            ),
            resources=tuple(_amounts(one, totals.get(one.resource)) for one in queue.amounts),
            holders=visible_gangs(queue.holders, visible),
            message=queue.why,
            reservations=tuple(_reservation(one, visible) for one in queue.reservations),
            reservations_count=queue.reservations_count,
            shared=shared,
        ),
    )


def _reservation(one: LedgerReservation, visible: frozenset[str] | None) -> QueueReservation:
    seen = visible is None or one.gang.partition("/")[0] in visible
    return QueueReservation(
        gang=one.gang if seen else "",
        reason=one.reason,
        resources={name: format_quantity(name, found) for name, found in one.amounts},
        count=one.count,
        until=datetime.fromtimestamp(one.until_ms / 1_000, UTC) if one.until_ms > 0 else None,
    )


def _amounts(one: LedgerAmount, total: LedgerTotal | None) -> QueueAmounts:
    def text(amount: int | None) -> str:
        return "" if amount is None else format_quantity(one.resource, amount)

    return QueueAmounts(
        resource=one.resource,
        used=text(one.used),
        wanted=text(one.wanted),
        promised=text(one.promised),
        reserved=text(one.owed),
        guarantee=text(one.guarantee),
        deserved=text(one.deserved),
        limit=text(one.ceiling),
        cluster=text(total.total if total is not None else None),
        usable=text(total.usable if total is not None else None),
    )


def build_gang_fit(
    name: str,
    members: int,
    answer: FitAnswer,
    visible: frozenset[str] | None,
    *,
    namespace: str = "",
) -> GangFit:
    """The answer for one gang of this name and number of pods; other gangs of `visible`
    namespaces are named (None: all). `namespace`: if it is not the Fit's.
    """
    return GangFit(
        name=name,
        namespace=namespace,
        members=members,
        fits=answer.fits,
        ever=answer.ever,
        needs_nodes=answer.needs_nodes,
        refused=answer.refused,
        message=answer.sentence,
        placement=tuple(
            NodePlacement(node=node, members=count) for node, count in answer.where[:NODES_MAX]
        ),
        displaces=_displaced(answer, visible),
    )


def _displaced(answer: FitAnswer, visible: frozenset[str] | None) -> Displacement | None:
    named = visible_gangs(tuple(gang for gang, _ in answer.displaces), visible)
    if named is None:
        return None
    return Displacement(
        action="preempt" if answer.displaces_by == "preempt" else "reclaim",
        members=sum(count for _, count in answer.displaces),
        gangs=named,
    )


def visible_gangs(names: tuple[str, ...], visible: frozenset[str] | None) -> NamedGangs | None:
    """Gangs ("namespace/name") with the names of those in `visible` namespaces; None: none."""
    seen = [one for one in names if visible is None or one.partition("/")[0] in visible]
    return named_gangs(seen, len(names), None)


def named_gangs(names: Iterable[str], count: int, namespace: str | None) -> NamedGangs | None:
    """Gangs ("namespace/name") of which there are `count`, or as many as names; with names of
    `namespace` only, or of all (None). None: there are none.
    """
    known = tuple(names)
    whole = max(count, len(known))
    if not whole:
        return None
    if namespace is not None:
        known = tuple(one for one in known if one.startswith(f"{namespace}/"))
    return NamedGangs(count=whole, names=known[:_NAMES_MAX])
