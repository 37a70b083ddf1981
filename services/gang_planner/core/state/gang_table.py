"""All gangs, their group objects, and the gangs that changed since the last cycle.

Several objects may declare one gang (the same name in two dialects). The preferred object counts;
all other objects are *twins* and get the verdict DuplicateGroup. The object whose dialect has the
lowest precedence is preferred, unless pods prefer the dialects of their scheduler
(`Scheduler.prefers_own_groups`).

A tree of groups declares one gang (`shared.model.group_trees`): its objects are in no gang by
themselves.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Final

from services.gang_planner.core.state import gang_runs
from services.gang_planner.core.state.backlog import AdmissionQueue, Backlog
from services.gang_planner.core.state.gang_history import History, Kept
from services.gang_planner.core.state.gangs import Gang, Promise
from services.gang_planner.core.state.pod_shapes import ShapeTable
from services.gang_planner.core.state.queues import DEFAULT, QueueTable
from shared.contracts.identity import id_of_key, safe_token
from shared.dialects.discovery import precedence_of, preferred_dialects
from shared.model.gang_keys import UNNAMED, GangKey, is_of_pods, key_of_group, scope_of
from shared.model.group_trees import GroupTrees, Moved, is_in_tree
from shared.model.object_table import Table
from shared.model.objects import PodGroup, PriorityClass
from shared.model.reference_objects import Namespace

#: Phases of a Volcano-dialect group in which it has not been admitted.
_NOT_ADMITTED: Final = frozenset({"", "Pending"})


class GangTable:
    """Gangs by key and id."""

    def __init__(
        self,
        queues: QueueTable,
        shapes: ShapeTable,
        namespaces: Table[Namespace],
        backlog: Backlog,
        owes: Callable[[GangKey], bool],
    ) -> None:
        self._queues = queues
        self._shapes = shapes
        self._namespaces = namespaces
        self._backlog = backlog
        #: Whether a gang has holds or losses: then it is kept without pods, for its successor.
        self._owes = owes
        self.gangs: dict[GangKey, Gang] = {}
        self.by_id: dict[str, Gang] = {}
        self.groups: dict[str, PodGroup] = {}
        #: Groups of groups, and their groups.
        self.trees = GroupTrees()
        self._declared: dict[GangKey, dict[str, PodGroup]] = {}
        #: The groups of gangs that trees declare. A group outside any tree may have the same key.
        self._tree_groups: dict[GangKey, PodGroup] = {}
        #: Whether the ids of gangs of one owner contain its namespace: as the newest epoch or
        #: checkpoint of DECISIONS says.
        self.namespaced_ids = False
        #: Gangs by the id that they had before that changed: records in the log have it.
        self._former: dict[str, Gang] = {}
        #: The scopes of gangs' names that were seen.
        self._scopes: set[str] = set()
        #: Gangs to be assessed in the next cycle, in the order in which they changed.
        self.changed: dict[GangKey, Gang] = {}
        #: Gangs with another pending reason or phase than before that need no assessment.
        self.to_republish: dict[GangKey, Gang] = {}
        #: Objects that are not the preferred one of their name, by UID.
        self.twins: dict[str, PodGroup] = {}
        #: Ids that no longer belong to a gang, and twins that changed: the next cycle publishes
        #: their verdicts.
        self.retired: dict[str, None] = {}
        #: Histories in DECISIONS of gangs that are not in the cluster state yet, by gang id.
        self.remembered: dict[str, History] = {}
        self.priority_classes = Table(PriorityClass)
        #: Gangs that the enqueue action has not admitted.
        self.unadmitted: dict[GangKey, Gang] = {}
        #: Keys of group objects that appeared in the records that are being applied: their gangs
        #: may have ended before.
        self.unrecalled: dict[GangKey, None] = {}
        #: Unadmitted gangs that wait only for their admission.
        self.admission_queue = AdmissionQueue()
        #: Number of gangs managed by Tutti, by phase, Repairing or Releasing.
        self.phases: dict[str, int] = {}

    def count_phase(self, gang: Gang, phase: str) -> None:
        """Count the gang under this phase from now on; "": Tutti does not manage it."""
        if phase == gang.counted:
            return
        if gang.counted:
            self.phases[gang.counted] -= 1
        if phase:
            self.phases[phase] = self.phases.get(phase, 0) + 1
        gang.counted = phase

    def touch(self, gang: Gang) -> None:
        """Mark the gang for assessment in the next cycle. A dropped gang is ignored, even if it has
        holds: another gang may have its key by now.
        """
        if self.gangs.get(gang.key) is gang:
            self.changed[gang.key] = gang

    def admit(self, gang: Gang) -> None:
        """Let the gang be placed: it no longer waits for admission."""
        gang.admitted = True
        self.unadmitted.pop(gang.key, None)
        self.admission_queue.take(gang)
        self.touch(gang)

    def starts(self, gang: Gang) -> None:
        """Set the phase that an assessment of a fully decided gang without notes would give."""
        gang.phase, gang.pending_reason = "Starting", None
        self.count_phase(gang, "Starting")
        self.to_republish[gang.key] = gang

    def touch_all(self) -> None:
        """Mark all gangs, with new queue and priority: objects or the configuration changed."""
        for gang in self.gangs.values():
            self._settle(gang)

    def gang(
        self, key: GangKey, namespace: str, name: str, at_ms: int, *, group_uid: str = ""
    ) -> Gang:
        """Return the gang of a key, or create it, with the id of its group if there is one."""
        gang = self.gangs.get(key)
        if gang is None:
            gang = Gang(key, namespace, name, self._queues.join(DEFAULT))
            gang.history.first_seen_ms = at_ms
            self.gangs[key] = gang
            if key[0] not in UNNAMED:
                self._scopes.add(key[0])
            self._identify(gang, group_uid, at_ms)
        self.changed[key] = gang
        return gang

    def limits_changed(self, namespaces: Collection[str]) -> None:
        """Mark the gangs of these namespaces, whose quotas have other limits now, if they declare
        `minResources`: the limits bound what is reserved for these.
        """
        for gang in self.gangs.values() if namespaces else ():
            if gang.namespace in namespaces and gang.group and gang.group.min_resources:
                self.changed[gang.key] = gang

    def namespaces_changed(self, names: Collection[str]) -> None:
        """Update the queues of the gangs in these namespaces, which name other queues now."""
        for gang in self.gangs.values():
            if gang.namespace in names:
                self._settle(gang)

    def queue_of_namespace(self, group: PodGroup | None) -> str:
        """The queue that a group is in because of its namespace; "": none, or it names one."""
        if group is None or group.queue or not group.queue_of_namespace:
            return ""
        namespace = self._namespaces.by_name.get(("", group.namespace))
        return "" if namespace is None else namespace.queue

    def distinction(self, gang: Gang) -> str:
        """The gang's dialect, or the scope of its name, where a gang of another scope has the same
        name; otherwise "".
        """
        own, namespace, name = gang.key
        others = self._scopes - {own} if own in self._scopes else ()
        if not any((scope, namespace, name) in self.gangs for scope in others):
            return ""
        return gang.group.dialect if gang.group is not None else own

    def put_group(self, group: PodGroup, at_ms: int) -> list[Moved]:
        """Add or update a group object, and choose the gang's preferred object again.

        Returns:
            The groups that belong to another gang now. The caller moves their members.
        """
        before = self.groups.get(group.uid)
        key = key_of_group(group)
        if before is not None and (
            key_of_group(before) != key or is_in_tree(before) != is_in_tree(group)
        ):
            return [*self.remove_group(group.uid), *self.put_group(group, at_ms)]
        self.groups[group.uid] = group
        if before is None and group.last_run is not None:
            self.unrecalled[key] = None
        if is_in_tree(group):
            moved = self.trees.put(group)
            self._declare_trees([key], moved, at_ms)
            return moved
        declared = self._declared.setdefault(key, {})
        api = group.dialect, group.name
        if before is None and any(
            (other.dialect, other.name) == api for other in declared.values()
        ):
            # The same record removes the former object of this name.
            gang_runs.end(self.gangs[key])
        declared[group.uid] = group
        # The log may have the gang under its id without an object.
        named = group.uid if key[0] not in UNNAMED and not self.remembered else ""
        gang = self.gang(key, group.namespace, group.name, at_ms, group_uid=named)
        self.choose(gang, at_ms)
        return []

    def remove_group(self, uid: str) -> list[Moved]:
        """Remove a group object. The gang's pods and their reservations stay.

        Returns:
            As `put_group`.
        """
        group = self.groups.pop(uid, None)
        if group is None:
            return []
        key = key_of_group(group)
        if is_in_tree(group):
            before = self.trees.gang_of(key)
            self.retired[uid] = None
            moved = self.trees.remove(group)
            self._declare_trees([before, key], moved, None)
            return moved
        declared = self._declared[key]
        del declared[uid]
        if not declared:
            del self._declared[key]
        if self.twins.pop(uid, None) is not None:
            self.retired[uid] = None
        gang = self.gangs[key]
        if group.by_owner and gang.group is not None and gang.group.uid == uid:
            gang.minimum_kept = gang.declared
        if not declared:
            gang_runs.end(gang)
        self.choose(gang, gang.history.first_seen_ms)
        self.drop_if_empty(gang)
        return []

    def _declare_trees(
        self, groups: Sequence[GangKey], moved: Sequence[Moved], at_ms: int | None
    ) -> None:
        """Declare the gangs of trees again.

        Args:
            groups: Keys of groups in the trees.
            moved: Groups that have moved from one tree to another.
            at_ms: The time for new gangs; None: a group was removed, so there are none.
        """
        keys = [self.trees.gang_of(key) for key in groups]
        for move in moved:
            keys += [move.before, self.trees.gang_of(move.key)]
        for key in dict.fromkeys(keys):
            group, gang = self.trees.group_of_gang(key), self.gangs.get(key)
            known = self._tree_groups.pop(key, None)
            if group is not None:
                self._tree_groups[key] = group
            if known is not None and gang is not None and (group is None or group.uid != known.uid):
                gang_runs.end(gang)
            if gang is None and group is not None and at_ms is not None:
                named = group.uid if not self.remembered else ""
                gang = self.gang(key, group.namespace, group.name, at_ms, group_uid=named)
            if gang is not None:
                self.choose(gang, gang.history.first_seen_ms if at_ms is None else at_ms)
                self.drop_if_empty(gang)

    def choose(self, gang: Gang, at_ms: int) -> None:
        """Set the gang's group to its preferred object; without an object to the group that its
        members declare, or to None.
        """
        gang_runs.note_end(gang)
        declared = self._objects_of(gang.key)
        chosen = _preferred(gang, declared.values()) or _of_members(gang)
        _keep_standing(gang, chosen)
        for uid, group in declared.items():
            if group is chosen:
                self.twins.pop(uid, None)
            else:
                self.twins[uid] = group
                self.retired[uid] = None
        gang.group = chosen
        _note_phase(gang, at_ms)
        if chosen is not None:
            gang.created_ms = chosen.created_ms if chosen.uid else gang.created_ms
            if chosen.by_owner:
                gang.namespace, gang.name = chosen.namespace, chosen.name
                gang.minimum_kept = None
            if not chosen.waits_for_inqueue or chosen.phase not in _NOT_ADMITTED:
                gang.admitted = True
        else:
            gang.admitted = True
        if gang.admitted:
            self.unadmitted.pop(gang.key, None)
        else:
            self.unadmitted[gang.key] = gang
        if gang.key[0] not in UNNAMED:
            self._identify(gang, chosen.uid if chosen is not None else "", at_ms)
        self._settle(gang)
        if chosen is None or gang.have() or gang.completed:
            return
        if chosen.phase == "Inqueue":
            gang.queue.promise(gang.gang_id, gang.queue.minimum(chosen.min_resources or ()))

    def _objects_of(self, key: GangKey) -> dict[str, PodGroup]:
        """The objects that declare a gang, by UID; a tree is one."""
        declared, of_tree = self._declared.get(key, {}), self._tree_groups.get(key)
        return declared if of_tree is None else {**declared, of_tree.uid: of_tree}

    def drop_if_empty(self, gang: Gang) -> None:
        """Remove a gang without objects, members, open notes and holds."""
        if not gang.vacant or self._objects_of(gang.key) or self.gangs.get(gang.key) is not gang:
            return
        # Not left to the next cycle: a replay leaves out cycles that wrote nothing.
        self._backlog.take(gang)
        if gang.history.notes.any_open:
            # A cycle closes the notes first, and then calls this method again.
            return
        if self._owes(gang.key):
            if gang.key[0] not in UNNAMED:
                self._identify(gang, "", gang.history.first_seen_ms)
            return
        del self.gangs[gang.key]
        self.changed.pop(gang.key, None)
        self.unadmitted.pop(gang.key, None)
        self.admission_queue.take(gang)
        self.count_phase(gang, "")
        self.by_id.pop(gang.gang_id, None)
        self._forget_former(gang)
        self.retired[gang.gang_id] = None
        gang.queue.promise(gang.gang_id, {})
        self._queues.leave(gang.queue)

    def keep_vacant(self, key: GangKey, gang_id: str, kept: Kept, at_ms: int) -> Gang:
        """Return or create the gang of a hold in the log that is not in the cluster state yet."""
        gang = self.gangs.get(key)
        if gang is None:
            name = key[2] if key[0] not in UNNAMED else ""
            gang = self.gang(key, key[1], name, at_ms, group_uid=gang_id)
            gang.kept = kept
            self._settle(gang)
        return gang

    def find(self, gang_id: str) -> Gang | None:
        """The gang with this id in a record of DECISIONS; None: the cluster state does not have
        it.
        """
        return self.by_id.get(gang_id) or self._former.get(gang_id)

    def derive_ids(self, *, namespaced: bool) -> None:
        """Derive the ids of owners' gangs by the rule of the log from here on (ADR 0100). What is
        known of a gang stays its own.
        """
        if namespaced == self.namespaced_ids:
            return
        self.namespaced_ids = namespaced
        for gang in [gang for gang in self.gangs.values() if gang.key[0] == "owner"]:
            before = gang.gang_id
            self._identify(gang, "", gang.history.first_seen_ms)
            if gang.gang_id != before:
                self._forget_former(gang)
                self._former[before] = gang
            self.touch(gang)

    def give_id(self, gang_id: str, namespace: str) -> None:
        """Give an owner's UID, which is the id of a gang in this namespace in a record of an older
        version, to that gang: without the record, the first gang of such an owner has it.
        """
        if self.namespaced_ids:
            return
        holder = self.by_id.get(gang_id)
        if holder is not None and holder.key[0] == "owner" and holder.namespace != namespace:
            self._identify(holder, id_of_key(holder.key), holder.history.first_seen_ms)
            self.touch(holder)
        gang = self.gangs.get(("owner", namespace, gang_id))
        if gang is not None and gang_id not in self.by_id:
            self._identify(gang, gang_id, gang.history.first_seen_ms)
            self.touch(gang)

    def history(self, gang_id: str) -> History:
        """The history of a gang, which may not be in the cluster state yet."""
        gang = self.find(gang_id)
        if gang is not None:
            return gang.history
        return self.remembered.setdefault(gang_id, History())

    def priority_of(self, gang: Gang) -> int:
        """The priority of the group, else that of its PriorityClass, else the highest of the pods,
        else the cluster's default class.
        """
        if gang.group is not None and gang.group.priority is not None:
            return gang.group.priority
        if gang.group is not None and gang.group.priority_class:
            priority_class = self.priority_classes.by_name.get(("", gang.group.priority_class))
            if priority_class is not None:
                return priority_class.value
        if gang.kept is not None:
            return gang.kept.priority
        of_members = gang.declarations.declared.priority
        if of_members is not None:
            return of_members
        classes = self.priority_classes.by_name
        defaults = [default.value for default in classes.values() if default.global_default]
        return max(defaults, default=0)

    def _identify(self, gang: Gang, gang_id: str, at_ms: int) -> None:
        """Set the gang's id; "": it has no object, and gets an id by its key."""
        has_object = bool(gang_id)
        gang_id = gang_id or self._id_by_key(gang)
        other = self.by_id.get(gang_id)
        if other is not None and other is not gang and other.key[0] == "owner":
            # An owner's UID is a user's text; it may be the UID of another user's object.
            self._identify(other, id_of_key(other.key), at_ms)
            self.touch(other)
        before = gang.gang_id
        if self.by_id.get(before) is gang and before != gang_id:
            del self.by_id[before]
            self.retired[before] = None
            gang.queue.promise(before, {})
            gang.shown = ()
            gang.started_before = has_object and gang.history.started
        gang.gang_id = gang_id
        self.by_id[gang_id] = gang
        self.retired.pop(gang_id, None)
        if gang_id in self.remembered:
            self._remember(gang, gang_id, at_ms)

    def _id_by_key(self, gang: Gang) -> str:
        key = gang.key
        if key[0] == "owner" and not self.namespaced_ids:
            plain = safe_token(key[2])
            if self._is_free(plain, gang):
                return plain
        if key[0] in UNNAMED:
            return id_of_key(key)
        return id_of_key((scope_of(key), gang.namespace, gang.name))

    def _is_free(self, plain: str, gang: Gang) -> bool:
        """Whether an owner's UID alone may be the gang's id, as in the logs of older versions: no
        other gang has the id, and what the log has under it is not of another namespace.
        """
        if self.by_id.get(plain, gang) is not gang or plain in self.groups:
            return False
        logged = self.remembered.get(plain)
        if logged is None or logged.full_name is None:
            return True
        return logged.full_name.startswith(f"{gang.namespace}/")

    def _forget_former(self, gang: Gang) -> None:
        for gang_id in [gang_id for gang_id, known in self._former.items() if known is gang]:
            del self._former[gang_id]

    def _remember(self, gang: Gang, gang_id: str, at_ms: int) -> None:
        """Choose between the gang's own history and the log's history for its new id: the one with
        the newest record counts.

        The log's history may be older, if the gang had this id before and another one since. The
        open notes of the other history are kept in `remembered`, where the next cycle closes them.
        """
        logged, own = self.remembered.pop(gang_id), gang.history
        if (logged.noted_at, logged.notes.any_open) < (own.noted_at, own.notes.any_open):
            if logged.notes.any_open:
                self.remembered[gang_id] = logged
            return
        logged.first_seen_ms = logged.first_seen_ms or at_ms
        gang.history = logged
        known_as = own.known_as
        if own.notes.any_open and known_as is not None and known_as != gang_id:
            self.remembered[known_as] = own

    def _settle(self, gang: Gang) -> None:
        """Update the gang's queue and priority from the current objects."""
        named = self.queue_of_namespace(gang.group) or gang.queue_name
        if named != gang.queue.name:
            entry = self._queues.join(named)
            gang.queue.promise(gang.gang_id, {})
            for shape_id, count in gang.held.items():
                shape = self._shapes.entries[shape_id]
                gang.queue.charge(shape, -count)
                entry.charge(shape, count)
            if gang.held:
                del gang.queue.holders[gang]
                entry.holders[gang] = None
            before, gang.queue = gang.queue, entry
            self._queues.leave(before)
        gang.priority = self.priority_of(gang)
        self.changed[gang.key] = gang


def _preferred(gang: Gang, groups: Collection[PodGroup]) -> PodGroup | None:
    """The preferred object of those that declare a gang; None: there are none."""
    if len(groups) < 2:
        return next(iter(groups), None)
    preferred: set[str] = set()
    if gang.traits.preferring:
        for scheduler, dialects in preferred_dialects().items():
            if any(member.pod.scheduler_name == scheduler for member in gang.members.values()):
                preferred |= dialects
    return min(
        groups,
        key=lambda group: (
            group.deleting,
            group.dialect not in preferred,
            precedence_of(group.dialect),
            group.created_ms,
            group.uid,
        ),
    )


def _of_members(gang: Gang) -> PodGroup | None:
    """The group that the members declare. It stays while there are members, also if the one that
    declared it is gone.
    """
    declared = gang.declarations.declared.group
    if declared is None and gang.members and is_of_pods(gang.group):
        return gang.group
    return declared


def _keep_standing(gang: Gang, chosen: PodGroup | None) -> None:
    """Keep the queue, priority and settings of a gang whose last object was deleted."""
    if chosen is not None:
        gang.kept = None
    elif gang.group is not None and gang.key[0] not in UNNAMED:
        gang.kept = Kept(gang.queue.name, gang.priority, gang.group.settings)


def _note_phase(gang: Gang, at_ms: int) -> None:
    """Note since when the gang's group is Inqueue."""
    since_ms, ended = gang.promise
    is_inqueue = gang.group is not None and gang.group.phase == "Inqueue"
    if is_inqueue != bool(since_ms):
        gang.promise = Promise(at_ms if is_inqueue else 0, ended)
