"""ProvisioningRequests of gangs on a real kube-apiserver (ADR 0087)."""

import asyncio
from collections.abc import AsyncIterator
from typing import Final

import msgspec
import pytest

from shared.bus.connection import Message
from shared.contracts import subjects
from shared.contracts.codec import decode_request_refused
from shared.contracts.provisioning import template_name
from shared.contracts.questions import RequestRefused
from shared.contracts.verdicts import PodSet, Provisioning, Verdict
from shared.kube.resources import POD_TEMPLATES, PROVISIONING_REQUESTS
from tests.controlplane.client import ApiError, Object, RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.nodes import create_pods, pod_manifest
from tests.services.controller.core.samples import make_verdict
from tests.services.controller.harness import Desk, a_desk, controllers
from tests.services.controller.test_status_on_kubernetes import make_group, placed_in
from tests.support.provisioning import installed_kind, requests_in
from tests.support.waiting import eventually
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
async def reports(desk: Desk) -> list[RequestRefused]:
    """What the controller reports to planners."""
    found: list[RequestRefused] = []

    async def take(message: Message) -> None:
        found.append(decode_request_refused(message.payload))

    await desk.bus.subscribe(subjects.REPORT_REFUSED, take)
    return found


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


def _version(found: Object) -> int:
    return int(found["metadata"]["resourceVersion"])


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
    # cluster-autoscaler fails a request that it reads before its templates.
    assert all(_version(one) < _version(request) for one in templates.values())
    worker = templates[template_name(FIRST, 1)]
    assert worker["metadata"]["ownerReferences"] == [owner]
    spec = worker["template"]["spec"]
    assert spec["containers"][0]["resources"]["requests"]["nvidia.com/gpu"] == "1"
    assert spec["nodeSelector"] == {"pool": "gpu"}
    assert {"key": "gpu", "operator": "Exists"} in spec["tolerations"]


@pytest.mark.usefixtures("served")
async def test_later_pods_of_min_resources_have_a_template_of_their_requests(
    desk: Desk, control_plane: ControlPlane, api: RawClient, namespace: str
) -> None:
    """It has no node selector, and tolerates what the pods of its gang do."""
    pods = await make_pods(api, namespace)
    verdict = make_verdict(uid="", dialect="", namespace=namespace)
    worker = pods[1]["metadata"]
    requests = (("cpu", 1_500), ("memory", 1 << 30), ("nvidia.com/gpu", 2), ("pods", 1))
    sets = (
        PodSet(name=worker["name"], uid=worker["uid"], count=1),
        PodSet(name=worker["name"], uid=worker["uid"], count=3, requests=requests),
    )
    async with controllers(desk.url, control_plane.admin_kubeconfig, "status"):
        await desk.say(wanting(verdict, pods, pod_sets=sets))
        await desk.all_written(CONSUMER)
    (request,) = await requests_in(api, namespace)
    assert [one["count"] for one in request["spec"]["podSets"]] == [1, 3]
    later = (await templates_in(api, namespace))[template_name(FIRST, 1)]["template"]["spec"]
    (container,) = later["containers"]
    assert container["resources"] == {
        "requests": {"cpu": "1500m", "memory": "1Gi", "nvidia.com/gpu": "2"},
        "limits": {"nvidia.com/gpu": "2"},
    }
    assert "nodeSelector" not in later
    for key in ("gpu", "nvidia.com/gpu"):
        assert {"key": key, "operator": "Exists"} in later["tolerations"]


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
@pytest.mark.parametrize(
    "left",
    [
        pytest.param((template_name(FIRST, 0),), id="between two templates"),
        pytest.param((template_name(FIRST, 0), template_name(FIRST, 1)), id="before the request"),
    ],
)
async def test_what_a_controller_that_died_has_left_is_completed(
    left: tuple[str, ...], desk: Desk, control_plane: ControlPlane, api: RawClient, namespace: str
) -> None:
    pods = await make_pods(api, namespace)
    verdict = wanting(make_verdict(uid="", dialect="", namespace=namespace), pods)
    async with controllers(desk.url, control_plane.admin_kubeconfig, "status"):
        await desk.say(verdict)
        await desk.all_written(CONSUMER)
        before = await templates_in(api, namespace)
        await api.delete(PROVISIONING_REQUESTS.path(namespace, FIRST))
        for name in before.keys() - set(left):
            await api.delete(POD_TEMPLATES.path(namespace, name))
        await desk.say(verdict)
        await desk.all_written(CONSUMER)
    (request,) = await requests_in(api, namespace)
    assert request["metadata"]["name"] == FIRST
    after = await templates_in(api, namespace)
    assert set(after) == set(before)
    assert all(after[name] == before[name] for name in left)


@pytest.mark.usefixtures("served")
async def test_a_request_that_is_being_deleted_is_created_again(
    desk: Desk, control_plane: ControlPlane, api: RawClient, namespace: str
) -> None:
    pods = await make_pods(api, namespace)
    verdict = wanting(make_verdict(uid="", dialect="", namespace=namespace), pods)
    path = PROVISIONING_REQUESTS.path(namespace, FIRST)
    async with controllers(desk.url, control_plane.admin_kubeconfig, "status"):
        await desk.say(verdict)
        await desk.all_written(CONSUMER)
        await api.patch(path, {"metadata": {"finalizers": ["example.com/slow"]}})
        (before,) = await requests_in(api, namespace)
        await api.delete(path)
        await desk.say(verdict)
        await asyncio.sleep(0.5)
        assert await desk.open_verdicts(CONSUMER) == 1
        await api.patch(path, {"metadata": {"finalizers": None}})
        await desk.all_written(CONSUMER)
    (after,) = await requests_in(api, namespace)
    assert after["metadata"]["uid"] != before["metadata"]["uid"]


async def fill_quota(api: RawClient, namespace: str) -> None:
    """Create a quota for two templates, which are there. The test counts them, because no
    controller manager runs here.
    """
    quotas = f"/api/v1/namespaces/{namespace}/resourcequotas"
    hard = {"count/podtemplates": "2"}
    await api.create(quotas, {"metadata": {"name": "few"}, "spec": {"hard": hard}})
    await api.patch(f"{quotas}/few/status", {"status": {"hard": hard, "used": hard}})
    template = {"metadata": {"name": "third"}, "template": pod_manifest("third")}

    async def is_in_force() -> bool:
        try:
            path = POD_TEMPLATES.path(namespace)
            await api.request("POST", path, template, params={"dryRun": "All"})
        except ApiError as error:
            return "exceeded quota" in str(error)
        return False

    await eventually(is_in_force, because="the quota is in force")


@pytest.mark.usefixtures("served")
async def test_a_refusal_is_reported_and_obsolete_requests_are_deleted_all_the_same(
    desk: Desk,
    reports: list[RequestRefused],
    control_plane: ControlPlane,
    api: RawClient,
    namespace: str,
) -> None:
    """A quota counts the templates of the obsolete request: they must not wait for the new ones."""
    pods = await make_pods(api, namespace)
    verdict = wanting(make_verdict(uid="", dialect="", namespace=namespace), pods)
    async with controllers(desk.url, control_plane.admin_kubeconfig, "status"):
        await desk.say(verdict)
        await desk.all_written(CONSUMER)
        await fill_quota(api, namespace)
        second = wanting(verdict, pods, request=SECOND, obsolete=(FIRST,))
        await desk.say(second)
        await desk.all_written(CONSUMER)
        assert await requests_in(api, namespace) == []
        assert await templates_in(api, namespace) == {}
        await eventually(lambda: len(reports) == 1)
        (report,) = reports
        assert (report.gang_id, report.request) == (verdict.gang_id, SECOND)
        assert report.message.startswith("403 Forbidden: podtemplates")
        assert "exceeded quota" in report.message
        # The planner asks again.
        await api.delete(f"/api/v1/namespaces/{namespace}/resourcequotas/few")
        await desk.say(wanting(verdict, pods, request=SECOND, refusal=report.message, repeats=1))
        await eventually(lambda: requests_in(api, namespace), because="it is created")
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
        assert set(await templates_in(api, namespace)) == {
            template_name(SECOND, 0),
            template_name(SECOND, 1),
        }
        gone = msgspec.structs.replace(
            verdict, phase="Gone", provisioning=Provisioning(obsolete=(FIRST, SECOND))
        )
        await desk.say(gone)
        await desk.all_written(CONSUMER)
    assert await requests_in(api, namespace) == []
    assert await templates_in(api, namespace) == {}


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


async def test_a_refusal_is_reported_unless_the_verdict_has_it(
    desk: Desk,
    reports: list[RequestRefused],
    control_plane: ControlPlane,
    api: RawClient,
    namespace: str,
) -> None:
    """The kind is not served."""
    pods = await make_pods(api, namespace)
    verdict = wanting(make_verdict(uid="", dialect="", namespace=namespace), pods)
    async with controllers(desk.url, control_plane.admin_kubeconfig, "status"):
        await desk.say(verdict)
        await desk.all_written(CONSUMER)
        await eventually(lambda: len(reports) == 1)
        refusal = reports[0].message
        assert refusal.startswith("404 ")
        await desk.say(wanting(verdict, pods, refusal=refusal, repeats=1))
        await desk.all_written(CONSUMER)
        # Of a planner that has taken over, and does not know it.
        await desk.say(wanting(verdict, pods, repeats=1))
        await desk.all_written(CONSUMER)
        await eventually(lambda: len(reports) == 2)
    assert {one.message for one in reports} == {refusal}


@pytest.mark.usefixtures("served")
async def test_a_controller_that_dies_at_any_point_deletes_the_request_of_a_placed_gang(
    desk: Desk, control_plane: ControlPlane, api: RawClient, namespace: str
) -> None:
    pods = await make_pods(api, namespace)
    verdict = wanting(make_verdict(uid="", dialect="", namespace=namespace), pods)
    for milliseconds in (0, 4, 8, 16, 32, 64):
        async with controllers(desk.url, control_plane.admin_kubeconfig, "status"):
            await desk.say(verdict)
            await desk.all_written(CONSUMER)
        (request,) = await requests_in(api, namespace)
        uids = (request["metadata"]["uid"],)
        placed = Provisioning(obsolete=(FIRST,), obsolete_uids=uids)
        running = msgspec.structs.replace(verdict, phase="Running", provisioning=placed)
        async with controllers(desk.url, control_plane.admin_kubeconfig, "status"):
            await desk.say(running)
            await asyncio.sleep(milliseconds / 1000)
        async with controllers(desk.url, control_plane.admin_kubeconfig, "status"):
            # Sooner than NATS delivers it again.
            await desk.say(running)
            await desk.all_written(CONSUMER)
        assert await requests_in(api, namespace) == []
        assert await templates_in(api, namespace) == {}


@pytest.mark.usefixtures("served")
async def test_the_request_of_a_gang_that_was_created_again_stays(
    desk: Desk, control_plane: ControlPlane, api: RawClient, namespace: str
) -> None:
    """A controller reads the deletion of the first one late; both have the same name."""
    pods = await make_pods(api, namespace)
    verdict = wanting(make_verdict(uid="", dialect="", namespace=namespace), pods)
    async with controllers(desk.url, control_plane.admin_kubeconfig, "status"):
        await desk.say(verdict)
        await desk.all_written(CONSUMER)
        (first,) = await requests_in(api, namespace)
        placed = Provisioning(obsolete=(FIRST,), obsolete_uids=(first["metadata"]["uid"],))
        running = msgspec.structs.replace(verdict, phase="Running", provisioning=placed)
        await desk.say(running)
        await desk.all_written(CONSUMER)
        await desk.say(verdict)
        await desk.all_written(CONSUMER)
        (second,) = await requests_in(api, namespace)
        assert second["metadata"]["uid"] != first["metadata"]["uid"]
        templates = await templates_in(api, namespace)
        await desk.say(running)
        await desk.all_written(CONSUMER)
    assert await requests_in(api, namespace) == [second]
    assert await templates_in(api, namespace) == templates
