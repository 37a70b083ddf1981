"""Pods are evicted for the devices of their ResourceClaims, on a real API server, whose claims
controller takes the devices from claims whose pods are gone.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from tests.controlplane.client import ApiError, Object, RawClient
from tests.integration.stage import Stage

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(180)]

SUITE_FLAGS: Final = (f"--scheduler-conf={Path(__file__).with_name('preempting.yaml')}",)
PRIORITIES: Final = "/apis/scheduling.k8s.io/v1/priorityclasses"
DRA: Final = "/apis/resource.k8s.io/v1"
DRIVER: Final = "gpu.example.com"


@pytest.fixture(autouse=True)
async def devices(stage: Stage, api: RawClient) -> AsyncIterator[None]:
    """One node with two devices of a class that has the namespace's name; two priority classes."""
    (node,) = await stage.nodes(1)
    name = stage.namespace
    only = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    listed = [{"name": f"gpu-{index}"} for index in range(2)]
    made: list[tuple[str, Object]] = [
        (f"{DRA}/deviceclasses", {"metadata": {"name": name}, "spec": {"selectors": [only]}}),
        (
            f"{DRA}/resourceslices",
            {
                "metadata": {"name": name},
                "spec": {"driver": DRIVER, "pool": pool, "nodeName": node, "devices": listed},
            },
        ),
        (PRIORITIES, {"metadata": {"name": f"{name}-low"}, "value": 10}),
        (PRIORITIES, {"metadata": {"name": f"{name}-high"}, "value": 1000}),
    ]
    for path, manifest in made:
        await api.create(path, manifest)
    requests = [{"name": "gpu", "exactly": {"deviceClassName": name}}]
    spec = {"spec": {"devices": {"requests": requests}}}
    await api.create(
        f"{DRA}/namespaces/{name}/resourceclaimtemplates",
        {"metadata": {"name": "gpu"}, "spec": spec},
    )
    await api.create(
        f"{DRA}/namespaces/{name}/resourceclaims",
        {"metadata": {"name": "mine"}, "spec": {"devices": {"requests": requests}}},
    )
    yield
    await api.delete(stage.path())
    for path, manifest in made:
        try:
            await api.delete(f"{path}/{manifest['metadata']['name']}")
        except ApiError as error:
            if error.status != 404:
                raise


async def submit(stage: Stage, name: str, size: int, priority: str, claim: Object) -> None:
    of_priority = {"priorityClassName": f"{stage.namespace}-{priority}"}
    await stage.group(name, size, spec=of_priority)
    claims = [{"name": "gpu", **claim}]
    spec = {**of_priority, "terminationGracePeriodSeconds": 1, "resourceClaims": claims}
    await stage.members(name, size, requests={"cpu": "100m"}, spec=spec)


async def test_a_gang_gets_the_devices_of_template_claims_and_of_a_users_claim(
    stage: Stage,
) -> None:
    template: Object = {"resourceClaimTemplateName": "gpu"}
    await submit(stage, "templated", 1, "low", template)
    await submit(stage, "named", 1, "low", {"resourceClaimName": "mine"})
    await stage.bound("templated", 1)
    await stage.bound("named", 1)
    await submit(stage, "urgent", 2, "high", template)
    await stage.bound("urgent", 2)
    assert not await stage.placed("templated")
    assert not await stage.placed("named")
    found = (await stage.api.get(f"{DRA}/namespaces/{stage.namespace}/resourceclaims"))["items"]
    of_user = next(one for one in found if one["metadata"]["name"] == "mine")
    assert "allocation" not in of_user.get("status", {}), "the controller has deallocated it"
    given = {
        result["device"]
        for one in found
        for result in one.get("status", {})
        .get("allocation", {})
        .get("devices", {})
        .get("results", [])
    }
    assert given == {"gpu-0", "gpu-1"}
