"""Taints and tolerations; sets of taints are interned, because many nodes share them.

A cordoned or not ready node is treated as if it had the taint that the node controller sets
(`UNSCHEDULABLE`, `NOT_READY`). Tolerations therefore apply even before, or without, that taint.
"""

from collections.abc import Sequence
from typing import Final

from shared.model.devices import DeviceTaint, DeviceToleration
from shared.model.objects import Taint, Toleration

UNSCHEDULABLE: Final = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
NOT_READY: Final = Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule")
#: Taints of nodes that are not complete yet: a controller removes them when the node is.
_STARTING: Final = frozenset(
    {"node.cloudprovider.kubernetes.io/uninitialized", "karpenter.sh/unregistered"}
)
#: The same of cluster-autoscaler, by the beginning of the key; and nodes that are for no pods for
#: the time being.
_STARTING_PREFIXES: Final = (
    "ignore-taint.cluster-autoscaler.kubernetes.io/",
    "startup-taint.cluster-autoscaler.kubernetes.io/",
    "status-taint.cluster-autoscaler.kubernetes.io/",
)
#: Taints of nodes that an autoscaler drains and then removes. cluster-autoscaler's
#: DeletionCandidateOfClusterAutoscaler is none: it only asks to avoid the node (PreferNoSchedule).
_LEAVING: Final = frozenset(
    {"ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted", "karpenter.sh/disruption"}
)
#: Beginning of the keys of taints by which Kubernetes marks a node that is out of service for a
#: time: not ready, unreachable, cordoned, under pressure.
_CONDITION_PREFIX: Final = "node.kubernetes.io/"
_KEEPS_OUT: Final = frozenset({"NoSchedule", "NoExecute"})


def tolerates(
    tolerations: Sequence[Toleration] | Sequence[DeviceToleration], taint: Taint | DeviceTaint
) -> bool:
    """Whether a toleration matches the taint by Kubernetes' rules; unknown operators never do."""
    return any(_covers(toleration, taint) for toleration in tolerations)


def first_untolerated(tolerations: Sequence[Toleration], taints: Sequence[Taint]) -> Taint | None:
    """The first taint, in the node's order, that excludes the pod; None: there is none."""
    for taint in taints:
        if taint.effect in _KEEPS_OUT and not tolerates(tolerations, taint):
            return taint
    return None


def is_leaving(taints: Sequence[Taint]) -> bool:
    """Whether an autoscaler drains the node, and then removes it."""
    return any(taint.key in _LEAVING and taint.effect in _KEEPS_OUT for taint in taints)


def is_temporary(taint: Taint) -> bool:
    """Whether the taint excludes pods from a node only because it is being added or removed."""
    known = taint.key in _STARTING or taint.key in _LEAVING
    return taint.effect in _KEEPS_OUT and (known or taint.key.startswith(_STARTING_PREFIXES))


def _passes_by(taint: Taint) -> bool:
    """Whether the taint is of a node that starts, leaves, or is out of service for a time."""
    return is_temporary(taint) or taint.key.startswith(_CONDITION_PREFIX)


def preferred_against(tolerations: Sequence[Toleration], taints: Sequence[Taint]) -> int:
    """How many PreferNoSchedule taints the pod does not tolerate."""
    return sum(
        1
        for taint in taints
        if taint.effect == "PreferNoSchedule" and not tolerates(tolerations, taint)
    )


def _covers(toleration: Toleration | DeviceToleration, taint: Taint | DeviceTaint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    if toleration.operator in {"", "Equal"}:
        # Kubernetes refuses a pod's toleration with neither Exists nor a key, not a claim's.
        has_key = bool(toleration.key) or isinstance(toleration, DeviceToleration)
        return has_key and toleration.value == taint.value
    return False


class TaintSets:
    """Interned tuples of taints; id 0 is the empty one."""

    def __init__(self) -> None:
        self.sets: list[tuple[Taint, ...]] = [()]
        self._ids: dict[tuple[Taint, ...], int] = {(): 0}
        #: Whether any set has a PreferNoSchedule taint; without one, taints are not scored.
        self.any_preference = False

    def intern(self, taints: tuple[Taint, ...]) -> int:
        set_id = self._ids.get(taints)
        if set_id is None:
            set_id = self._ids[taints] = len(self.sets)
            self.sets.append(taints)
            self.any_preference |= any(taint.effect == "PreferNoSchedule" for taint in taints)
        return set_id

    def in_service(self) -> "TaintSets":
        """The same sets, with the same ids, without taints that a node loses when it returns."""
        kept = TaintSets()
        kept.sets = [
            tuple(taint for taint in taints if not _passes_by(taint)) for taints in self.sets
        ]
        kept.any_preference = self.any_preference
        return kept
