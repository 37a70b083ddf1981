"""Volcano's e2e/jobseq: queues that are closed and opened, and what becomes of their groups."""

import pytest

from tests.controlplane.client import Object
from tests.support.queue_commands import commands_are_reviewed
from tests.support.waiting import eventually
from tests.volcano_e2e.cluster import SEEN_S, Cluster
from tests.volcano_e2e.manifests import job, queue, task
from tests.volcano_e2e.together import all_hold

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(150)]


async def command(e2e: Cluster, name: str, action: str) -> None:
    """As Volcano's library sends it: in the namespace `default`, about the queue."""
    await commands_are_reviewed(e2e.api)
    found = await e2e.get("Queue", name)
    target = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "name": name,
        "uid": found["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    made = {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": {"generateName": f"{name}-{action.lower()}-", "ownerReferences": [target]},
        "action": action,
        "target": target,
    }
    await e2e.create(made, "default")


async def closes_and_opens(e2e: Cluster) -> None:
    await e2e.queue(queue("closed-by-command"))
    await command(e2e, "closed-by-command", "CloseQueue")
    await e2e.queue_is("closed-by-command", "Closed")
    await command(e2e, "closed-by-command", "OpenQueue")
    await e2e.queue_is("closed-by-command", "Open")


async def children_follow(e2e: Cluster) -> None:
    """What is below a closed queue is closed; to open it, the parent has to be opened first."""
    await e2e.queue(queue("parent"))
    await e2e.queue(queue("child", parent="parent"))
    await command(e2e, "parent", "CloseQueue")
    await e2e.queue_is("parent", "Closed")
    await e2e.queue_is("child", "Closed")
    await command(e2e, "parent", "OpenQueue")
    await e2e.queue_is("parent", "Open")
    await command(e2e, "child", "OpenQueue")
    await e2e.queue_is("child", "Open")


async def closes_by_its_status(e2e: Cluster) -> None:
    """Volcano's cases end so: the top is written Closed, all below follow, the deepest goes
    first.
    """
    await e2e.queue(queue("top"))
    await e2e.queue(queue("middle", parent="top"))
    await e2e.queue(queue("bottom", parent="middle"))
    await e2e.close_queue("top")
    for name in ("top", "middle", "bottom"):
        await e2e.queue_is(name, "Closed")
    for name in ("bottom", "middle", "top"):
        await e2e.delete("Queue", name, propagation="Foreground")
        await e2e.is_gone("Queue", name)


async def open_ones_can_be_deleted(e2e: Cluster) -> None:
    await e2e.queue(queue("open"))
    await e2e.delete("Queue", "open")
    await e2e.is_gone("Queue", "open")


async def test_queues_open_close_and_go(e2e: Cluster) -> None:
    await all_hold(
        {
            "command": closes_and_opens(e2e),
            "tree": children_follow(e2e),
            "status": closes_by_its_status(e2e),
            "deletion": open_ones_can_be_deleted(e2e),
        }
    )


async def one_is(e2e: Cluster, phase: str) -> None:
    """Wait until a group of the queue is in the phase. (Older versions of Volcano counted them in
    the queue's status, where newer ones have nothing but what is allocated.)
    """

    async def there() -> bool:
        groups = await e2e.all_of("PodGroup")
        phases = [group.get("status", {}).get("phase") for group in groups]
        assert phase in phases, phases
        return True

    await eventually(there, timeout_s=SEEN_S, because=f"a group of the queue is {phase}")


async def two_that_fill(e2e: Cluster) -> list[Object]:
    """Two Jobs, each as large as the cluster. The first one runs."""
    await e2e.queue(queue("counted"))
    size = await e2e.free("500m")

    async def create(name: str) -> Object:
        return await e2e.create(job(name, task("all", size, cpu="500m"), queue="counted"))

    first = await create("counted-0")
    await e2e.job_runs(first)
    return [first, await create("counted-1")]


async def test_a_group_whose_pods_are_all_taken_away_comes_back_whole(e2e: Cluster) -> None:
    """Volcano's case waits until its queue counts a group as Pending: there the second of the two
    is, since it keeps out groups that do not fit. Here that one is Inqueue, and waits, too.
    """
    first, second = await two_that_fill(e2e)
    await one_is(e2e, "Inqueue")
    before = {pod["metadata"]["uid"] for pod in await e2e.pods_of(first)}
    for pod in await e2e.pods_of(first):
        await e2e.delete("Pod", pod["metadata"]["name"])

    async def replaced() -> bool:
        pods = await e2e.pods_of(first)
        assert not before & {pod["metadata"]["uid"] for pod in pods}
        return len(pods) == len(before)

    await eventually(replaced, timeout_s=SEEN_S, because="all its pods are new")
    await e2e.job_runs(first)
    nodes = [pod["spec"].get("nodeName") for pod in await e2e.pods_of(second)]
    assert nodes, "the second waits"
    assert not any(nodes), "there is no room for any of the second"


@pytest.mark.certify
async def test_a_group_that_lost_half_is_unknown_to_its_queue(e2e: Cluster) -> None:
    await two_that_fill(e2e)
    await one_is(e2e, "Running")

    async def run() -> list[Object]:
        pods = await e2e.all_of("Pod")
        found = [pod for pod in pods if pod["status"].get("phase") == "Running"]
        assert len(found) >= 2
        return found

    running = await eventually(run, timeout_s=SEEN_S, because="pods run")
    for pod in running[: len(running) // 2]:
        await e2e.delete("Pod", pod["metadata"]["name"])
    await one_is(e2e, "Unknown")
