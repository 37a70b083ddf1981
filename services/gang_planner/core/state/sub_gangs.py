"""Sub-gangs: members of a gang that are placed together, as its group's policies define.

A pod belongs to the first policy of its group (`spec.subGroupPolicy`) whose selector matches its
labels and whose `matchLabelKeys` it has. Each distinct tuple of their values is one sub-gang. A
sub-gang is placed up to its size or not at all. A policy may set how many of its sub-gangs the gang
needs.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from services.gang_planner.core.state.gangs import Belonging, Gang, Member
from services.gang_planner.core.state.member_states import (
    ASSUMED,
    PLACED,
    RUNNING,
    SUCCEEDED,
    WAITING,
)
from services.gang_planner.core.state.needs import NO_SUB_GANG, SubNeed, Wanted
from services.gang_planner.core.state.node_labels import as_number
from shared.model.label_selectors import selects
from shared.model.objects import Labels, Pod, SubGroup

_LABELS: Final = msgspec.msgpack.Decoder(Labels)
_PLACED: Final = frozenset({PLACED, RUNNING, SUCCEEDED})


class SubGang(msgspec.Struct, eq=False):
    """One sub-gang and its members, counted as they are now."""

    policy: SubGroup
    name: str
    order: tuple[object, ...]
    placed: int = 0
    assumed: int = 0
    waiting: dict[tuple[str, int], int] = {}
    members: list[Member] = []

    def count(self, member: Member) -> None:
        self.members.append(member)
        if member.state == WAITING:
            key = (member.pod.role, member.shape.id)
            self.waiting[key] = self.waiting.get(key, 0) + 1
        elif member.state == ASSUMED:
            self.assumed += 1
        elif member.state in _PLACED:
            self.placed += 1

    @property
    def have(self) -> int:
        """Members that count towards its size."""
        return self.placed + self.assumed

    @property
    def able(self) -> int:
        """Members that count or could be placed."""
        return self.have + sum(self.waiting.values())


def sub_gangs(gang: Gang) -> list[SubGang]:
    """The sub-gangs of a gang, in order; empty if its group declares none."""
    group = gang.group
    if group is None or not group.sub_groups:
        return []
    found: dict[str, SubGang] = {}
    for member in gang.members.values():
        belonging = _belongs(gang, group.sub_groups, member.pod)
        if belonging is None:
            continue
        policy, values = belonging
        name = _name(policy, values)
        one = found.get(name)
        if one is None:
            one = found[name] = SubGang(policy, name, (policy.name, *map(_natural, values)))
        one.count(member)
    return sorted(found.values(), key=lambda one: one.order)


def part_of(gang: Gang, pod: Pod) -> str:
    """The name of a pod's sub-gang, or `NO_SUB_GANG`."""
    if gang.group is None or not gang.group.sub_groups:
        return NO_SUB_GANG
    belonging = _belongs(gang, gang.group.sub_groups, pod)
    return _name(*belonging) if belonging is not None else NO_SUB_GANG


def all_placed(gang: Gang) -> bool:
    """Whether enough sub-gangs of each policy are placed."""
    return not _missing(gang, lambda one: one.placed)


def enough(gang: Gang) -> bool:
    """Whether enough sub-gangs of each policy have enough members that count."""
    return not _missing(gang, lambda one: one.have)


def enough_exist(gang: Gang) -> bool:
    """Whether enough sub-gangs have enough members that count or could be placed."""
    return not _missing(gang, lambda one: one.able)


def lacking_in_words(gang: Gang) -> str:
    """A message with the policies that lack sub-gangs with all their pods."""
    missing = _missing(gang, lambda one: one.able)
    needed = {one.name: one.min_sub_groups for one in gang.group.sub_groups} if gang.group else {}
    return "; ".join(
        f"{needed[name] - count} of {needed[name]} sub-gangs {name} have all their pods"
        for name, count in missing
    )


def needs(
    gang: Gang, names: Sequence[str]
) -> tuple[tuple[SubNeed, ...], tuple[tuple[str, int], ...]]:
    """The need of each sub-gang with waiting members, and how many more each policy needs; `names`:
    of all nodes, by slot.
    """
    found: list[SubNeed] = []
    for one in sub_gangs(gang):
        if not one.waiting:
            continue
        wanted: tuple[Wanted, ...] = tuple(
            (role, shape_id, count) for (role, shape_id), count in sorted(one.waiting.items())
        )
        quorum = max(0, one.policy.size - one.have)
        near = nodes_of(one.members, names) if one.policy.topology is not None else ()
        found.append(SubNeed(one.policy.name, one.name, quorum, wanted, one.policy.topology, near))
    return tuple(found), tuple(_missing(gang, lambda one: one.have))


def nodes_of(members: Iterable[Member], names: Sequence[str]) -> tuple[str, ...]:
    """The sorted names of the nodes to which these members are bound or assumed."""
    found: set[str] = set()
    for member in members:
        if member.state in {PLACED, RUNNING}:
            found.add(member.pod.node)
        elif member.state == ASSUMED and member.reservation is not None:
            found.add(names[member.reservation.slot])
    return tuple(sorted(found))


def _missing(gang: Gang, count: Callable[[SubGang], int]) -> list[tuple[str, int]]:
    """The policies that lack sub-gangs, each with the missing number."""
    group = gang.group
    if group is None or not group.sub_groups:
        return []
    if not any(one.min_sub_groups for one in group.sub_groups):
        return []
    ready: dict[str, int] = {}
    for one in sub_gangs(gang):
        ready[one.policy.name] = ready.get(one.policy.name, 0) + (count(one) >= one.policy.size)
    return [
        (policy.name, policy.min_sub_groups - ready.get(policy.name, 0))
        for policy in group.sub_groups
        if policy.min_sub_groups > ready.get(policy.name, 0)
    ]


def _belongs(gang: Gang, policies: tuple[SubGroup, ...], pod: Pod) -> Belonging:
    """The policy and the values of a pod's sub-gang; cached while its labels are the same."""
    known = gang.parts.get(pod.uid)
    if known is not None and known[0] is policies and known[1] == pod.labels:
        return known[2]
    labels = dict(_LABELS.decode(pod.labels)) if pod.labels else {}
    found: Belonging = None
    for policy in policies:
        if (policy.selector is None or selects(policy.selector, labels)) and all(
            key in labels for key in policy.match_label_keys
        ):
            found = policy, tuple(labels[key] for key in policy.match_label_keys)
            break
    gang.parts[pod.uid] = (policies, pod.labels, found)
    return found


def _name(policy: SubGroup, values: tuple[str, ...]) -> str:
    return "/".join((policy.name, *values))


def _natural(value: str) -> tuple[int, str]:
    """A sort key: numbers in numeric order, before other texts."""
    number = as_number(value)
    return (number, "") if number is not None else (2**63, value)
