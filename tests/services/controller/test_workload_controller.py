"""PodGroups of ReplicaSets on a real API server; the test plays the ReplicaSet's controller."""

import json

import pytest

from services.controller.core.statuses.annotation import annotation_of
from services.controller.workload_controller import WorkloadReconciler
from shared.kube.client import KubeClient
from shared.kube.credentials import load
from shared.kube.resources import (
    DAEMON_SETS,
    NAMESPACES,
    PODGROUPS_VOLCANO,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
    Resource,
)
from tests.controlplane.cluster import ControlPlane
from tests.services.controller.core.samples import make_verdict
from tests.services.controller.playing import Object, becomes, make, names_of, read, running

pytestmark = pytest.mark.integration

LABELS = {"app": "a"}
POD = {"containers": [{"name": "main", "image": "none"}]}
TWO_CPUS = {"containers": [{**POD["containers"][0], "resources": {"requests": {"cpu": "2"}}}]}


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


async def test_the_group_of_any_owner_follows_its_members_and_a_users_group_does_not(
    control_plane: ControlPlane,
) -> None:
    """A DaemonSet's own annotation has precedence over what its pods declare."""
    async with KubeClient(await load(str(control_plane.admin_kubeconfig))) as client:
        place = "groups-of-any-owner"
        await make(client, NAMESPACES, {"metadata": {"name": place}})
        daemon_set = await make(
            client,
            DAEMON_SETS,
            {
                "metadata": {
                    "name": "ds",
                    "annotations": {"scheduling.volcano.sh/group-min-member": "8"},
                },
                "spec": {
                    "selector": {"matchLabels": LABELS},
                    "template": {"metadata": {"labels": LABELS}, "spec": TWO_CPUS},
                },
            },
            place,
        )
        unknown = {"apiVersion": "example.com/v1", "kind": "Workers", "name": "w", "uid": "some"}
        of_daemons = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "ds"}
        of_daemons["uid"] = daemon_set["metadata"]["uid"]
        owners = {
            "podgroup-some": unknown,
            f"podgroup-{of_daemons['uid']}": of_daemons,
            "podgroup-mine": unknown,
        }
        for name, owner in owners.items():
            reference = {**owner, "controller": True}
            metadata = {"name": name, "ownerReferences": [reference]}
            group = await make(
                client,
                PODGROUPS_VOLCANO,
                {"metadata": metadata, "spec": {"minMember": 8, "minResources": {"cpu": "16"}}},
                place,
            )
            uid = group["metadata"]["uid"]
            verdict = make_verdict(uid=uid, name=name, members_minimum=4, members_queue="two")
            notes = {"tutti.dev/verdict": annotation_of(verdict)}
            patch: Object = {"metadata": {"annotations": notes}}
            await client.patch(PODGROUPS_VOLCANO, name, patch, namespace=place)

        async def size(name: str) -> object:
            found = await read(client, PODGROUPS_VOLCANO, name, place)
            return found and (found["spec"]["minMember"], found["spec"]["minResources"]["cpu"])

        async def queue(name: str) -> object:
            found = await read(client, PODGROUPS_VOLCANO, name, place)
            return found and found["spec"].get("queue")

        followed, *others = owners
        async with running(client, WorkloadReconciler):
            await becomes(lambda: size(followed), (4, "8"))
            await becomes(lambda: queue(followed), "two")
            # The next change comes after these were acted on.
            await client.delete(PODGROUPS_VOLCANO, followed, namespace=place)
            await becomes(lambda: names_of(client, PODGROUPS_VOLCANO, place), sorted(others))
            assert [await size(name) for name in others] == [(8, "16")] * 2
            assert await queue("podgroup-mine") != "two"


@pytest.mark.parametrize(
    ("resource", "kind"),
    [(STATEFUL_SETS, "StatefulSet"), (DAEMON_SETS, "DaemonSet"), (REPLICA_SETS, "ReplicaSet")],
    ids=lambda one: one if isinstance(one, str) else "",
)
async def test_a_group_follows_the_template_of_its_workload(
    control_plane: ControlPlane, resource: Resource, kind: str
) -> None:
    async with KubeClient(await load(str(control_plane.admin_kubeconfig))) as client:
        place = f"template-of-{resource.plural}"
        await make(client, NAMESPACES, {"metadata": {"name": place}})
        template = {"metadata": {"labels": LABELS}, "spec": POD}
        spec: Object = {"selector": {"matchLabels": LABELS}, "template": template}
        if kind != "DaemonSet":
            spec["replicas"] = 1
        owner = await make(client, resource, {"metadata": {"name": "w"}, "spec": spec}, place)
        uid = owner["metadata"]["uid"]
        reference = {"apiVersion": "apps/v1", "kind": kind, "name": "w", "uid": uid}
        metadata = {"name": f"podgroup-{uid}"}
        await make(
            client,
            PODGROUPS_VOLCANO,
            {
                "metadata": {**metadata, "ownerReferences": [{**reference, "controller": True}]},
                "spec": {
                    "minMember": 1,
                    "priorityClassName": "low",
                    "minResources": {"cpu": "10", "requests.cpu": "10", "nvidia.com/gpu": "1"},
                },
            },
            place,
        )

        async def derived() -> object:
            found = await read(client, PODGROUPS_VOLCANO, metadata["name"], place)
            assert found is not None
            notes, spec = found["metadata"].get("annotations", {}), found["spec"]
            keys = ("priorityClassName", "minResources", "networkTopology")
            return notes.get("tutti.dev/hold-seconds"), *(spec.get(key) for key in keys)

        pods = {"pods": "1", "count/pods": "1"}
        async with running(client, WorkloadReconciler):
            await becomes(derived, (None, "low", pods, None))
            requests = {"requests": {"cpu": "500m"}}
            container = {"name": "main", "image": "none", "resources": requests}
            notes = {
                "tutti.dev/hold-seconds": "5",
                "volcano.sh/network-topology-mode": "hard",
            }
            changed: Object = {
                "metadata": {"annotations": notes},
                "spec": {"priorityClassName": "high", "containers": [container]},
            }
            await client.patch(resource, "w", {"spec": {"template": changed}}, namespace=place)
            cpu = {"cpu": "500m", "requests.cpu": "500m"}
            topology = {"mode": "hard"}
            await becomes(derived, ("5", "high", {**pods, **cpu}, topology))
            gone: Object = {"metadata": {"annotations": dict.fromkeys(notes)}}
            await client.patch(resource, "w", {"spec": {"template": gone}}, namespace=place)
            await becomes(derived, (None, "high", {**pods, **cpu}, None))
