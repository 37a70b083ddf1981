"""Reads the objects above a pod, from its direct owner up.

Only kinds of `shared.dialects.owner_kinds` are read, at most five objects for a pod, and only for a
pod whose gang wants a group: once for each gang.
"""

import logging

from shared.dialects.owned_gangs import STEPS_MAX, Owned
from shared.dialects.owner_kinds import OWNER_KINDS, OwnerKind, owner_kind
from shared.kube.client import KubeClient
from shared.kube.errors import Forbidden, MalformedAnswer, NotFound
from shared.kube.objects import KubeObject, OwnerReference, Pod

logger = logging.getLogger(__name__)


class OwnerWalk:
    def __init__(self, client: KubeClient) -> None:
        self._client = client

    async def owners_of(self, pod: Pod) -> tuple[Owned, ...]:
        """The objects above a pod that can be read. The walk ends at a kind that is not in the
        table, or is not served, and at an object that is gone, was created again under its name,
        may not be read, or cannot be decoded.

        Raises:
            KubeError: A request failed.
        """
        metadata = pod.metadata
        owners: list[Owned] = []
        # With several objects between them, the label of a pod leads to its owner at once.
        for kind in OWNER_KINDS:
            name = metadata.labels.get(kind.name_label, "") if kind.part_label else ""
            if name:
                owner = await self._read(kind, metadata.namespace, name, "")
                if owner is not None:
                    owners.append(owner)
                    break
        for _ in range(STEPS_MAX):
            above = (owners[-1].owner.metadata if owners else metadata).controller
            kind_above = None if above is None else owner_kind(above.api_version, above.kind)
            if above is None or kind_above is None:
                break
            owner = await self._read(kind_above, metadata.namespace, above.name, above.uid)
            if owner is None:
                break
            owners.append(owner)
        return tuple(owners)

    async def read(
        self, kind: OwnerKind, namespace: str, owner: OwnerReference
    ) -> KubeObject | None:
        """The object that an owner reference of this kind names, if it can be read.

        Raises:
            KubeError: The request failed.
        """
        owned = await self._read(kind, namespace, owner.name, owner.uid)
        return None if owned is None else owned.owner

    async def _read(self, kind: OwnerKind, namespace: str, name: str, uid: str) -> Owned | None:
        """The object of this name and UID ("": any UID)."""
        try:
            stored = await self._client.get(kind.resource, name, kind.decoded, namespace=namespace)
        except NotFound:
            return None
        except (Forbidden, MalformedAnswer) as error:
            logger.warning(
                "%s %s/%s cannot be read: %s", kind.resource.title, namespace, name, error
            )
            return None
        return Owned(kind, stored) if uid in ("", stored.metadata.uid) else None
