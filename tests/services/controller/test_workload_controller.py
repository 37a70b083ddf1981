"""PodGroups of ReplicaSets on a real API server; the test plays the ReplicaSet's controller."""

import json

import pytest

from services.controller.workload_controller import WorkloadReconciler
from shared.kube.client import KubeClient
from shared.kube.credentials import load
from shared.kube.resources import NAMESPACES, PODGROUPS_VOLCANO, PODS, REPLICA_SETS
from tests.controlplane.cluster import ControlPlane
from tests.services.controller.playing import Object, becomes, make, names_of, read, running

pytestmark = pytest.mark.integration

LABELS = {"app": "a"}
POD = {"containers": [{"name": "main", "image": "none"}]}


def replica_set(replicas: int) -> Object:
    template = {"metadata": {"labels": LABELS}, "spec": POD}
    spec = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template}
    return {"metadata": {"name": "rs"}, "spec": spec}


def group_of(owner: Object) -> Object:
    reference = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": "rs",
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }
    name = f"podgroup-{owner['metadata']['uid']}"
    return {"metadata": {"name": name, "ownerReferences": [reference]}, "spec": {"minMember": 1}}


async def test_the_group_of_a_replica_set_follows_it_and_goes_with_its_last_pod(
    control_plane: ControlPlane,
) -> None:
    async with KubeClient(await load(str(control_plane.admin_kubeconfig))) as client:
        place = "workload-groups"
        await make(client, NAMESPACES, {"metadata": {"name": place}})
        owner = await make(client, REPLICA_SETS, replica_set(3), place)
        manifest = group_of(owner)
        name = manifest["metadata"]["name"]
        await make(client, PODGROUPS_VOLCANO, manifest, place)
        joined = {
            "name": "p",
            "labels": LABELS,
            "annotations": {"scheduling.k8s.io/group-name": name},
        }

        async def groups() -> list[str]:
            return await names_of(client, PODGROUPS_VOLCANO, place)

        async def size() -> object:
            found = await read(client, PODGROUPS_VOLCANO, name, place)
            return found and found["spec"]["minMember"]

        async def scale(replicas: int) -> None:
            await client.patch(
                REPLICA_SETS, "rs", {"spec": {"replicas": replicas}}, namespace=place
            )

        async with running(client, WorkloadReconciler):
            of_pods = {"annotations": {"scheduling.k8s.io/group-min-member": "3"}}
            template: Object = {"spec": {"template": {"metadata": of_pods}}}
            await client.patch(REPLICA_SETS, "rs", template, namespace=place)
            await becomes(size, 3)
            notes = {"scheduling.volcano.sh/group-min-member": "2"}
            change: Object = {"metadata": {"annotations": notes}}
            await client.patch(REPLICA_SETS, "rs", change, namespace=place)
            await becomes(size, 2)
            await make(client, PODS, {"metadata": joined, "spec": POD}, place)
            await scale(1)
            await becomes(size, 1)
            await scale(0)
            # The next change comes after this one was acted on: the group is still there.
            await make(client, PODGROUPS_VOLCANO, {"metadata": {"name": "own"}, "spec": {}}, place)
            assert await groups() == ["own", name]
            await client.delete(PODS, "p", namespace=place, grace_s=0)
            await becomes(groups, ["own"])
        stored = await client.request("GET", REPLICA_SETS.path(place, "rs"))
        assert json.loads(stored.body)["spec"]["replicas"] == 0
