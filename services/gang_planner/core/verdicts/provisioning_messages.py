"""What a verdict has about the ProvisioningRequests of its gang: sentences, conditions, and the
requests that the controller creates and deletes.
"""

from typing import Final

from services.gang_planner.core.state.existing_requests import request_of, requests_of
from services.gang_planner.core.state.gang_requests import class_of, is_served, parameters_of
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.planner_state import State
from shared.contracts.annotations import PROVISIONING_CLASS
from shared.contracts.provisioning import POD_SETS_MAX
from shared.contracts.verdicts import PodSet, Provisioning, Verdict
from shared.kube.resources import PROVISIONING_REQUESTS
from shared.model.reference_objects import ProvisioningRequest

#: The autoscaler may still add nodes for a request in these states.
_UNANSWERED: Final = frozenset({"", "Accepted"})
_FAILED: Final = frozenset({"Failed", "CapacityRevoked"})


def awaits_words(state: State, gang: Gang) -> str:
    found = request_of(state, gang)
    if found is None:
        return f"its ProvisioningRequest {_name(gang)} is not created yet"
    progress = "is accepted and" if found.state == "Accepted" else "is"
    words = f"its ProvisioningRequest {found.name} {progress} not provisioned yet"
    return f"{words}: {found.message}" if found.message else words


def failed_words(state: State, gang: Gang) -> str:
    found = request_of(state, gang)
    if found is None:
        return f"its ProvisioningRequest {_name(gang)} failed, and is deleted"
    return f"{_failure(found)}; Tutti makes another one later"


def unavailable_words(state: State, gang: Gang) -> str:
    if not is_served(state.view.synced):
        title = f"{PROVISIONING_REQUESTS.title}/{PROVISIONING_REQUESTS.version}"
        return (
            f"queue {gang.queue.name} asks for ProvisioningRequests (annotation "
            f"{PROVISIONING_CLASS}), and the API server does not serve {title}"
        )
    sets = len(gang.request.sets) if gang.request is not None else 0
    return f"its pods have {sets} shapes, and a ProvisioningRequest has at most {POD_SETS_MAX}"


def provisioned_message(state: State, gang: Gang) -> str | None:
    """The message of the condition Provisioned; None: it is not True. The booking of a gang that
    has been placed ends, because its pods use the capacity.
    """
    found = request_of(state, gang)
    if found is None:
        return None
    kept = found.state == "Provisioned" or (found.state == "BookingExpired" and gang.have() > 0)
    return _described(found) if kept else None


def failure(state: State, gang: Gang) -> tuple[str, str] | None:
    """Reason and message of the condition ProvisioningFailed; None: it is not True."""
    found = request_of(state, gang)
    return (found.state, _failure(found)) if found is not None and found.state in _FAILED else None


def requests(state: State, gang: Gang) -> Provisioning | None:
    """The requests to create and to delete for a gang; None: there are none."""
    existing = requests_of(state, gang)
    if gang.have() or gang.history.started:
        # Its capacity is in use: what is not provided yet is not needed any more.
        return _deletion([one.name for one in existing if one.state in _UNANSWERED])
    request = gang.request
    if request is None:
        # A planner that took over may not have assessed the gang's request yet.
        return None if class_of(gang.queue) else _deletion([one.name for one in existing])
    others = [one for one in existing if one.name != str(request.name)]
    found = request_of(state, gang)
    if not request.open or (found is not None and found.state not in _UNANSWERED):
        # Those of earlier attempts stay until the next one is created.
        return _deletion([one.name for one in others if one.digest != request.name.digest])
    pod_sets = _pod_sets(gang)
    if pod_sets is None:
        return None
    return Provisioning(
        request=str(request.name),
        class_name=class_of(gang.queue),
        parameters=parameters_of(gang.queue),
        pod_sets=pod_sets,
        obsolete=tuple(one.name for one in others),
    )


def requests_of_gone(state: State, last: Verdict) -> Provisioning | None:
    """The requests of a gang that is gone, with those that its last verdict names."""
    known = state.reference_objects.provisioning_requests
    names = {one.name for one in known.of_gang(last.gang_id, last.namespace)}
    if last.provisioning is not None:
        names.update((last.provisioning.request, *last.provisioning.obsolete))
    return _deletion(sorted(names - {""}))


def meaning(state: State, gang: Gang) -> tuple[object, ...]:
    """The parts whose changes are published at once; () for gangs without requests."""
    found = request_of(state, gang)
    if gang.request is None and found is None:
        return ()
    return requests(state, gang), *((found.state, found.reason) if found is not None else ())


def _pod_sets(gang: Gang) -> tuple[PodSet, ...] | None:
    """The sets of the gang's request, each with its first waiting pod; None: a shape has none."""
    sets: list[PodSet] = []
    by_shape: dict[int, list[tuple[str, str]]] = {}
    for (_, shape_id), members in gang.waiting.items():
        pods = by_shape.setdefault(shape_id, [])
        pods.append(min((one.pod.name, one.pod.uid) for one in members.values()))
    for shape_id, count in gang.request.sets if gang.request is not None else ():
        if shape_id not in by_shape:
            return None
        name, uid = min(by_shape[shape_id])
        sets.append(PodSet(name=name, uid=uid, count=count))
    return tuple(sets)


def _deletion(names: list[str]) -> Provisioning | None:
    return Provisioning(obsolete=tuple(names)) if names else None


def _name(gang: Gang) -> str:
    return str(gang.request.name) if gang.request is not None else ""


def _failure(found: ProvisioningRequest) -> str:
    what = "failed" if found.state == "Failed" else "lost its capacity"
    words = f"ProvisioningRequest {found.name} {what}"
    return f"{words}: {found.message}" if found.message else words


def _described(found: ProvisioningRequest) -> str:
    words = f"ProvisioningRequest {found.name}"
    return f"{words}: {found.message}" if found.message else words
