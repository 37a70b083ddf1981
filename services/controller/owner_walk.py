"""Reads the objects above a pod, from its direct owner up.

Only kinds of `shared.dialects.owner_kinds` are read, at most five objects for a pod, and only for a
pod whose gang wants a group: once for each gang.
"""

import logging
from collections.abc import Callable
from typing import TypeAlias

from shared.dialects.owned_gangs import STEPS_MAX, Owned
from shared.dialects.owner_kinds import OWNER_KINDS, OwnerKind, owner_kind
from shared.kube.client import KubeClient
from shared.kube.errors import Forbidden, MalformedAnswer, NotFound
from shared.kube.objects import KubeObject, OwnerReference, Pod

#: The entry of a kind by its `apiVersion` and name.
KindOf: TypeAlias = Callable[[str, str], OwnerKind | None]

logger = logging.getLogger(__name__)


class OwnerWalk:
    def __init__(
        self,
        client: KubeClient,
        cached: Callable[[OwnerKind, str], KubeObject | None] = lambda _kind, _key: None,
    ) -> None:
        """`cached` returns an object by its kind and "namespace/name", if it need not be read."""
        self._client = client
        self._cached = cached

    async def owners_of(self, pod: Pod) -> tuple[Owned, ...]:
        """The objects above a pod that can be read, as `above`.

        Raises:
            KubeError: A request failed.
        """
        metadata = pod.metadata
        # With several objects between them, the label of a pod leads to its owner at once.
        for kind in OWNER_KINDS:
            name = metadata.labels.get(kind.name_label, "") if kind.part_label else ""
            if name:
                owned = await self._read(kind, metadata.namespace, name, "")
                if owned is not None:
                    metadata = owned.owner.metadata
                    return (owned, *await self.above(metadata.controller, metadata.namespace))
        return tuple(await self.above(metadata.controller, metadata.namespace))

    async def above(
        self, owner: OwnerReference | None, namespace: str, known: KindOf = owner_kind
    ) -> list[Owned]:
        """A controller and the objects above it, from the nearest one up. The walk ends at a kind
        that is not `known`, or is not served, and at an object that is gone, was created again
        under its name, may not be read, or cannot be decoded.

        Raises:
            KubeError: A request failed.
        """
        owners: list[Owned] = []
        while owner is not None and len(owners) < STEPS_MAX:
            kind = known(owner.api_version, owner.kind)
            owned = kind and await self._read(kind, namespace, owner.name, owner.uid)
            if not owned:
                break
            owners.append(owned)
            owner = owned.owner.metadata.controller
        return owners

    async def _read(self, kind: OwnerKind, namespace: str, name: str, uid: str) -> Owned | None:
        """The object of this name and UID ("": any UID)."""
        known = self._cached(kind, f"{namespace}/{name}")
        if known is not None and uid in ("", known.metadata.uid):
            return Owned(kind, known)
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
