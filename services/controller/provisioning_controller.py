"""Part of `--controllers=status`: creates the ProvisioningRequest that a verdict names, with its
PodTemplates, and deletes those that are obsolete (ADR 0087).

Each step may have been done before, by this or another replica: the names depend on what is
requested, so an object that exists is the wanted one. Pods are read first, so that nothing is
requested for pods that are gone.
"""

import contextlib
import logging
from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from services.controller.core.provisioning import (
    JsonObject,
    pod_owner,
    request_manifest,
    template_manifest,
)
from services.controller.errors import RETRY_S, RetryLater, is_temporary
from services.controller.request_consumer import RequestConsumer
from shared.bus.connection import Bus
from shared.contracts import subjects
from shared.contracts.foreign_messages import OnForeign
from shared.contracts.verdicts import PodSet, Provisioning, Verdict
from shared.dialects.discovery import dialects
from shared.kube.client import KubeClient
from shared.kube.errors import Conflict, KubeError, NotFound
from shared.kube.resources import POD_TEMPLATES, PODS, PROVISIONING_REQUESTS, Resource
from shared.kube.served_versions import ServedVersions

logger = logging.getLogger(__name__)

_GANGS_MAX: Final = 4
#: While another scheduler of our names is active.
_OTHERS_ACTIVE_S: Final = 5.0
_RETRY_S_MAX: Final = 30.0


class _PodsChanged(Exception):
    """A pod of the request is gone, so a newer verdict follows."""


class ProvisioningController:
    def __init__(
        self, bus: Bus, client: KubeClient, may_write: Callable[[], bool], on_foreign: OnForeign
    ) -> None:
        """Nothing is read before `run`, and nothing is written while not `may_write`."""
        self._client = client
        self._versions = ServedVersions(client)
        self._may_write = may_write
        self._requests = RequestConsumer(
            bus,
            subjects.PROVISIONING_CONSUMER,
            self._write,
            on_foreign,
            gangs_max=_GANGS_MAX,
        )

    async def run(self) -> None:
        """Write until cancelled. Verdicts without an acknowledgement are delivered again."""
        await self._requests.run()

    async def stop_taking(self) -> None:
        """Pull no more."""
        self._requests.stop_taking()

    async def finish(self) -> None:
        """Wait until the requests in flight are written."""
        await self._requests.finish()

    async def _write(self, verdict: Verdict) -> None:
        """Create and delete what the verdict names. Idempotent.

        Raises:
            RetryLater: A request failed, or another scheduler of our names is active.
        """
        wanted = verdict.provisioning
        if wanted is None:
            return
        if not self._may_write():
            raise RetryLater("another scheduler of our names is active", _OTHERS_ACTIVE_S)
        try:
            if wanted.request:
                await self._create(verdict, wanted)
            await self._delete(verdict.namespace, wanted.obsolete)
        except _PodsChanged as changed:
            logger.info("gang %s/%s: %s", verdict.namespace, verdict.name, changed)
        except KubeError as error:
            if is_temporary(error):
                delay_s = min(error.retry_after_s or RETRY_S, _RETRY_S_MAX)
                raise RetryLater(str(error), delay_s) from error
            # Forbidden, refused by a webhook or a quota, or the kind is not served any more: the
            # gang waits for the request, so it is tried until an administrator has acted.
            logger.warning("%s/%s is refused: %s", verdict.namespace, wanted.request, error)
            raise RetryLater(str(error), _RETRY_S_MAX) from error

    async def _create(self, verdict: Verdict, wanted: Provisioning) -> None:
        namespace = verdict.namespace
        pods = [await self._pod(namespace, one) for one in wanted.pod_sets]
        owner = await self._group(verdict) or pod_owner(pods[0])
        manifest = request_manifest(wanted, namespace, owner)
        try:
            reply = await self._client.create(PROVISIONING_REQUESTS, manifest, namespace=namespace)
        except Conflict:
            stored = await self._read(PROVISIONING_REQUESTS, namespace, wanted.request)
        else:
            stored = msgspec.json.decode(reply.body)
            logger.info("created ProvisioningRequest %s/%s", namespace, wanted.request)
        for index, pod in enumerate(pods):
            template = template_manifest(stored, index, pod)
            with contextlib.suppress(Conflict):
                await self._client.create(POD_TEMPLATES, template, namespace=namespace)

    async def _delete(self, namespace: str, names: Iterable[str]) -> None:
        for name in names:
            with contextlib.suppress(NotFound):
                await self._client.delete(PROVISIONING_REQUESTS, name, namespace=namespace)
                logger.info("deleted ProvisioningRequest %s/%s", namespace, name)

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
        resource = _group_resource(verdict)
        if not verdict.uid or resource is None:
            return None
        served = await self._versions.of(resource)
        return {
            "apiVersion": served.api_version,
            "kind": served.kind,
            "name": verdict.name,
            "uid": verdict.uid,
        }

    async def _read(self, resource: Resource, namespace: str, name: str) -> JsonObject:
        """An object with all its fields."""
        reply = await self._client.request("GET", resource.path(namespace, name))
        found: JsonObject = msgspec.json.decode(reply.body)
        return found


def _group_resource(verdict: Verdict) -> Resource | None:
    """The resource of the gang's group object; None: its dialect writes to none."""
    for dialect in dialects():
        if dialect.name == verdict.dialect:
            patch = dialect.status(verdict)
            return patch.resource if patch is not None else None
    return None
