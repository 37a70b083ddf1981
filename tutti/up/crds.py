"""Installs the CRDs of the group APIs.

A CRD that is there and not ours is left as it is: another product's may know more fields than ours,
and writing ours over it would prune them from everybody's objects.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final

import yaml

from shared.kube.client import KubeClient
from shared.kube.errors import Conflict, NotFound
from shared.kube.objects import Condition, KubeStruct, ObjectMeta
from shared.kube.resources import CUSTOM_RESOURCE_DEFINITIONS as CRDS
from tutti.shipped_crds import crds_folder

#: Put on every CRD that we make; what lacks it is somebody else's.
_MANAGED_BY: Final = "app.kubernetes.io/managed-by"
_OURS: Final = "tutti"
_ESTABLISHED_TIMEOUT_S: Final = 15.0
#: The API server establishes a CRD within tens of milliseconds, and tells nobody but its status.
_LOOK_EVERY_S: Final = 0.05


class CrdStatus(KubeStruct, frozen=True, kw_only=True):
    """`status` of a CRD."""

    conditions: tuple[Condition, ...] = ()


class Crd(KubeStruct, frozen=True, kw_only=True):
    """apiextensions.k8s.io/v1 CustomResourceDefinition, as far as it matters here."""

    metadata: ObjectMeta = ObjectMeta()
    status: CrdStatus = CrdStatus()

    @property
    def established(self) -> bool:
        """Whether its kind is served."""
        return any(c.type == "Established" and c.status == "True" for c in self.status.conditions)


class CrdsNotEstablished(Exception):
    """The API server does not serve a CRD after it was created."""


def manifests() -> list[dict[str, Any]]:
    """Our CRDs, sorted by file name. Raises FileNotFoundError when they were not shipped."""
    return [
        yaml.safe_load(path.read_text("utf-8")) for path in sorted(crds_folder().glob("*.yaml"))
    ]


async def install(client: KubeClient, say: Callable[[str], None]) -> None:
    """Create our CRDs, update those that we made, wait until all are served.

    Raises:
        ApiError: The API server refuses one, or our right to write it.
        TransportError: It does not answer.
        CrdsNotEstablished: See there.
    """
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(_apply(client, manifest), name=manifest["metadata"]["name"])
            for manifest in manifests()
        ]
    kept = [task.get_name() for task in tasks if not task.result()]
    if kept:
        say(f"CRDs that are there and not ours are left as they are: {', '.join(sorted(kept))}")


async def _apply(client: KubeClient, manifest: dict[str, Any]) -> bool:
    """Write one CRD and wait until it is served; False: there is one that is not ours."""
    name = manifest["metadata"]["name"]
    ours = True
    manifest["metadata"].setdefault("labels", {})[_MANAGED_BY] = _OURS
    try:
        await client.create(CRDS, manifest)
    except Conflict:
        found = await client.get(CRDS, name, Crd)
        ours = found.metadata.labels.get(_MANAGED_BY) == _OURS
        if ours:
            # Lists, such as the versions, are replaced whole by a merge patch: as it should be.
            await client.patch(CRDS, name, manifest)
    await _established(client, name)
    return ours


async def _established(client: KubeClient, name: str) -> None:
    try:
        async with asyncio.timeout(_ESTABLISHED_TIMEOUT_S):
            while True:
                try:
                    if (await client.get(CRDS, name, Crd)).established:
                        return
                except NotFound:
                    # Deleted beside us; the deadline ends this.
                    pass
                await asyncio.sleep(_LOOK_EVERY_S)
    except TimeoutError:
        raise CrdsNotEstablished(
            f"CRD {name} is not served after {_ESTABLISHED_TIMEOUT_S:.0f} s"
        ) from None
