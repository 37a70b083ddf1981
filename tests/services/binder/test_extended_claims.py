"""The claim for extended resources of a pod, at a real kube-apiserver with the binder's rights."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

import msgspec
import pytest

from services.binder.api import KubePods
from services.binder.claims import KubeClaims
from services.binder.core.answers import Answer
from services.binder.core.claim_preparation import DONE, FINALIZER, Preparation
from shared.contracts.decisions import DeviceChoice, ExtendedClaim
from shared.kube.client import KubeClient
from shared.kube.credentials import load
from tests.controlplane.client import Object, RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.nodes import pod_manifest
from tests.support.rbac import as_account

pytestmark = pytest.mark.integration

CLAIMS: Final = "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims"
GPU: Final = "example.com/gpu"
REQUEST: Final = "container-0-request-0"
OF_POD: Final = ExtendedClaim(requests=((REQUEST, "gpu", 2),), mappings=(("main", GPU, REQUEST),))
DEVICES: Final = tuple((REQUEST, "gpu.example.com", "node-0", f"gpu-{i}") for i in range(2))


@dataclass(frozen=True)
class Desk:
    """The binder's client, and the test's own."""

    pods: KubePods
    api: RawClient
    namespace: str

    @property
    def pod(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods/w-0"

    @property
    def claims(self) -> str:
        return CLAIMS.format(self.namespace)

    async def preparation(self) -> Preparation:
        """Devices for a new pod."""
        manifest = pod_manifest("w-0", requests={GPU: "2"})
        made = await self.api.create(f"/api/v1/namespaces/{self.namespace}/pods", manifest)
        choice = DeviceChoice(
            pod_uid=made["metadata"]["uid"],
            namespace=self.namespace,
            claim="w-0-extended-resources-0123456789",
            claim_uid="",
            node="node-0",
            devices=DEVICES,
            extended=OF_POD,
        )
        return Preparation(choice, "w-0")

    async def claim(self) -> Object:
        (found,) = (await self.api.get(self.claims))["items"]
        return dict(found)

    async def named(self) -> Object | None:
        """What the pod's status says of a claim."""
        status: Object = (await self.api.get(self.pod))["status"]
        return status.get("extendedResourceClaimStatus")


@pytest.fixture
async def desk(control_plane: ControlPlane, api: RawClient, namespace: str) -> AsyncIterator[Desk]:
    credentials = await load(str(await as_account(control_plane.admin_kubeconfig, "binder")))
    async with KubeClient(credentials, connections_max=2, user_agent="test") as client:
        yield Desk(KubePods(client, timeout_s=5.0, on_health=lambda _: None), api, namespace)


async def test_the_claim_is_made_allocated_reserved_and_named_by_the_pod(desk: Desk) -> None:
    preparation = await desk.preparation()
    for _ in range(2):
        # A second delivery, of any binder, finds everything done.
        assert await desk.pods.prepare(preparation, again=False) == DONE
    made = await desk.claim()
    metadata, status = made["metadata"], made["status"]
    assert metadata["name"] == preparation.choice.claim
    assert metadata["finalizers"] == [FINALIZER]
    assert metadata["annotations"] == {"resource.kubernetes.io/extended-resource-claim": "true"}
    (owner,) = metadata["ownerReferences"]
    assert (owner["uid"], owner["controller"]) == (preparation.choice.pod_uid, True)
    assert made["spec"]["devices"]["requests"] == [
        {
            "name": REQUEST,
            "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2},
        }
    ]
    results = status["allocation"]["devices"]["results"]
    assert [one["device"] for one in results] == ["gpu-0", "gpu-1"]
    assert [one["name"] for one in status["reservedFor"]] == ["w-0"]
    mapping = {"containerName": "main", "resourceName": GPU, "requestName": REQUEST}
    assert await desk.named() == {
        "resourceClaimName": metadata["name"],
        "requestMappings": [mapping],
    }


async def test_an_undone_claim_has_no_devices_and_serves_the_next_attempt(desk: Desk) -> None:
    preparation = await desk.preparation()
    assert await desk.pods.prepare(preparation, again=False) == DONE
    for _ in range(2):
        assert await desk.pods.undo(preparation)
        assert await desk.named() is None
        assert not (await desk.claim()).get("status")
    assert await desk.pods.prepare(preparation, again=False) == DONE
    assert "allocation" in (await desk.claim())["status"]


async def test_a_claim_that_has_devices_already_is_reserved_and_named(desk: Desk) -> None:
    preparation = await desk.preparation()
    assert await desk.pods.prepare(preparation, again=False) == DONE
    made = await desk.claim()
    # A user has removed the reservation, and not the devices.
    path = f"{desk.claims}/{made['metadata']['name']}/status"
    await desk.api.patch(path, {"status": {"reservedFor": None}})
    again = msgspec.structs.replace(
        preparation.choice, devices=(), claim_uid=made["metadata"]["uid"]
    )
    assert await desk.pods.prepare(Preparation(again, "w-0"), again=False) == DONE
    assert (await desk.claim())["status"]["reservedFor"][0]["name"] == "w-0"
    assert await desk.named() is not None


async def test_a_claim_of_that_name_which_the_pod_does_not_own_fails(desk: Desk) -> None:
    preparation = await desk.preparation()
    request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    spec = {"devices": {"requests": [request]}}
    theirs: Object = {"metadata": {"name": preparation.choice.claim}, "spec": spec}
    await desk.api.create(desk.claims, theirs)
    progress = await desk.pods.prepare(preparation, again=False)
    assert progress.state == "failed"
    assert progress.message.endswith("is not owned by the pod")


async def test_a_pod_that_was_recreated_under_the_name_is_not_touched(desk: Desk) -> None:
    preparation = await desk.preparation()
    other = msgspec.structs.replace(preparation.choice, pod_uid="u-0")
    progress = await desk.pods.prepare(Preparation(other, "w-0"), again=False)
    assert (progress.state, progress.message) == ("failed", "the pod is gone")
    assert await desk.pods.undo(Preparation(other, "w-0"))
    assert await desk.named() is None


async def test_an_api_server_that_drops_the_status_fails_the_preparation(desk: Desk) -> None:
    """Its feature gate is off: a kubelet would start the pod without devices."""
    preparation = await desk.preparation()

    async def send(method: str, path: str, body: object, _type: str) -> tuple[Answer, bytes]:
        if method == "PATCH" and "/pods/" in path:
            return Answer(200), msgspec.json.encode(await desk.api.get(desk.pod))
        return await desk.pods._send(method, path, body, _type)  # type: ignore[arg-type]

    progress = await KubeClaims(send).prepare(preparation, again=False)
    assert progress.state == "failed"
    assert "feature gate DRAExtendedResource is off" in progress.message
