"""Builds a Gang from its verdict and its pods.

A user with the right to list pods in all namespaces sees the names of all gangs; other users see
those of the gang's own namespace, as on the group itself
(`services/controller/core/statuses/annotation.py`).
"""

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Final, TypeAlias

import msgspec

from services.api.core.versions import Version
from shared.contracts.questions import StartEstimate
from shared.contracts.verdicts import Reason, ShapeReport, Verdict, Why
from shared.contracts.visibility import (
    API_VERSION,
    Gang,
    GangCondition,
    GangStatus,
    MemberCounts,
    NodePlacement,
    ObjectMeta,
    PendingStatus,
    PlacementRefusal,
    RoleSearch,
    RoleStatus,
)
from shared.kube.quantities import format_quantity
from shared.model.gang_keys import gang_title
from shared.model.objects import Pod
from shared.visible_objects import NODES_MAX, named_gangs

#: Roles in one gang: each of its pods may have one of its own.
_ROLES_MAX: Final = 1_000

TraceUrl: TypeAlias = Callable[[str], str]
"""The address of a trace by its id; "": there is none."""


def no_trace_url(_trace_id: str) -> str:
    """As `TraceUrl`: no trace has an address."""
    return ""


def build_gang(
    verdict: Verdict,
    name: str,
    owner: str,
    members: Iterable[Pod],
    version: Version,
    trace_url: TraceUrl,
    *,
    sees_all: bool,
) -> Gang:
    """The object of a gang that is not gone. `sees_all`: for users that see all namespaces."""
    roles, nodes = _counted(members)
    return Gang(
        api_version=API_VERSION,
        kind="Gang",
        metadata=ObjectMeta(
            name=name,
            namespace=verdict.namespace,
            uid=verdict.uid or verdict.gang_id,
            resource_version=version.text(),
            creation_timestamp=instant(verdict.first_seen_ms // 1000 * 1000),
        ),
        status=GangStatus(
            phase="Completed" if verdict.phase == "Gone" else verdict.phase,
            owner=owner,
            title=gang_title(name, owner),
            queue=verdict.queue,
            dialect=verdict.dialect,
            min_member=verdict.min_member,
            members=MemberCounts(
                total=verdict.members,
                pending=verdict.pending,
                running=verdict.running,
                succeeded=verdict.succeeded,
                failed=verdict.failed,
            ),
            attempt=verdict.attempt,
            conditions=tuple(
                GangCondition(
                    type=condition.type,
                    status=condition.status,
                    reason=condition.reason,
                    message=condition.message,
                    last_transition_time=instant(condition.since_ms),
                )
                for condition in verdict.conditions
            ),
            pending=None
            if verdict.why is None
            else _pending(verdict.why, verdict.namespace, sees_all=sees_all),
            roles=roles,
            placement=nodes,
            domain=verdict.domain,
            node_pool=verdict.node_pool,
            trace_id=verdict.trace_id,
            trace_url=trace_url(verdict.trace_id),
        ),
    )


def instant(at_ms: int) -> datetime | None:
    """An instant in milliseconds since the epoch; 0: none."""
    return datetime.fromtimestamp(at_ms / 1000, UTC) if at_ms else None


def _counted(members: Iterable[Pod]) -> tuple[tuple[RoleStatus, ...], tuple[NodePlacement, ...]]:
    total: Counter[str] = Counter()
    placed: Counter[str] = Counter()
    running: Counter[str] = Counter()
    nodes: Counter[str] = Counter()
    for pod in members:
        total[pod.role] += 1
        if pod.node:
            placed[pod.role] += 1
            nodes[pod.node] += 1
        running[pod.role] += pod.phase == "Running"
    return (
        tuple(
            RoleStatus(name=role, members=count, placed=placed[role], running=running[role])
            for role, count in sorted(total.items())[:_ROLES_MAX]
        ),
        tuple(
            NodePlacement(node=node, members=count)
            for node, count in sorted(nodes.items())[:NODES_MAX]
        ),
    )


def _pending(why: Why, namespace: str, *, sees_all: bool) -> PendingStatus:
    seen_in = None if sees_all else namespace
    return PendingStatus(
        reason=why.reason,
        message=why.sentence,
        since=instant(why.since_ms),
        roles=tuple(_search(shape) for shape in why.shapes),
        quota=tuple(_refusal(refusal) for refusal in why.quota),
        ahead=named_gangs(why.ahead, why.ahead_count, seen_in),
        holders=named_gangs(why.holders, why.holders_count, seen_in),
    )


def _search(shape: ShapeReport) -> RoleSearch:
    return RoleSearch(
        name=shape.role,
        wanted=shape.wanted,
        fitting=shape.fit,
        nodes=shape.nodes,
        refusals=tuple(_refusal(reason) for reason in shape.reasons),
    )


def _refusal(reason: Reason) -> PlacementRefusal:
    return PlacementRefusal(
        reason=reason.reason,
        nodes=reason.count,
        resource=reason.resource,
        missing=format_quantity(reason.resource, reason.short) if reason.resource else "",
    )


class GangForms(msgspec.Struct, eq=False):
    """A gang in the forms in which it is sent, made once for each version: the object, and its
    JSON.
    """

    gang: Gang
    json: msgspec.Raw
    #: The last estimate that was joined to the gang, and the forms with it.
    estimated: tuple[StartEstimate, "GangForms"] | None = None


_encode: Final = msgspec.json.Encoder().encode


def forms_of(gang: Gang) -> GangForms:
    return GangForms(gang=gang, json=msgspec.Raw(_encode(gang)))
