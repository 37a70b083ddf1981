"""Volcano's e2e/jobp: a Job's life from creation to deletion, in every state."""

import asyncio
from datetime import UTC, datetime
from typing import Any, Final

import pytest

from tests.controlplane.client import Object
from tests.support.waiting import eventually
from tests.volcano_e2e.cluster import SEEN_S, Cluster
from tests.volcano_e2e.manifests import BUSYBOX, job, policy, task
from tests.volcano_e2e.together import all_hold

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(150)]

FAILS: Final[Any] = {"line": "sleep 20s && exit 3", "restart": "Never"}


async def passes_and_goes(e2e: Cluster, made: Object, *phases: str) -> None:
    """A Job comes into a state, is deleted, and leaves nothing."""
    created = await e2e.create(made)
    await e2e.job_passes(created, *phases)
    await e2e.delete("Job", made["metadata"]["name"])
    await e2e.job_is_gone(created)


async def test_a_job_can_be_deleted_in_every_state(e2e: Cluster) -> None:
    abort, terminate = (policy(action, "PodFailed") for action in ("AbortJob", "TerminateJob"))
    pending = job("pending", task("success", 2, cpu="10000"))
    completed = job("completed", task("done", 2, image=BUSYBOX, line="sleep 20"))
    one = task("complete", 1, line="sleep 20s", restart="Never", cpu="1")
    await all_hold(
        {
            "pending": passes_and_goes(e2e, pending, "Pending"),
            "running": passes_and_goes(
                e2e, job("running", task("success", 2)), "Pending", "Running"
            ),
            "completed": passes_and_goes(e2e, completed, "Pending", "Running", "Completed"),
            "failed": passes_and_goes(
                e2e,
                job("failed", task("fail", 1, **FAILS), policies=[abort]),
                *("Pending", "Running", "Aborted"),
            ),
            "terminated": passes_and_goes(
                e2e,
                job("terminated", task("fail", 1, **FAILS), policies=[terminate]),
                *("Pending", "Running", "Terminated"),
            ),
            "with requests": passes_and_goes(
                e2e,
                job("with-requests", one, policies=[terminate]),
                *("Pending", "Running", "Completed"),
            ),
        }
    )


async def reports_its_action(e2e: Cluster) -> None:
    since = datetime.now(UTC)
    fails = task("complete", 1, line="sleep 20s && xyz", restart="Never")
    await e2e.create(job("acted", fails, policies=[policy("TerminateJob", "PodFailed")]))
    await e2e.event("acted", "ExecuteAction", words="TerminateJob", since=since)


async def reports_that_it_cannot_be_placed(e2e: Cluster) -> None:
    """One pod more than the node has room for that all have to be on."""
    node = "worker-0"
    terms = [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]
    required = {"nodeSelectorTerms": [{"matchExpressions": terms}]}
    where = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    cramped = task("complete", 5, line="sleep 20s", cpu="1", pod={"affinity": where})
    await e2e.unschedulable(await e2e.create(job("cramped", cramped)))


async def ends_by_its_minimum_of_successes(e2e: Cluster) -> None:
    tasks = (
        task("short", 3, image=BUSYBOX, line="sleep 3"),
        task("log", 2, image=BUSYBOX, line="sleep 100000"),
    )
    made = await e2e.create(job("min-success", *tasks, minAvailable=2, minSuccess=2))
    await e2e.job_runs(made)
    await e2e.pods_are(made, 2, "Succeeded")
    await e2e.job_is(made, "Completed")


RETRIES: Final = [policy("RestartJob", "PodEvicted"), policy("RestartJob", "PodFailed")]


def retried(name: str, other: Object, retries: int) -> Object:
    """One pod that runs on, and another."""
    runs = task("running-task", 1, image=BUSYBOX, line="sleep 1000", restart="Never", maxRetry=1)
    return job(name, runs, other, minSuccess=2, policies=RETRIES, maxRetry=retries)


async def keeps_the_pod_that_failed_last(e2e: Cluster) -> None:
    fails = task("failed-task", 1, image=BUSYBOX, line="sleep 1; exit 127", restart="Never")
    made = await e2e.create(retried("last-retry", fails, 2))
    status = (await e2e.job_is(made, "Failed"))["status"]
    assert status.get("retryCount") == 2, status
    await e2e.is_gone("Pod", "last-retry-running-task-0")
    left = await e2e.get("Pod", "last-retry-failed-task-0")
    assert "deletionTimestamp" not in left["metadata"]


async def keeps_the_pod_that_succeeded(e2e: Cluster) -> None:
    done = [policy("CompleteJob", "TaskCompleted")]
    ends = task("succeeded-task", 1, image=BUSYBOX, line="sleep 1", restart="Never", policies=done)
    made = await e2e.create(retried("complete-retry", ends, 1))
    status = (await e2e.job_is(made, "Completed"))["status"]
    assert status.get("retryCount", 0) == 0, status
    await e2e.is_gone("Pod", "complete-retry-running-task-0")
    left = await e2e.get("Pod", "complete-retry-succeeded-task-0")
    assert "deletionTimestamp" not in left["metadata"]


async def test_jobs_report_their_state_and_keep_their_last_pods(e2e: Cluster) -> None:
    await all_hold(
        {
            "event of an action": reports_its_action(e2e),
            "event unschedulable": reports_that_it_cannot_be_placed(e2e),
            "minimum of successes": ends_by_its_minimum_of_successes(e2e),
            "failed pod": keeps_the_pod_that_failed_last(e2e),
            "succeeded pod": keeps_the_pod_that_succeeded(e2e),
        }
    )


def hosts(name: str, replicas: int) -> dict[str, str]:
    """What the plugin svc writes for one task `default`."""
    lines = [f"{name}-default-{index}.{name}" for index in range(replicas)]
    return {
        "default.host": "\n".join(lines),
        "VC_DEFAULT_HOSTS": ",".join(lines),
        "VC_DEFAULT_NUM": str(replicas),
    }


async def scales(e2e: Cluster, name: str, *sizes: int) -> None:
    """Its hosts follow each size at once."""
    made = await e2e.create(job(name, task("default", 2, cpu="500m"), plugins={"svc": []}))
    await e2e.job_runs(made)
    for size in sizes:
        spec = made["spec"]
        spec["minAvailable"] = spec["tasks"][0]["replicas"] = size
        spec["tasks"][0]["minAvailable"] = size
        made = await e2e.replace("Job", name, "/spec", spec)
        await e2e.job_runs(made)

        async def hosts_listed(size: int = size) -> bool:
            found = (await e2e.get("ConfigMap", f"{name}-svc"))["data"]
            assert found == hosts(name, size), found
            return True

        await eventually(hosts_listed, because=f"hosts of {size} pods")
    await e2e.delete("Job", name)
    await e2e.job_is_gone(made)


async def test_a_jobs_hosts_follow_its_size(e2e: Cluster) -> None:
    await all_hold(
        {
            "up": scales(e2e, "scale-up", 4),
            "down": scales(e2e, "scale-down", 1),
            "to zero and up": scales(e2e, "scale-zero", 0, 2),
        }
    )


def recreated() -> Object:
    """Eight pods with a Service; losing one restarts all."""
    worker = task("worker", 8, image=BUSYBOX, line="sleep infinity", restart="Never")
    worker["template"]["spec"]["terminationGracePeriodSeconds"] = 1
    policies = [{"events": ["PodEvicted"], "action": "RestartJob"}]
    return job("same-name", worker, plugins={"svc": []}, policies=policies)


def untouched(status: Object) -> bool:
    """Whether nothing was ever restarted."""
    return not status.get("version") and not status.get("retryCount")


async def test_a_job_of_the_same_name_is_another_job(e2e: Cluster) -> None:
    """A pod of the first stays for a while, held by a finalizer, on the second's pod's name."""
    first = await e2e.create(recreated())
    await e2e.job_runs(first)
    victim = (await e2e.pods_of(first))[0]["metadata"]["name"]
    await e2e.patch("Pod", victim, {"metadata": {"finalizers": ["tutti.test/held"]}})
    await e2e.delete("Job", "same-name")
    await e2e.is_gone("Job", "same-name")

    async def one_leaves() -> bool:
        return any("deletionTimestamp" in p["metadata"] for p in await e2e.pods_of(first))

    await eventually(one_leaves, timeout_s=SEEN_S, because="a pod of the first is leaving")
    second = await e2e.create(recreated())
    assert second["metadata"]["uid"] != first["metadata"]["uid"]
    for _ in range(10):
        await asyncio.sleep(0.5)  # there is no event for what does not happen
        status = (await e2e.get("Job", "same-name")).get("status", {})
        assert untouched(status), status
        phase = status.get("state", {}).get("phase", "")
        assert phase not in {"Failed", "Terminating", "Terminated", "Restarting"}, status
    await e2e.patch("Pod", victim, {"metadata": {"finalizers": None}})
    await e2e.job_runs(second)
    before = (await e2e.get("Job", "same-name"))["status"]
    assert untouched(before), before
    where = f"/api/v1/namespaces/{e2e.namespace}/pods/{victim}"
    await e2e.api.delete(where, {"gracePeriodSeconds": 0})

    async def recovered() -> bool:
        status = (await e2e.get("Job", "same-name"))["status"]
        assert (status.get("version"), status.get("retryCount")) == (1, 1), status
        service = await e2e.get("Service", "same-name")
        owners = [one["uid"] for one in service["metadata"]["ownerReferences"]]
        assert owners == [second["metadata"]["uid"]], owners
        return True

    await e2e.job_runs(second)
    await eventually(recovered, timeout_s=SEEN_S, because="the second restarted once")


@pytest.mark.parametrize(
    "action",
    [
        "RestartTask",
        pytest.param("RestartPod", marks=pytest.mark.certify),
        pytest.param("RestartPartition", marks=pytest.mark.certify),
    ],
)
async def test_an_action_on_a_part_leaves_the_other_pods(e2e: Cluster, action: str) -> None:
    further: Any = {"timeout": "1s"} if action == "RestartPod" else {}
    parts: Any = (
        {"partitionPolicy": {"totalPartitions": 2, "partitionSize": 2}}
        if action == "RestartPartition"
        else {}
    )
    lasts: Any = {"image": BUSYBOX, "line": "sleep 3600", "restart": "Never"}
    tasks = (task("worker", 4, **lasts, **parts), task("other", 1, **lasts))
    policies = [{"events": ["PodEvicted"], "action": action, **further}]
    made = await e2e.create(job("targeted", *tasks, policies=policies))
    await e2e.job_runs(made)
    original = {pod["metadata"]["name"]: pod for pod in await e2e.pods_of(made)}
    victim = original["targeted-worker-0"]
    label = "volcano.sh/partition-id"
    part = victim["metadata"]["labels"].get(label)
    assert (part is not None) is (action == "RestartPartition"), victim["metadata"]["labels"]
    where = f"/api/v1/namespaces/{e2e.namespace}/pods/targeted-worker-0"
    await e2e.api.delete(where, {"gracePeriodSeconds": 0})

    def restarts(name: str, pod: Object) -> bool:
        match action:
            case "RestartPod":
                return name == "targeted-worker-0"
            case "RestartTask":
                return "worker" in name
            case _:
                return "worker" in name and pod["metadata"]["labels"].get(label) == part

    async def only_these() -> bool:
        for name, old in original.items():
            now = await e2e.get("Pod", name)
            assert now["status"].get("phase") == "Running", name
            assert "deletionTimestamp" not in now["metadata"], name
            other = now["metadata"]["uid"] != old["metadata"]["uid"]
            assert other is restarts(name, old), name
        return True

    await eventually(only_these, timeout_s=SEEN_S, because="only the part is new")
    status = (await e2e.get("Job", "targeted"))["status"]
    assert not status.get("version"), status
