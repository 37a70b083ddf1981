"""Reads an object, its pods and their groups: get and list in one namespace, nothing else.

The pods of an object are found by their owner references: each pod of the namespace names its
owner, the owners' kinds are listed once each, and so on up to the object. So any operator's kind
works, with up to `_STEPS_MAX` objects between it and its pods.
"""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

import msgspec

from shared.contracts.annotations import VERDICT
from shared.contracts.verdicts import Verdict
from shared.dialects.discovery import (
    dialect,
    dialects_watched_for_pods,
    group_resources,
    scope_of,
    shared_resources,
)
from shared.dialects.pods import controller_owner, read_pod
from shared.dialects.protocol import VOLCANO, ReadingContext
from shared.kube import objects as kube
from shared.kube.client import KubeClient
from shared.kube.decoding import without_nulls
from shared.kube.errors import Forbidden, NotFound
from shared.kube.group_objects import SchedulingPolicy
from shared.kube.objects import KubeObject, KubeStruct, ObjectMeta, OwnerReference
from shared.kube.resources import (
    CORE_EVENTS,
    DISRUPTION_BUDGETS,
    JOBS_BATCH,
    JOBS_VOLCANO,
    NAMESPACES,
    PODS,
    PRIORITY_CLASSES,
    REPLICA_SETS,
    STATEFUL_SETS,
    Resource,
)
from tutti.api.failures import Refusal
from tutti.api.fetches import at_once, find, list_typed
from tutti.why.expected_starts import with_expected_starts
from tutti.why.explanation import Answer, explain
from tutti.why.facts import (
    PODS_MISSING,
    Facts,
    Group,
    MemberPod,
    awaited_queue_of_pod,
    declared_gang,
    gangs_of,
    members_of,
    suspended,
    with_members,
)
from tutti.why.kinds import Kind, NoSuchObject, find_object, read_reference, resolve
from tutti.why.planner_liveness import read_liveness

#: Levels of owners. A CronJob is two levels above its pods; nested operators add a third or fourth.
_STEPS_MAX: Final = 5
#: Pods without any other reason whose Events are read, one by one.
_EVENTS_MAX: Final = 5
_TROUBLES_MAX: Final = 3
#: Direct owners whose own owners are read.
_TOPS_MAX: Final = 16
#: In place of a kind: a gang that its pods declare has no object.
_GANG: Final = "gang"
#: Kinds between an object and its pods; their Events report why pods are not created.
_MAKERS: Final = (REPLICA_SETS, STATEFUL_SETS, JOBS_BATCH, JOBS_VOLCANO)
#: Of Warnings on a Volcano Job: repeats the conditions of its group.
_OF_THE_GROUP: Final = "PodGroupPending"
_GROUPS: Final = (*group_resources(), DISRUPTION_BUDGETS)
#: An object in question is of a served version, so their titles are compared.
_GROUP_TITLES: Final = frozenset(resource.title for resource in _GROUPS)

_decode_verdict: Final = msgspec.json.Decoder(Verdict).decode


class _Asked(KubeObject, frozen=True, kw_only=True):
    """The object in question; it is of any kind, so its fields may have any type."""

    api_version: str = ""
    spec: Any = None
    status: Any = None


class _GroupSpec(KubeStruct, frozen=True, kw_only=True):
    min_member: int | str | None = None
    min_available: int | str | None = None
    priority_class_name: str = ""
    #: Of Kubernetes' own PodGroups.
    scheduling_policy: SchedulingPolicy = SchedulingPolicy()


class _GroupObject(KubeObject, frozen=True, kw_only=True):
    spec: _GroupSpec = _GroupSpec()


class _Event(KubeObject, frozen=True, kw_only=True):
    type: str = ""
    reason: str = ""
    message: str = ""
    last_timestamp: str = ""
    event_time: str = ""


T = TypeVar("T", bound=KubeStruct)


class NamespaceReader:
    """Reads one namespace for one explanation."""

    def __init__(self, client: KubeClient, namespace: str, scheduler_names: Iterable[str]) -> None:
        self._client = client
        self._namespace = namespace
        # Also implied groups, whose names follow from the pods' owners.
        self._context = ReadingContext(
            scheduler_names=frozenset(scheduler_names), implied_groups=True
        )
        self._forbidden: list[str] = []
        #: Resources that were listed, or would be if the user were allowed to read them.
        self._served: set[Resource] = set()

    async def read(self, word: str, name: str) -> Facts:
        """Read everything about `word`/`name`. A gang that its pods declare is `gang`/`name`, or
        `name` alone if no object has that name. Raises KubeError, and Refusal when there is no
        such kind, no object of that name, or more than one.
        """
        if word == _GANG:
            return await self._read_declared(name)
        resources, kinds = await resolve(self._client, word)
        try:
            resource, thing = await find_object(self._client, self._namespace, resources, name)
        except NoSuchObject as error:
            if not word:
                with suppress(NoSuchObject):
                    return await self._read_declared(name)
            await self._check_namespace()
            raise Refusal(f"{error}{await self._pods_that_name(resources, name)}") from None
        asked = msgspec.convert(without_nulls(thing), _Asked)
        present, groups = await self._present()
        own = await self._own(resource, asked, present, groups, kinds)
        gangs = gangs_of(asked.metadata.uid, own, groups)
        return await self._facts(
            resource.kind, name, asked, with_members(own, gangs, present), gangs, kinds
        )

    async def _check_namespace(self) -> None:
        """Raises Refusal when the namespace does not exist, if the user may read it."""
        try:
            await self._client.get(NAMESPACES, self._namespace, KubeObject)
        except NotFound:
            raise Refusal(f"namespace {self._namespace} does not exist") from None
        except Forbidden:
            return

    async def _read_declared(self, name: str) -> Facts:
        """The facts about gangs of this name that their pods declare. Raises NoSuchObject."""
        present, groups = await self._present()
        own = [
            member
            for member in present
            if (gang := declared_gang(member.pod)) is not None and gang[1] == name
        ]
        if not own:
            await self._check_namespace()
            raise NoSuchObject(f"no pod in namespace {self._namespace} declares a gang {name}")
        return await self._facts("Gang", name, _Asked(), own, gangs_of("", own, groups), ())

    async def _present(self) -> tuple[list[MemberPod], list[Group]]:
        """The pods and the groups of the namespace."""
        async with asyncio.TaskGroup() as group:
            pods = group.create_task(self._pods(), name="pods")
            groups = group.create_task(self._groups(), name="groups")
        return self._members(pods.result()), groups.result()

    async def _facts(
        self,
        kind: str,
        name: str,
        asked: _Asked,
        members: Sequence[MemberPod],
        gangs: Sequence[Group],
        kinds: Sequence[Kind],
    ) -> Facts:
        """What is known of an object with these members and groups."""
        explained = {(gang.scope, gang.name) for gang in gangs if gang.verdict is not None}
        silent = [
            member
            for member in members
            if not member.unscheduled
            and not member.pod.node
            and (member.pod.group_scope, member.pod.group_name) not in explained
        ]
        return Facts(
            kind=kind,
            namespace=self._namespace,
            name=name,
            uid=asked.metadata.uid,
            pods=tuple(members),
            groups=tuple(gangs),
            events=await self._events(silent[:_EVENTS_MAX]),
            troubles=await self._troubles(asked.metadata.uid, members, gangs)
            if lacks_pods(members, gangs)
            else (),
            forbidden=tuple(dict.fromkeys(self._forbidden)),
            tops=await self._tops(gangs, members, kinds),
            suspended=suspended(asked.spec, asked.status, asked.metadata.labels),
            faults=await self._faults(asked.spec, gangs),
            foreign_scheduler=self._foreign_scheduler(kind, asked),
        )

    def _foreign_scheduler(self, kind: str, asked: _Asked) -> str:
        """The scheduler that a Volcano Job names, given or by default, if Tutti does not serve it;
        "" for any other object.
        """
        is_volcanos = asked.api_version.startswith(f"{JOBS_VOLCANO.group}/")
        if kind != JOBS_VOLCANO.kind or not is_volcanos or not isinstance(asked.spec, dict):
            return ""
        named = str(asked.spec.get("schedulerName") or VOLCANO)
        return "" if named in self._context.scheduler_names else named

    async def _pods_that_name(self, resources: Sequence[Resource], name: str) -> str:
        """After a refusal: how many pods name a group that does not exist; "" if none does."""
        titles = {resource.title for resource in resources}
        scopes = {scope_of(resource) for resource in group_resources() if resource.title in titles}
        if not scopes:
            return ""
        members = self._members(await self._pods())
        names = [
            member.pod.name
            for member in members
            if member.pod.group_name == name and member.pod.group_scope in scopes
        ]
        if not names:
            return ""
        what = "1 pod names" if len(names) == 1 else f"{len(names)} pods name"
        return f"; {what} it, see `tutti why pod/{min(names)}`"

    async def _get(self, resource: Resource, name: str) -> _Asked | Forbidden | None:
        try:
            return await find(self._client, resource, name, _Asked, namespace=self._namespace)
        except Forbidden as error:
            return error

    async def _tops(
        self, groups: Sequence[Group], members: Sequence[MemberPod], kinds: Sequence[Kind]
    ) -> dict[str, str]:
        """The topmost owner of each direct owner of a group or a pod, as far as it may be read."""
        resources = [*_MAKERS, *(kind.resource for kind in kinds)]
        served = {(resource.api_version, resource.kind): resource for resource in resources}
        owners = [gang.owner for gang in groups] + [member.pod.owner for member in members]
        direct = {owner.uid: owner for owner in owners if owner is not None}
        tops: dict[str, str] = {}
        for uid, owner in list(direct.items())[:_TOPS_MAX]:
            kind, name, version = owner.kind, owner.name, owner.api_version
            for _ in range(_STEPS_MAX):
                resource = served.get((version, kind))
                thing = None if resource is None else await self._get(resource, name)
                above = _owner_of(thing.metadata) if isinstance(thing, _Asked) else None
                if above is None:
                    break
                kind, name, version = above.kind, above.name, above.api_version
            tops[uid] = f"{kind.lower()}/{name}"
        return tops

    async def _faults(self, spec: Any, groups: Sequence[Group]) -> tuple[str, ...]:
        """Other errors of the object: PriorityClasses that do not exist."""
        names = {gang.priority_class for gang in groups}
        if isinstance(spec, dict):
            names.add(str(spec.get("priorityClassName") or ""))
        faults: list[str] = []
        for name in sorted(names - {""}):
            try:
                await self._client.get(PRIORITY_CLASSES, name, KubeObject)
            except NotFound:
                faults.append(f"PriorityClass {name} does not exist")
            except Forbidden:
                continue  # for a namespaced user the pods' controller reports it
        return tuple(faults)

    async def _own(
        self,
        resource: Resource,
        asked: _Asked,
        pods: Sequence[MemberPod],
        groups: Sequence[Group],
        kinds: Sequence[Kind],
    ) -> list[MemberPod]:
        """The pods of the object."""
        uid = asked.metadata.uid
        if resource == PODS:
            return [member for member in pods if member.pod.uid == uid]
        if resource.title in _GROUP_TITLES:
            return members_of([group for group in groups if group.uid == uid], pods)
        return await self._descendants(uid, pods, kinds)

    async def _descendants(
        self, uid: str, pods: Sequence[MemberPod], kinds: Sequence[Kind]
    ) -> list[MemberPod]:
        """The pods whose chain of owners reaches `uid`."""
        parent: dict[str, str] = {}
        served = {(kind.resource.api_version, kind.resource.kind): kind.resource for kind in kinds}
        asked: set[tuple[str, str]] = set()
        wanted = {
            (owner.api_version, owner.kind)
            for member in pods
            if (owner := member.pod.owner) is not None and owner.uid != uid
        }
        for _ in range(_STEPS_MAX):
            todo = [served[key] for key in sorted(wanted - asked) if key in served]
            asked |= wanted
            if not todo:
                break
            lists = await at_once(todo, lambda each: self._list(each, KubeObject))
            owners = [
                (thing.metadata.uid, above)
                for things in lists.values()
                for thing in things
                if (above := _owner_of(thing.metadata)) is not None
            ]
            parent.update((child, above.uid) for child, above in owners)
            wanted = {(above.api_version, above.kind) for _, above in owners if above.uid != uid}
        return [member for member in pods if _descends(member, uid, parent)]

    async def _pods(self) -> list[kube.Pod]:
        return await self._list(PODS, kube.Pod)

    def _members(self, pods: Sequence[kube.Pod]) -> list[MemberPod]:
        """The pods, read as where the kinds are served that were found to be."""
        served = {
            name
            for name in dialects_watched_for_pods()
            if any(kind.resource in self._served for kind in dialect(name).kinds)
        }
        context = msgspec.structs.replace(self._context, served=frozenset(served))
        return [_member(pod, context) for pod in pods]

    async def _groups(self) -> list[Group]:
        lists = await at_once(_GROUPS, lambda resource: self._list(resource, _GroupObject))
        groups = [_group(resource, each) for resource, each_of in lists.items() for each in each_of]
        # A budget without a controller, or of a percentage, declares no gang.
        return [
            group
            for group in groups
            if group.kind != DISRUPTION_BUDGETS.kind or (group.owner and group.min_member > 0)
        ]

    async def _events(self, silent: Sequence[MemberPod]) -> dict[str, str]:
        latest: dict[str, str] = {}
        for member in silent:
            events = await self._list(
                CORE_EVENTS, _Event, fields=f"involvedObject.uid={member.pod.uid}"
            )
            if events:
                last = max(events, key=_event_time)
                latest[member.pod.name] = f"{last.reason}: {last.message}"
        return latest

    async def _troubles(
        self, uid: str, members: Sequence[MemberPod], gangs: Sequence[Group]
    ) -> tuple[str, ...]:
        """The last warnings about the controllers that create the pods: a quota is exhausted, a
        webhook refuses the pods, their template is invalid.
        """
        above = [gang.owner for gang in gangs] + [member.pod.owner for member in members]
        makers = {uid: None, **{owner.uid: None for owner in above if owner is not None}}
        for gang in gangs:
            # A PodGroup creates no pods: the warnings about it repeat why its gang is pending.
            makers.pop(gang.uid, None)
        for resource in _MAKERS:
            for thing in await self._list(resource, KubeObject):
                owner = _owner_of(thing.metadata)
                if owner is not None and owner.uid in makers:
                    makers[thing.metadata.uid] = None
        events: list[_Event] = []
        for maker in list(makers)[:_EVENTS_MAX]:
            events += await self._list(CORE_EVENTS, _Event, fields=f"involvedObject.uid={maker}")
        of_makers = [
            event for event in events if event.type == "Warning" and event.reason != _OF_THE_GROUP
        ]
        warnings = sorted(of_makers, key=_event_time)
        texts = [f"{event.reason}: {event.message}" for event in reversed(warnings)]
        return tuple(dict.fromkeys(texts))[:_TROUBLES_MAX]

    async def _list(self, resource: Resource, kind: type[T], fields: str = "") -> list[T]:
        """All objects of a kind in the namespace, in the first version that is served; none if no
        version is, or if the user may not read it, which is recorded.
        """
        for variant in resource.variants:
            try:
                objects = await list_typed(
                    self._client, variant, kind, namespace=self._namespace, field_selector=fields
                )
            except NotFound:
                continue
            except Forbidden:
                self._served.add(resource)
                self._forbidden.append(resource.title)
                break
            self._served.add(resource)
            return objects
        return []


def _member(pod: kube.Pod, context: ReadingContext) -> MemberPod:
    unscheduled = kube.Condition()
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False":
            unscheduled = condition
    since = unscheduled.last_transition_time
    return MemberPod(
        pod=read_pod(pod, context),
        unscheduled=unscheduled.message,
        unscheduled_since=f"{since:%Y-%m-%dT%H:%M:%SZ}" if since is not None else "",
        awaited_queue=awaited_queue_of_pod(pod),
    )


def lacks_pods(members: Sequence[MemberPod], gangs: Sequence[Group]) -> bool:
    """Whether there are no pods, or a gang waits for pods that do not exist."""
    verdicts = (gang.verdict for gang in gangs)
    waits = (verdict.why for verdict in verdicts if verdict is not None and verdict.why is not None)
    return not members or any(why.reason in PODS_MISSING for why in waits)


def _event_time(event: _Event) -> str:
    return event.last_timestamp or event.event_time


def _descends(member: MemberPod, uid: str, parent: dict[str, str]) -> bool:
    owner = member.pod.owner
    step = owner.uid if owner is not None else ""
    for _ in range(_STEPS_MAX + 1):
        if step == uid:
            return True
        step = parent.get(step, "")
    return False


def _owner_of(metadata: ObjectMeta) -> OwnerReference | None:
    """The controller, or the first owner of an object without one."""
    owners = metadata.owner_references
    return metadata.controller or (owners[0] if owners else None)


def _group(resource: Resource, group_object: _GroupObject) -> Group:
    metadata = group_object.metadata
    verdict: Verdict | None = None
    unreadable = ""
    text = metadata.annotations.get(VERDICT, "")
    if text:
        try:
            verdict = _decode_verdict(text)
        except msgspec.MsgspecError as error:
            unreadable = str(error)
    declared = group_object.spec.min_member
    least = declared if declared is not None else group_object.spec.min_available
    if group_object.spec.scheduling_policy.gang is not None:
        least = group_object.spec.scheduling_policy.gang.min_count
    return Group(
        title=resource.title,
        kind=resource.kind,
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        owner=controller_owner(metadata),
        scope=scope_of(resource),
        shared=resource in shared_resources(),
        min_member=least if isinstance(least, int) else 0,
        verdict=verdict,
        unreadable=unreadable,
        priority_class=group_object.spec.priority_class_name,
    )


async def explain_object(
    client: KubeClient,
    namespace: str,
    reference: str | Sequence[str],
    scheduler_names: Sequence[str],
) -> Answer:
    """Why a pod, a group or a job waits, when it is expected to start if Tutti's API answers, and
    whether a planner is active; `reference` is `KIND/NAME`, `NAME`, or kind and name as two words.
    Raises KubeError, and Refusal when there is no such kind or object, or more than one.
    """
    words = [reference] if isinstance(reference, str) else list(reference)
    word, name = read_reference(words)
    facts = await NamespaceReader(client, namespace, scheduler_names).read(word, name)
    ours = {each.pod.scheduler_name for each in facts.pods if each.pod.ours}
    liveness = await read_liveness(client, ours)
    answer = explain(msgspec.structs.replace(facts, planner=liveness))
    return await with_expected_starts(client, answer)
