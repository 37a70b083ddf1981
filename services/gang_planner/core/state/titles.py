"""Names of gangs in messages: the object that their user created, as "team/jobset/train".

A pod refers to its next owner only, and a group to its own. The objects above them are followed in
what CLUSTER has: pods, and the workloads that `successors` needs (Jobs, JobSets, …), each of which
has the name of its own owner, of whatever kind.
"""

from typing import Final

import msgspec

from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.successors import topmost, workload_of
from shared.model.objects import Labels, Owner, Pod

#: Pods above a pod that are followed: a Spark driver is above its executors, a leader above its
#: workers.
_PODS_MAX: Final = 3
#: The Deployment controller appends the value of this label to its own name.
_HASH: Final = "pod-template-hash"

_labels: Final = msgspec.msgpack.Decoder(Labels).decode


def title_of(state: State, gang: Gang) -> str:
    """The gang's name in messages: its namespace, and kind and name of the topmost known owner, or
    else the gang's own name. With its dialect, or the scope of its name, where a gang of another
    scope has the same name.
    """
    name = _owner_title(state, gang) or gang.name
    distinction = state.gangs.distinction(gang)
    return f"{gang.namespace}/{name}" + (f" ({distinction})" if distinction else "")


def _owner_title(state: State, gang: Gang) -> str:
    """Kind and name of the topmost known owner of the gang's group, else of its first member that
    has an owner; "": none has one.
    """
    owner = gang.group.owner if gang.group is not None else None
    pods = (member.pod for member in gang.members.values())
    pod = next((one for one in pods if one.owner is not None), None)
    if owner is None and pod is not None:
        return _of_pod(state, pod)
    return _of_owner(state, owner, pod) if owner is not None else ""


def _of_pod(state: State, pod: Pod) -> str:
    """The title of the topmost known owner of a pod; "": it has none."""
    for _ in range(_PODS_MAX):
        workload = workload_of(state, pod)
        if workload is not None and workload.title:
            return workload.title
        if pod.owner is None:
            return f"pod/{pod.name}"
        above = state.members.get(pod.owner.uid)
        if above is None:
            return _name(pod.owner, pod)
        pod = above.pod
    return f"pod/{pod.name}"


def _of_owner(state: State, owner: Owner, pod: Pod | None) -> str:
    """The title of the topmost known object above a group's owner. `pod`: one of its members."""
    workload = state.reference_objects.workloads.get(owner.uid)
    if workload is not None:
        return topmost(state, workload).title or _name(owner, pod)
    above = state.members.get(owner.uid)
    return _of_pod(state, above.pod) if above is not None else _name(owner, pod)


def _name(owner: Owner, pod: Pod | None) -> str:
    """Kind and name of an owner; of a Deployment instead of its ReplicaSet, as the labels of their
    `pod` show.
    """
    kind, name = owner.kind.lower(), owner.name
    if kind == "replicaset" and pod is not None and pod.labels:
        suffix = f"-{dict(_labels(pod.labels)).get(_HASH, '')}"
        if len(suffix) > 1 and name.endswith(suffix):
            return f"deployment/{name.removesuffix(suffix)}"
    return f"{kind}/{name}"
