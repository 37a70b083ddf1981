"""`--controllers=podgroup`: creates the PodGroups of bare pods, as Volcano's controller does.

It reads only verdicts that want a group, which have a subject of their own. For each verdict it
reads one of the pods and the objects above it, creates the group, and patches the group's name onto
each pod that lacks it. If one of these objects asks for a gang of all its pods, the pods get the
name of that object's group instead (`owner_groups`), whichever of its child objects they belong to.
Each step may have been done before, by this or another replica; existing objects stay as they are.
Pods that were created later cause another verdict.
"""

import asyncio
import contextlib
import logging
from collections.abc import Iterable
from typing import Final

from typing_extensions import override

from services.controller.core.owner_groups import owner_group_for
from services.controller.core.workloads import (
    join_patch,
    owner_resource,
    pod_group_for,
)
from services.controller.errors import RetryLater, is_temporary
from services.controller.other_controllers import OtherControllers
from services.controller.owner_walk import OwnerWalk
from services.controller.reconciling.writes import for_all
from services.controller.verdict_deliveries import RequestConsumer
from shared.bus.connection import Bus
from shared.contracts import subjects
from shared.contracts.foreign_messages import OnForeign
from shared.contracts.verdicts import PodRef, Verdict
from shared.dialects.owned_gangs import (
    Owned,
    default_counts,
    gang_owner,
    group_name,
    queue_for,
)
from shared.dialects.protocol import JsonObject
from shared.dialects.workload_sizes import Workload, is_asked_by_default
from shared.kube.client import KubeClient
from shared.kube.errors import (
    Conflict,
    Forbidden,
    Invalid,
    KubeError,
    MalformedAnswer,
    NotFound,
)
from shared.kube.objects import KubeObject, ObjectMeta, Pod
from shared.kube.resources import NAMESPACES, PODGROUPS_VOLCANO, PODS, QUEUES_VOLCANO, Resource

logger = logging.getLogger(__name__)

#: Gangs at the same time, and requests for each. Pods wait for their group before they can be
#: scheduled, so this controller may use as many connections as a binder.
_GANGS_MAX: Final = 8
_PATCHES: Final = 4
#: While another project's controllers are active, or that is not known yet.
_OTHERS_ACTIVE_S: Final = 5.0
#: When a gang whose group was refused is tried again, and the most such gangs.
REFUSED_RETRY_S: Final = 30.0
REFUSED_MAX: Final = 100
REFUSED_OF_NAMESPACE_MAX: Final = 20


class PodGroupController(RequestConsumer):
    def __init__(
        self, bus: Bus, client: KubeClient, others: OtherControllers, on_foreign: OnForeign
    ) -> None:
        """Nothing is read before `run`, and nothing is written while another project's controller
        is active.
        """
        self._client = client
        self._walk = OwnerWalk(client)
        self._others = others
        self._refused = RefusedGangs()
        super().__init__(
            bus, subjects.PODGROUP_CONSUMER, self._ensure_group, on_foreign, gangs_max=_GANGS_MAX
        )

    @override
    async def run(self) -> None:
        """Create groups until cancelled. Verdicts without an acknowledgement are delivered
        again.
        """
        async with asyncio.TaskGroup() as group:
            others = group.create_task(
                self._others.run(lambda: None), name="podgroup-other-controllers"
            )
            await self._others.known.wait()
            await super().run()
            others.cancel()

    async def _ensure_group(self, verdict: Verdict) -> None:
        """Create the group that the verdict wants, and patch its name onto the pods. Idempotent.

        Raises:
            RetryLater: The group is refused, or another project's controllers are active.
            KubeError: A request failed for the moment.
        """
        if not verdict.group_wanted or verdict.phase == "Gone":
            return
        if not self._others.none_active:
            raise RetryLater("another project's controllers are active", _OTHERS_ACTIVE_S)
        try:
            if not verdict.uid:
                pod = await self._first(verdict.namespace, verdict.unnamed)
                if pod is None:
                    return  # the pods are gone, or name a group by now
                owners = await self._walk.owners_of(pod)
                queue = queue_for(pod.metadata, owners)
                asked = await self._is_asked_by_default(queue, pod, owners)
                owned = gang_owner(owners, asked_by_default=asked)
                if owned is not None:
                    await self._join_group_of(owned, owners, queue, verdict)
                    return
                await self._create_group(verdict, pod, owners, queue, asked)
            await self._join(verdict, verdict.group_wanted, verdict.unnamed)
        except KubeError as error:
            if is_temporary(error):
                raise
            # Forbidden, or refused by a webhook (a closed queue) or a quota: a user must act.
            logger.warning(
                "group %s/%s is refused: %s", verdict.namespace, verdict.group_wanted, error
            )
            now_s = asyncio.get_running_loop().time()
            if self._refused.is_tried_again(verdict.namespace, verdict.gang_id, now_s):
                raise RetryLater(str(error), REFUSED_RETRY_S) from error

    async def _first(self, namespace: str, pods: Iterable[PodRef]) -> Pod | None:
        """The first of these pods that still exists."""
        for wanted in pods:
            try:
                pod = await self._client.get(PODS, wanted.name, Pod, namespace=namespace)
            except NotFound:
                continue
            except MalformedAnswer as error:
                logger.warning("pod %s/%s cannot be read: %s", namespace, wanted.name, error)
                continue
            if pod.metadata.uid == wanted.uid:
                return pod
        return None

    async def _create_group(
        self,
        verdict: Verdict,
        pod: Pod,
        owners: tuple[Owned, ...],
        queue: str,
        asked_by_default: bool,
    ) -> None:
        direct = owners[0].owner if owners else None
        owner = direct if isinstance(direct, Workload) else await self._owner(pod)
        manifest = pod_group_for(
            pod,
            owner,
            verdict.group_wanted,
            queue=queue,
            above=[owned.annotations for owned in owners if owned.owner is not owner],
            asked_by_default=asked_by_default,
        )
        await self._create(manifest, verdict.namespace)

    async def _create(self, manifest: JsonObject, namespace: str) -> None:
        try:
            await self._client.create(PODGROUPS_VOLCANO, manifest, namespace=namespace)
        except Conflict:
            return  # a user or an earlier attempt has created it
        logger.info("created group %s/%s", namespace, manifest["metadata"]["name"])

    async def _owner(self, pod: Pod) -> Workload | None:
        known = owner_resource(pod)
        if known is None:
            return None
        resource, reference = known
        try:
            owner = await self._client.get(
                resource, reference.name, Workload, namespace=pod.metadata.namespace
            )
        except NotFound:
            return None
        return owner if owner.metadata.uid == reference.uid else None

    async def _is_asked_by_default(self, queue: str, pod: Pod, owners: tuple[Owned, ...]) -> bool:
        """Whether the pod's queue or namespace asks for a gang of the owners' pods."""
        if not owners or not default_counts(owners):
            return False
        namespace = await self._metadata(NAMESPACES, pod.metadata.namespace)
        return is_asked_by_default(await self._metadata(QUEUES_VOLCANO, queue), namespace)

    async def _metadata(self, resource: Resource, name: str) -> ObjectMeta:
        """The metadata of an object of the cluster; empty if it does not exist, or may not be
        read.
        """
        try:
            return (await self._client.get(resource, name, KubeObject)).metadata
        except NotFound:
            return ObjectMeta()
        except Forbidden as error:
            logger.warning("%s %s cannot be read: %s", resource.title, name, error)
            return ObjectMeta()

    async def _join_group_of(
        self, owned: Owned, owners: tuple[Owned, ...], queue: str, verdict: Verdict
    ) -> None:
        """Create the groups of these pods of an owner, unless they exist, and let the pods name
        them. Pods without the label that numbers their gang wait. `owners`: all above the pods.
        """
        at = owners.index(owned)
        others = (*owners[at + 1 :], *owners[:at])
        above = [other.annotations for other in others]
        joining: dict[str, list[PodRef]] = {}
        for member in verdict.unnamed:
            if owned.kind.part_label or not joining:
                pod = await self._first(verdict.namespace, [member])
                if pod is None:
                    continue
                name = group_name(owned, pod.metadata)
                if name and name not in joining:
                    manifest = owner_group_for(pod, owned, name, queue=queue, above=above)
                    await self._create(manifest, verdict.namespace)
            else:
                (name,) = joining  # all pods of such an owner are one gang
            if name:
                joining.setdefault(name, []).append(member)
        for name, pods in joining.items():
            await self._join(verdict, name, pods)

    async def _join(self, verdict: Verdict, group: str, pods: Iterable[PodRef]) -> None:
        """Patch the group's name onto each of the pods, a few at a time, until the first error."""

        async def patch(pod: PodRef) -> None:
            # The pod may be gone, or another pod may have its name.
            with contextlib.suppress(NotFound, Conflict, Invalid):
                await self._client.patch(
                    PODS,
                    pod.name,
                    join_patch(pod.uid, group),
                    namespace=verdict.namespace,
                )

        await for_all(patch, pods, at_once=_PATCHES, name="join")


class RefusedGangs:
    """Which gangs are tried again after the API server has refused their group object.

    No verdict follows when the cause is gone, such as a quota, so the verdict is delivered again.
    Such verdicts take a part of what the consumer may have in flight: their number is bounded, in
    all and for each namespace.
    """

    def __init__(self) -> None:
        #: When each was refused last, by namespace and id.
        self._refused_s: dict[tuple[str, str], float] = {}

    def is_tried_again(self, namespace: str, gang_id: str, now_s: float) -> bool:
        """Whether a gang that is refused now is one of them. A gang that was not refused again for
        two turns is none of them any more.
        """
        known = self._refused_s.items()
        self._refused_s = {gang: at_s for gang, at_s in known if now_s - at_s < 2 * REFUSED_RETRY_S}
        if (namespace, gang_id) not in self._refused_s:
            own = sum(place == namespace for place, _ in self._refused_s)
            if own >= REFUSED_OF_NAMESPACE_MAX or len(self._refused_s) >= REFUSED_MAX:
                return False
        self._refused_s[namespace, gang_id] = now_s
        return True
