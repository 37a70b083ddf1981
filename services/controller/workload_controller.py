"""Updates and deletes the PodGroups that were created for ReplicaSets, StatefulSets, DaemonSets and
Jobs, and for the objects of operators.

`podgroup_controller` creates a group when a workload's first pods want one. From then on this
controller updates it by the workload's annotations, size and template, by the annotations of the
objects above it, and by what its members declare on themselves, as the planner's verdict on the
group reports it, and deletes it when the workload was scaled to zero, or suspended before a pod of
its Jobs has succeeded, so that old revisions of Deployments leave no groups, and a resumed JobSet
starts as a whole again. A group is never deleted while a pod that can still run names it, unless
the pod is a member of another gang: it names that one itself, and the CRD of that API was installed
after the group was made.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple

import msgspec

from services.controller.core import owner_groups
from services.controller.core.workloads import (
    Annotations,
    apart_from_run_limit,
    bare_pod_of,
    controller_of,
    declares_another_gang,
    is_empty,
    leaves_queue,
    limit_of,
    limit_patch,
    members_patch,
    owner_of,
    queue_patch,
    queue_patch_of_owner,
    upkeep,
)
from services.controller.owner_walk import OwnerWalk
from services.controller.reconciling.controller import Runtime, Wake
from services.controller.reconciling.informer import Informer
from services.controller.reconciling.writes import Outcome
from shared.contracts import annotations
from shared.dialects.owned_gangs import PREFIX, Owned
from shared.dialects.owner_kinds import OWNER_KINDS, OwnerKind, limiting_kind, owner_kind
from shared.dialects.protocol import JsonObject
from shared.dialects.run_limits import annotations_of_owner
from shared.dialects.workload_sizes import WORKLOADS, Workload, has_ended
from shared.kinds.podgroup import PodGroup
from shared.kinds.queue import DEFAULT_QUEUE
from shared.kube.objects import KubeObject, OwnerReference, Pod
from shared.kube.resources import NAMESPACES, PODGROUPS_VOLCANO, PODS, Resource

#: Interval of checks while terminating pods still name the group.
_AGAIN_S: Final = 2.0
_ENDED: Final = frozenset({"Succeeded", "Failed"})


class _Pods(NamedTuple):
    """The pods that may name a group: by labels, or the only one by its name."""

    labels: Mapping[str, str] = {}
    name: str = ""


class WorkloadReconciler:
    """A key is "namespace/name" of a PodGroup."""

    name = "workload"

    def __init__(self, runtime: Runtime) -> None:
        self._client = runtime.client
        self._walk = OwnerWalk(runtime.client, self._cached)
        self._writes = runtime.writes
        self._groups = runtime.informers.of(PODGROUPS_VOLCANO, PodGroup)
        self._workloads = {
            resource.kind: runtime.informers.of(resource, Workload)
            for resource in WORKLOADS.values()
        }
        self._owners: dict[Resource, Informer[Any]] = {
            kind.resource: runtime.informers.of(kind.resource, kind.decoded)
            for kind in OWNER_KINDS
            if kind.parts is not None
        }
        self._wake: Wake = lambda _key: None

    def watches(self, wake: Wake) -> Iterable[Informer[Any]]:
        self._wake = wake
        self._groups.on_change(self._group_changed)
        for workloads in self._workloads.values():
            workloads.on_change(self._workload_changed)
        for owners in self._owners.values():
            owners.on_change(self._owner_changed)
        return self._groups, *self._workloads.values(), *self._owners.values()

    def keys(self) -> Iterable[str]:
        return (
            group.metadata.key
            for group in self._groups.all()
            if _is_ours(group) or _is_of_operator(group)
        )

    async def reconcile(self, key: str) -> float | None:
        group = self._groups.get(key)
        if group is None or group.metadata.deletion_timestamp is not None:
            return None
        bare_pod = bare_pod_of(group)
        if bare_pod:
            return await self._write(group, None, _Pods(name=bare_pod), queue_patch(group))
        owner = owner_of(group)
        if owner is None:
            if owner_groups.owner_of(group) is not None:
                return await self._follow_owner(group)
            if _is_of_operator(group):
                await self._limit(group)
            else:
                await self._follow_members(group)
            return None
        workload = self._workloads[owner.kind].get(f"{group.metadata.namespace}/{owner.name}")
        if workload is None or workload.metadata.uid != owner.uid:
            return None  # deleted: garbage collection deletes its objects
        above = await self._above(workload.metadata.controller, workload.metadata.namespace)
        if leaves_queue(group, workload):
            group = await self._into_queue_of_namespace(group)
        write = upkeep(group, owner.kind, workload, above)
        selector = workload.spec.selector
        labels = selector.match_labels if selector is not None else {}
        return await self._write(group, write, _Pods(labels=labels), queue_patch(group))

    async def _into_queue_of_namespace(self, group: PodGroup) -> PodGroup:
        """Move the group into the queue that it would be created in without a queue of its pods;
        return it.
        """
        namespace = await self._client.get(NAMESPACES, group.metadata.namespace, KubeObject)
        queue = namespace.metadata.annotations.get(annotations.QUEUE_NAME) or DEFAULT_QUEUE
        written = await self._writes.patch(
            PODGROUPS_VOLCANO, group.metadata, {"spec": {"queue": queue}}
        )
        self._groups.learn(written.body)
        return self._groups.get(group.metadata.key) or group

    async def _follow_owner(self, group: PodGroup) -> float | None:
        """The same for a group of an operator's object."""
        reference = owner_groups.owner_of(group)
        kind = owner_kind(reference.api_version, reference.kind) if reference is not None else None
        owners = self._owners.get(kind.resource) if kind is not None else None
        if reference is None or kind is None or owners is None:
            return None
        stored = owners.get(f"{group.metadata.namespace}/{reference.name}")
        if stored is None or stored.metadata.uid != reference.uid:
            return None
        above = await self._above(stored.metadata.controller, stored.metadata.namespace)
        metadata = stored.metadata
        jobs = self._workloads["Job"].owned_by(metadata.uid, namespace=metadata.namespace)
        write = owner_groups.upkeep(group, Owned(kind, stored), above, jobs)
        pods = _Pods(labels={kind.name_label: reference.name})
        named = metadata.annotations.get(annotations.QUEUE_NAME, "")
        return await self._write(group, write, pods, queue_patch_of_owner(group, named))

    async def _follow_members(self, group: PodGroup) -> None:
        """The same for a group of an owner of another kind, as far as its members and the objects
        above them declare it.
        """
        owner = controller_of(group)
        if owner is None:
            return
        above = await self._above(owner, group.metadata.namespace)
        await self._patch(group, members_patch(group, owner.kind, above), queue_patch(group))

    async def _limit(self, group: PodGroup) -> None:
        """Let an operator's group have the run limit that the objects above its pods state:
        operators pass on annotations at most.
        """
        metadata = group.metadata
        above = await self._walk.above(metadata.controller, metadata.namespace, limiting_kind)
        await self._patch(group, limit_patch(group, above), None)

    async def _above(self, owner: OwnerReference | None, namespace: str) -> list[Annotations]:
        """The annotations of a controller and of the objects above it, as far as they can be read,
        from the nearest one up.
        """
        return [owned.annotations for owned in await self._walk.above(owner, namespace)]

    def _cached(self, kind: OwnerKind, key: str) -> KubeObject | None:
        owners = self._owners.get(kind.resource)
        return None if owners is None else owners.get(key)

    async def _write(
        self,
        group: PodGroup,
        write: JsonObject | Literal["remove"] | None,
        pods: _Pods,
        of_queue: JsonObject | None,
    ) -> float | None:
        """Write what `upkeep` returned, and then `of_queue`.

        `pods`: the pods that may name the group.
        """
        if is_empty(group):
            naming = await self._naming(group, pods)
            if naming and all(declares_another_gang(pod, group.metadata.name) for pod in naming):
                await self._writes.delete(PODGROUPS_VOLCANO, group.metadata)
                return None
        if write == "remove":
            return await self._remove(group, pods)
        await self._patch(group, write, of_queue)
        return None

    async def _patch(
        self, group: PodGroup, patch: JsonObject | None, of_queue: JsonObject | None
    ) -> None:
        """Patch the group; then move it into its queue, and give it its run limit, which a webhook
        may refuse.
        """
        rest, of_limit = apart_from_run_limit(patch)
        for change in (rest, of_queue, of_limit):
            if change is not None:
                written = await self._writes.patch(PODGROUPS_VOLCANO, group.metadata, change)
                self._groups.learn(written.body)

    async def _remove(self, group: PodGroup, pods: _Pods) -> float | None:
        """Delete the group unless a pod names it. Create it again if a pod has named it during the
        deletion: the pods of a workload that is scaled up at that moment find the group by owner.
        """
        if await self._naming(group, pods):
            return _AGAIN_S
        metadata = group.metadata
        written = await self._writes.delete(PODGROUPS_VOLCANO, metadata)
        if written.outcome is Outcome.DONE and await self._naming(group, pods):
            again = msgspec.structs.replace(
                metadata, uid="", resource_version="", generation=0, creation_timestamp=None
            )
            made = msgspec.structs.replace(group, metadata=again)
            await self._writes.create(PODGROUPS_VOLCANO, made, namespace=metadata.namespace)
        return None

    async def _naming(self, group: PodGroup, pods: _Pods) -> list[Pod]:
        """Those of the pods that can still run and name the group; read from the API server."""
        labels = sorted(pods.labels.items())
        page = await self._client.list(
            PODS,
            Pod,
            namespace=group.metadata.namespace,
            label_selector=",".join(f"{key}={value}" for key, value in labels),
            field_selector=f"metadata.name={pods.name}" if pods.name else "",
        )
        return [
            pod
            for pod in page.items
            if isinstance(pod, Pod)
            and pod.status.phase not in _ENDED
            and pod.metadata.annotations.get(annotations.GROUP_NAME) == group.metadata.name
        ]

    def _group_changed(self, old: PodGroup | None, new: PodGroup | None) -> None:
        if new is None:
            return
        # Objects of operators are read when their group appears, or has lost its limit.
        of_operator = _is_of_operator(new) and (old is None or limit_of(old) != limit_of(new))
        if of_operator or _is_ours(new):
            self._wake(new.metadata.key)

    def _workload_changed(self, old: Workload | None, new: Workload | None) -> None:
        """Wake the group when fields have changed that it depends on."""
        if new is None:
            return
        key = f"{new.metadata.namespace}/{PREFIX}{new.metadata.uid}"
        if self._groups.get(key) is not None and (
            old is None or _relevant_fields(old) != _relevant_fields(new)
        ):
            self._wake(key)

    def _owner_changed(self, old: KubeObject | None, new: KubeObject | None) -> None:
        """Wake all groups of an operator's object. Most changes are of its status, and need no
        write.
        """
        del old
        if new is not None:
            metadata = new.metadata
            for group in self._groups.owned_by(metadata.uid, namespace=metadata.namespace):
                self._wake(group.metadata.key)


def _is_ours(group: PodGroup) -> bool:
    owned = controller_of(group) is not None or owner_groups.owner_of(group) is not None
    return owned or bare_pod_of(group) != ""


def _is_of_operator(group: PodGroup) -> bool:
    """Whether the operator of a known kind made it."""
    owner = group.metadata.controller
    if owner is None or _is_ours(group):
        return False
    return limiting_kind(owner.api_version, owner.kind) is not None


def _relevant_fields(workload: Workload) -> tuple[object, ...]:
    spec = workload.spec
    return (
        spec.replicas,
        spec.parallelism,
        spec.completions,
        spec.suspend,
        workload.status.replicas == 0,
        has_ended(workload.status.conditions),
        annotations_of_owner(workload),
        spec.template,
    )
