"""The stand-in turns TFJobs into the pods and gangs that the operator of that time made."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.api_suite.client import Client, Obj, connected
from tests.api_suite.objects import binding
from tests.support.waiting import eventually
from tests.tutti.cluster.conftest import CRDS_DIR
from tutti.cluster.embedded import EmbeddedCluster, Settings
from tutti.cluster.kubelet import EXIT
from tutti.tf_operator.stand_in import CRD_FILE, Gang, TfOperator

PODS = "/api/v1/namespaces/default/pods"
GROUPS = "/apis/scheduling.incubator.k8s.io/v1alpha1/namespaces/default/podgroups"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


def replica(count: int, policy: str = "OnFailure") -> Obj:
    container = {"name": "tensorflow", "image": "tf:1", "env": [{"name": "A", "value": "b"}]}
    spec = {"schedulerName": "kube-batch", "containers": [container]}
    template = {"metadata": {"annotations": {"note": "kept"}}, "spec": spec}
    return {"replicas": count, "restartPolicy": policy, "template": template}


def tf_job(version: str = "v1beta1", **spec: object) -> Obj:
    return {
        "apiVersion": f"kubeflow.org/{version}",
        "kind": "TFJob",
        "metadata": {"name": "job"},
        "spec": {"tfReplicaSpecs": {"Worker": replica(2), "PS": replica(1)}, **spec},
    }


def jobs(version: str = "v1beta1") -> str:
    return f"/apis/kubeflow.org/{version}/namespaces/default/tfjobs"


async def submit(api: Client, job: Obj) -> list[str]:
    await api.create(jobs(job["apiVersion"].partition("/")[2]), job)
    total = sum(each["replicas"] for each in job["spec"]["tfReplicaSpecs"].values())

    async def made() -> list[str] | None:
        names = await api.names(PODS)
        return names if len(names) == total else None

    names = await eventually(made)
    assert names is not None
    return names


@asynccontextmanager
async def operated(kubeconfig: Path, gang: Gang) -> AsyncIterator[Client]:
    settings = Settings(crds=(CRDS_DIR, CRD_FILE), pod_start_s=0, pod_stop_s=0)
    async with (
        EmbeddedCluster(settings) as cluster,
        TfOperator(cluster.api, gang),
        connected(cluster.kubeconfig(kubeconfig)) as client,
    ):
        yield client


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Client]:
    async with operated(tmp_path / "kubeconfig", "podgroup") as client:
        yield client


@pytest.fixture
async def old_api(tmp_path: Path) -> AsyncIterator[Client]:
    """A cluster whose operator asks for gangs in the older way."""
    async with operated(tmp_path / "kubeconfig", "pdb") as client:
        yield client


async def finish(api: Client, name: str, code: int = 0) -> None:
    """Lets a running pod's containers end."""
    patch = {"metadata": {"annotations": {EXIT: str(code)}}}
    assert (await api.patch(f"{PODS}/{name}", patch)).status == 200


async def run(api: Client, names: list[str]) -> None:
    for index, name in enumerate(names):
        await api.create(f"{PODS}/{name}/binding", binding(name, f"node-{index % 4 + 1}"))

    async def running() -> bool:
        items = (await api.get(PODS)).body["items"]
        return [item["status"]["phase"] for item in items] == ["Running"] * len(names)

    await eventually(running)


async def ended(api: Client, kind: str) -> Obj:
    async def read() -> Obj | None:
        job = (await api.get(f"{jobs()}/job")).body
        conditions = {c["type"]: c["status"] for c in job["status"].get("conditions", [])}
        return job if conditions.get(kind) == "True" else None

    job = await eventually(read)
    assert job is not None
    return job


@pytest.mark.parametrize("version", ["v1alpha2", "v1beta1", "v1"])
async def test_a_job_becomes_pods_and_a_group(api: Client, version: str) -> None:
    assert await submit(api, tf_job(version)) == ["job-ps-0", "job-worker-0", "job-worker-1"]
    pod = (await api.get(f"{PODS}/job-worker-1")).body
    metadata, spec = pod["metadata"], pod["spec"]
    (owner,) = metadata["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("TFJob", "job", True)
    assert metadata["annotations"] == {"note": "kept", "scheduling.k8s.io/group-name": "job"}
    assert (metadata["labels"]["tf-replica-type"], metadata["labels"]["tf-replica-index"]) == (
        "worker",
        "1",
    )
    assert (spec["schedulerName"], spec["restartPolicy"]) == ("kube-batch", "OnFailure")
    env = {item["name"]: item["value"] for item in spec["containers"][0]["env"]}
    config = json.loads(env["TF_CONFIG"])
    assert config["task"] == {"type": "worker", "index": 1}
    assert config["cluster"]["ps"] == ["job-ps-0.default.svc:2222"]
    assert len(config["cluster"]["worker"]) == 2
    group = (await api.get(f"{GROUPS}/job")).body
    assert group["spec"]["minMember"] == 3
    assert group["metadata"]["ownerReferences"][0]["uid"] == owner["uid"]


async def test_a_job_succeeds_with_its_workers_and_its_servers_go(api: Client) -> None:
    await run(api, await submit(api, tf_job()))
    await ended(api, "Running")
    await finish(api, "job-worker-0")
    await finish(api, "job-worker-1")
    job = await ended(api, "Succeeded")
    assert job["status"]["completionTime"]
    assert job["status"]["replicaStatuses"]["Worker"] == {"succeeded": 2}

    async def cleaned() -> bool:
        left = await api.names(PODS) == ["job-worker-0", "job-worker-1"]
        return left and await api.names(GROUPS) == []

    await eventually(cleaned)


async def test_a_job_fails_with_a_member_that_may_not_restart(api: Client) -> None:
    job = tf_job(cleanPodPolicy="All")
    job["spec"]["tfReplicaSpecs"]["Worker"] = replica(2, "Never")
    await run(api, await submit(api, job))
    await finish(api, "job-worker-0", 1)
    await ended(api, "Failed")

    async def cleaned() -> bool:
        return await api.names(PODS) == []

    await eventually(cleaned)


async def test_a_missing_pod_is_made_again(api: Client) -> None:
    await submit(api, tf_job())
    old = (await api.get(f"{PODS}/job-worker-0")).body["metadata"]["uid"]
    await api.call("DELETE", f"{PODS}/job-worker-0")

    async def replaced() -> bool:
        answer = await api.get(f"{PODS}/job-worker-0")
        return answer.status == 200 and answer.body["metadata"]["uid"] != old

    await eventually(replaced)


async def test_a_deleted_job_takes_everything_along(api: Client) -> None:
    await submit(api, tf_job())
    await api.call("DELETE", f"{jobs()}/job")

    async def gone() -> bool:
        return await api.names(PODS) == [] and await api.names(GROUPS) == []

    await eventually(gone)


async def test_the_older_operator_makes_a_budget(old_api: Client) -> None:
    await submit(old_api, tf_job("v1alpha2"))
    budget = (await old_api.get(f"{BUDGETS}/job")).body
    assert budget["spec"]["minAvailable"] == 3
    (owner,) = budget["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["controller"]) == ("TFJob", True)
    pod = (await old_api.get(f"{PODS}/job-ps-0")).body
    assert pod["metadata"]["ownerReferences"][0]["uid"] == owner["uid"]
    assert pod["metadata"]["annotations"] == {"note": "kept"}
    labels = budget["spec"]["selector"]["matchLabels"]
    assert labels.items() <= pod["metadata"]["labels"].items()
    assert await old_api.names(GROUPS) == []


async def test_a_job_without_a_usable_spec_does_not_block_other_jobs(api: Client) -> None:
    empty = tf_job()
    empty["metadata"]["name"] = "empty"
    empty["spec"] = {}
    await api.create(jobs(), empty)
    broken = tf_job()
    broken["metadata"]["name"] = "broken"
    broken["spec"]["tfReplicaSpecs"] = {"Worker": {"replicas": "two"}}
    refused = await api.call("POST", jobs(), broken)
    assert "spec.tfReplicaSpecs.Worker.replicas in body must be of type integer" in refused.message
    assert len(await submit(api, tf_job())) == 3
