"""Gangs of every dialect, from the objects that users write to bound pods."""

import pytest

from shared.contracts import annotations
from tests.controlplane.client import Object
from tests.controlplane.nodes import GPU, pod_manifest
from tests.integration.stage import INCUBATOR, QUIET_S, SIGS, VOLCANO, Stage
from tests.support.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(90)]

JOBS = "batch/v1"
APPS = "apps/v1"
BUDGETS = "policy/v1"


def template(
    *, scheduler_name: str, notes: dict[str, str] | None = None, restart: str = "Always"
) -> Object:
    """A pod template of one container that asks for a CPU."""
    container = {
        "name": "main",
        "image": "registry.example/none",
        "resources": {"requests": {"cpu": "1"}},
    }
    spec = {"schedulerName": scheduler_name, "restartPolicy": restart, "containers": [container]}
    return {"metadata": {"labels": {"app": "main"}, "annotations": notes or {}}, "spec": spec}


def job(name: str, pods: int, group: str) -> Object:
    """A batch Job as kube-batch's example has it."""
    notes = {annotations.GROUP_NAME: group}
    spec = template(scheduler_name="kube-batch", notes=notes, restart="Never")
    counts = {"completions": pods, "parallelism": pods, "backoffLimit": pods}
    return {"metadata": {"name": name}, "spec": {**counts, "template": spec}}


def replica_set(
    name: str, replicas: int, scheduler_name: str, notes: dict[str, str] | None = None
) -> Object:
    """A ReplicaSet whose pods name no group."""
    selector = {"matchLabels": {"app": "main"}}
    pods = template(scheduler_name=scheduler_name)
    return {
        "metadata": {"name": name, "annotations": notes or {}},
        "spec": {"replicas": replicas, "selector": selector, "template": pods},
    }


@pytest.mark.parametrize("group_first", [True, False], ids=["group-first", "job-first"])
async def test_kube_batchs_own_example_of_six_pods_runs_whole(
    stage: Stage, group_first: bool
) -> None:
    await stage.nodes(2)
    if group_first:
        await stage.group("qj-1", 6, version=INCUBATOR)
    await stage.api.create(stage.path("jobs", version=JOBS), job("qj-1", 6, "qj-1"))
    if not group_first:
        await eventually(lambda: stage.pods("qj-1"), because="the Job has made a pod")
        assert not await stage.placed("qj-1")
        await stage.group("qj-1", 6, version=INCUBATOR)
    await stage.bound("qj-1", 6)

    async def shown() -> bool:
        found = await stage.api.get(stage.group_path("qj-1", INCUBATOR))
        status = found.get("status", {})
        return (status.get("phase"), status.get("running")) == ("Running", 6)

    await eventually(shown, because="the group says that six run")


async def test_the_second_of_two_gangs_waits_whole_says_why_and_runs_when_the_first_is_gone(
    stage: Stage,
) -> None:
    await stage.nodes(1)
    first = await stage.gang("first", 4)
    await stage.bound("first", 4)
    await stage.gang("second", 4)
    message = await stage.waits("second", "NotEnoughResources")
    assert message == (
        "4/4 tasks in gang unschedulable: 0 of 4 pods fit; 4 more cpu needed; "
        "0/1 nodes are available: 1 Insufficient cpu"
    )
    await stage.pods_say("second", 4, reason="Unschedulable", words="4 more cpu needed")
    assert not await stage.placed("second")
    assert not stage.audit.marked_unscheduled & {pod["metadata"]["uid"] for pod in first}
    await stage.delete_pods([pod["metadata"]["name"] for pod in first])
    await stage.bound("second", 4)


async def test_pods_are_unschedulable_only_while_new_nodes_would_help(stage: Stage) -> None:
    """An autoscaler adds nodes for a gang that lacks capacity, and none when its queue closes."""
    await stage.nodes(1)
    queues, queue = f"/apis/{VOLCANO}/queues", f"q-{stage.namespace}"
    kind = {"apiVersion": VOLCANO, "kind": "Queue", "metadata": {"name": queue}}
    await stage.api.create(queues, {**kind, "spec": {"weight": 1}})
    await stage.group("large", 5, spec={"queue": queue})
    await stage.members("large", 5)
    await stage.group("few", 3)
    await stage.members("few", 2)
    await stage.pods_say("large", 5, reason="Unschedulable")
    await stage.pods_say("few", 2, reason="NotEnoughPods")
    await stage.api.patch(f"{queues}/{queue}/status", {"status": {"state": "Closed"}})
    await stage.pods_say("large", 5, reason="QueueNotOpen")
    await stage.delete(f"{queues}/{queue}")


async def test_of_two_gangs_created_side_by_side_one_is_bound_and_the_other_waits_whole(
    stage: Stage,
) -> None:
    """The deadlock of the seeds: pod by pod, each would get half of the node."""
    await stage.nodes(1)
    for name in ("left", "right"):
        await stage.group(name, 4)
    for index in range(4):
        for name in ("left", "right"):
            await stage.members(name, 1, prefix=f"{name}-{index}")

    async def one_has_all() -> tuple[int, ...]:
        counts = sorted([len(await stage.placed(name)) for name in ("left", "right")])
        assert counts == [0, 4]
        return tuple(counts)

    await eventually(one_has_all, because="one gang has the node")
    await stage.pods_say("right" if await stage.placed("left") else "left", 4)
    assert await one_has_all()


async def test_a_role_below_its_minimum_keeps_the_whole_gang_waiting(stage: Stage) -> None:
    await stage.nodes(2)
    await stage.group("train", 4, spec={"minTaskMember": {"ps": 1, "worker": 3}})
    await stage.members("train", 5, role="worker")
    await stage.waits("train", "NotEnoughPodsOfTask", "0 of 1 members of ps exist")
    await stage.members("train", 1, role="ps", requests={"cpu": "6"})
    await stage.waits("train", "NotEnoughResources", "Insufficient cpu")
    assert not await stage.placed("train")
    await stage.nodes(1, prefix="big-", cpu_milli=8000)
    placed = await stage.bound("train", 6)
    assert placed["train-ps-0"] == "big-0"


async def test_elastic_members_beyond_the_quorum_are_bound_as_room_appears(stage: Stage) -> None:
    await stage.nodes(1, cpu_milli=3000)
    await stage.group("elastic", 2)
    await stage.members("elastic", 5)
    await stage.bound("elastic", 3)
    await stage.nodes(1, prefix="more-", cpu_milli=2000)
    await stage.bound("elastic", 5)


async def test_pods_beyond_the_first_two_wait_for_a_quorum_that_comes_one_by_one(
    stage: Stage,
) -> None:
    await stage.nodes(1)
    await stage.group("slow", 3)
    for index in range(3):
        assert not await stage.placed("slow")
        if index == 2:
            await stage.waits("slow", "NotEnoughPods", "2 of 3 members exist")
        await stage.members("slow", 1, prefix=f"slow-{index}")
    await stage.bound("slow", 3)


async def test_a_budget_with_a_controller_makes_a_gang_of_that_controllers_pods(
    stage: Stage,
) -> None:
    """As Kubeflow 0.3 asked for gangs: first the budget, then the pods."""
    await stage.nodes(1)
    sets = stage.path("replicasets", version=APPS)
    made = await stage.api.create(sets, replica_set("train", 0, "kube-batch"))
    uid = made["metadata"]["uid"]
    owner = {"apiVersion": APPS, "kind": "ReplicaSet", "name": "train", "uid": uid}
    budget = {
        "metadata": {"name": "train", "ownerReferences": [{**owner, "controller": True}]},
        "spec": {"minAvailable": 6, "selector": {"matchLabels": {"app": "main"}}},
    }
    await stage.api.create(stage.path("poddisruptionbudgets", version=BUDGETS), budget)
    await stage.api.patch(f"{sets}/train", {"spec": {"replicas": 6}})
    await eventually(lambda: len(stage.audit.marked_unscheduled) == 6, because="all six wait")
    assert not await stage.placed()
    await stage.why("poddisruptionbudget/train", "waits", "0/1 nodes are available")
    await stage.nodes(1, prefix="more-", cpu_milli=2000)

    async def all_placed() -> bool:
        return len(await stage.placed()) == 6

    await eventually(all_placed, because="all six are bound")


async def test_a_group_of_the_sigs_api_is_a_gang_and_shows_its_phase(stage: Stage) -> None:
    await stage.nodes(1)
    await stage.group("sig", 3, version=SIGS)
    await stage.members("sig", 2, scheduler_name="kube-batch")
    await stage.waits("sig", "NotEnoughPods", version=SIGS)
    assert not await stage.placed("sig")
    await stage.members("sig", 1, prefix="sig-last", scheduler_name="kube-batch")
    await stage.bound("sig", 3)

    async def running() -> bool:
        found = await stage.api.get(stage.group_path("sig", SIGS))
        return str(found["status"]["phase"]) == "Running"

    await eventually(running, because="the group says Running")


async def test_a_volcano_group_with_room_is_inqueue_before_it_has_pods(stage: Stage) -> None:
    await stage.nodes(1)
    await stage.group("fits", 2, spec={"minResources": {"cpu": "2"}})
    await stage.group("never", 2, spec={"minResources": {"cpu": "200"}})

    async def inqueue() -> bool:
        found = await stage.api.get(stage.group_path("fits"))
        return str(found.get("status", {}).get("phase")) == "Inqueue"

    await eventually(inqueue, because="operators make pods only then")
    assert not await stage.pods()
    await stage.members("fits", 2, scheduler_name="volcano")
    await stage.bound("fits", 2)


@pytest.mark.parametrize("scheduler_name", ["tutti", "volcano"])
async def test_bare_pods_get_a_group_whose_size_their_owner_says(
    stage: Stage, scheduler_name: str
) -> None:
    await stage.nodes(1)
    notes = {annotations.OWNER_MIN_MEMBER: "5"}
    path = stage.path("replicasets", version=APPS)
    made = await stage.api.create(path, replica_set("serve", 5, scheduler_name, notes))
    name = f"podgroup-{made['metadata']['uid']}"
    message = await stage.waits(name, "NotEnoughResources")
    assert message.startswith("5/5 tasks in gang unschedulable: 4 of 5 pods fit; 1 more cpu needed")
    group = await stage.api.get(stage.group_path(name))
    assert group["spec"]["minMember"] == 5
    assert group["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
    assert not await stage.placed()
    await stage.nodes(1, prefix="more-", cpu_milli=1000)
    await stage.bound("", 5)
    await stage.bound(name, 5)  # and each of them names it


async def test_bare_pods_of_kube_batch_are_bound_alone_and_get_no_group(stage: Stage) -> None:
    await stage.nodes(1, cpu_milli=2000)
    path = stage.path("replicasets", version=APPS)
    await stage.api.create(path, replica_set("serve", 3, "kube-batch"))

    async def two() -> bool:
        return len(await stage.placed()) == 2

    await eventually(two, because="two fit")
    await eventually(lambda: len(stage.audit.marked_unscheduled) == 1, because="the third waits")
    assert not (await stage.api.get(stage.group_path("")))["items"]


async def test_pods_of_other_schedulers_are_not_touched_but_counted(stage: Stage) -> None:
    await stage.nodes(1)
    foreign = pod_manifest("foreign", requests={"cpu": "2"}, scheduler_name="default-scheduler")
    nobodys = pod_manifest("nobodys", requests={"cpu": "1"}, scheduler_name="elsewhere")
    await stage.bare_pods(foreign, nobodys)

    async def native() -> bool:
        return await stage.placed() == {"foreign": "node-0"}

    await eventually(native, because="kube-scheduler binds its own")
    await stage.gang("train", 3)
    await stage.waits("train", "NotEnoughResources", "2 of 3 pods fit")
    assert not await stage.placed("train")
    await stage.delete_pods(["foreign"])
    await stage.bound("train", 3)
    left = await stage.api.get(stage.path(name="nobodys"))
    assert "nodeName" not in left["spec"]
    assert not left["status"].get("conditions")
    assert not left["metadata"].get("annotations")


async def test_gangs_that_want_the_same_gpus_run_one_after_the_other(stage: Stage) -> None:
    """The seeds' experiment: one ps and three workers, a GPU each, on four GPUs."""
    await stage.nodes(4, extended={GPU: 1})
    for name in ("one", "two"):
        await stage.group(name, 4)
        await stage.members(name, 1, role="ps")
        await stage.members(name, 3, role="worker", requests={"cpu": "1", GPU: "1"})
        if name == "one":
            await stage.bound("one", 4)
    # One of the four is free.
    await stage.waits("two", "NotEnoughResources", "2 more nvidia.com/gpu needed")
    await stage.stays_unbound("two", for_s=QUIET_S)
    for pod in await stage.pods("one"):
        stage.kubelet.finish(pod["metadata"]["uid"])
    await stage.bound("two", 4)

    async def has_completed() -> bool:
        # Its status is written beside the bindings of the other gang.
        return bool((await stage.seen_group("one"))["status"]["phase"] == "Completed")

    await eventually(has_completed, because="the first gang is Completed")


async def test_autoscalers_are_asked_to_keep_the_nodes_of_a_gang_until_it_has_ended(
    stage: Stage,
) -> None:
    await stage.nodes(1)
    await stage.group("train", 2, notes={annotations.UNDISTURBED: "true"})
    await stage.members("train", 2)
    asked = {annotations.DO_NOT_DISRUPT: "true", annotations.SAFE_TO_EVICT: "false"}
    await stage.bound("train", 2)
    for pod in await stage.pods("train"):
        assert asked.items() <= pod["metadata"]["annotations"].items()
        stage.kubelet.finish(pod["metadata"]["uid"])

    async def freed() -> bool:
        for pod in await stage.pods("train"):
            notes = pod["metadata"]["annotations"]
            assert annotations.GROUP_NAME in notes
            assert not asked.keys() & notes.keys(), notes
        return True

    await eventually(freed, because="the annotations are removed")


async def test_one_planner_shows_volcanos_queue_metrics_and_the_controller_counts_groups(
    stage: Stage,
) -> None:
    await stage.nodes(1)
    await stage.gang("train", 3)
    await stage.bound("train", 3)
    queue = 'queue_name="default"'
    allocated = f"volcano_queue_allocated_milli_cpu{{{queue}}}"

    async def shown() -> bool:
        planners = await stage.suite.series("gang-planner")
        holding = [each for each in planners if allocated in each]
        assert len(planners) == 2
        assert len(holding) == 1, "a standby shows no queues: sums would count twice"
        assert holding[0][allocated] == 3000
        count = f"volcano_queue_pod_group_running_count{{{queue}}}"
        return [one[count] for one in await stage.suite.series("controller") if count in one] == [1]

    await eventually(shown, because="the metrics count the gang")
