"""Gangs that request an extended resource, on a real API server whose nodes have it from a device
plugin or as devices, beside Kubernetes' own scheduler.
"""

from collections.abc import AsyncIterator
from typing import Any, Final

import pytest

from tests.controlplane.client import Object
from tests.controlplane.nodes import pod_manifest
from tests.integration.stage import Stage
from tests.support.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(120)]

DRA: Final = "/apis/resource.k8s.io/v1"
DRIVER: Final = "gpu.example.com"


@pytest.fixture
async def gpu(stage: Stage) -> AsyncIterator[str]:
    """A resource that `plugin` has one of, and `node-0` and `node-1` as devices, three in all."""
    name = stage.namespace
    resource = f"{name}.example.com/gpu"
    await stage.nodes(1, prefix="plugin-", extended={resource: 1})
    await stage.nodes(2)
    spec: Object = {
        "extendedResourceName": resource,
        "selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}],
    }
    await stage.api.create(f"{DRA}/deviceclasses", {"metadata": {"name": name}, "spec": spec})
    slices = []
    for node, count in (("node-0", 2), ("node-1", 1)):
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        devices = [{"name": f"gpu-{index}"} for index in range(count)]
        found = {"driver": DRIVER, "pool": pool, "nodeName": node, "devices": devices}
        manifest: Object = {"metadata": {"name": f"{name}-{node}"}, "spec": found}
        await stage.api.create(f"{DRA}/resourceslices", manifest)
        slices.append(f"{DRA}/resourceslices/{name}-{node}")
    yield resource
    await stage.api.delete(stage.path())
    for path in (f"{DRA}/deviceclasses/{name}", *slices):
        await stage.api.delete(path)


async def claims(stage: Stage) -> list[Object]:
    return list(
        (await stage.api.get(f"{DRA}/namespaces/{stage.namespace}/resourceclaims"))["items"]
    )


def devices(claim: Object) -> list[tuple[str, str]]:
    """Pool and name of each device that the claim has."""
    allocation: Object = claim.get("status", {}).get("allocation") or {}
    results: list[Object] = allocation.get("devices", {}).get("results", [])
    return [(one["pool"], one["device"]) for one in results]


async def test_a_gang_uses_nodes_of_both_kinds_and_its_devices_are_free_again_after_it(
    stage: Stage, gpu: str
) -> None:
    requests = {"cpu": "1", gpu: "1"}
    await stage.gang("five", 5, requests=requests)
    message = await stage.waits("five", "NotEnoughResources", "4 of 5 pods fit")
    assert f"1 more {gpu} needed" in message
    assert not await claims(stage), "a gang that waits has no claim"

    await stage.gang("four", 4, requests=requests)
    placed = await stage.bound("four", 4)
    assert sorted(placed.values()) == ["node-0", "node-0", "node-1", "plugin-0"]
    given: set[tuple[str, str]] = set()
    for claim in await claims(stage):
        (user,) = claim["status"]["reservedFor"]
        ((pool, device),) = devices(claim)
        assert placed[user["name"]] == pool
        given.add((pool, device))
        pod = await stage.api.get(stage.path(name=user["name"]))
        named = pod["status"]["extendedResourceClaimStatus"]
        assert named["resourceClaimName"] == claim["metadata"]["name"]
    assert given == {("node-0", "gpu-0"), ("node-0", "gpu-1"), ("node-1", "gpu-0")}
    on_plugin = next(name for name, node in placed.items() if node == "plugin-0")
    status = (await stage.api.get(stage.path(name=on_plugin)))["status"]
    assert "extendedResourceClaimStatus" not in status

    await stage.delete_pods(list(placed))

    async def released() -> bool:
        return not await claims(stage)

    await eventually(released, timeout_s=60.0, because="the claims go with their pods")
    await stage.gang("again", 4, requests=requests)
    assert sorted((await stage.bound("again", 4)).values()) == sorted(placed.values())


async def test_a_claim_is_the_one_that_kube_scheduler_makes_and_counts_like_it(
    stage: Stage, gpu: str
) -> None:
    """Two pods alike, one for each scheduler, with init containers and a sidecar."""

    def container(name: str, number: int, **fields: Any) -> Object:
        amounts = {"cpu": "100m", gpu: str(number)}
        resources = {"requests": amounts, "limits": {gpu: str(number)}}
        return {"name": name, "image": "registry.example/none", "resources": resources, **fields}

    spec = {
        "initContainers": [
            container("load", 2),
            container("log", 1, restartPolicy="Always"),
        ],
        "containers": [container("train", 1)],
        "nodeSelector": {"kubernetes.io/hostname": "node-0"},
    }
    other = pod_manifest("other", scheduler_name="default-scheduler", spec=spec)
    await stage.bare_pods(other)
    await stage.bound("", 1)
    await stage.gang("one", 1, spec=spec)
    await stage.waits("one", "NotEnoughResources", gpu)
    (theirs,) = await claims(stage)
    named: Object = (await stage.api.get(stage.path(name="other")))["status"]
    await stage.delete_pods(["other"])
    await stage.bound("one", 1)

    async def only_ours() -> Object:
        (found,) = await claims(stage)
        assert found["metadata"]["name"] != theirs["metadata"]["name"]
        return found

    ours = await eventually(only_ours, timeout_s=60.0)
    assert ours["spec"] == theirs["spec"]
    assert sorted(devices(ours)) == sorted(devices(theirs))
    assert ours["metadata"]["annotations"] == theirs["metadata"]["annotations"]
    (pod,) = await stage.pods("one")
    mine = pod["status"]["extendedResourceClaimStatus"]["requestMappings"]
    assert mine == named["extendedResourceClaimStatus"]["requestMappings"]
