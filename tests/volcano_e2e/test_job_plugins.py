"""Volcano's e2e/jobseq, the plugins: what they make, and that their Jobs come to an end."""

from typing import Any, Final

import pytest

from tests.controlplane.client import Object
from tests.support.waiting import eventually
from tests.volcano_e2e.cluster import SEEN_S, Cluster
from tests.volcano_e2e.manifests import job, policy, task
from tests.volcano_e2e.together import all_hold

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(150)]

MPI: Final = "example.test/example-mpi:0.0.3"
TRAINING: Final = "example.test/training:0.0.1"
SERVES: Final = "mkdir -p /var/run/sshd; /usr/sbin/sshd -D;"


def volumes(pod: Object) -> set[str]:
    return {one["name"] for one in pod["spec"].get("volumes", ())}


async def writes_hosts_beside_node_affinity(e2e: Cluster) -> None:
    fields = [{"key": "metadata.name", "operator": "In", "values": ["worker-2"]}]
    required = {"nodeSelectorTerms": [{"matchFields": fields}]}
    where = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    one = task("task", 1, cpu="1", pod={"affinity": where})
    made = await e2e.create(job("with-svc", one, plugins={"svc": []}))
    await e2e.job_runs(made)
    assert await e2e.find("ConfigMap", "with-svc-svc")
    pods = await e2e.pods_of(made)
    assert "with-svc-svc" in volumes(pods[0])
    assert [pod["spec"]["nodeName"] for pod in pods] == ["worker-2"]


async def writes_keys_beside_pod_affinity(e2e: Cluster) -> None:
    term = {"labelSelector": {"matchLabels": {"foo": "bar"}}}
    terms = [term | {"topologyKey": "kubernetes.io/hostname"}]
    together = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    four = task("task", 4, cpu="500m", labels={"foo": "bar"}, pod={"affinity": together})
    made = await e2e.create(job("with-ssh", four, plugins={"ssh": ["--no-root"]}))
    await e2e.job_runs(made)
    assert await e2e.find("Secret", "with-ssh-ssh")
    pods = await e2e.pods_of(made)
    assert "with-ssh-ssh" in volumes(pods[0])
    assert len({pod["spec"]["nodeName"] for pod in pods}) == 1, "all on one node"


async def leaves_out_the_network_policy(e2e: Cluster) -> None:
    plugins = {"svc": ["--disable-network-policy=true"]}
    made = await e2e.create(job("open", task("task", 4, cpu="1"), minAvailable=1, plugins=plugins))
    await e2e.job_runs(made)
    assert await e2e.find("NetworkPolicy", "open") is None


async def leaves_out_the_hosts(e2e: Cluster) -> None:
    """The environment without the two variables that a large Job makes too long."""
    plugins = {"svc": ["--inject-hosts-env=false"]}
    made = await e2e.create(job("quiet", task("task", 1, cpu="1"), plugins=plugins))
    await e2e.job_runs(made)
    [pod] = await e2e.pods_of(made)
    names = {one["name"] for one in pod["spec"]["containers"][0].get("env", ())}
    assert "VC_TASK_HOSTS" not in names, names


async def makes_everything(e2e: Cluster) -> None:
    plugins: Any = {"ssh": ["--no-root"], "env": [], "svc": []}
    made = await e2e.create(job("all", task("task", 2, cpu="1"), minAvailable=1, plugins=plugins))
    await e2e.job_runs(made)
    assert await e2e.find("Secret", "all-ssh")
    assert await e2e.find("Service", "all")
    pod = (await e2e.pods_of(made))[0]
    assert "all-ssh" in volumes(pod)
    needed = {"VK_TASK_INDEX", "VC_TASK_INDEX", "VC_TASK_HOSTS", "VC_TASK_NUM"}
    for container in [*pod["spec"]["containers"], *pod["spec"].get("initContainers", ())]:
        assert needed <= {one["name"] for one in container.get("env", ())}, container["name"]


async def test_plugins_make_what_they_are_for(e2e: Cluster) -> None:
    await all_hold(
        {
            "svc": writes_hosts_beside_node_affinity(e2e),
            "ssh": writes_keys_beside_pod_affinity(e2e),
            "no policy": leaves_out_the_network_policy(e2e),
            "no hosts": leaves_out_the_hosts(e2e),
            "all": makes_everything(e2e),
        }
    )


DONE: Final = policy("CompleteJob", "TaskCompleted")
BACK: Final = policy("RestartJob", "PodEvicted")
THROUGH: Final = ("Pending", "Running", "Completing", "Completed")


async def passes(e2e: Cluster, made: Object, *phases: str) -> None:
    await e2e.job_passes(await e2e.create(made), *phases)


def mpi(name: str, plugins: dict[str, list[str]], **further: Any) -> Object:
    """A master that needs its workers, and two of these."""
    line = "mkdir -p /var/run/sshd; /usr/sbin/sshd;\nmpiexec --host ${MPI_HOST} -np 2 hello"
    master = task("mpimaster", 1, image=MPI, line=line, cpu="1", **further)
    worker = task("mpiworker", 2, image=MPI, line=SERVES, cpu="1")
    policies = [] if further else [DONE]
    return job(name, master, worker, minAvailable=1, plugins=plugins, policies=policies)


def training(name: str, first: str, second: str, plugins: dict[str, list[str]]) -> Object:
    """One pod of a role, two of another, and all of them end."""
    line = "python3 /opt/mnist.py --epochs=1"
    tasks = (
        task(first, 1, image=TRAINING, line=line, cpu="1", restart="Never"),
        task(second, 2, image=TRAINING, line=line, cpu="1", restart="Never", policies=[DONE]),
    )
    return job(name, *tasks, plugins=plugins, policies=[BACK], minAvailable=3)


async def has_a_service_and_runs(e2e: Cluster) -> None:
    plugins: Any = {
        "ray": [
            *("--head=head", "--worker=worker", "--port=2345"),
            *("--headContainer=ray", "--workerContainer=ray"),
        ],
        "svc": [],
    }
    tasks = [task(name, 1, image="example.test/ray:2.49.0", cpu="1") for name in ("head", "worker")]
    made = job("ray-cluster", *tasks, minAvailable=1, plugins=plugins, policies=[BACK])
    created = await e2e.create(made)
    await e2e.job_passes(created, "Pending", "Running")

    async def served() -> bool:
        return await e2e.find("Service", "ray-cluster") is not None

    await eventually(served, timeout_s=SEEN_S, because="the cluster has a Service")


async def test_jobs_of_each_framework_run_to_their_end(e2e: Cluster) -> None:
    client = task("client", 1, image=MPI, line="sleep 5;\ntouch a.txt;\nscp a.txt", cpu="1")
    server = task("server", 1, image=MPI, line="mkdir -p /run/sshd; /usr/sbin/sshd -D;", cpu="1")
    keys: Any = {"ssh": ["--port=1000"], "svc": []}
    await all_hold(
        {
            "mpi": passes(
                e2e,
                mpi("mpi", {"mpi": ["--master=mpimaster", "--worker=mpiworker", "--port=22"]}),
                *THROUGH,
            ),
            "mpi by hand": passes(
                e2e, mpi("mpi-by-hand", {"ssh": [], "svc": []}, policies=[DONE]), *THROUGH
            ),
            "ssh": passes(e2e, job("ssh", client, server, plugins=keys, policies=[DONE]), *THROUGH),
            "pytorch": passes(
                e2e,
                training(
                    *("pytorch", "master", "worker"),
                    {"pytorch": ["--master=master", "--worker=worker", "--port=23456"]},
                ),
                *("Pending", "Running", "Completed"),
            ),
            "tensorflow": passes(
                e2e,
                training(
                    *("tensorflow", "ps", "worker"),
                    {"tensorflow": ["--ps=ps", "--worker=worker", "--port=2222"]},
                ),
                *("Pending", "Running", "Completed"),
            ),
            "tensorflow by hand": passes(
                e2e,
                training("tensorflow-by-hand", "ps", "worker", {"env": [], "svc": []}),
                *("Pending", "Running", "Completed"),
            ),
            "ray": has_a_service_and_runs(e2e),
        }
    )
