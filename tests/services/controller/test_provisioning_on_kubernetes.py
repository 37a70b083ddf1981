"""ProvisioningRequests of gangs on a real kube-apiserver (ADR 0087)."""

import asyncio
from collections.abc import AsyncIterator
from typing import Final

import msgspec
import pytest

from shared.contracts import subjects
from shared.contracts.provisioning import template_name
from shared.contracts.verdicts import PodSet, Provisioning, Verdict
from shared.kube.resources import POD_TEMPLATES, PROVISIONING_REQUESTS
from tests.controlplane.client import Object, RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.nodes import create_pods, pod_manifest
from tests.services.controller.core.samples import make_verdict
from tests.services.controller.harness import Desk, a_desk, controllers
from tests.services.controller.test_status_on_kubernetes import make_group, placed_in
from tests.support.provisioning import installed_kind, requests_in
from tutti.nats_server import NatsServer

pytestmark = pytest.mark.integration

CONSUMER: Final = subjects.PROVISIONING_CONSUMER
CLASS: Final = "check-capacity.autoscaling.x-k8s.io"
FIRST: Final = "tutti-uid-train-0123456789ab-1"
SECOND: Final = "tutti-uid-train-0123456789ab-2"


@pytest.fixture
async def desk(nats_server: NatsServer) -> AsyncIterator[Desk]:
    async with a_desk(nats_server.url) as sitting:
        yield sitting


@pytest.fixture
async def served(api: RawClient) -> AsyncIterator[None]:
    async with installed_kind(api):
        yield


async def make_pods(api: RawClient, namespace: str) -> list[Object]:
    """A leader and two workers, which need a GPU each."""
    gpu = {"cpu": "1", "nvidia.com/gpu": "1"}
    toleration = {"key": "gpu", "operator": "Exists"}
    spec = {"tolerations": [toleration], "nodeSelector": {"pool": "gpu"}}
    workers = [pod_manifest(f"worker-{n}", requests=gpu, spec=spec) for n in range(2)]
    return await create_pods(
        api, namespace, [pod_manifest("leader", requests={"cpu": "500m"}), *workers]
    )


def wanting(verdict: Verdict, pods: list[Object], **fields: object) -> Verdict:
    """The verdict on a gang that waits for the capacity of one leader and two workers."""
    leader, worker = (one["metadata"] for one in pods[:2])
    wanted = Provisioning(
        request=FIRST,
        class_name=CLASS,
        parameters=(("noRetry", "true"),),
        pod_sets=(
            PodSet(name=leader["name"], uid=leader["uid"], count=1),
            PodSet(name=worker["name"], uid=worker["uid"], count=2),
        ),
    )
    wanted = msgspec.structs.replace(wanted, **fields)
    return msgspec.structs.replace(verdict, provisioning=wanted)


async def templates_in(api: RawClient, namespace: str) -> dict[str, Object]:
    found = await api.get(POD_TEMPLATES.path(namespace))
    return {one["metadata"]["name"]: one for one in found["items"]}


@pytest.mark.usefixtures("served")
async def test_one_request_has_a_template_for_each_pod_shape(
    desk: Desk, control_plane: ControlPlane, api: RawClient, namespace: str
) -> None:
    group = await make_group(api, namespace)
    pods = await make_pods(api, namespace)
    verdict = wanting(placed_in(make_verdict(), group), pods)
    async with controllers(desk.url, control_plane.admin_kubeconfig, "status"):
        await desk.say(verdict)
        await desk.all_written(CONSUMER)
        # Delivered again, as after a lost acknowledgement.
        await desk.say(verdict)
        await desk.all_written(CONSUMER)
    (request,) = await requests_in(api, namespace)
    assert request["metadata"]["name"] == FIRST
    (owner,) = request["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("PodGroup", group["metadata"]["uid"])
    assert request["spec"] == {
        "provisioningClassName": CLASS,
        "parameters": {"noRetry": "true"},
        "podSets": [
            {"podTemplateRef": {"name": template_name(FIRST, 0)}, "count": 1},
            {"podTemplateRef": {"name": template_name(FIRST, 1)}, "count": 2},
        ],
    }
    templates = await templates_in(api, namespace)
    assert set(templates) == {template_name(FIRST, 0), template_name(FIRST, 1)}
    worker = templates[template_name(FIRST, 1)]
    assert worker["metadata"]["ownerReferences"][0]["uid"] == request["metadata"]["uid"]
    spec = worker["template"]["spec"]
    assert spec["containers"][0]["resources"]["requests"]["nvidia.com/gpu"] == "1"
    assert spec["nodeSelector"] == {"pool": "gpu"}
    assert {"key": "gpu", "operator": "Exists"} in spec["tolerations"]


@pytest.mark.usefixtures("served")
async def test_a_controller_that_dies_at_any_point_requests_nothing_twice(
    desk: Desk, control_plane: ControlPlane, api: RawClient, namespace: str
) -> None:
    pods = await make_pods(api, namespace)
    verdict = wanting(make_verdict(uid="", dialect="", namespace=namespace), pods)
    created: list[str] = []
    version = (await api.get(PROVISIONING_REQUESTS.path(namespace)))["metadata"]["resourceVersion"]

    async def watch() -> None:
        path = PROVISIONING_REQUESTS.path(namespace)
        async for event, one in api.watch(path, resourceVersion=version):
            if event == "ADDED":
                created.append(one["metadata"]["uid"])

    watching = asyncio.create_task(watch())
    for milliseconds in (0, 2, 4, 8, 16, 32, 64):
        async with controllers(desk.url, control_plane.admin_kubeconfig, "status"):
            await desk.say(verdict)
            await asyncio.sleep(milliseconds / 1000)
    async with controllers(desk.url, control_plane.admin_kubeconfig, "status"):
        await desk.say(verdict)
        await desk.all_written(CONSUMER)
    (request,) = await requests_in(api, namespace)
    assert set(await templates_in(api, namespace)) == {
        template_name(FIRST, 0),
        template_name(FIRST, 1),
    }
    # Without a group object, the request belongs to one of the pods.
    assert request["metadata"]["ownerReferences"][0]["name"] == "leader"
    watching.cancel()
    assert created == [request["metadata"]["uid"]]


@pytest.mark.usefixtures("served")
async def test_templates_are_completed_for_a_request_that_exists(
    desk: Desk, control_plane: ControlPlane, api: RawClient, namespace: str
) -> None:
    """A controller has died between the request and its templates."""
    pods = await make_pods(api, namespace)
    verdict = wanting(make_verdict(uid="", dialect="", namespace=namespace), pods)
    async with controllers(desk.url, control_plane.admin_kubeconfig, "status"):
        await desk.say(verdict)
        await desk.all_written(CONSUMER)
        before = await requests_in(api, namespace)
        for name in await templates_in(api, namespace):
            await api.delete(POD_TEMPLATES.path(namespace, name))
        await desk.say(verdict)
        await desk.all_written(CONSUMER)
    assert await requests_in(api, namespace) == before
    assert len(await templates_in(api, namespace)) == 2


@pytest.mark.usefixtures("served")
async def test_the_next_attempt_replaces_the_last_and_all_go_with_the_gang(
    desk: Desk, control_plane: ControlPlane, api: RawClient, namespace: str
) -> None:
    pods = await make_pods(api, namespace)
    verdict = wanting(make_verdict(uid="", dialect="", namespace=namespace), pods)
    async with controllers(desk.url, control_plane.admin_kubeconfig, "status"):
        await desk.say(verdict)
        await desk.all_written(CONSUMER)
        await desk.say(wanting(verdict, pods, request=SECOND, obsolete=(FIRST,)))
        await desk.all_written(CONSUMER)
        (request,) = await requests_in(api, namespace)
        assert request["metadata"]["name"] == SECOND
        gone = msgspec.structs.replace(
            verdict, phase="Gone", provisioning=Provisioning(obsolete=(FIRST, SECOND))
        )
        await desk.say(gone)
        await desk.all_written(CONSUMER)
    assert await requests_in(api, namespace) == []


@pytest.mark.usefixtures("served")
async def test_nothing_is_requested_for_pods_that_are_gone(
    desk: Desk, control_plane: ControlPlane, api: RawClient, namespace: str
) -> None:
    pods = await make_pods(api, namespace)
    pods[1]["metadata"]["uid"] = "00000000-0000-0000-0000-000000000000"
    verdict = wanting(make_verdict(uid="", dialect="", namespace=namespace), pods)
    async with controllers(desk.url, control_plane.admin_kubeconfig, "status"):
        await desk.say(verdict)
        await desk.all_written(CONSUMER)
    assert await requests_in(api, namespace) == []


async def test_a_request_of_a_kind_that_is_not_served_stays_to_be_made(
    desk: Desk, control_plane: ControlPlane, api: RawClient, namespace: str
) -> None:
    pods = await make_pods(api, namespace)
    verdict = wanting(make_verdict(uid="", dialect="", namespace=namespace), pods)
    async with controllers(desk.url, control_plane.admin_kubeconfig, "status"):
        await desk.say(verdict)
        await desk.all_written()
        assert await desk.open_verdicts(CONSUMER) == 1
