"""Preparing claims at a real kube-apiserver, with the binder's own rights; the test plays the
controllers that complete them.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

import pytest

from services.binder.api import KubePods
from services.binder.core.claim_preparation import (
    BIND_COMPLETED,
    DONE,
    FINALIZER,
    SELECTED_NODE,
    Preparation,
)
from shared.contracts.decisions import (
    DeviceChoice,
    DeviceConditions,
    DeviceShare,
    VolumeChoice,
)
from shared.kube.client import KubeClient
from shared.kube.credentials import load
from tests.controlplane.client import ApiError, Object, RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.nodes import pod_manifest
from tests.support.rbac import as_account

pytestmark = pytest.mark.integration

DRA: Final = "/apis/resource.k8s.io/v1"
DEVICES: Final = (("gpu", "gpu.example.com", "node-0", "gpu-0"),)


@dataclass(frozen=True)
class Desk:
    """The binder's client, and the test's own."""

    pods: KubePods
    api: RawClient
    namespace: str

    @property
    def claims(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/persistentvolumeclaims"

    @property
    def device_claims(self) -> str:
        return f"{DRA}/namespaces/{self.namespace}/resourceclaims"

    @property
    def volume(self) -> str:
        return f"/api/v1/persistentvolumes/{self.namespace}"

    async def claim(self) -> Object:
        spec = {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": self.namespace,
            "resources": {"requests": {"storage": "1Gi"}},
        }
        return await self.api.create(self.claims, {"metadata": {"name": "data"}, "spec": spec})

    async def make_volume(self) -> Object:
        spec = {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": self.namespace,
            "capacity": {"storage": "1Gi"},
            "hostPath": {"path": "/mnt"},
        }
        manifest: Object = {"metadata": {"name": self.namespace}, "spec": spec}
        made = await self.api.create("/api/v1/persistentvolumes", manifest)
        phase: Object = {"status": {"phase": "Available"}}
        return {**made, **await self.api.patch(f"{self.volume}/status", phase)}

    async def choose(self, *, local: bool) -> Preparation:
        claim = await self.claim()
        volume = await self.make_volume() if local else None
        return Preparation(
            VolumeChoice(
                pod_uid="u-0",
                namespace=self.namespace,
                claim="data",
                claim_uid=claim["metadata"]["uid"],
                node="node-0",
                volume=self.namespace if volume else "",
                volume_uid=volume["metadata"]["uid"] if volume else "",
            ),
            "w-0",
        )

    async def pod(self, name: str) -> str:
        """A new pod; returns its UID."""
        path = f"/api/v1/namespaces/{self.namespace}/pods"
        made = await self.api.create(path, pod_manifest(name))
        return str(made["metadata"]["uid"])

    async def device_claim(self) -> str:
        request = {"name": "gpu", "exactly": {"deviceClassName": "any"}}
        spec = {"devices": {"requests": [request]}}
        made = await self.api.create(
            self.device_claims, {"metadata": {"name": "gpus"}, "spec": spec}
        )
        return str(made["metadata"]["uid"])

    async def annotations(self) -> Object:
        found = await self.api.get(f"{self.claims}/data")
        return dict(found["metadata"].get("annotations") or {})


@pytest.fixture
async def desk(control_plane: ControlPlane, api: RawClient, namespace: str) -> AsyncIterator[Desk]:
    credentials = await load(str(await as_account(control_plane.admin_kubeconfig, "binder")))
    async with KubeClient(credentials, connections_max=2, user_agent="test") as client:
        yield Desk(KubePods(client, timeout_s=5.0, on_health=lambda _: None), api, namespace)
    for path in (f"/api/v1/persistentvolumes/{namespace}",):
        try:
            await api.delete(path)
        except ApiError as error:
            if error.status != 404:
                raise


async def test_a_volume_is_given_to_its_claim_and_done_once_the_claim_is_bound(desk: Desk) -> None:
    preparation = await desk.choose(local=True)
    for _ in range(2):
        progress = await desk.pods.prepare(preparation, again=False)
        assert progress.state == "waiting"
    volume = await desk.api.get(desk.volume)
    assert volume["spec"]["claimRef"]["uid"] == preparation.choice.claim_uid
    complete: Object = {
        "metadata": {"annotations": {BIND_COMPLETED: "yes"}},
        "spec": {"volumeName": desk.namespace},
    }
    await desk.api.patch(f"{desk.claims}/data", complete)
    assert await desk.pods.prepare(preparation, again=True) == DONE
    # A claim has it now: nothing is undone.
    await desk.pods.undo(preparation)
    assert "claimRef" in (await desk.api.get(desk.volume))["spec"]


async def test_a_volume_whose_claim_was_never_completed_is_free_again(desk: Desk) -> None:
    preparation = await desk.choose(local=True)
    await desk.pods.prepare(preparation, again=False)
    await desk.pods.undo(preparation)
    volume = await desk.api.get(desk.volume)
    assert "claimRef" not in volume["spec"]
    assert not volume["metadata"].get("annotations")


async def test_a_volume_that_another_claim_got_first_is_left_to_it(desk: Desk) -> None:
    preparation = await desk.choose(local=True)
    other = {"namespace": "x", "name": "y", "kind": "PersistentVolumeClaim", "uid": "z"}
    await desk.api.patch(desk.volume, {"spec": {"claimRef": other}})
    progress = await desk.pods.prepare(preparation, again=False)
    assert progress.state == "failed"
    await desk.pods.undo(preparation)
    assert (await desk.api.get(desk.volume))["spec"]["claimRef"]["uid"] == "z"


async def test_a_provisioner_has_the_node_until_it_gives_up(desk: Desk) -> None:
    preparation = await desk.choose(local=False)
    assert (await desk.pods.prepare(preparation, again=False)).state == "waiting"
    assert (await desk.annotations())[SELECTED_NODE] == "node-0"
    assert (await desk.pods.prepare(preparation, again=True)).state == "waiting"
    # Only the provisioner may say that this volume will not be made.
    await desk.pods.undo(preparation)
    assert (await desk.annotations())[SELECTED_NODE] == "node-0"
    gives_up: Object = {"metadata": {"annotations": {SELECTED_NODE: None}}}
    await desk.api.patch(f"{desk.claims}/data", gives_up)
    assert (await desk.pods.prepare(preparation, again=True)).state == "failed"


async def test_devices_are_allocated_reserved_shared_and_given_back(desk: Desk) -> None:
    uid = await desk.device_claim()
    pods = {name: await desk.pod(name) for name in ("w-0", "w-1")}

    def wanted(pod: str) -> Preparation:
        choice = DeviceChoice(
            pod_uid=pods[pod],
            namespace=desk.namespace,
            claim="gpus",
            claim_uid=uid,
            node="node-0",
            devices=DEVICES,
        )
        return Preparation(choice, pod)

    for pod in ("w-0", "w-1", "w-0"):
        assert await desk.pods.prepare(wanted(pod), again=False) == DONE
    found = await desk.api.get(f"{desk.device_claims}/gpus")
    assert found["metadata"]["finalizers"] == [FINALIZER]
    status = found["status"]
    assert [one["name"] for one in status["reservedFor"]] == ["w-0", "w-1"]
    assert status["allocation"]["devices"]["results"][0]["device"] == "gpu-0"
    terms = status["allocation"]["nodeSelector"]["nodeSelectorTerms"]
    assert terms[0]["matchFields"][0]["values"] == ["node-0"]
    await desk.pods.undo(wanted("w-0"))
    status = (await desk.api.get(f"{desk.device_claims}/gpus"))["status"]
    assert [one["name"] for one in status["reservedFor"]] == ["w-1"]
    assert "allocation" in status
    await desk.pods.undo(wanted("w-1"))
    assert not (await desk.api.get(f"{desk.device_claims}/gpus")).get("status")


async def gpus_for_a_pod(desk: Desk, claim_uid: str) -> Preparation:
    """Of a new pod, with these devices for the claim `gpus`."""
    choice = DeviceChoice(
        pod_uid=await desk.pod("w-0"),
        namespace=desk.namespace,
        claim="gpus",
        claim_uid=claim_uid,
        node="node-0",
        devices=DEVICES,
    )
    return Preparation(choice, "w-0")


async def test_a_claim_is_not_read_to_be_prepared(desk: Desk) -> None:
    async def reads() -> float:
        lines = (await desk.api.text("/metrics")).splitlines()
        wanted = ("apiserver_request_total{", 'resource="resourceclaims"', 'verb="GET"')
        return sum(float(one.split()[-1]) for one in lines if all(word in one for word in wanted))

    preparation = await gpus_for_a_pod(desk, await desk.device_claim())
    before = await reads()
    assert await desk.pods.prepare(preparation, again=False) == DONE
    assert await reads() == before


async def test_a_claim_keeps_the_finalizers_of_others(desk: Desk) -> None:
    preparation = await gpus_for_a_pod(desk, await desk.device_claim())
    path, other = f"{desk.device_claims}/gpus", "example.com/other"
    await desk.api.patch(path, {"metadata": {"finalizers": [other]}})
    assert await desk.pods.prepare(preparation, again=False) == DONE
    assert sorted((await desk.api.get(path))["metadata"]["finalizers"]) == [other, FINALIZER]


@pytest.mark.parametrize("case", ["being deleted", "another one"])
async def test_a_claim_that_is_gone_gets_no_devices(desk: Desk, case: str) -> None:
    uid = await desk.device_claim()
    preparation = await gpus_for_a_pod(desk, "another" if case == "another one" else uid)
    path = f"{desk.device_claims}/gpus"
    if case == "being deleted":
        await desk.api.patch(path, {"metadata": {"finalizers": ["example.com/other"]}})
        await desk.api.delete(path)
    progress = await desk.pods.prepare(preparation, again=False)
    assert (progress.state, progress.message) == ("failed", 'resourceclaim "gpus" is gone')
    found = await desk.api.get(path)
    assert not found.get("status")
    assert FINALIZER not in (found["metadata"].get("finalizers") or ())
    await desk.api.patch(path, {"metadata": {"finalizers": None}})


async def test_an_allocation_has_everything_that_class_and_claim_ask_for(desk: Desk) -> None:
    """The API server validates every field of it."""
    parameters = {"driver": "gpu.example.com", "parameters": {"mode": "shared"}}
    config = [{"opaque": parameters}]
    gpu: Object = {"metadata": {"name": desk.namespace}, "spec": {"config": config}}
    await desk.api.create(f"{DRA}/deviceclasses", gpu)
    label = {"resource.kubernetes.io/admin-access": "true"}
    path = f"/api/v1/namespaces/{desk.namespace}"
    await desk.api.patch(path, {"metadata": {"labels": label}})
    of_class = {"deviceClassName": desk.namespace}
    tolerations = [{"key": "broken", "operator": "Exists"}]
    shared = {"name": "part", **of_class, "capacity": {"requests": {"memory": "10Gi"}}}
    requests = [
        {"name": "all", "exactly": {**of_class, "adminAccess": True, "tolerations": tolerations}},
        {"name": "gpu", "firstAvailable": [{"name": "whole", **of_class}, shared]},
    ]
    spec = {"devices": {"requests": requests, "config": [{"requests": ["gpu"], **config[0]}]}}
    manifest: Object = {"metadata": {"name": "gpus"}, "spec": spec}
    made = await desk.api.create(desk.device_claims, manifest)
    choice = DeviceChoice(
        pod_uid=await desk.pod("w-0"),
        namespace=desk.namespace,
        claim="gpus",
        claim_uid=made["metadata"]["uid"],
        node="node-0",
        devices=(
            ("all", "gpu.example.com", "rack", "gpu-0"),
            ("gpu/part", "gpu.example.com", "rack", "gpu-1"),
        ),
        shares=(DeviceShare(index=1, capacity=(("memory", str(10 << 30)),)),),
        admin=("all",),
        node_affinity=(),
        classes=(desk.namespace,),
    )
    try:
        assert await desk.pods.prepare(Preparation(choice, "w-0"), again=False) == DONE
    finally:
        await desk.api.delete(f"{DRA}/deviceclasses/{desk.namespace}")
    found = await desk.api.get(f"{desk.device_claims}/gpus")
    allocation = found["status"]["allocation"]
    assert "nodeSelector" not in allocation
    of_all, of_gpu = allocation["devices"]["results"]
    assert of_all["adminAccess"]
    assert of_all["tolerations"] == tolerations
    assert of_gpu["request"] == "gpu/part"
    assert of_gpu["consumedCapacity"] == {"memory": str(10 << 30)}
    assert [one["source"] for one in allocation["devices"]["config"]] == ["FromClass", "FromClaim"]


async def test_a_pod_waits_until_the_driver_reports_its_device_as_attached(desk: Desk) -> None:
    uid = await desk.device_claim()
    choice = DeviceChoice(
        pod_uid=await desk.pod("w-0"),
        namespace=desk.namespace,
        claim="gpus",
        claim_uid=uid,
        node="node-0",
        devices=DEVICES,
        conditions=(DeviceConditions(index=0, binding=("Attached",), failure=("Broken",)),),
    )
    preparation = Preparation(choice, "w-0")
    for _ in range(2):
        progress = await desk.pods.prepare(preparation, again=True)
        assert (progress.state, progress.attaching) == ("waiting", True)
        assert progress.message == "device gpu-0 waits for the condition Attached"

    async def report(kind: str) -> None:
        condition = {
            "type": kind,
            "status": "True",
            "reason": "Driver",
            "message": "no link",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        _, driver, pool, device = DEVICES[0]
        device_status = {"driver": driver, "pool": pool, "device": device}
        status = {"devices": [{**device_status, "conditions": [condition]}]}
        await desk.api.patch(f"{desk.device_claims}/gpus/status", {"status": status})

    await report("Broken")
    progress = await desk.pods.prepare(preparation, again=True)
    assert (progress.state, progress.message) == (
        "failed",
        "device gpu-0 has the condition Broken (Driver: no link)",
    )
    assert await desk.pods.undo(preparation)
    assert not (await desk.api.get(f"{desk.device_claims}/gpus")).get("status")
    assert (await desk.pods.prepare(preparation, again=False)).attaching
    await report("Attached")
    assert await desk.pods.prepare(preparation, again=True) == DONE


async def test_a_claim_that_is_not_there_fails_in_words(desk: Desk) -> None:
    choice = VolumeChoice(
        pod_uid="u", namespace=desk.namespace, claim="data", claim_uid="c", node="node-0"
    )
    progress = await desk.pods.prepare(Preparation(choice, "w-0"), again=False)
    assert (progress.state, progress.message) == (
        "failed",
        'persistentvolumeclaim "data" is gone',
    )
