"""What a verdict has about the ProvisioningRequests of its gang: sentences, conditions, and the
requests that the controller creates and deletes.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from services.gang_planner.core.queueing.requested_capacity import (
    asked_request,
    unrequestable_words,
)
from services.gang_planner.core.state.existing_requests import (
    LOST,
    UNANSWERED,
    request_of,
    requests_of,
)
from services.gang_planner.core.state.gang_requests import (
    class_of,
    is_served,
    parameters_of,
)
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.holds import HoldTable
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.pod_shapes import ShapeTable
from services.gang_planner.core.state.reference_objects import ReferenceObjects
from shared.contracts.annotations import PROVISIONING_CLASS
from shared.contracts.pending_reasons import PendingReason
from shared.contracts.verdicts import PodSet, Provisioning, Verdict
from shared.kube.resources import PROVISIONING_REQUESTS
from shared.model.reference_objects import ProvisioningRequest, ProvisioningState

#: Requests deleted at a time; the next verdict names more, once CLUSTER shows that these are gone.
#: A user may create any number under names like a gang's.
_OBSOLETE_MAX: Final = 100
_ENDINGS: Final[dict[ProvisioningState, str]] = {
    "Failed": "failed",
    "CapacityRevoked": "lost its capacity",
    "BookingExpired": "was provisioned, and its capacity is no longer kept",
}


def awaits_words(state: State, gang: Gang) -> str:
    request = request_of(state.reference_objects, gang)
    if request is None:
        return f"its ProvisioningRequest {_name(gang)} is not created yet"
    if _is_overdue(gang):
        return f"its {_unaccepted_words(gang, request)}"
    progress = "is accepted and" if request.state == "Accepted" else "is"
    words = f"its ProvisioningRequest {request.name} {progress} not provisioned yet"
    return f"{words}: {request.message}" if request.message else words


def failed_words(state: State, gang: Gang) -> str:
    request = request_of(state.reference_objects, gang)
    if request is None:
        return f"its {_refusal_words(gang)}" if _refusal(gang) else "its ProvisioningRequest failed"
    return f"{_failure(request)}; Tutti makes another one later"


def unavailable_words(state: State, gang: Gang) -> str:
    if not is_served(state.view.synced):
        title = f"{PROVISIONING_REQUESTS.title}/{PROVISIONING_REQUESTS.version}"
        return (
            f"queue {gang.queue.name} asks for ProvisioningRequests (annotation "
            f"{PROVISIONING_CLASS}), and the API server does not serve {title}"
        )
    return unrequestable_words(state.shapes, asked_request(gang))


def provisioned_message(reference_objects: ReferenceObjects, gang: Gang) -> str | None:
    """The message of the condition Provisioned; None: it is not True. The booking of a gang that
    has been placed ends, because its pods use the capacity.
    """
    request = request_of(reference_objects, gang)
    if request is None:
        return None
    kept = request.state == "Provisioned" or (request.state == "BookingExpired" and gang.have() > 0)
    return _described(request) if kept else None


def failure(reference_objects: ReferenceObjects, gang: Gang) -> tuple[str, str] | None:
    """Reason and message of the condition ProvisioningFailed; None: it is not True."""
    request = request_of(reference_objects, gang)
    if request is None:
        return ("Refused", _refusal_words(gang)) if _refusal(gang) else None
    if _is_overdue(gang):
        return "NotAccepted", _unaccepted_words(gang, request)
    failed = gang.pending_reason is PendingReason.PROVISIONING_FAILED
    if request.state == "BookingExpired" and not failed:
        # The booking ends when the gang is placed, because its pods use the capacity.
        return None
    return (request.state, _failure(request)) if request.state in LOST else None


def requests(state: State, gang: Gang) -> Provisioning | None:
    """The requests to create and to delete for a gang; None: there are none."""
    existing = requests_of(state.reference_objects, gang)
    if _is_placed(state.holds, gang):
        # cluster-autoscaler books the capacity of a request for ten minutes, beside the pods.
        return _deletion(existing)
    if gang.have() or gang.history.started:
        # Its capacity is in use: what is not provided yet is not needed any more.
        return _deletion([other for other in existing if other.state in UNANSWERED])
    request = gang.request
    if request is None:
        # A planner that took over may not have assessed the gang's request yet.
        return None if class_of(gang.queue) else _deletion(existing)
    if request.lapsed:
        return _deletion(existing)
    others = [other for other in existing if other.name != str(request.name)]
    observed = request_of(state.reference_objects, gang)
    if not request.open or (observed is None and not _waits_for_request(gang)):
        # Those of earlier attempts stay until the next one is created. A gang that has lost a
        # member in the meantime buys nothing.
        return _deletion([other for other in others if other.digest != request.name.digest])
    if observed is not None and observed.state not in UNANSWERED:
        return _deletion(others)
    pod_sets = _pod_sets(state.shapes, gang)
    if pod_sets is None:
        return None
    return Provisioning(
        request=str(request.name),
        class_name=class_of(gang.queue),
        parameters=parameters_of(gang.queue),
        pod_sets=pod_sets,
        obsolete=tuple(other.name for other in others[:_OBSOLETE_MAX]),
        obsolete_uids=tuple(other.uid for other in others[:_OBSOLETE_MAX]),
        repeats=request.repeats,
        refusal=request.refusal,
    )


def with_requests_of_gone(
    state: State, gang_id: str, last: Verdict | None, gone: Verdict | None, now_ms: int
) -> list[Verdict]:
    """The last verdict of a gang that is gone, which deletes its requests; none if it needs none.

    Args:
        state: The planner's state.
        gang_id: The gang.
        last: Its published verdict, which may name a request that the cluster state does not show.
        gone: The verdict that ends it, without requests; None: nothing was published of it. Then a
            controller may have created a request while the gang was deleted.
        now_ms: The time of the verdict.
    """
    known = state.reference_objects.provisioning_requests
    namespace = last.namespace if last is not None else known.namespace_of(gang_id)
    uids = {request.name: request.uid for request in known.of_gang(gang_id, namespace)}
    if last is not None and last.provisioning is not None:
        for name in filter(None, (last.provisioning.request, *last.provisioning.obsolete)):
            # A controller may be creating it.
            uids.setdefault(name, "")
    if not uids:
        return [gone] if gone is not None else []
    if gone is None:
        gone = Verdict(
            gang_id=gang_id,
            epoch=state.epoch,
            at_ms=now_ms,
            dialect="",
            namespace=namespace,
            name="",
            phase="Gone",
        )
    return [msgspec.structs.replace(gone, provisioning=_deletion_of(sorted(uids.items())))]


def meaning(state: State, gang: Gang) -> tuple[object, ...]:
    """The parts whose changes are published at once; () for gangs without requests."""
    observed = request_of(state.reference_objects, gang)
    if gang.request is None and observed is None:
        return ()
    shown = (observed.state, observed.reason) if observed is not None else ()
    return requests(state, gang), _is_overdue(gang), *shown


def _pod_sets(shapes: ShapeTable, gang: Gang) -> tuple[PodSet, ...] | None:
    """The sets of the gang's request, each with its first waiting pod, and those of its units with
    the first one of all; None: a shape has none.
    """
    sets: list[PodSet] = []
    by_shape: dict[int, list[tuple[str, str]]] = {}
    for (_, shape_id), members in gang.waiting.items():
        pods = by_shape.setdefault(shape_id, [])
        pods.append(min((member.pod.name, member.pod.uid) for member in members.values()))
    request = asked_request(gang)
    for shape_id, count in request.sets:
        if shape_id not in by_shape:
            return None
        name, uid = min(by_shape[shape_id])
        sets.append(PodSet(name=name, uid=uid, count=count))
    for shape_id, count in request.units:
        name, uid = min(min(pods) for pods in by_shape.values())
        requests = shapes.entries[shape_id].shape.requests
        sets.append(PodSet(name=name, uid=uid, count=count, requests=requests))
    return tuple(sets)


def _is_placed(holds: HoldTable, gang: Gang) -> bool:
    """Whether all pods for which the gang's capacity was requested are bound, or were.

    Capacity that is reserved for later pods of its `minResources` is still free in the eyes of an
    autoscaler, which therefore keeps booking it.
    """
    if gang.history.started:
        return not any(hold.reserving for hold in holds.of(gang))
    # All its pods may be gone before the controller has deleted the request.
    return gang.history.dormant and not gang.members and gang.request is None


def _deletion(obsolete: Sequence[ProvisioningRequest]) -> Provisioning | None:
    return _deletion_of([(request.name, request.uid) for request in obsolete]) if obsolete else None


def _deletion_of(obsolete: Sequence[tuple[str, str]]) -> Provisioning:
    """The deletion of requests, given by name and UID."""
    chosen = obsolete[:_OBSOLETE_MAX]
    return Provisioning(
        obsolete=tuple(name for name, _ in chosen),
        obsolete_uids=tuple(uid for _, uid in chosen),
    )


def _name(gang: Gang) -> str:
    return str(gang.request.name) if gang.request is not None else ""


def _waits_for_request(gang: Gang) -> bool:
    return gang.pending_reason in {
        PendingReason.AWAITS_PROVISIONING,
        PendingReason.PROVISIONING_FAILED,
    }


def _is_overdue(gang: Gang) -> bool:
    return gang.request is not None and gang.request.overdue


def _refusal(gang: Gang) -> str:
    return gang.request.refusal if gang.request is not None else ""


def _refusal_words(gang: Gang) -> str:
    return (
        f"ProvisioningRequest {_name(gang)} is not created, because the API server refuses it: "
        f"{_refusal(gang)}"
    )


def _unaccepted_words(gang: Gang, request: ProvisioningRequest) -> str:
    return (
        f"ProvisioningRequest {request.name} was accepted by no autoscaler for two minutes: does "
        f"one serve the class {class_of(gang.queue)}, and does cluster-autoscaler have "
        "--enable-provisioning-requests?"
    )


def _failure(request: ProvisioningRequest) -> str:
    words = f"ProvisioningRequest {request.name} {_ENDINGS.get(request.state, 'failed')}"
    return f"{words}: {request.message}" if request.message else words


def _described(request: ProvisioningRequest) -> str:
    words = f"ProvisioningRequest {request.name}"
    return f"{words}: {request.message}" if request.message else words
