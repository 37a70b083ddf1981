"""Pods of an operator's object that asks for one gang, on a real kube-apiserver; the test plays the
operators.
"""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from services.controller.core.statuses.annotation import annotation_of
from services.controller.workload_controller import WorkloadReconciler
from shared.dialects.owner_kinds import OWNER_KINDS, OwnerKind
from shared.kube.client import KubeClient
from shared.kube.credentials import load
from shared.kube.resources import (
    JOB_SETS,
    JOBS_BATCH,
    MPI_JOBS,
    PODGROUPS_VOLCANO,
    PODS,
    SPARK_APPLICATIONS,
    TRAIN_JOBS,
    TRAINING_JOBS,
    Resource,
)
from tests.controlplane.client import Object, RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.nodes import create_pods, pod_manifest
from tests.services.controller.core.samples import make_verdict
from tests.services.controller.harness import Desk, a_desk, controllers
from tests.services.controller.operator_kinds import install, job_spec, reference, template
from tests.services.controller.playing import becomes, make, names_of, read, running
from tests.services.controller.test_podgroups_on_kubernetes import (
    CONSUMER,
    group_names,
    groups_of,
    wanting,
)
from tutti.nats_server import NatsServer

pytestmark = pytest.mark.integration

ALL = {"tutti.dev/gang": "all"}
OF_SET = "jobset.sigs.k8s.io/jobset-name"


@pytest.fixture(scope="module", autouse=True)
def kinds(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> None:
    install(control_plane, tmp_path_factory.mktemp("crds"))


@pytest.fixture
async def desk(nats_server: NatsServer) -> AsyncIterator[Desk]:
    async with a_desk(nats_server.url) as sitting:
        yield sitting


async def create(
    api: RawClient, namespace: str, kind: str, body: Object, **metadata: Any
) -> Object:
    """An object of an operator, with its default name."""
    group, version, plural = {
        "JobSet": ("jobset.x-k8s.io", "v1alpha2", "jobsets"),
        "LeaderWorkerSet": ("leaderworkerset.x-k8s.io", "v1", "leaderworkersets"),
        "Job": ("batch", "v1", "jobs"),
    }[kind]
    manifest = {
        "apiVersion": f"{group}/{version}",
        "kind": kind,
        "metadata": {"name": "train", **metadata},
        **body,
    }
    return await api.create(f"/apis/{group}/{version}/namespaces/{namespace}/{plural}", manifest)


async def child(api: RawClient, namespace: str, of: Object, name: str, pods: int) -> list[Object]:
    """A child Job of a JobSet, and its pods."""
    job = await create(
        api,
        namespace,
        "Job",
        {"spec": job_spec(pods)},
        name=f"train-{name}",
        ownerReferences=[reference(of)],
    )
    return await create_pods(
        api,
        namespace,
        [
            pod_manifest(f"train-{name}-{n}", owner=reference(job), labels={OF_SET: "train"})
            for n in range(pods)
        ],
    )


def owner_uid(pod: Object) -> str:
    return str(pod["metadata"]["ownerReferences"][0]["uid"])


def replicated(name: str, pods: int) -> Object:
    return {"name": name, "replicas": 1, "template": {"spec": job_spec(pods)}}


JOBS: Object = {"spec": {"replicatedJobs": [replicated("driver", 1), replicated("workers", 2)]}}


async def test_pods_of_all_child_jobs_of_a_jobset_are_one_gang_also_in_its_next_generation(
    desk: Desk, control_plane: ControlPlane, api: RawClient, namespace: str
) -> None:
    top = await create(api, namespace, "JobSet", JOBS, annotations=ALL)
    name = f"podgroup-{top['metadata']['uid']}"
    async with controllers(desk.url, control_plane.admin_kubeconfig, "podgroup"):

        async def join(generation: str) -> None:
            for job, pods in (("driver", 1), ("workers", 2)):
                made = await child(api, namespace, top, f"{job}-{generation}", pods)
                await desk.say(wanting(namespace, f"podgroup-{owner_uid(made[0])}", made))
                await desk.all_written(CONSUMER)

        await join("a")
        (group,) = await groups_of(api, namespace)
        await join("b")
    assert group["metadata"]["name"] == name
    assert group["metadata"]["ownerReferences"][0]["kind"] == "JobSet"
    assert group["spec"]["minMember"] == 3
    assert group["spec"]["minTaskMember"] == {"driver": 1, "workers": 2}
    assert group["spec"]["minResources"]["nvidia.com/gpu"] == "3"
    assert await groups_of(api, namespace) == [group]
    assert set((await group_names(api, namespace)).values()) == {name}


async def test_a_jobset_that_asks_for_nothing_leaves_each_child_job_its_own_group(
    desk: Desk, control_plane: ControlPlane, api: RawClient, namespace: str
) -> None:
    top = await create(api, namespace, "JobSet", JOBS)
    pods = await child(api, namespace, top, "driver-0", 1)
    name = f"podgroup-{owner_uid(pods[0])}"
    async with controllers(desk.url, control_plane.admin_kubeconfig, "podgroup"):
        await desk.say(wanting(namespace, name, pods))
        await desk.all_written(CONSUMER)
    (group,) = await groups_of(api, namespace)
    assert (group["metadata"]["name"], group["spec"]["minMember"]) == (name, 1)


@pytest.mark.parametrize("whole", [True, False], ids=["one gang", "a group for each Job"])
async def test_groups_inherit_the_settings_of_the_objects_above_their_pods(
    desk: Desk, control_plane: ControlPlane, api: RawClient, namespace: str, whole: bool
) -> None:
    settings = {"tutti.dev/do-not-disrupt": "true", "tutti.dev/hold-seconds": "soon"}
    notes = {**settings, **(ALL if whole else {})}
    top = await create(api, namespace, "JobSet", JOBS, annotations=notes)
    pods = await child(api, namespace, top, "driver-0", 1)
    async with controllers(desk.url, control_plane.admin_kubeconfig, "podgroup"):
        await desk.say(wanting(namespace, f"podgroup-{owner_uid(pods[0])}", pods))
        await desk.all_written(CONSUMER)
    (group,) = await groups_of(api, namespace)
    found = group["metadata"]["annotations"]
    assert found["tutti.dev/do-not-disrupt"] == "true"
    assert found["tutti.dev/inherited"] == "tutti.dev/do-not-disrupt"
    assert "tutti.dev/hold-seconds" not in found, "no group could be created with it"

    async with KubeClient(await load(str(control_plane.admin_kubeconfig))) as client:

        async def setting() -> object:
            name = group["metadata"]["name"]
            stored = await read(client, PODGROUPS_VOLCANO, name, namespace)
            return stored and stored["metadata"]["annotations"].get("tutti.dev/hold-seconds")

        readable: Object = {"metadata": {"annotations": {"tutti.dev/hold-seconds": "7"}}}
        await client.patch(JOB_SETS, "train", readable, namespace=namespace)
        async with running(client, WorkloadReconciler):
            await becomes(setting, "7")


async def test_a_namespace_asks_for_the_gangs_of_objects_that_do_not_decline(
    desk: Desk, control_plane: ControlPlane, api: RawClient, namespace: str
) -> None:
    await api.patch(f"/api/v1/namespaces/{namespace}", {"metadata": {"labels": ALL}})
    asked = await create(api, namespace, "JobSet", JOBS)
    declines = await create(
        api, namespace, "JobSet", JOBS, name="plain", annotations={"tutti.dev/gang": "none"}
    )
    job = await create(api, namespace, "Job", {"spec": job_spec(3)}, name="alone")
    owner = reference(job)
    pods = {
        "asked": await child(api, namespace, asked, "workers", 2),
        "declines": await child(api, namespace, declines, "plain", 2),
        "alone": await create_pods(api, namespace, [pod_manifest("alone-0", owner=owner)]),
    }
    async with controllers(desk.url, control_plane.admin_kubeconfig, "podgroup"):
        for made in pods.values():
            await desk.say(wanting(namespace, f"podgroup-{owner_uid(made[0])}", made))
            await desk.all_written(CONSUMER)
    found = {one["metadata"]["name"]: one for one in await groups_of(api, namespace)}
    assert {name: one["spec"]["minMember"] for name, one in found.items()} == {
        f"podgroup-{asked['metadata']['uid']}": 3,
        f"podgroup-{owner_uid(pods['declines'][0])}": 1,
        f"podgroup-{job['metadata']['uid']}": 3,
    }
    recorded = found[f"podgroup-{job['metadata']['uid']}"]["metadata"]["annotations"]
    assert recorded["tutti.dev/gang"] == "all", "it follows the Job when the label is gone"


async def test_each_replica_of_a_leader_worker_set_is_a_gang_of_leader_and_workers(
    desk: Desk, control_plane: ControlPlane, api: RawClient, namespace: str
) -> None:
    """Leaders of all replicas belong to one StatefulSet, workers to the one of their leader."""
    body = {
        "spec": {
            "replicas": 2,
            "leaderWorkerTemplate": {"size": 3, "workerTemplate": template()},
        }
    }
    top = await create(api, namespace, "LeaderWorkerSet", body, annotations=ALL)
    uid = top["metadata"]["uid"]
    prefix = "leaderworkerset.sigs.k8s.io"

    def manifest(name: str, replica: int, owner: str) -> Object:
        labels = {f"{prefix}/name": "train", f"{prefix}/group-index": str(replica)}
        above = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": owner, "uid": owner}
        return pod_manifest(name, labels=labels, owner={**above, "controller": True})

    leaders = await create_pods(
        api, namespace, [manifest(f"train-{n}", n, "leaders") for n in range(2)]
    )
    workers = await create_pods(
        api, namespace, [manifest(f"train-1-{n}", 1, "workers-1") for n in (1, 2)]
    )
    async with controllers(desk.url, control_plane.admin_kubeconfig, "podgroup"):
        for wanted, pods in (("podgroup-leaders", leaders), ("podgroup-workers-1", workers)):
            await desk.say(wanting(namespace, wanted, pods))
            await desk.all_written(CONSUMER)
    groups = {one["metadata"]["name"]: one["spec"] for one in await groups_of(api, namespace)}
    assert sorted(groups) == [f"podgroup-{uid}-0", f"podgroup-{uid}-1"]
    assert {spec["minMember"] for spec in groups.values()} == {3}
    assert await group_names(api, namespace) == {
        "train-0": f"podgroup-{uid}-0",
        "train-1": f"podgroup-{uid}-1",
        "train-1-1": f"podgroup-{uid}-1",
        "train-1-2": f"podgroup-{uid}-1",
    }


def manifest_of(resource: Resource, body: Object, **metadata: Any) -> Object:
    """An object that is named `train`."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": "train", **metadata},
        **body,
    }


@pytest.mark.parametrize("kind", OWNER_KINDS, ids=lambda kind: kind.resource.kind)
async def test_every_kind_of_owner_is_read_by_the_controllers_account(
    desk: Desk, control_plane: ControlPlane, api: RawClient, namespace: str, kind: OwnerKind
) -> None:
    """An object that has no pods of its own leaves the group to the pods' owner."""
    bodies: dict[Resource, Object] = {
        JOBS_BATCH: {"spec": job_spec(1)},
        PODS: {"spec": pod_manifest("train")["spec"]},
    }
    manifest = manifest_of(kind.resource, bodies.get(kind.resource, {}), annotations=ALL)
    top = await api.create(kind.resource.path(namespace), manifest)
    labels = {kind.name_label: "train", kind.part_label: "0"} if kind.part_label else {}
    owner = reference({**manifest, **top})
    pods = await create_pods(api, namespace, [pod_manifest("p", labels=labels, owner=owner)])
    name = f"podgroup-{top['metadata']['uid']}"
    async with controllers(desk.url, control_plane.admin_kubeconfig, "podgroup"):
        await desk.say(wanting(namespace, name, pods))
        await desk.all_written(CONSUMER)
    (group,) = await groups_of(api, namespace)
    assert group["metadata"]["name"] == (f"{name}-0" if kind.part_label else name)
    follows = group["metadata"].get("annotations", {}).get("tutti.dev/gang") == "all"
    assert follows == (kind.parts is not None)


async def test_what_a_train_job_asks_for_is_the_gang_of_its_jobset(
    desk: Desk, control_plane: ControlPlane, api: RawClient, namespace: str
) -> None:
    manifest = manifest_of(TRAIN_JOBS, {}, annotations=ALL)
    above = await api.create(TRAIN_JOBS.path(namespace), manifest)
    top = await create(api, namespace, "JobSet", JOBS, ownerReferences=[reference(above)])
    pods = await child(api, namespace, top, "driver-0", 1)
    async with controllers(desk.url, control_plane.admin_kubeconfig, "podgroup"):
        await desk.say(wanting(namespace, f"podgroup-{owner_uid(pods[0])}", pods))
        await desk.all_written(CONSUMER)
    (group,) = await groups_of(api, namespace)
    assert group["metadata"]["name"] == f"podgroup-{top['metadata']['uid']}"
    assert group["spec"]["minMember"] == 3


async def test_executors_join_the_group_of_their_drivers_application(
    desk: Desk, control_plane: ControlPlane, api: RawClient, namespace: str
) -> None:
    body = {"spec": {"driver": {"cores": 1}, "executor": {"instances": 2, "cores": 1}}}
    manifest = manifest_of(SPARK_APPLICATIONS, body, annotations=ALL)
    top = await api.create(SPARK_APPLICATIONS.path(namespace), manifest)
    (driver,) = await create_pods(api, namespace, [pod_manifest("driver", owner=reference(top))])
    above = reference({"apiVersion": "v1", "kind": "Pod", **driver})
    executors = await create_pods(
        api, namespace, [pod_manifest(f"executor-{n}", owner=above) for n in range(2)]
    )
    async with controllers(desk.url, control_plane.admin_kubeconfig, "podgroup"):
        for pods in ([driver], executors):
            await desk.say(wanting(namespace, f"podgroup-{owner_uid(pods[0])}", pods))
            await desk.all_written(CONSUMER)
    name = f"podgroup-{top['metadata']['uid']}"
    assert set((await group_names(api, namespace)).values()) == {name}
    (group,) = await groups_of(api, namespace)
    assert (group["spec"]["minMember"], group["spec"]["minResources"]["cpu"]) == (1, "3")


async def test_the_group_of_a_jobset_follows_it_and_goes_with_its_suspension(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with KubeClient(await load(str(control_plane.admin_kubeconfig))) as client:
        metadata = {"name": "train", "annotations": ALL}
        top = await make(client, JOB_SETS, {"metadata": metadata, **JOBS}, namespace)
        name = f"podgroup-{top['metadata']['uid']}"
        manifest = {
            "metadata": {"name": name, "annotations": ALL, "ownerReferences": [reference(top)]},
            "spec": {"minMember": 1},
        }
        await make(client, PODGROUPS_VOLCANO, manifest, namespace)

        async def groups() -> list[str]:
            return await names_of(client, PODGROUPS_VOLCANO, namespace)

        async def size() -> object:
            found = await read(client, PODGROUPS_VOLCANO, name, namespace)
            return found and (found["spec"]["minMember"], found["spec"].get("minTaskMember"))

        async def change(spec: Object) -> None:
            await client.patch(JOB_SETS, "train", {"spec": spec}, namespace=namespace)

        async with running(client, WorkloadReconciler):
            await becomes(size, (3, {"driver": 1, "workers": 2}))
            jobs = [replicated("driver", 1), replicated("workers", 5)]
            await change({"replicatedJobs": jobs})
            await becomes(size, (6, {"driver": 1, "workers": 5}))
            joined = {
                "labels": {OF_SET: "train"},
                "annotations": {"scheduling.k8s.io/group-name": name},
            }
            for pod in ("p", "ended"):
                manifest = {"metadata": {"name": pod, **joined}, **template()}
                await make(client, PODS, manifest, namespace)
            failed = {"status": {"phase": "Failed"}}
            await client.patch(PODS, "ended", failed, namespace=namespace, subresource="status")
            await change({"suspend": True})
            # The next change comes after this one was acted on: the group is still there.
            await make(
                client, PODGROUPS_VOLCANO, {"metadata": {"name": "own"}, "spec": {}}, namespace
            )
            assert await groups() == ["own", name]
            await client.delete(PODS, "p", namespace=namespace, grace_s=0)
            # A pod that has ended does not keep it.
            await becomes(groups, ["own"])
            assert await names_of(client, PODS, namespace) == ["ended"]


async def test_the_group_of_a_jobset_moves_to_the_queue_that_it_names(
    control_plane: ControlPlane, namespace: str
) -> None:
    queue = "scheduling.volcano.sh/queue-name"
    async with KubeClient(await load(str(control_plane.admin_kubeconfig))) as client:
        metadata = {"name": "train", "annotations": {**ALL, queue: "one"}}
        top = await make(client, JOB_SETS, {"metadata": metadata, **JOBS}, namespace)
        name = f"podgroup-{top['metadata']['uid']}"
        manifest = {
            "metadata": {"name": name, "annotations": ALL, "ownerReferences": [reference(top)]},
            "spec": {"minMember": 3, "queue": "one"},
        }
        await make(client, PODGROUPS_VOLCANO, manifest, namespace)

        async def queue_of_group() -> object:
            found = await read(client, PODGROUPS_VOLCANO, name, namespace)
            return found and found["spec"]["queue"]

        async with running(client, WorkloadReconciler):
            change: Object = {"metadata": {"annotations": {queue: "two"}}}
            await client.patch(JOB_SETS, "train", change, namespace=namespace)
            await becomes(queue_of_group, "two")


async def test_groups_that_operators_make_get_the_run_limits_of_their_jobs(
    control_plane: ControlPlane, namespace: str
) -> None:
    """A user's own group of the same name as a job is left alone."""
    limit = "tutti.dev/owner-run-limit"
    deadline = {"spec": {"runPolicy": {"activeDeadlineSeconds": 600}}}
    async with KubeClient(await load(str(control_plane.admin_kubeconfig))) as client:

        async def group(name: str, owner: Object | None, **notes: str) -> None:
            owners = [reference(owner)] if owner is not None else []
            metadata = {"name": name, "annotations": notes, "ownerReferences": owners}
            body = {"metadata": metadata, "spec": {"minMember": 2}}
            await make(client, PODGROUPS_VOLCANO, body, namespace)

        async def limits() -> dict[str, object]:
            found: dict[str, object] = {}
            for name in await names_of(client, PODGROUPS_VOLCANO, namespace):
                stored = await read(client, PODGROUPS_VOLCANO, name, namespace) or {}
                found[name] = stored["metadata"].get("annotations", {}).get(limit)
            return found

        (torch,) = (kind for kind in TRAINING_JOBS if kind.kind == "PyTorchJob")
        job = await make(client, torch, {"metadata": {"name": "early"}, **deadline}, namespace)
        await group("early", job)
        await group("mine", None, **{limit: "60"})
        async with running(client, WorkloadReconciler):
            await becomes(limits, {"early": "600", "mine": "60"})
            mpi = await make(client, MPI_JOBS, {"metadata": {"name": "mpi"}, **deadline}, namespace)
            await group("mpi", mpi)
            await becomes(limits, {"early": "600", "mine": "60", "mpi": "600"})
            longer: Object = {"spec": {"runPolicy": {"activeDeadlineSeconds": 900}}}
            await client.patch(MPI_JOBS, "mpi", longer, namespace=namespace)
            await becomes(limits, {"early": "600", "mine": "60", "mpi": "900"})
            # A tenant changes the group's own.
            written: Object = {"metadata": {"annotations": {limit: "9000"}}}
            await client.patch(PODGROUPS_VOLCANO, "early", written, namespace=namespace)
            await becomes(limits, {"early": "600", "mine": "60", "mpi": "900"})


async def test_the_group_of_a_suspended_jobset_of_which_pods_have_succeeded_stays(
    control_plane: ControlPlane, namespace: str
) -> None:
    """The pods are cleaned up, so only the child Jobs and the planner's memory know it."""
    async with KubeClient(await load(str(control_plane.admin_kubeconfig))) as client:
        names: dict[str, str] = {}
        for set_name, succeeded in (("ended", 1), ("fresh", 0)):
            metadata: Object = {"name": set_name, "annotations": ALL}
            top = {"metadata": metadata, "spec": {**JOBS["spec"], "suspend": True}}
            made = await make(client, JOB_SETS, top, namespace)
            metadata = {"name": f"{set_name}-workers", "ownerReferences": [reference(made)]}
            body = {"metadata": metadata, "spec": {**job_spec(2), "suspend": True}}
            job = await make(client, JOBS_BATCH, body, namespace)
            if succeeded:
                counts = {"status": {"succeeded": succeeded}}
                name = job["metadata"]["name"]
                await client.patch(
                    JOBS_BATCH, name, counts, namespace=namespace, subresource="status"
                )
            names[set_name] = f"podgroup-{made['metadata']['uid']}"
            owners = [reference(made)]
            metadata = {"name": names[set_name], "annotations": ALL, "ownerReferences": owners}
            group = {"metadata": metadata, "spec": {"minMember": 3}}
            await make(client, PODGROUPS_VOLCANO, group, namespace)

        async def groups() -> list[str]:
            return await names_of(client, PODGROUPS_VOLCANO, namespace)

        async with running(client, WorkloadReconciler):
            await becomes(groups, [names["ended"]])


async def test_the_group_of_a_job_goes_when_its_pods_are_members_of_other_gangs(
    control_plane: ControlPlane, namespace: str
) -> None:
    """The planner reports no member of either group: only the pod of the first one says why."""
    async with KubeClient(await load(str(control_plane.admin_kubeconfig))) as client:
        names: dict[str, str] = {}
        for job_name, labels in (
            ("elsewhere", {"scheduling.x-k8s.io/pod-group": "train"}),
            ("late", {}),
        ):
            job = await make(
                client, JOBS_BATCH, {"metadata": {"name": job_name}, "spec": job_spec(1)}, namespace
            )
            uid = job["metadata"]["uid"]
            name = names[job_name] = f"podgroup-{uid}"
            metadata = {"name": name, "ownerReferences": [reference(job)]}
            body = {"metadata": metadata, "spec": {"minMember": 1}}
            group = await make(client, PODGROUPS_VOLCANO, body, namespace)
            marks = {
                "labels": {"batch.kubernetes.io/controller-uid": uid, **labels},
                "annotations": {"scheduling.k8s.io/group-name": name},
            }
            pod = {"metadata": {"name": job_name, **marks}, **template()}
            await make(client, PODS, pod, namespace)
            verdict = make_verdict(uid=group["metadata"]["uid"], phase="Pending", members=0)
            notes = {"tutti.dev/verdict": annotation_of(verdict)}
            await client.patch(
                PODGROUPS_VOLCANO, name, {"metadata": {"annotations": notes}}, namespace=namespace
            )

        async def groups() -> list[str]:
            return await names_of(client, PODGROUPS_VOLCANO, namespace)

        async with running(client, WorkloadReconciler):
            await becomes(groups, [names["late"]])


async def test_the_group_of_a_job_follows_its_parallelism(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with KubeClient(await load(str(control_plane.admin_kubeconfig))) as client:
        metadata = {"name": "train", "annotations": ALL}
        spec = {"spec": {**job_spec(2), "completions": None}}
        job = await make(client, JOBS_BATCH, {"metadata": metadata, **spec}, namespace)
        name = f"podgroup-{job['metadata']['uid']}"
        manifest = {
            "metadata": {"name": name, "ownerReferences": [reference(job)]},
            "spec": {"minMember": 2},
        }
        await make(client, PODGROUPS_VOLCANO, manifest, namespace)

        async def size() -> object:
            found = await read(client, PODGROUPS_VOLCANO, name, namespace)
            return found and found["spec"]["minMember"]

        async with running(client, WorkloadReconciler):
            for parallelism in (4, 1):
                change = {"spec": {"parallelism": parallelism}}
                await client.patch(JOBS_BATCH, "train", change, namespace=namespace)
                await becomes(size, parallelism)
