"""Collects the gangs of all objects: group objects, pods, and what declares each gang. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from shared.contracts import reasons
from shared.contracts.reasons import GroupMissing, OtherScheduler
from shared.contracts.visibility import ExplainedGang, ExplainedRole, ExplainedScheduling
from shared.dialects.ceilings import Ceilings
from shared.dialects.ceilings import in_words as above_ceiling
from shared.dialects.discovery import dialect, precedence_of, preferred_dialects
from shared.dialects.run_limits import Stated
from shared.explanation.trees import Tree, in_words
from shared.model.gang_keys import GangKey, has_objects, is_of_pods, key_of, key_of_group
from shared.model.group_trees import GroupTrees, is_in_tree
from shared.model.minimums import binding_role_minima, group_declared_by
from shared.model.objects import Pod, PodGroup

#: The queue of a gang that names none.
_DEFAULT_QUEUE: Final = "default"


class Members(msgspec.Struct, frozen=True):
    """Equal pods of one gang, as one object of the files has them."""

    pod: Pod
    count: int
    scheduling: ExplainedScheduling
    #: Why the pods are not bound as members.
    objections: tuple[str, ...] = ()
    #: Their run limits.
    limits: tuple[Stated, ...] = ()


class Gang(msgspec.Struct, kw_only=True):
    """A gang while objects are read."""

    title: str
    groups: list[PodGroup] = msgspec.field(default_factory=list)
    members: list[Members] = msgspec.field(default_factory=list)
    #: The run limits that its group has, or inherits, with the object that states each.
    limits: list[tuple[Stated, str]] = msgspec.field(default_factory=list)
    #: What declares it where no group object is in the files; "": its pods name a group.
    declared_by: str = ""
    #: Whether its group object is created by a controller, so that none has to be in the files.
    made: bool = False
    #: The tree of groups that it is; None: it is none.
    tree: Tree | None = None


class Gangs:
    """The gangs by the key by which watcher and planner distinguish them.

    The groups of a tree are collected each by itself, and are one gang in the report, because the
    objects of a tree come in any order.
    """

    def __init__(self, *, stored: bool = False) -> None:
        """`stored`: they are objects of a cluster, which has more pods than are given."""
        self._stored = stored
        self._gangs: dict[GangKey, Gang] = {}
        self._trees = GroupTrees()

    def put_group(self, group: PodGroup) -> GangKey:
        """A group object of the files; returns the key of its gang."""
        key = key_of_group(group)
        self._gang(key, f"{group.namespace}/{group.name}").groups.append(group)
        if is_in_tree(group):
            self._trees.put(group)
        return key

    def put_made_group(self, group: PodGroup, declared_by: str) -> GangKey:
        """A group that a controller creates for an object of the files; as `put_group`."""
        key = self.put_group(group)
        self._gangs[key].made = True
        self._gangs[key].declared_by = declared_by
        return key

    def put_members(self, members: Members) -> GangKey | None:
        """Pods; returns the key of their gang, None when they are in no gang."""
        key = key_of(members.pod)
        if key is None or not members.pod.group_name:
            return None
        title = f"{members.pod.namespace}/{members.pod.group_name}"
        self._gang(key, title).members.append(members)
        return key

    def put_limits(self, key: GangKey, limits: Iterable[Stated], title: str) -> None:
        """The run limits that an object of this title states for the group of a gang."""
        self._gangs[key].limits.extend((limit, title) for limit in limits)

    def title(self, key: GangKey) -> str:
        """The title of a gang, once all objects are read."""
        root = self._trees.gang_of(key)
        return self._gangs[key].title if root == key else f"{root[1]}/{root[2]}"

    def reports(self) -> tuple[ExplainedGang, ...]:
        """All gangs, in the order in which the files have them."""
        counts = {
            key: sum(pods.count for pods in gang.members) for key, gang in self._gangs.items()
        }
        roots = dict.fromkeys(map(self._trees.gang_of, self._gangs))
        return tuple(_report(self._whole(key, counts), stored=self._stored) for key in roots)

    def _whole(self, key: GangKey, counts: Mapping[GangKey, int]) -> Gang:
        """A gang, with the members of all its groups if it is a tree; `counts`: pods by group."""
        tree = Tree(self._trees, key, counts)
        if not tree:
            return self._gangs[key]
        group = self._trees.group_of_gang(key)
        gangs = [gang for each, gang in self._gangs.items() if self._trees.gang_of(each) == key]
        return Gang(
            title=f"{key[1]}/{key[2]}",
            groups=[group] if group is not None else [],
            members=[member for gang in gangs for member in gang.members],
            limits=[limit for gang in gangs for limit in gang.limits],
            declared_by=f"a tree of {tree.objects} group objects",
            tree=tree,
        )

    def _gang(self, key: GangKey, title: str) -> Gang:
        return self._gangs.setdefault(key, Gang(title=title))


def _report(gang: Gang, *, stored: bool) -> ExplainedGang:
    group = _chosen(gang)
    pods = [pods.pod for pods in gang.members]
    members = sum(pods.count for pods in gang.members)
    minimum = _minimum(gang, group)
    return ExplainedGang(
        title=gang.title,
        declared_by=_declared_by(gang, group),
        minimum=minimum,
        members=members,
        roles=_roles(gang, group),
        queue=_queue(group, pods),
        priority_class=_priority_class(group, pods),
        topology=_topology(group),
        run_limit=_run_limit(gang),
        parts=tuple(gang.tree.reports()) if gang.tree is not None else (),
        scheduled=not _errors(group)
        and all(pods.scheduling.taken and not pods.objections for pods in gang.members),
        missing=tuple(_missing(gang, group, minimum, members, stored=stored)),
        ignored=tuple(_ignored(gang, group)),
    )


def _chosen(gang: Gang) -> PodGroup | None:
    """The group that counts, as the planner chooses: among the objects of the gang, else the one
    that its pods declare.
    """
    if not gang.groups:
        return group_declared_by(pods.pod for pods in gang.members)
    preferred = {
        name
        for scheduler, names in preferred_dialects().items()
        if any(pods.pod.scheduler_name == scheduler for pods in gang.members)
        for name in names
    }
    return min(
        gang.groups,
        key=lambda group: (group.dialect not in preferred, precedence_of(group.dialect)),
        default=None,
    )


def _declared_by(gang: Gang, group: PodGroup | None) -> str:
    if gang.declared_by:
        return gang.declared_by
    if group is not None and not is_of_pods(group):
        return f"a group object of the dialect {group.dialect}"
    if group is not None or any(pods.pod.group_self_declared for pods in gang.members):
        return "its pods"
    return "its pods, which name a group"


def _minimum(gang: Gang, group: PodGroup | None) -> int | None:
    if group is not None:
        return group.min_member
    return max((pods.pod.group_min_member for pods in gang.members), default=0) or None


def _roles(gang: Gang, group: PodGroup | None) -> tuple[ExplainedRole, ...]:
    counts: dict[str, int] = {}
    for pods in gang.members:
        counts[pods.pod.role] = counts.get(pods.pod.role, 0) + pods.count
    minima: Mapping[str, int] = {}
    if group is not None:
        minima = dict(binding_role_minima(group.min_member, group.min_task_member))
    names = sorted({*counts, *minima} - {""})
    return tuple(
        ExplainedRole(role=name, members=counts.get(name, 0), minimum=minima.get(name, 0))
        for name in names
    )


def _queue(group: PodGroup | None, pods: list[Pod]) -> str:
    """As the planner: the group object's queue has precedence over that of the pods."""
    if group is not None and not group.by_owner:
        return group.queue or _DEFAULT_QUEUE
    return next((pod.queue for pod in pods if pod.queue), _DEFAULT_QUEUE)


def _priority_class(group: PodGroup | None, pods: list[Pod]) -> str:
    if group is not None and group.priority_class:
        return group.priority_class
    return next((pod.priority_class for pod in pods if pod.priority_class), "")


def _topology(group: PodGroup | None) -> str:
    if group is None or group.sets:
        return ""  # each group of a tree has its own
    parts = [in_words(group.topology)] if group.topology is not None else []
    parts += [
        f"{group_set.least} of the groups in {group_set.name}"
        + (f", {in_words(group_set.topology)}" if group_set.topology is not None else "")
        for group_set in group.sets
    ]
    parts += [
        f"sub-groups {sub_group.name}: {sub_group.size} pods each"
        + (f", {in_words(sub_group.topology)}" if sub_group.topology is not None else "")
        for sub_group in group.sub_groups
    ]
    return "; ".join(parts)


def _run_limit(gang: Gang) -> str:
    limits = [
        *gang.limits,
        *((limit, "its pods") for members in gang.members for limit in members.limits),
    ]
    if not limits:
        return ""
    limit, title = min(limits, key=lambda pair: pair[0].seconds)
    others = len({each.seconds for each, _ in limits}) > 1
    return f"{limit.seconds} s, by {limit.path} of {title}{', the smallest of all' * others}"


def _errors(group: PodGroup | None) -> tuple[str, ...]:
    return group.errors if group is not None else ()


def _missing(
    gang: Gang, group: PodGroup | None, minimum: int | None, members: int, *, stored: bool
) -> Iterator[str]:
    yield from (f"never planned: {error}" for error in _errors(group))
    if gang.tree is not None:
        yield from gang.tree.missing(stored=stored)
    elif group is None and not gang.made and _needs_object(gang.members):
        yield from _group_missing(gang, stored=stored)
    untaken = Counter[str]()
    for pods in gang.members:
        untaken[pods.scheduling.scheduler] += 0 if pods.scheduling.taken else pods.count
    for scheduler, count in sorted((+untaken).items()):
        yield reasons.in_words(OtherScheduler(scheduler, count))
    refused = sum(pods.count for pods in gang.members if pods.objections)
    if refused:
        yield f"{refused} of its {members} pods are not bound: see their objects"
    alone = gang.tree is None and not gang.made and not stored
    if group is not None and alone and minimum is not None and members < minimum:
        yield f"{minimum - members} of {minimum} pods are not in these files: it waits for them"


def _group_missing(gang: Gang, *, stored: bool) -> Iterator[str]:
    scope = gang.members[0].pod.group_scope
    if has_objects(scope):
        words = "its group object is not in these files"
        if stored:
            words = reasons.in_words(GroupMissing(scope, *gang.title.split("/", 1)))
        yield f"{words}: its pods wait until an object of that name exists"
    elif not stored:
        yield f"no pod in these files declares this gang of {scope}: its pods wait until one does"


def _needs_object(members: Iterable[Members]) -> bool:
    return any(not pods.pod.group_self_declared for pods in members)


def _ignored(gang: Gang, group: PodGroup | None) -> Iterator[str]:
    if group is None:
        return
    for other in gang.groups:
        if other is not group:
            yield (
                f"the group object of the dialect {other.dialect}: {group.dialect} has precedence "
                f"({_precedence(group.dialect)} before {_precedence(other.dialect)}), and this one "
                "gets the condition DuplicateGroup"
            )
    for key, value in group.settings:
        most_s = Ceilings().of(key)
        if most_s is not None and int(value) > most_s:
            yield f"{above_ceiling(key, int(value), most_s, key)}, unless the operator set another"
    minima = group.min_task_member
    if minima and not binding_role_minima(group.min_member, minima):
        yield (
            f"the minima of roles: their sum, {sum(count for _, count in minima)}, is larger than "
            f"the gang's minimum, {group.min_member}"
        )


def _precedence(name: str) -> int:
    return dialect(name).precedence
