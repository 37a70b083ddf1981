"""PodGroups of bare pods on a real kube-apiserver."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from services.controller import podgroup_controller
from shared.contracts import annotations, subjects
from shared.contracts.verdicts import PodRef, Verdict
from shared.kube.client import KubeClient
from shared.kube.errors import api_error
from shared.kube.resources import PODGROUPS_VOLCANO, Resource
from tests.controlplane.client import Object, RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.nodes import create_pods, pod_manifest
from tests.services.controller.core.samples import make_verdict
from tests.services.controller.harness import Desk, a_desk, controllers
from tutti.nats_server import NatsServer

pytestmark = pytest.mark.integration

CONSUMER = subjects.PODGROUP_CONSUMER


@pytest.fixture
async def desk(nats_server: NatsServer) -> AsyncIterator[Desk]:
    async with a_desk(nats_server.url) as sitting:
        yield sitting


def wanting(namespace: str, group: str, pods: list[Object]) -> Verdict:
    """The verdict on a gang that exists only through its pods."""
    refs = tuple(PodRef(uid=pod["metadata"]["uid"], name=pod["metadata"]["name"]) for pod in pods)
    return make_verdict(
        dialect="", uid="", name="", namespace=namespace, group_wanted=group, unnamed=refs
    )


async def groups_of(api: RawClient, namespace: str) -> list[Object]:
    found = await api.get(f"/apis/scheduling.volcano.sh/v1beta1/namespaces/{namespace}/podgroups")
    return list(found["items"])


async def group_names(api: RawClient, namespace: str) -> dict[str, str]:
    """Pod -> the group it names."""
    found = await api.get(f"/api/v1/namespaces/{namespace}/pods")
    return {
        pod["metadata"]["name"]: pod["metadata"]
        .get("annotations", {})
        .get(annotations.GROUP_NAME, "")
        for pod in found["items"]
    }


async def make_replica_set(api: RawClient, namespace: str) -> Object:
    manifest = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "rs", "annotations": {annotations.OWNER_MIN_MEMBER: "2"}},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "c", "image": "registry.example/none"}]},
            },
        },
    }
    return await api.create(f"/apis/apps/v1/namespaces/{namespace}/replicasets", manifest)


async def test_pods_of_one_owner_share_the_group_that_it_asks_for(
    desk: Desk, control_plane: ControlPlane, api: RawClient, namespace: str
) -> None:
    owner = await make_replica_set(api, namespace)
    uid = owner["metadata"]["uid"]
    reference = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": "rs",
        "uid": uid,
        "controller": True,
    }
    pods = await create_pods(
        api,
        namespace,
        [pod_manifest(f"p-{n}", requests={"cpu": "500m"}, owner=reference) for n in range(3)],
    )
    name = f"podgroup-{uid}"
    async with controllers(desk.url, control_plane.admin_kubeconfig, "podgroup"):
        await desk.say(wanting(namespace, name, pods))
        await desk.all_written(CONSUMER)
    (group,) = await groups_of(api, namespace)
    assert group["metadata"]["name"] == name
    assert group["metadata"]["ownerReferences"][0]["uid"] == uid
    assert group["spec"]["minMember"] == 2
    assert group["spec"]["minResources"]["cpu"] == "1"
    assert group["status"]["phase"] == "Pending"
    assert await group_names(api, namespace) == {"p-0": name, "p-1": name, "p-2": name}


async def test_doing_it_again_and_for_pods_that_came_later_changes_no_group(
    desk: Desk, control_plane: ControlPlane, api: RawClient, namespace: str
) -> None:
    pods = await create_pods(api, namespace, [pod_manifest("p-0")])
    name = f"podgroup-{pods[0]['metadata']['uid']}"
    async with controllers(desk.url, control_plane.admin_kubeconfig, "podgroup"):
        await desk.say(wanting(namespace, name, pods))
        await desk.all_written(CONSUMER)
        before = await groups_of(api, namespace)
        pods += await create_pods(api, namespace, [pod_manifest("p-1")])
        await desk.say(wanting(namespace, name, pods))
        await desk.all_written(CONSUMER)
    assert await groups_of(api, namespace) == before
    assert await group_names(api, namespace) == {"p-0": name, "p-1": name}


async def test_a_pod_re_created_under_the_name_is_left_alone(
    desk: Desk, control_plane: ControlPlane, api: RawClient, namespace: str
) -> None:
    here, other = await create_pods(api, namespace, [pod_manifest("p-0"), pod_manifest("p-1")])
    other["metadata"]["uid"] = "00000000-0000-0000-0000-000000000000"
    async with controllers(desk.url, control_plane.admin_kubeconfig, "podgroup"):
        await desk.say(wanting(namespace, "podgroup-x", [other, here]))
        await desk.all_written(CONSUMER)
    assert await group_names(api, namespace) == {"p-0": "podgroup-x", "p-1": ""}


async def test_pods_that_are_gone_want_no_group(
    desk: Desk, control_plane: ControlPlane, api: RawClient, namespace: str
) -> None:
    gone = pod_manifest("gone")
    gone["metadata"]["uid"] = "u"
    async with controllers(desk.url, control_plane.admin_kubeconfig, "podgroup"):
        await desk.say(wanting(namespace, "podgroup-u", [gone]))
        await desk.say(msgspec.structs.replace(make_verdict(), gang_id="wants-none"))
        await desk.all_written(CONSUMER)
    assert await groups_of(api, namespace) == []


async def test_a_refused_group_is_created_without_another_verdict_once_the_cause_is_gone(
    desk: Desk,
    control_plane: ControlPlane,
    api: RawClient,
    namespace: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Refused as by a webhook, twice: the second time with the verdict that is delivered again."""
    creates, refusals = KubeClient.create, iter(range(2))

    async def create(self: KubeClient, resource: Resource, manifest: Any, **named: Any) -> Any:
        if resource == PODGROUPS_VOLCANO and next(refusals, None) is not None:
            raise api_error(400, b"the queue is closed")
        return await creates(self, resource, manifest, **named)

    monkeypatch.setattr(KubeClient, "create", create)
    monkeypatch.setattr(podgroup_controller, "REFUSED_RETRY_S", 0.2)
    pods = await create_pods(api, namespace, [pod_manifest("p-0")])
    async with controllers(desk.url, control_plane.admin_kubeconfig, "podgroup"):
        await desk.say(wanting(namespace, "podgroup-x", pods))
        await desk.all_written(CONSUMER)
    assert await group_names(api, namespace) == {"p-0": "podgroup-x"}


async def test_the_verdicts_of_further_refused_groups_are_acknowledged(
    desk: Desk,
    control_plane: ControlPlane,
    api: RawClient,
    namespace: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So the refused pods of one namespace do not keep those of others from the controller."""
    monkeypatch.setattr(podgroup_controller, "REFUSED_MAX", 0)
    pods = await create_pods(api, namespace, [pod_manifest("p-0")])
    async with controllers(desk.url, control_plane.admin_kubeconfig, "podgroup"):
        await desk.say(wanting(namespace, "No_Name", pods))
        await desk.all_written(CONSUMER)
    assert await groups_of(api, namespace) == []
