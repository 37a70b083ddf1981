"""Sub-gangs: members of a gang that are placed together, as its group's policies define.

A pod belongs to the first policy of its group (`spec.subGroupPolicy`) that names it or no pods,
whose selector matches its labels and whose `matchLabelKeys` it has. Each distinct tuple of their
values is one sub-gang. A sub-gang is placed up to its size or not at all. A policy may set how many
of its sub-gangs the gang needs.

In a gang with sets (`PodGroup.sets`), each policy is one sub-gang, and the gang needs its outermost
set: a set is complete with enough complete sub-gangs and sets in it. A sub-gang of size 0 is
complete without pods.
"""

from bisect import bisect_left
from collections import Counter
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
from services.gang_planner.core.state.needs import NO_SUB_GANG, SetNeed, SubNeed, Wanted
from services.gang_planner.core.state.node_labels import as_number
from shared.model.bounded_text import joined
from shared.model.minimums import least_members
from shared.model.objects import Labels, Pod, PodGroup, SubGroup, SubGroupSet
from shared.model.terms import selects

_LABELS: Final = msgspec.msgpack.Decoder(Labels)
_PLACED: Final = frozenset({PLACED, RUNNING, SUCCEEDED})
#: Sets, and groups, that a message names.
_NAMED_MAX: Final = 3


class SubGang(msgspec.Struct, eq=False):
    """One sub-gang and its members, counted as they are now."""

    policy: SubGroup
    name: str
    order: tuple[object, ...]
    placed: int = 0
    #: How many of these have succeeded.
    succeeded: int = 0
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
            self.succeeded += member.state == SUCCEEDED

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
    by_name: dict[str, SubGang] = {}
    for member in gang.members.values():
        belonging = _belongs(gang, group.sub_groups, member.pod)
        if belonging is None:
            continue
        policy, values = belonging
        name = _name(policy, values)
        sub_gang = by_name.get(name)
        if sub_gang is None:
            sub_gang = by_name[name] = SubGang(policy, name, (policy.name, *map(_natural, values)))
        sub_gang.count(member)
    for name, count in gang.run.by_part.items():
        sub_gang = by_name.get(name) or _without_pods(group.sub_groups, name)
        if sub_gang is not None:
            by_name[name] = sub_gang
            sub_gang.placed += count
            sub_gang.succeeded += count
    return sorted(by_name.values(), key=lambda sub_gang: sub_gang.order)


def part_of(gang: Gang, pod: Pod) -> str:
    """The name of a pod's sub-gang, or `NO_SUB_GANG`."""
    if gang.group is None or not gang.group.sub_groups:
        return NO_SUB_GANG
    belonging = _belongs(gang, gang.group.sub_groups, pod)
    return _name(*belonging) if belonging is not None else NO_SUB_GANG


def all_placed(gang: Gang) -> bool:
    """Whether enough sub-gangs of each policy are placed."""
    return not _missing(gang, lambda sub_gang: sub_gang.placed)


def enough(gang: Gang) -> bool:
    """Whether enough sub-gangs of each policy have enough members that count."""
    return not _missing(gang, lambda sub_gang: sub_gang.have)


def enough_exist(gang: Gang) -> bool:
    """Whether enough sub-gangs have enough members that count or could be placed."""
    return not _missing(gang, lambda sub_gang: sub_gang.able)


def lacking_in_words(gang: Gang) -> str:
    """A message with the policies that lack sub-gangs with all their pods."""
    if gang.group is not None and gang.group.sets:
        return _lacking_of_sets(gang, gang.group)
    missing = _missing(gang, lambda sub_gang: sub_gang.able)
    needed = (
        {policy.name: policy.min_sub_groups for policy in gang.group.sub_groups}
        if gang.group
        else {}
    )
    lacking = (
        f"{needed[name] - count} of {needed[name]} sub-gangs {name} have all their pods"
        for name, count in missing
    )
    return joined(lacking, "; ")


def needs(
    gang: Gang, names: Sequence[str]
) -> tuple[tuple[SubNeed, ...], tuple[tuple[str, int], ...]]:
    """The need of each sub-gang with waiting members, and how many more each policy needs; `names`:
    of all nodes, by slot.
    """
    sub_needs: list[SubNeed] = []
    for sub_gang in sub_gangs(gang):
        if not sub_gang.waiting:
            continue
        wanted: tuple[Wanted, ...] = tuple(
            (role, shape_id, count) for (role, shape_id), count in sorted(sub_gang.waiting.items())
        )
        policy = sub_gang.policy
        quorum = max(0, policy.size - sub_gang.have)
        near = nodes_of(sub_gang.members, names) if policy.topology is not None else ()
        sub_needs.append(
            SubNeed(
                policy.name, sub_gang.name, quorum, wanted, policy.topology, near, policy.set_name
            )
        )
    sets = gang.group is not None and gang.group.sets
    return tuple(sub_needs), () if sets else tuple(_missing(gang, lambda sub_gang: sub_gang.have))


def set_needs(gang: Gang, parts: Sequence[SubNeed], names: Sequence[str]) -> tuple[SetNeed, ...]:
    """The need of each set with waiting members, each before those in it; empty if the gang has no
    sets. `parts` and `names` as for `needs`.
    """
    group = gang.group
    if group is None or not group.sets:
        return ()
    every_part = sub_gangs(gang)
    ready = _complete(group, every_part, lambda sub_gang: sub_gang.have)
    #: Set -> its members.
    members: dict[str, list[Member]] = {}
    for part in every_part:
        members.setdefault(part.policy.set_name, []).extend(part.members)
    #: Sets with waiting members -> the quorums of their incomplete parts.
    quorums: dict[str, list[int]] = {}
    for need in parts:
        quorums.setdefault(need.set_name, []).extend([need.quorum] if need.quorum else [])
    every_need: list[SetNeed] = []
    for each in reversed(group.sets):
        inside = members.get(each.name, [])
        members.setdefault(each.set_name, []).extend(inside)
        if each.name not in quorums:
            continue
        missing = max(0, each.least - ready[each.name])
        quorum = sum(sorted(quorums[each.name])[:missing])
        quorums.setdefault(each.set_name, []).extend([quorum] if missing else [])
        near = nodes_of(inside, names) if each.topology is not None else ()
        every_need.append(SetNeed(each.name, each.set_name, missing, quorum, each.topology, near))
    return tuple(reversed(every_need))


def surplus_of_sets(gang: Gang, group: PodGroup) -> dict[str, int]:
    """How many placed sub-gangs and sets each set has above the number that it needs; only sets
    with any, without those that are disrupted only as a whole or inside such a one.
    """
    counts = _complete(group, sub_gangs(gang), lambda sub_gang: sub_gang.placed)
    wholes: set[str] = set()
    surplus: dict[str, int] = {}
    # Each set comes after the one that it is in.
    for group_set in group.sets:
        if group_set.disrupted_whole or group_set.set_name in wholes:
            wholes.add(group_set.name)
        elif counts[group_set.name] > group_set.least:
            surplus[group_set.name] = counts[group_set.name] - group_set.least
    return surplus


def complete_groups(gang: Gang) -> tuple[set[str], set[str]]:
    """The names of the sub-groups, and of the sets, that have enough placed members. A gang without
    sets has neither.
    """
    group = gang.group
    if group is None or not group.sets:
        return set(), set()
    parts = sub_gangs(gang)
    counts = _complete(group, parts, lambda sub_gang: sub_gang.placed)
    return (
        {part.policy.name for part in parts if part.placed >= part.policy.size},
        {group_set.name for group_set in group.sets if counts[group_set.name] >= group_set.least},
    )


def nodes_of(members: Iterable[Member], names: Sequence[str]) -> tuple[str, ...]:
    """The sorted names of the nodes to which these members are bound or assumed."""
    nodes: set[str] = set()
    for member in members:
        if member.state in {PLACED, RUNNING}:
            nodes.add(member.pod.node)
        elif member.state == ASSUMED and member.reservation is not None:
            nodes.add(names[member.reservation.slot])
    return tuple(sorted(nodes))


def without_missing(group: PodGroup, pods: Iterable[Pod]) -> PodGroup:
    """The group with minima that these pods reach, if it has sets: for answers about a gang of
    which not all pods are known. A group without sets is returned as it is.
    """
    if not group.sets:
        return group
    belongings = (_find(group.sub_groups, pod) for pod in pods)
    counts = Counter(belonging[0].name for belonging in belongings if belonging is not None)
    sub_groups = tuple(
        msgspec.structs.replace(policy, size=min(policy.size, counts[policy.name]))
        for policy in group.sub_groups
        if counts[policy.name]
    )
    parts = Counter(policy.set_name for policy in sub_groups)
    sets: list[SubGroupSet] = []
    for one_set in reversed(group.sets):
        if parts[one_set.name]:
            least = min(one_set.least, parts[one_set.name])
            sets.insert(0, msgspec.structs.replace(one_set, least=least))
            parts[one_set.set_name] += 1
    smallest = least_members(sets, sub_groups).get(group.sets[0].name, 0)
    return msgspec.structs.replace(
        group, min_member=max(1, smallest), sub_groups=sub_groups, sets=tuple(sets)
    )


def _missing(gang: Gang, count: Callable[[SubGang], int]) -> list[tuple[str, int]]:
    """The policies that lack sub-gangs, or the outermost set if it is not complete, each with the
    missing number.
    """
    group = gang.group
    if group is None or not group.sub_groups:
        return []
    if group.sets:
        outermost = group.sets[0]
        short = outermost.least - _complete(group, sub_gangs(gang), count)[outermost.name]
        return [(outermost.name, short)] if short > 0 else []
    if not any(policy.min_sub_groups for policy in group.sub_groups):
        return []
    ready: dict[str, int] = {}
    for sub_gang in sub_gangs(gang):
        ready[sub_gang.policy.name] = ready.get(sub_gang.policy.name, 0) + (
            count(sub_gang) >= sub_gang.policy.size
        )
    return [
        (policy.name, policy.min_sub_groups - ready.get(policy.name, 0))
        for policy in group.sub_groups
        if policy.min_sub_groups > ready.get(policy.name, 0)
    ]


def _complete(
    group: PodGroup, parts: Sequence[SubGang], count: Callable[[SubGang], int]
) -> dict[str, int]:
    """Set -> number of its sub-gangs and sets that are complete, by this count of members."""
    counts = {part.policy.name: count(part) for part in parts}
    complete = {group_set.name: 0 for group_set in group.sets}
    for each in group.sub_groups:
        complete[each.set_name] += counts.get(each.name, 0) >= each.size
    for group_set in reversed(group.sets[1:]):
        complete[group_set.set_name] += complete[group_set.name] >= group_set.least
    return complete


def _lacking_of_sets(gang: Gang, group: PodGroup) -> str:
    parts = sub_gangs(gang)
    complete = _complete(group, parts, lambda sub_gang: sub_gang.able)
    short = [
        f"{complete[outer.name]} of {outer.least} groups of {outer.name} have all their pods"
        for outer in group.sets
        if complete[outer.name] < outer.least
    ]
    able = {part.policy.name: part.able for part in parts}
    lacking = [
        f"{policy.name} has {able.get(policy.name, 0)} of {policy.size}"
        for policy in group.sub_groups
        if able.get(policy.name, 0) < policy.size
    ]
    more = [f"{len(lacking) - _NAMED_MAX} more have too few"] if len(lacking) > _NAMED_MAX else []
    return "; ".join([*short[:_NAMED_MAX], ", ".join([*lacking[:_NAMED_MAX], *more])])


def _belongs(gang: Gang, policies: tuple[SubGroup, ...], pod: Pod) -> Belonging:
    """The policy and the values of a pod's sub-gang; cached while its labels are the same."""
    known = gang.parts.get(pod.uid)
    if known is not None and known[0] is policies and known[1] == pod.labels:
        return known[2]
    belonging = _find(policies, pod)
    gang.parts[pod.uid] = (policies, pod.labels, belonging)
    return belonging


def _find(policies: tuple[SubGroup, ...], pod: Pod) -> Belonging:
    first = policies[0]
    labels = dict(_LABELS.decode(pod.labels)) if pod.labels else {}
    if first.label:
        return _named(policies, labels.get(first.label, ""))
    if first.set_name and first.pods is None:
        return _named(policies, pod.group_name)
    for policy in policies:
        if (
            (policy.pods is None or _contains(policy.pods, pod.name))
            and (policy.selector is None or selects(policy.selector, labels))
            and all(key in labels for key in policy.match_label_keys)
        ):
            return policy, tuple(labels[key] for key in policy.match_label_keys)
    return None


def _without_pods(policies: tuple[SubGroup, ...], name: str) -> SubGang | None:
    """A sub-gang whose pods are gone, by its name; None: no policy has such ones any more."""
    for policy in policies:
        if name == policy.name or name.startswith(f"{policy.name}/"):
            values = name.split("/")[len(policy.name.split("/")) :]
            return SubGang(policy, name, (policy.name, *map(_natural, values)))
    return None


def _named(policies: tuple[SubGroup, ...], name: str) -> Belonging:
    """The policy of this name; policies are sorted by name."""
    index = bisect_left(policies, name, key=lambda policy: policy.name)
    if index < len(policies) and policies[index].name == name:
        return policies[index], ()
    return None


def _contains(names: tuple[str, ...], name: str) -> bool:
    """Whether sorted names contain this one."""
    place = bisect_left(names, name)
    return place < len(names) and names[place] == name


def _name(policy: SubGroup, values: tuple[str, ...]) -> str:
    return "/".join((policy.name, *values))


def _natural(value: str) -> tuple[int, str]:
    """A sort key: numbers in numeric order, before other texts."""
    number = as_number(value)
    return (number, "") if number is not None else (2**63, value)
