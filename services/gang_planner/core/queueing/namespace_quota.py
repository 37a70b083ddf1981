"""Charges reservations to the ResourceQuotas of their namespace: capacity that is kept for pods
that do not exist counts as if they did.

| a gang's | counts |
| --- | --- |
| placed pods | each |
| waiting pods, and those that holds are for | the larger sum: they will be the same pods |
| lost pods that still exist | not: holds count for them |

Only the limits are read from a quota. The amounts in use are those of the pods that the planner
knows, because a quota's own figure follows the deletion of a pod late, and its creation early: the
hold for a member lost from a full namespace would be refused.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from services.gang_planner.core.policies.resourcequota import POD_COUNTS, REQUESTS, matches
from services.gang_planner.core.state.columns import ResourceIndex, add_amounts
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.holds import Hold
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.pod_shapes import PODS, ShapeEntry
from shared.model.reference_objects import ResourceQuota

#: Reason for which a hold has ended: the quota would refuse the pod that it is for.
QUOTA_EXCEEDED: Final = "QuotaExceeded"
#: Limits of other things than the requests of pods.
_OTHERS: Final = ("count/", "limits.")


def quotas_of(quotas: Collection[ResourceQuota], gang: Gang) -> list[ResourceQuota]:
    """Those of the quotas that count the gang's pods, by name."""
    if not quotas:
        return []
    counting = [
        quota
        for quota in quotas
        if quota.namespace == gang.namespace and matches(quota, gang.group)
    ]
    return sorted(counting, key=lambda quota: quota.name)


def within_limits(state: State, gang: Gang, amounts: Mapping[int, int]) -> dict[int, int]:
    """Amounts by resource row, each at most the limit of every quota that counts the gang's pods.

    It depends on no other gang, so that a gang's need changes only with its own objects and the
    quotas' limits.
    """
    allowed = dict(amounts)
    for quota in quotas_of(state.reference_objects.quotas.values(), gang):
        for row, most in _limits(state.resources, quota).items():
            if row in allowed:
                allowed[row] = min(allowed[row], most)
    return allowed


class QuotaRoom:
    """What the quotas of a gang's namespace leave to its new reservations."""

    def __init__(self, state: State, gang: Gang, ending: Collection[Hold]) -> None:
        """`ending`: holds of the gang that the decision fills, which count no more."""
        self._resources = state.resources
        self._left: list[dict[int, int]] = []
        for quota in quotas_of(state.reference_objects.quotas.values(), gang):
            counted = _counted(state.gangs.gangs.values(), quota)
            taken = _sum(_kept(state, gang, ending)[0] for gang in counted)
            limits = _limits(state.resources, quota)
            self._left.append({row: most - taken.get(row, 0) for row, most in limits.items()})

    def take(self, shape: ShapeEntry) -> bool:
        """Take the amounts of one unit from every quota; False: one of them leaves less."""
        amounts = _amounts(self._resources, shape, unit=True)
        for left in self._left:
            if any(amount > left.get(row, amount) for row, amount in amounts):
                return False
        for left in self._left:
            for row, amount in amounts:
                if row in left:
                    left[row] -= amount
        return True


def exceeding(state: State) -> list[Hold]:
    """The newest holds beyond the quotas of their namespaces: pods have taken what they were for,
    or a limit was lowered.
    """
    quotas = state.reference_objects.quotas.values()
    if not quotas:
        return []
    owners = {hold.gang.namespace for hold in state.holds.by_uid.values() if hold.gang is not None}
    holds: dict[str, Hold] = {}
    for quota in sorted(quotas, key=lambda quota: (quota.namespace, quota.name)):
        if quota.namespace in owners:
            holds |= {hold.uid: hold for hold in _exceeding(state, quota)}
    return list(holds.values())


def _exceeding(state: State, quota: ResourceQuota) -> list[Hold]:
    holding: list[Hold] = []
    #: By gang id, how much of its holds counts beyond its waiting pods.
    surplus: dict[str, dict[int, int]] = {}
    taken: dict[int, int] = {}
    for gang in _counted(state.gangs.gangs.values(), quota):
        kept, beyond = _kept(state, gang, ())
        taken = _sum((taken, kept))
        if beyond:
            surplus[gang.gang_id] = beyond
            holding += state.holds.of(gang)
    over = {
        row: taken.get(row, 0) - most
        for row, most in _limits(state.resources, quota).items()
        if taken.get(row, 0) > most
    }
    chosen: list[Hold] = []
    for hold in sorted(holding, key=lambda hold: (-hold.at_ms, hold.uid)):
        left = surplus[hold.gang.gang_id] if hold.gang is not None else {}
        amounts = [
            (row, min(amount, left.get(row, 0)))
            for row, amount in _amounts(state.resources, hold.shape, unit=hold.reserving)
        ]
        if not any(over.get(row, 0) > 0 and amount > 0 for row, amount in amounts):
            continue
        chosen.append(hold)
        for row, amount in amounts:
            left[row] = left.get(row, 0) - amount
            if row in over:
                over[row] -= amount
    return chosen


def _counted(gangs: Iterable[Gang], quota: ResourceQuota) -> list[Gang]:
    return [
        gang for gang in gangs if gang.namespace == quota.namespace and matches(quota, gang.group)
    ]


def _kept(
    state: State, gang: Gang, ending: Collection[Hold]
) -> tuple[dict[int, int], dict[int, int]]:
    """The amounts that count for a gang, by resource row; and how much of them counts for holds
    only.
    """
    kept = state.shapes.sums(gang.held.items())
    waiting = state.shapes.sums(
        (shape_id, len(members)) for (_, shape_id), members in gang.waiting.items()
    )
    coming: dict[int, int] = {}
    for reservation in state.preemptions.held_of(gang):
        # For pods that wait.
        add_amounts(kept, reservation.shape.pairs, -1)
    for hold in state.holds.of(gang):
        if hold.reservation is not None:
            add_amounts(kept, hold.shape.pairs, -1)
        lost = state.members.get(hold.uid)
        if lost is not None and lost.charged:
            add_amounts(kept, lost.shape.pairs, -1)
        if hold not in ending:
            add_amounts(coming, _amounts(state.resources, hold.shape, unit=hold.reserving))
    beyond = {
        row: amount - waiting.get(row, 0)
        for row, amount in coming.items()
        if amount > waiting.get(row, 0)
    }
    return _sum((kept, waiting, beyond)), beyond


def _limits(resources: ResourceIndex, quota: ResourceQuota) -> dict[int, int]:
    """The limits of a quota on requests and the number of pods, by resource row."""
    limits: dict[int, int] = {}
    for name, most in quota.hard:
        resource = PODS if name in POD_COUNTS else name.removeprefix(REQUESTS)
        row = resources.find(resource) if not resource.startswith(_OTHERS) else None
        if row is not None:
            limits[row] = min(limits.get(row, most), most)
    return limits


def _amounts(resources: ResourceIndex, shape: ShapeEntry, *, unit: bool) -> list[tuple[int, int]]:
    """The amounts of a hold. The number of units says nothing of the number of later pods."""
    slots = resources.find(PODS) if unit else None
    return [pair for pair in shape.pairs if pair[0] != slots]


def _sum(parts: Iterable[Mapping[int, int]]) -> dict[int, int]:
    total: dict[int, int] = {}
    for amounts in parts:
        add_amounts(total, amounts.items())
    return total
