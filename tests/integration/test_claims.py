"""Gangs with claims on a real API server: its controllers bind volumes, there is no driver."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

import pytest

from tests.controlplane.client import ApiError, Object
from tests.controlplane.nodes import pod_manifest
from tests.integration.stage import Stage
from tests.support.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(90)]

VOLUMES: Final = "/api/v1/persistentvolumes"
CLASSES: Final = "/apis/storage.k8s.io/v1/storageclasses"
DRA: Final = "/apis/resource.k8s.io/v1"
DRIVER: Final = "gpu.example.com"


@dataclass(frozen=True)
class Store:
    """Cluster-scoped objects of one test, named after its namespace."""

    stage: Stage
    made: list[str]

    async def create(self, path: str, manifest: Object) -> Object:
        """Make an object, to be deleted with the test."""
        found = await self.stage.api.create(path, manifest)
        self.made.append(f"{path}/{manifest['metadata']['name']}")
        return found

    async def storage_class(self, *, provisioner: str = "kubernetes.io/no-provisioner") -> str:
        """A class that waits for the first consumer."""
        name = self.stage.namespace
        mode = {"provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}
        await self.create(CLASSES, {"metadata": {"name": name}, **mode})
        return name

    async def volume(self, node: str, *, gib: int = 10, **spec: object) -> str:
        """A local volume."""
        name = f"{self.stage.namespace}-{node}"
        here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
        required = {"nodeSelectorTerms": [{"matchExpressions": [here]}]}
        manifest: Object = {
            "metadata": {"name": name},
            "spec": {
                "capacity": {"storage": f"{gib}Gi"},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": self.stage.namespace,
                "local": {"path": "/mnt/disk"},
                "nodeAffinity": {"required": required},
                **spec,
            },
        }
        await self.create(VOLUMES, manifest)
        return name

    async def claim(self, name: str, *, mode: str = "ReadWriteOnce") -> None:
        """A claim of the test's class."""
        spec = {
            "accessModes": [mode],
            "storageClassName": self.stage.namespace,
            "resources": {"requests": {"storage": "5Gi"}},
        }
        path = self.stage.path("persistentvolumeclaims")
        await self.stage.api.create(path, {"metadata": {"name": name}, "spec": spec})

    async def member(self, gang: str, name: str, claim: str) -> None:
        """A pod of the gang that has the claim."""
        volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
        notes = {"scheduling.k8s.io/group-name": gang}
        await self.stage.bare_pods(
            pod_manifest(
                name,
                requests={"cpu": "1"},
                scheduler_name="tutti",
                annotations=notes,
                spec={"volumes": volumes},
            )
        )

    async def claim_named(self, name: str) -> Object:
        """A claim as it is."""
        return await self.stage.api.get(self.stage.path("persistentvolumeclaims", name))


@pytest.fixture
async def store(stage: Stage) -> AsyncIterator[Store]:
    store = Store(stage, [])
    yield store
    await stage.api.delete(stage.path())
    await stage.api.delete(stage.path("persistentvolumeclaims"))
    for path in reversed(store.made):
        try:
            await stage.api.delete(path)
        except ApiError as error:
            if error.status != 404:
                raise


async def test_each_member_gets_a_local_volume_on_its_node_or_none_is_bound(
    stage: Stage, store: Store
) -> None:
    await stage.nodes(3)
    await store.storage_class()
    homes = {await store.volume(node): node for node in ("node-0", "node-1")}
    await stage.group("set", 3)
    for index in range(3):
        await store.claim(f"data-{index}")
        await store.member("set", f"set-{index}", f"data-{index}")
    await stage.waits("set", "NotEnoughResources", "didn't find available persistent volumes")
    assert not await stage.placed("set")
    for index in range(3):
        assert "volumeName" not in (await store.claim_named(f"data-{index}"))["spec"]
    homes[await store.volume("node-2")] = "node-2"
    placed = await stage.bound("set", 3)
    assert sorted(placed.values()) == ["node-0", "node-1", "node-2"]
    for index in range(3):
        claim = await store.claim_named(f"data-{index}")
        assert claim["status"]["phase"] == "Bound"
        assert homes[claim["spec"]["volumeName"]] == placed[f"set-{index}"]


async def test_a_provisioner_that_gives_up_leaves_the_gang_unbound_and_is_asked_elsewhere(
    stage: Stage, store: Store
) -> None:
    await stage.nodes(2)
    await store.storage_class(provisioner="nobody.example.com")
    await store.claim("data")
    await stage.group("one", 1)
    await store.member("one", "one-0", "data")

    async def selected() -> str:
        claim = await store.claim_named("data")
        node = (
            claim["metadata"].get("annotations", {}).get("volume.kubernetes.io/selected-node", "")
        )
        assert node, "no node is selected"
        return str(node)

    first = await eventually(selected, timeout_s=20, because="the provisioner is given a node")
    assert not await stage.placed("one")
    notes: Object = {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": None}}}
    await stage.api.patch(stage.path("persistentvolumeclaims", "data"), notes)

    async def elsewhere() -> str:
        node = await selected()
        assert node != first, "the same node again"
        return node

    second = await eventually(elsewhere, timeout_s=40, because="another node is tried")
    # The provisioner makes a volume there.
    await store.volume(
        second,
        claimRef={
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": stage.namespace,
            "name": "data",
        },
    )
    assert await stage.bound("one", 1) == {"one-0": second}


async def test_a_claim_for_one_pod_and_a_bound_local_volume_are_kept_to(
    stage: Stage, store: Store
) -> None:
    await stage.nodes(3)
    await store.storage_class()
    await store.volume("node-1", accessModes=["ReadWriteOncePod"])
    await store.claim("data", mode="ReadWriteOncePod")
    await stage.group("first", 1)
    await store.member("first", "first-0", "data")
    assert await stage.bound("first", 1) == {"first-0": "node-1"}
    await stage.group("second", 1)
    await store.member("second", "second-0", "data")
    await stage.waits("second", "NotEnoughResources", "ReadWriteOncePod access mode already in-use")
    await stage.delete_pods(["first-0"])
    # The claim is bound to its volume by now: the pod has to follow it.
    assert await stage.bound("second", 1) == {"second-0": "node-1"}


async def test_devices_are_chosen_by_the_selectors_of_class_and_request(
    stage: Stage, store: Store
) -> None:
    await stage.nodes(2)
    name = stage.namespace
    kind = f"device.driver == '{DRIVER}' && device.attributes['{DRIVER}'].type == 'gpu'"
    classes = f"{DRA}/deviceclasses"
    broken: Object = {"selectors": [{"cel": {"expression": "device.driver =="}}]}
    with pytest.raises(ApiError) as refused:
        await store.create(classes, {"metadata": {"name": f"{name}-broken"}, "spec": broken})
    assert refused.value.status == 422
    selectors = [{"cel": {"expression": kind}}]
    await store.create(classes, {"metadata": {"name": name}, "spec": {"selectors": selectors}})
    for node, memory in (("node-0", "20Gi"), ("node-1", "80Gi")):
        devices = [
            {
                "name": device,
                "attributes": {"type": {"string": device}},
                "capacity": {"memory": {"value": memory}},
            }
            for device in ("gpu", "mig")
        ]
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": DRIVER, "pool": pool, "nodeName": node, "devices": devices}
        manifest: Object = {"metadata": {"name": f"{name}-{node}"}, "spec": spec}
        await store.create(f"{DRA}/resourceslices", manifest)
    large = f"device.capacity['{DRIVER}'].memory.compareTo(quantity('40Gi')) >= 0"
    exactly = {"deviceClassName": name, "selectors": [{"cel": {"expression": large}}]}
    requests = [{"name": "gpu", "exactly": exactly}]
    template = {"metadata": {"name": "gpu"}, "spec": {"spec": {"devices": {"requests": requests}}}}
    await stage.api.create(f"{DRA}/namespaces/{name}/resourceclaimtemplates", template)
    pods = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]}
    await stage.gang("two", 2, spec=pods)
    await stage.waits("two", "NotEnoughResources", large)
    await stage.gang("one", 1, spec=pods)
    assert list((await stage.bound("one", 1)).values()) == ["node-1"]
    found = (await stage.api.get(f"{DRA}/namespaces/{name}/resourceclaims"))["items"]
    results = [
        (result["pool"], result["device"])
        for claim in found
        for result in claim.get("status", {})
        .get("allocation", {})
        .get("devices", {})
        .get("results", [])
    ]
    assert results == [("node-1", "gpu")]


async def test_whole_devices_are_allocated_and_reserved_before_the_pods_are_bound(
    stage: Stage, store: Store
) -> None:
    await stage.nodes(2)
    name = stage.namespace
    only = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    await store.create(
        f"{DRA}/deviceclasses", {"metadata": {"name": name}, "spec": {"selectors": [only]}}
    )
    for node, count in (("node-0", 2), ("node-1", 1)):
        devices = [{"name": f"gpu-{index}"} for index in range(count)]
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": DRIVER, "pool": pool, "nodeName": node, "devices": devices}
        manifest: Object = {"metadata": {"name": f"{name}-{node}"}, "spec": spec}
        await store.create(f"{DRA}/resourceslices", manifest)
    request = {"name": "gpu", "exactly": {"deviceClassName": name}}
    template = {"metadata": {"name": "gpu"}, "spec": {"spec": {"devices": {"requests": [request]}}}}
    claims_path = f"{DRA}/namespaces/{name}/resourceclaims"
    await stage.api.create(f"{DRA}/namespaces/{name}/resourceclaimtemplates", template)
    spec = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]}
    await stage.gang("four", 4, spec=spec)
    await stage.waits("four", "NotEnoughResources", "3 of 4 pods fit")
    assert not await stage.placed("four")
    await stage.gang("three", 3, spec=spec)
    placed = await stage.bound("three", 3)
    assert sorted(placed.values()) == ["node-0", "node-0", "node-1"]
    found = (await stage.api.get(claims_path))["items"]
    given: set[tuple[str, str]] = set()
    for claim in found:
        status = claim.get("status", {})
        if not status.get("allocation"):
            continue
        (user,) = status["reservedFor"]
        (result,) = status["allocation"]["devices"]["results"]
        assert placed[user["name"]] == result["pool"]
        given.add((result["pool"], result["device"]))
    assert given == {("node-0", "gpu-0"), ("node-0", "gpu-1"), ("node-1", "gpu-0")}


async def test_parts_of_devices_are_allocated_with_the_configuration_of_their_class(
    stage: Stage, store: Store
) -> None:
    """Two GPUs, each also in two parts: parts of one of them leave the other one whole."""
    (node,) = await stage.nodes(1)
    name = stage.namespace
    config = [{"opaque": {"driver": DRIVER, "parameters": {"sharing": "none"}}}]
    only = [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]
    gpus: Object = {"metadata": {"name": name}, "spec": {"selectors": only, "config": config}}
    await store.create(f"{DRA}/deviceclasses", gpus)
    pool = {"name": name, "generation": 1, "resourceSliceCount": 2}
    of_pool = {"driver": DRIVER, "pool": pool, "nodeName": node}
    counters = [{"name": f"gpu-{gpu}", "counters": {"slices": {"value": "2"}}} for gpu in range(2)]
    devices = [
        {
            "name": f"gpu-{gpu}{suffix}",
            "attributes": {"kind": {"string": kind}, "parent": {"int": gpu}},
            "consumesCounters": [
                {"counterSet": f"gpu-{gpu}", "counters": {"slices": {"value": slices}}}
            ],
        }
        for gpu in range(2)
        for suffix, kind, slices in (("", "gpu", "2"), ("-a", "mig", "1"), ("-b", "mig", "1"))
    ]
    for suffix, content in (
        ("counters", {"sharedCounters": counters}),
        ("gpus", {"devices": devices}),
    ):
        manifest: Object = {
            "metadata": {"name": f"{name}-{suffix}"},
            "spec": {**of_pool, **content},
        }
        await store.create(f"{DRA}/resourceslices", manifest)
    whole = [{"cel": {"expression": f"device.attributes['{DRIVER}'].kind == 'gpu'"}}]
    part = [{"cel": {"expression": f"device.attributes['{DRIVER}'].kind == 'mig'"}}]
    both = [{"name": "parts", "exactly": {"deviceClassName": name, "selectors": part, "count": 2}}]
    same = [{"matchAttribute": f"{DRIVER}/parent"}]
    await _template(stage, "parts", {"requests": both, "constraints": same})
    one = [{"name": "gpu", "exactly": {"deviceClassName": name, "selectors": whole}}]
    await _template(stage, "whole", {"requests": one})
    await stage.gang("parts", 1, spec=_of_template("parts"))
    await stage.bound("parts", 1)
    await stage.gang("two", 2, spec=_of_template("whole"))
    await stage.waits("two", "NotEnoughResources", "counter slices of gpu-0 is used up")
    await stage.gang("one", 1, spec=_of_template("whole"))
    await stage.bound("one", 1)
    found = (await stage.api.get(f"{DRA}/namespaces/{name}/resourceclaims"))["items"]
    allocations = [one["status"]["allocation"] for one in found if one["status"].get("allocation")]
    given = sorted(
        result["device"]
        for allocation in allocations
        for result in allocation["devices"]["results"]
    )
    assert given == ["gpu-0-a", "gpu-0-b", "gpu-1"]
    assert all(
        [two["opaque"] for two in allocation["devices"]["config"]] == [config[0]["opaque"]]
        for allocation in allocations
    )


async def _template(stage: Stage, name: str, devices: Object) -> None:
    """A ResourceClaimTemplate in the test's namespace."""
    path = f"{DRA}/namespaces/{stage.namespace}/resourceclaimtemplates"
    template: Object = {"metadata": {"name": name}, "spec": {"spec": {"devices": devices}}}
    await stage.api.create(path, template)


def _of_template(name: str) -> Object:
    """The claim of a pod that is made of the template."""
    return {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": name}]}
