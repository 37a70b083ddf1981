"""The objects of a case on a cluster: their addresses, and their creation and deletion."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from tests.controlplane.client import ApiError, Object, RawClient
from tests.controlplane.nodes import create_namespace
from tests.support.waiting import eventually

#: Until the finalizers of an earlier object of the name are gone, on a busy machine.
CREATED_S: Final = 60.0
#: Kind -> its name in addresses.
_PLURALS: Final = {
    "HyperNode": "hypernodes",
    "Job": "jobs",
    "Pod": "pods",
    "PodGang": "podgangs",
    "PodGroup": "podgroups",
    "Queue": "queues",
    "ReplicaSet": "replicasets",
    "StatefulSet": "statefulsets",
    "Topology": "topologies",
}
_AT_ONCE: Final[Object] = {"propagationPolicy": "Background", "gracePeriodSeconds": 0}
_OF_THE_CLUSTER: Final = frozenset({"HyperNode", "Queue", "Topology"})
#: Kinds that create other objects again are deleted first.
_LAST: Final = ("Pod", "PodGang", "PodGroup", "Queue", "HyperNode", "Topology")


class Address(NamedTuple):
    """Where an object is."""

    kind: str
    collection: str
    name: str

    @property
    def path(self) -> str:
        return f"{self.collection}/{self.name}"


class CaseObjects:
    """The objects that a case has made in its namespace, and of the cluster."""

    def __init__(self, api: RawClient, namespace: str) -> None:
        self.api = api
        self.namespace = namespace
        #: Address by reference, with and without API group.
        self._known: dict[str, Address] = {}

    async def begin(self) -> None:
        """Make the namespace."""
        await create_namespace(self.api, self.namespace)

    async def create(self, manifest: Object) -> Object:
        """Create an object, which cases name by its kind and name from now on.

        Raises:
            ApiError: The API server refused it.
        """
        address = self._address(manifest)

        async def created() -> Object:
            try:
                return await self.api.create(address.collection, manifest)
            except ApiError as error:
                # Its finalizers keep the name for a moment after the deletion.
                if error.status == 409 and await self.is_deleted(address):
                    raise AssertionError(error) from None
                raise

        made = await eventually(created, timeout_s=CREATED_S, because=f"{address.name} is created")
        group = manifest["apiVersion"].rpartition("/")[0]
        short = address.kind.lower()
        for kind in (short, f"{short}.{group}"):
            self._known[f"{kind}/{address.name}"] = address
        return made

    async def get(self, reference: str) -> Object:
        """An object by its reference. Raises AssertionError where there is none: for probes."""
        found = await self._or_none(self.address(reference).path)
        assert found is not None, f"there is no {reference}"
        return found

    async def patch(self, reference: str, body: Object) -> None:
        """Patch an object by a merge patch."""
        await self.api.patch(self.address(reference).path, body)

    async def patch_status(self, reference: str, status: Object) -> None:
        """Patch the status of an object by a merge patch, as another component does."""
        path = f"{self.address(reference).path}/status"
        await self.api.patch(path, {"status": status})

    async def delete(self, reference: str) -> str:
        """Delete an object, without grace; its UID."""
        found = await self.get(reference)
        await self.api.delete(self.address(reference).path, _AT_ONCE)
        return str(found["metadata"]["uid"])

    async def is_deleted(self, address: Address, uid: str = "") -> bool:
        """Whether an object is gone, or waits for its finalizers only; a pod must be gone. One of
        its name with another UID than this one is its successor.
        """
        found = await self._or_none(address.path)
        if found is None or (uid and found["metadata"]["uid"] != uid):
            return True
        return "deletionTimestamp" in found["metadata"] and address.kind != "Pod"

    async def pods(self) -> list[Object]:
        """The pods of the namespace."""
        listed = await self.api.get(f"/api/v1/namespaces/{self.namespace}/pods")
        return list(listed["items"])

    async def events(self) -> list[Object]:
        """The Events of the namespace."""
        listed = await self.api.get(f"/api/v1/namespaces/{self.namespace}/events")
        return list(listed["items"])

    async def end(self, nodes: Iterable[str]) -> None:
        """Delete everything, also these nodes."""
        known = sorted(set(self._known.values()), key=lambda one: one.kind in _LAST)
        for address in known:
            if address.kind not in _LAST:
                await self._or_none(address.path, delete=True)
        await self.api.delete(f"/api/v1/namespaces/{self.namespace}/pods", _AT_ONCE)
        for address in known:
            if address.kind in _LAST:
                await self._or_none(address.path, delete=True)
        await self.api.delete(f"/api/v1/namespaces/{self.namespace}")
        for node in nodes:
            await self.api.delete(f"/api/v1/nodes/{node}")

    def address(self, reference: str) -> Address:
        """Where the object of a reference is; a pod need not have been made by the case."""
        kind, _, name = reference.partition("/")
        if kind == "pod":
            return Address("Pod", f"/api/v1/namespaces/{self.namespace}/pods", name)
        assert reference in self._known, f"the case has made no {reference}"
        return self._known[reference]

    def _address(self, manifest: Object) -> Address:
        version, kind = manifest["apiVersion"], manifest["kind"]
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        if kind not in _OF_THE_CLUSTER:
            root += f"/namespaces/{self.namespace}"
        return Address(kind, f"{root}/{_PLURALS[kind]}", manifest["metadata"]["name"])

    async def _or_none(self, path: str, *, delete: bool = False) -> Object | None:
        try:
            if delete:
                return await self.api.delete(path, _AT_ONCE)
            return await self.api.get(path)
        except ApiError as error:
            if error.status != 404:
                raise
            return None
