"""Part of `--controllers=status`: creates the ProvisioningRequest that a verdict names, with its
PodTemplates, and deletes those that are obsolete (ADR 0087).

Each step may have been done before, by this or another replica: the names depend on what is
requested, so an object that exists is the wanted one. Pods are read first, so that nothing is
requested for pods that are gone. Templates are created before the request, and deleted before it:
cluster-autoscaler fails a request that it reads without its templates, and a controller that dies
between two steps leaves no template that it would not find again.
"""

import contextlib
import logging
from collections.abc import Callable
from itertools import zip_longest
from typing import Final

import msgspec

from services.controller.core.provisioning import (
    pod_owner,
    request_manifest,
    template_manifest,
)
from services.controller.errors import RETRY_S, RetryLater, is_temporary
from services.controller.verdict_deliveries import RequestConsumer, status_patch
from shared.bus.connection import Bus
from shared.bus.errors import BusError
from shared.contracts import subjects
from shared.contracts.codec import encode
from shared.contracts.foreign_messages import OnForeign
from shared.contracts.provisioning import POD_SETS_MAX, REFUSAL_CHARACTERS_MAX, template_name
from shared.contracts.questions import RequestRefused
from shared.contracts.verdicts import PodSet, Provisioning, Verdict
from shared.dialects.protocol import JsonObject
from shared.kube.client import KubeClient
from shared.kube.errors import Conflict, KubeError, MalformedAnswer, NotFound
from shared.kube.resources import POD_TEMPLATES, PODS, PROVISIONING_REQUESTS, Resource
from shared.kube.served_versions import ServedVersions

logger = logging.getLogger(__name__)

_GANGS_MAX: Final = 4
#: While another scheduler of our names is active.
_OTHERS_ACTIVE_S: Final = 5.0


class _PodsChanged(Exception):
    """A pod of the request is gone, so a newer verdict follows."""


class ProvisioningController(RequestConsumer):
    def __init__(
        self, bus: Bus, client: KubeClient, may_write: Callable[[], bool], on_foreign: OnForeign
    ) -> None:
        """Nothing is read before `run`, and nothing is written while not `may_write`."""
        self._bus = bus
        self._client = client
        self._versions = ServedVersions(client)
        self._may_write = may_write
        super().__init__(
            bus, subjects.PROVISIONING_CONSUMER, self._write, on_foreign, gangs_max=_GANGS_MAX
        )

    async def _write(self, verdict: Verdict) -> None:
        """Create and delete what the verdict names. Idempotent.

        Raises:
            KubeError: A request failed.
            RetryLater: Another scheduler of our names is active, or changes the same objects.
        """
        wanted = verdict.provisioning
        if wanted is None:
            return
        if not self._may_write():
            raise RetryLater("another scheduler of our names is active", _OTHERS_ACTIVE_S)
        try:
            if wanted.request:
                await self._create_or_report(verdict, wanted)
            for name, uid in zip_longest(wanted.obsolete, wanted.obsolete_uids, fillvalue=""):
                await self._delete(verdict.namespace, name, uid)
        except _PodsChanged as changed:
            logger.info("gang %s: %s", verdict.gang, changed)

    async def _create_or_report(self, verdict: Verdict, wanted: Provisioning) -> None:
        """Create the request; report it to the planner if the API server refuses it.

        A refusal is final for this verdict: obsolete requests are deleted in any case, because a
        quota may count their templates, and the planner asks again with another verdict.
        """
        try:
            await self._create(verdict, wanted)
        except KubeError as error:
            if is_temporary(error):
                raise
            # Forbidden, refused by a webhook or a quota, or the kind is not served any more.
            logger.warning("%s/%s is refused: %s", verdict.namespace, wanted.request, error)
            message = str(error)[:REFUSAL_CHARACTERS_MAX]
            if message != wanted.refusal:
                await self._report(verdict.gang_id, wanted.request, message)

    async def _report(self, gang_id: str, request: str, message: str) -> None:
        refused = RequestRefused(gang_id=gang_id, request=request, message=message)
        try:
            await self._bus.publish(subjects.REPORT_REFUSED, encode(refused))
        except BusError as error:
            # It is reported again when the planner repeats its verdict.
            logger.warning("the planner does not hear of this: %s", error)

    async def _create(self, verdict: Verdict, wanted: Provisioning) -> None:
        namespace = verdict.namespace
        pods = [await self._pod(namespace, pod_set) for pod_set in wanted.pod_sets]
        owner = await self._group(verdict) or pod_owner(pods[0])
        for index, (pod, pod_set) in enumerate(zip(pods, wanted.pod_sets, strict=True)):
            template = template_manifest(wanted.request, index, pod, owner, pod_set.requests)
            await self._create_once(POD_TEMPLATES, template, namespace)
        manifest = request_manifest(wanted, namespace, owner)
        if await self._create_once(PROVISIONING_REQUESTS, manifest, namespace):
            logger.info("created ProvisioningRequest %s/%s", namespace, wanted.request)
            return
        try:
            stored = await self._read(PROVISIONING_REQUESTS, namespace, wanted.request)
        except NotFound:
            raise RetryLater(f"{wanted.request} was deleted at the same time", RETRY_S) from None
        if stored["metadata"].get("deletionTimestamp"):
            raise RetryLater(f"{wanted.request} is being deleted", RETRY_S)

    async def _create_once(self, resource: Resource, manifest: JsonObject, namespace: str) -> bool:
        """Whether the object is new; False: it exists."""
        try:
            await self._client.create(resource, manifest, namespace=namespace)
        except Conflict as error:
            if error.reason != "AlreadyExists":
                # Two requests changed the namespace's quota at the same time.
                raise RetryLater(str(error), RETRY_S) from error
            return False
        return True

    async def _delete(self, namespace: str, name: str, uid: str) -> None:
        """Delete a request and its templates.

        Args:
            namespace: Its namespace.
            name: Its name.
            uid: Its UID. A request of this name with another one belongs to a gang that was created
                again, and stays. "": the planner has not seen the request.
        """
        try:
            stored = await self._read(PROVISIONING_REQUESTS, namespace, name)
        except NotFound:
            if not uid:
                # It may have been refused after its first templates were created.
                await self._delete_templates(namespace, name)
            return
        stored_uid = stored["metadata"]["uid"]
        if uid and stored_uid != uid:
            return
        await self._delete_templates(namespace, name, len(stored["spec"]["podSets"]))
        # Another replica has deleted it, or created it again.
        with contextlib.suppress(NotFound, Conflict):
            await self._client.delete(
                PROVISIONING_REQUESTS, name, namespace=namespace, uid=stored_uid
            )
            logger.info("deleted ProvisioningRequest %s/%s", namespace, name)

    async def _delete_templates(self, namespace: str, name: str, sets: int | None = None) -> None:
        """Delete the templates of a request with this number of sets; None: as many as exist from
        the first one on.
        """
        for index in range(POD_SETS_MAX if sets is None else sets):
            try:
                await self._client.delete(
                    POD_TEMPLATES, template_name(name, index), namespace=namespace
                )
            except NotFound:
                if sets is None:
                    return

    async def _pod(self, namespace: str, wanted: PodSet) -> JsonObject:
        try:
            pod = await self._read(PODS, namespace, wanted.name)
        except NotFound:
            raise _PodsChanged(f"pod {wanted.name} is gone") from None
        if pod["metadata"]["uid"] != wanted.uid:
            raise _PodsChanged(f"pod {wanted.name} is another one")
        return pod

    async def _group(self, verdict: Verdict) -> JsonObject | None:
        """An owner reference to the gang's group object; None: it has none."""
        patch = status_patch(verdict) if verdict.uid else None
        if patch is None:
            return None
        served = await self._versions.of(patch.resource)
        return {
            "apiVersion": served.api_version,
            "kind": served.kind,
            "name": verdict.name,
            "uid": verdict.uid,
        }

    async def _read(self, resource: Resource, namespace: str, name: str) -> JsonObject:
        """An object with all its fields."""
        path = resource.path(namespace, name)
        reply = await self._client.request("GET", path)
        try:
            stored: JsonObject = msgspec.json.decode(reply.body)
        except msgspec.DecodeError as error:
            raise MalformedAnswer(f"{path}: {error}") from None
        return stored
