"""Keeps the policy in the API server by which it reviews the creators of Commands on queues, and
knows since when all Commands have been reviewed (`core.queue_commands`).
"""

import contextlib
import logging
from typing import Final

from services.controller.core.queue_commands import DIGEST, admission_policy
from shared.dialects.protocol import JsonObject
from shared.kube.client import KubeClient
from shared.kube.errors import Conflict, Forbidden, KubeError, NotFound
from shared.kube.objects import KubeObject
from shared.kube.resources import CLUSTER_ROLES, Resource

logger = logging.getLogger(__name__)

#: An API server enforces a new policy within about a second, when its cache has it. Creation times
#: are in whole seconds, and may come from API servers whose clocks differ by some.
SETTLE_MS: Final = 10_000
#: Another replica of the controller may write the policy at the same moment.
_TRIES: Final = 3


class QueueCommandPolicy:
    """The policy and its binding in the API server."""

    def __init__(
        self,
        client: KubeClient,
        name: str,
        *,
        namespaces: tuple[str, ...] = (),
        owner_cluster_role: str = "",
        settle_ms: int = SETTLE_MS,
    ) -> None:
        """Nothing is sent before `reviewed_from_ms`.

        Args:
            client: Client of the API server.
            name: Name of the policy and of its binding.
            namespaces: Namespaces whose Commands are not reviewed.
            owner_cluster_role: ClusterRole with which garbage collection removes both; "": none.
            settle_ms: The time that API servers take at most to enforce a new policy.
        """
        self._client = client
        self._name = name
        self._owner_cluster_role = owner_cluster_role
        self._settle_ms = settle_ms
        self._refused = ""
        self.namespaces = namespaces
        #: Whether `reviewed_from_ms` has been answered: the policy exists, unless it is removed.
        self.was_stored = False

    async def reviewed_from_ms(self) -> int | None:
        """Create the policy unless it exists. Returns the time from which the API server has
        reviewed all Commands; None: it has no such policies, or refuses this one.

        Raises:
            KubeError: The API server did not answer; call it again.
        """
        try:
            owner = await self._owner()
            created = [
                await self._created_ms(resource, manifest)
                for resource, manifest in admission_policy(self._name, self.namespaces, owner)
            ]
        except (NotFound, Forbidden) as error:
            if self._refused != str(error):
                self._refused = str(error)
                logger.warning("Commands on queues are not reviewed: %s", error)
            return None
        self.was_stored = True
        return max(created) + self._settle_ms

    async def _owner(self) -> JsonObject | None:
        if not self._owner_cluster_role:
            return None
        role = await self._client.get(CLUSTER_ROLES, self._owner_cluster_role, KubeObject)
        return {
            "apiVersion": CLUSTER_ROLES.api_version,
            "kind": CLUSTER_ROLES.kind,
            "name": self._owner_cluster_role,
            "uid": role.metadata.uid,
        }

    async def _created_ms(self, resource: Resource, manifest: JsonObject) -> int:
        """Store the object unless it is stored. Returns when the stored one was created: one with
        another content is not changed but replaced, since it may have reviewed less.
        """
        for _ in range(_TRIES):
            with contextlib.suppress(NotFound):
                stored = (await self._client.get(resource, self._name, KubeObject)).metadata
                if stored.annotations.get(DIGEST) == manifest["metadata"]["annotations"][DIGEST]:
                    return stored.created_ms
                await self._client.delete(resource, self._name, uid=stored.uid)
            with contextlib.suppress(Conflict):
                await self._client.create(resource, manifest)
                logger.info("created %s %s", resource.kind, self._name)
        raise KubeError(f"other replicas keep writing {resource.kind} {self._name}")
