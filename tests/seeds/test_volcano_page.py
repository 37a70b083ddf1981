"""Seed 001: its TensorFlow and its MPI job, and two jobs of four workers on four GPUs."""

import asyncio
import base64
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Final

import asyncssh

from tests.controlplane.client import Object
from tests.controlplane.nodes import NodeShape, create_nodes
from tests.seeds.playing import SEEN_S, Play
from tests.support.waiting import eventually

_GROUPS: Final = "/apis/scheduling.volcano.sh/v1beta1/namespaces/{}/podgroups"


async def group_of(play: Play, job: Object) -> Object:
    """The PodGroup of a Volcano Job."""
    uid, name = job["metadata"]["uid"], job["metadata"]["name"]
    found: Object = await play.api.get(f"{_GROUPS.format(play.namespace)}/{name}-{uid}")
    return found


@contextlib.asynccontextmanager
async def groups_watched(play: Play) -> AsyncIterator[list[Object]]:
    """Every state that PodGroups of the namespace pass through from now on, however late the API
    server accepts the watch.
    """
    states: list[Object] = []
    path = _GROUPS.format(play.namespace)
    now = (await play.api.get(path))["metadata"]["resourceVersion"]

    async def follow() -> None:
        async for _, group in play.api.watch(path, resourceVersion=now):
            states.append(group)

    task = asyncio.create_task(follow(), name="groups")
    try:
        yield states
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_the_tensorflow_job_runs_restarts_when_a_pod_is_evicted_and_completes(
    play: Play,
) -> None:
    await create_nodes(play.api, 2, NodeShape(cpu_milli=4000, memory_bytes=16 * 2**30))
    play.apply("001-tensorflow.yaml")
    pods = await play.running(3)
    assert sorted(pods) == [
        "tensorflow-benchmark-ps-0",
        "tensorflow-benchmark-worker-0",
        "tensorflow-benchmark-worker-1",
    ]
    await play.reaches("tensorflow-benchmark", "Running", running=3, minAvailable=3)

    hosts = play.get("configmap/tensorflow-benchmark-svc")["data"]
    assert hosts["ps.host"] == "tensorflow-benchmark-ps-0.tensorflow-benchmark"
    assert hosts["worker.host"].split("\n") == [
        "tensorflow-benchmark-worker-0.tensorflow-benchmark",
        "tensorflow-benchmark-worker-1.tensorflow-benchmark",
    ]
    worker = pods["tensorflow-benchmark-worker-1"]["spec"]
    container = worker["containers"][0]
    env = {one["name"]: one.get("value") for one in container["env"]}
    assert env["VK_TASK_INDEX"] == "1"
    mounts = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
    assert mounts["tensorflow-benchmark-svc"] == "/etc/volcano"
    assert (worker["hostname"], worker["subdomain"]) == (
        "tensorflow-benchmark-worker-1",
        "tensorflow-benchmark",
    )
    assert play.get("service/tensorflow-benchmark")["spec"]["clusterIP"] == "None"

    await play.evict("tensorflow-benchmark-ps-0")
    await play.reaches("tensorflow-benchmark", "Running", running=3, retryCount=1)
    assert {pod["metadata"]["uid"] for pod in (await play.pods()).values()}.isdisjoint(
        pod["metadata"]["uid"] for pod in pods.values()
    )
    await play.finish("tensorflow-benchmark-worker-0", "tensorflow-benchmark-worker-1")
    done = await play.reaches("tensorflow-benchmark", "Completed", succeeded=2)
    assert [one["status"] for one in done["status"]["conditions"]][-2:] == [
        "Completing",
        "Completed",
    ]
    await play.is_gone(f"/api/v1/namespaces/{play.namespace}/pods/tensorflow-benchmark-ps-0")


async def test_the_mpi_job_gets_the_group_that_the_page_prints_and_its_master_completes_it(
    play: Play,
) -> None:
    await create_nodes(play.api, 1, NodeShape(cpu_milli=4000, memory_bytes=16 * 2**30))
    async with groups_watched(play) as states:
        play.apply("001-mpi.yaml")
        await play.running(4)
        job = await play.reaches("lm-mpi-job", "Running", running=4)
        group = await group_of(play, job)
        assert group["spec"] == {
            "minMember": 4,
            "minResources": {
                "count/pods": "4",
                "cpu": "3500m",
                "limits.cpu": "3500m",
                "pods": "4",
                "requests.cpu": "3500m",
            },
            "minTaskMember": {"mpimaster": 1, "mpiworker": 3},
            "queue": "default",
        }
        assert group["metadata"]["labels"] == {"volcano.sh/job-type": "MPI"}
        assert group["metadata"]["ownerReferences"] == [
            {
                "apiVersion": "batch.volcano.sh/v1alpha1",
                "blockOwnerDeletion": True,
                "controller": True,
                "kind": "Job",
                "name": "lm-mpi-job",
                "uid": job["metadata"]["uid"],
            }
        ]

        async def scheduled() -> Object:
            found = await group_of(play, job)
            assert found["status"]["phase"] == "Running"
            conditions: dict[str, Object] = {
                one["type"]: one for one in found["status"]["conditions"]
            }
            return conditions["Scheduled"]

        condition = await eventually(scheduled, timeout_s=SEEN_S)
        assert condition["status"] == "True"
        assert condition["reason"] == "tasks in gang are ready to be scheduled"

        await play.finish("lm-mpi-job-mpimaster-0")
        done = await play.reaches("lm-mpi-job", "Completed", succeeded=1)
    assert [one["status"] for one in done["status"]["conditions"]] == [
        "Pending",
        "Running",
        "Completing",
        "Completed",
    ]
    assert {one.get("status", {}).get("phase") for one in states} >= {"Inqueue", "Running"}


async def test_the_mpi_jobs_pods_can_log_in_to_each_other(play: Play) -> None:
    await create_nodes(play.api, 1, NodeShape(cpu_milli=4000, memory_bytes=16 * 2**30))
    play.apply("001-mpi.yaml")
    pods = await play.running(4)
    secret = play.get("secret/lm-mpi-job-ssh")["data"]
    text = {key: base64.b64decode(value).decode() for key, value in secret.items()}
    assert set(text) == {"id_rsa", "id_rsa.pub", "authorized_keys", "config"}
    assert (
        "Host lm-mpi-job-mpiworker-0\n  HostName lm-mpi-job-mpiworker-0.lm-mpi-job"
        in (text["config"])
    )
    master = pods["lm-mpi-job-mpimaster-0"]["spec"]
    mounts = {one["mountPath"]: one for one in master["containers"][0]["volumeMounts"]}
    assert mounts["/root/.ssh"]["subPath"] == ".ssh"
    assert text["authorized_keys"] == text["id_rsa.pub"]
    assert await log_in(private=text["id_rsa"], authorized=text["authorized_keys"]) == "hello"


async def log_in(*, private: str, authorized: str) -> str:
    """Log in as a pod does to its neighbour: the neighbour's sshd knows the authorized keys."""

    async def greet(process: asyncssh.SSHServerProcess[str]) -> None:
        process.stdout.write("hello")
        process.exit(0)

    server = await asyncssh.listen(
        "127.0.0.1",
        0,
        server_host_keys=[asyncssh.generate_private_key("ssh-ed25519")],
        authorized_client_keys=asyncssh.import_authorized_keys(authorized),
        process_factory=greet,
    )
    said: list[str] = []
    async with (
        server,
        asyncssh.connect(
            "127.0.0.1",
            server.get_port(),
            username="root",
            client_keys=[asyncssh.import_private_key(private)],
            known_hosts=None,
            config=None,
            agent_path=None,
        ) as connection,
    ):
        said.append(str((await connection.run("true", check=True)).stdout))
    return said[0]


async def test_of_two_jobs_of_four_workers_on_four_gpus_the_second_waits_whole(play: Play) -> None:
    await create_nodes(
        play.api,
        4,
        NodeShape(cpu_milli=4000, memory_bytes=16 * 2**30, extended={"nvidia.com/gpu": 1}),
    )

    def a_job(name: str) -> str:
        limits = {"nvidia.com/gpu": 1}
        container = {"name": "main", "image": "train", "resources": {"limits": limits}}
        template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
        task = {"name": "worker", "replicas": 4, "template": template}
        manifest = {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "metadata": {"name": name},
            "spec": {"minAvailable": 4, "schedulerName": "volcano", "tasks": [task]},
        }
        return json.dumps(manifest)

    play.kubectl("apply", "-f", "-", stdin=a_job("first"))
    await play.reaches("first", "Running", running=4)
    play.kubectl("apply", "-f", "-", stdin=a_job("second"))
    await play.reaches("second", "Pending")
    await play.finish(*(f"first-worker-{index}" for index in range(4)))
    await play.reaches("first", "Completed", succeeded=4)
    second = await play.reaches("second", "Running", running=4)
    # Never a part of it ran: it went from Pending to Running with all four.
    assert [one["status"] for one in second["status"]["conditions"]] == ["Pending", "Running"]
