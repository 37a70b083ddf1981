"""The input of an explanation: plain values read from the API server; and why no scheduler may
place the pods of an object yet: Kueue suspends objects, and gates plain pods, that it has not
admitted.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from shared.contracts.annotations import ADMISSION_GATE, LOCAL_QUEUE
from shared.contracts.pending_reasons import PendingReason
from shared.contracts.verdicts import Verdict
from shared.kube.objects import Pod as KubePod
from shared.kube.resources import DISRUPTION_BUDGETS
from shared.model.objects import GROUP_NAME_SCOPE, Owner, Pod
from tutti.why.planner_liveness import PlannerLiveness

#: Pending reasons of a gang whose pods were not created.
PODS_MISSING: Final = frozenset(
    {
        PendingReason.NOT_ENOUGH_PODS.value,
        PendingReason.NOT_ENOUGH_PODS_OF_TASK.value,
        PendingReason.NOT_ENOUGH_PODS_OF_SUB_GROUP.value,
    }
)


class MemberPod(msgspec.Struct, frozen=True, kw_only=True):
    """A pod as the scheduler sees it, and its condition PodScheduled."""

    pod: Pod
    #: `message` of its condition PodScheduled=False; "" when it has none.
    unscheduled: str = ""
    #: When that condition was set, RFC 3339.
    unscheduled_since: str = ""
    #: Kueue's LocalQueue that has not admitted the pod; "" if it waits for none.
    awaited_queue: str = ""


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """A PodGroup of any API, or a PodDisruptionBudget that may declare a gang.

    `title` is its resource, "podgroups.scheduling.volcano.sh".
    """

    title: str
    kind: str
    namespace: str
    name: str
    uid: str
    owner: Owner | None = None
    #: The scope in which its name is unique.
    scope: str = GROUP_NAME_SCOPE
    #: Whether other schedulers have groups of its API, too: its pods show whose it is.
    shared: bool = False
    min_member: int = 0
    #: None: none was written, or it cannot be read (see `unreadable`).
    verdict: Verdict | None = None
    unreadable: str = ""
    priority_class: str = ""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about the object in question."""

    kind: str
    namespace: str
    name: str
    uid: str
    #: Its pods, and the other members of their groups.
    pods: tuple[MemberPod, ...] = ()
    #: The groups of those pods, and those that it owns.
    groups: tuple[Group, ...] = ()
    #: The last Event of each pod without a verdict or condition, by pod name.
    events: dict[str, str] = {}
    #: If pods are missing: the newest warnings about the controllers that create them.
    troubles: tuple[str, ...] = ()
    #: The resources that the user may not read.
    forbidden: tuple[str, ...] = ()
    #: By UID of the direct owner of a group or a pod: the topmost owner, "job/train".
    tops: dict[str, str] = {}
    #: Why the object is suspended; "" if it is not.
    suspended: str = ""
    #: The scheduler that a Volcano Job names, if Tutti does not serve it, so that Tutti creates no
    #: pods for it; "" otherwise.
    foreign_scheduler: str = ""
    #: Other errors of the object.
    faults: tuple[str, ...] = ()
    planner: PlannerLiveness = PlannerLiveness()

    @property
    def title(self) -> str:
        """Kind and name: "TFJob train"."""
        return f"{self.kind} {self.name}"


def declared_gang(pod: Pod) -> tuple[str, str] | None:
    """Scope and name of the pod's gang if its pods declare it and it has no object; else None."""
    return (pod.group_scope, pod.group_name) if pod.group_self_declared else None


def belongs(member: MemberPod, group: Group) -> bool:
    """Whether a pod is a member of a group: by name, and of a budget by their common owner."""
    pod = member.pod
    if group.kind != DISRUPTION_BUDGETS.kind:
        return (pod.group_scope, pod.group_name) == (group.scope, group.name)
    return pod.owner is not None and group.owner is not None and pod.owner.uid == group.owner.uid


def members_of(groups: Iterable[Group], pods: Sequence[MemberPod]) -> list[MemberPod]:
    """The pods that are members of these groups."""
    all_groups = list(groups)
    return [member for member in pods if any(belongs(member, group) for group in all_groups)]


def gangs_of(uid: str, own: Sequence[MemberPod], groups: Sequence[Group]) -> list[Group]:
    """The groups of these pods, and those that the object with this UID is or owns."""
    return [
        group
        for group in groups
        if group.uid == uid
        or (group.owner is not None and group.owner.uid == uid)
        or any(belongs(member, group) for member in own)
    ]


def with_members(
    own: Sequence[MemberPod], gangs: Sequence[Group], pods: Sequence[MemberPod]
) -> list[MemberPod]:
    """Those of the pods that are an object's own or members of their gangs."""
    uids = {member.pod.uid for member in [*own, *members_of(gangs, pods)]}
    declared = {declared_gang(member.pod) for member in own} - {None}
    return [
        member for member in pods if member.pod.uid in uids or declared_gang(member.pod) in declared
    ]


def suspended(spec: Any, status: Any, labels: Mapping[str, str]) -> str:
    """Why an object of any kind is suspended; "" if it is not.

    Kubeflow's kinds have `runPolicy.suspend`; a Volcano Job that was suspended has the phase
    Aborted; Kueue suspends workloads that it has not admitted.
    """
    spec = spec if isinstance(spec, dict) else {}
    policy = spec.get("runPolicy")
    policy = policy if isinstance(policy, dict) else {}
    for path, holder in (("spec.suspend", spec), ("spec.runPolicy.suspend", policy)):
        if holder.get("suspend") is True:
            queue = labels.get(LOCAL_QUEUE, "")
            by = f"; {not_admitted(queue)}" if queue else ""
            return f"{path} is true{by}"
    state = status.get("state") if isinstance(status, dict) else None
    phase = state.get("phase") if isinstance(state, dict) else None
    if phase in {"Aborted", "Aborting"}:
        return f"it is {phase}; `tutti job resume` starts it again"
    return ""


def awaited_queue_of_pod(pod: KubePod) -> str:
    """Kueue's LocalQueue that has not admitted a pod; "" if it waits for none."""
    gated = any(gate.name == ADMISSION_GATE for gate in pod.spec.scheduling_gates)
    return pod.metadata.labels.get(LOCAL_QUEUE, "") if gated else ""


def not_admitted(queue: str) -> str:
    """What an object or a gang that waits for a LocalQueue waits for."""
    return f"Kueue's LocalQueue {queue} has not admitted it"
