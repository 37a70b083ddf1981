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
    totals = {total.resource: total for total in ledger.totals}
    return [_queue(queue, visible, totals, shared=ledger.shared) for queue in ledger.queues]


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
            resources=tuple(
                _amounts(amounts, totals.get(amounts.resource)) for amounts in queue.amounts
            ),
            holders=visible_gangs(queue.holders, visible),
            message=queue.why,
            reservations=tuple(_reservation(kept, visible) for kept in queue.reservations),
            reservations_count=queue.reservations_count,
            shared=shared,
        ),
    )


def _reservation(kept: LedgerReservation, visible: frozenset[str] | None) -> QueueReservation:
    seen = visible is None or kept.gang.partition("/")[0] in visible
    return QueueReservation(
        gang=kept.gang if seen else "",
        reason=kept.reason,
        resources={name: format_quantity(name, quantity) for name, quantity in kept.amounts},
        count=kept.count,
        until=datetime.fromtimestamp(kept.until_ms / 1_000, UTC) if kept.until_ms > 0 else None,
    )


def _amounts(amounts: LedgerAmount, total: LedgerTotal | None) -> QueueAmounts:
    def text(amount: int | None) -> str:
        return "" if amount is None else format_quantity(amounts.resource, amount)

    return QueueAmounts(
        resource=amounts.resource,
        used=text(amounts.used),
        wanted=text(amounts.wanted),
        promised=text(amounts.promised),
        reserved=text(amounts.owed),
        guarantee=text(amounts.guarantee),
        deserved=text(amounts.deserved),
        limit=text(amounts.ceiling),
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
    seen = [gang for gang in names if visible is None or gang.partition("/")[0] in visible]
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
        known = tuple(gang for gang in known if gang.startswith(f"{namespace}/"))
    return NamedGangs(count=whole, names=known[:_NAMES_MAX])
