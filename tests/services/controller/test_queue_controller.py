"""The queue controller on both API servers."""

import contextlib
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from services.controller import queue_controller
from services.controller.queue_command_policy import QueueCommandPolicy
from services.controller.queue_controller import Allocated, QueueReconciler, ReadAllocated
from services.controller.reconciling.controller import Reconciler, Runtime
from shared.kube.client import KubeClient
from shared.kube.credentials import load
from shared.kube.errors import NotFound
from shared.kube.resources import (
    ADMISSION_POLICIES,
    ADMISSION_POLICY_BINDINGS,
    COMMANDS,
    PODGROUPS_VOLCANO,
    QUEUES_VOLCANO,
)
from tests.services.controller.playing import Object, becomes, events, make, names_of, read, running
from tests.support.faulty_cluster import FaultRule, FaultyCluster
from tutti.cluster.embedded import Settings
from tutti.manifests.crds import manifests

POLICY = "tutti-queue-commands"


@pytest.fixture
async def names(either: KubeClient) -> AsyncIterator[tuple[str, str]]:
    """Two queues of the test's own. Neither these nor the two common ones exist before or after."""
    ending = uuid.uuid4().hex[:6]
    mine = f"top-{ending}", f"kid-{ending}"
    # Other tests on the same API server leave the common ones with a status.
    await delete_queues(either, "root", "default")
    yield mine
    await delete_queues(either, *mine, "root", "default")


async def delete_queues(client: KubeClient, *names: str) -> None:
    for name in names:
        with contextlib.suppress(NotFound):
            await client.delete(QUEUES_VOLCANO, name)


def asking(answers: list[Allocated | None]) -> ReadAllocated:
    """The last answer stays."""

    async def holdings() -> Allocated | None:
        return answers.pop(0) if len(answers) > 1 else answers[0]

    return holdings


def maker(*answers: Allocated | None, namespaces: tuple[str, ...] = (), settle_ms: int = 0) -> Any:
    def built(runtime: Runtime) -> Reconciler:
        policy = QueueCommandPolicy(
            runtime.client, POLICY, namespaces=namespaces, settle_ms=settle_ms
        )
        return QueueReconciler(runtime, asking(list(answers) or [None]), policy)

    return built


async def command(client: KubeClient, action: str, queue: Object) -> None:
    metadata = queue["metadata"]
    name = f"{metadata['name']}-{action.lower()}-{uuid.uuid4().hex[:5]}"
    target = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "name": metadata["name"],
        "uid": metadata["uid"],
    }
    manifest = {"metadata": {"name": name}, "action": action, "target": target}
    await make_command(client, manifest)


async def make_command(client: KubeClient, manifest: Object) -> None:
    whole = {"apiVersion": COMMANDS.api_version, "kind": "Command", **manifest}
    await client.create(COMMANDS, whole, namespace="default")


async def test_root_and_default_are_made_and_every_queue_is_opened_below_root(
    either: KubeClient, names: tuple[str, str]
) -> None:
    top, _ = names
    await make(either, QUEUES_VOLCANO, {"metadata": {"name": top}, "spec": {"weight": 2}})

    async def states() -> list[object]:
        found = [await read(either, QUEUES_VOLCANO, name) for name in ("root", "default", top)]
        return [
            (queue and queue["spec"].get("parent"), queue and queue.get("status"))
            for queue in found
        ]

    async with running(either, maker()):
        status = {"state": "Open", "allocated": {"cpu": "0", "memory": "0"}}
        await becomes(states, [(None, status), ("root", status), ("root", status)])


async def test_a_parent_closes_and_opens_with_all_below_it_and_the_command_is_gone(
    either: KubeClient, names: tuple[str, str]
) -> None:
    top, kid = names
    parent = await make(either, QUEUES_VOLCANO, {"metadata": {"name": top}, "spec": {"weight": 1}})
    spec = {"weight": 1, "parent": top}
    await make(either, QUEUES_VOLCANO, {"metadata": {"name": kid}, "spec": spec})
    group = {"metadata": {"name": kid}, "spec": {"queue": kid, "minMember": 1}}
    await make(either, PODGROUPS_VOLCANO, group, "default")

    async def states() -> list[object]:
        found = [await read(either, QUEUES_VOLCANO, name) for name in (top, kid)]
        mark = "volcano.sh/closed-by-parent"
        return [
            (queue["status"]["state"], queue["metadata"].get("annotations", {}).get(mark))
            for queue in found
            if queue is not None and "status" in queue
        ]

    async with running(either, maker()) as runtime:
        await becomes(states, [("Open", None), ("Open", None)])
        await command(either, "CloseQueue", parent)
        await becomes(states, [("Closed", None), ("Closing", "true")])
        await either.delete(PODGROUPS_VOLCANO, kid, namespace="default")
        await becomes(states, [("Closed", None), ("Closed", "true")])
        await command(either, "OpenQueue", parent)
        await becomes(states, [("Open", "false"), ("Open", "false")])
        await runtime.events.flush()

    event = ("Normal", "CloseQueue", "Close queue succeed")
    assert await events(either, "default", top) == [event]
    assert await events(either, "default", kid) == [event]
    left = await either.list(COMMANDS, dict, namespace="default")
    assert not left.items


async def test_what_the_planner_says_is_held_is_in_the_status_until_it_is_given_back(
    either: KubeClient, names: tuple[str, str]
) -> None:
    top, _ = names
    await make(either, QUEUES_VOLCANO, {"metadata": {"name": top}, "spec": {"weight": 1}})

    async def allocated() -> object:
        queue = await read(either, QUEUES_VOLCANO, top)
        return queue and queue.get("status", {}).get("allocated")

    answers: tuple[Allocated | None, ...] = ({top: {"cpu": "2", "pods": "2"}}, {})
    async with running(either, maker(*answers)):
        await becomes(allocated, {"cpu": "2", "memory": "0", "pods": "2"})
        await becomes(allocated, {"cpu": "0", "memory": "0"})


async def test_what_pods_of_a_deleted_group_held_is_given_back_whenever_they_have_ended(
    either: KubeClient, names: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They end up to their grace period later, and no group changes then."""
    monkeypatch.setattr(queue_controller, "_PAUSES_S", (0.3, 0.3))
    top, _ = names
    await make(either, QUEUES_VOLCANO, {"metadata": {"name": top}, "spec": {"weight": 1}})

    async def allocated() -> object:
        queue = await read(either, QUEUES_VOLCANO, top)
        return queue and queue.get("status", {}).get("allocated", {})

    ending: Allocated = {top: {"pods": "2"}}
    async with running(either, maker(*(ending,) * 5, {})):
        await becomes(allocated, {"cpu": "0", "memory": "0", "pods": "2"})
        await becomes(allocated, {"cpu": "0", "memory": "0"})


async def test_what_is_held_is_asked_until_a_planner_answers_although_no_group_changes(
    either: KubeClient, names: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_controller, "_PAUSES_S", (0.1,))
    monkeypatch.setattr(queue_controller, "_RETRY_S", 0.1)
    top, _ = names
    await make(either, QUEUES_VOLCANO, {"metadata": {"name": top}, "spec": {"weight": 1}})

    async def allocated() -> object:
        queue = await read(either, QUEUES_VOLCANO, top)
        return queue and queue.get("status", {}).get("allocated", {}).get("pods")

    answers: tuple[Allocated | None, ...] = (*(None,) * 5, {top: {"pods": "2"}})
    async with running(either, maker(*answers)):
        await becomes(allocated, "2")


async def test_a_queue_under_an_old_volcanos_crd_can_be_opened(tmp_path: Path) -> None:
    """Its schema required status.allocated, which made stored queues unwritable (9.15)."""
    crds = manifests()
    (queues,) = (one for one in crds if one["metadata"]["name"] == "queues.scheduling.volcano.sh")
    schema = queues["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["status"]["required"] = ["allocated"]
    async with FaultyCluster(Settings(nodes=0, crds=tuple(crds))) as cluster:
        path = cluster.kubeconfig(tmp_path / "kubeconfig")
        async with KubeClient(await load(str(path))) as client:
            await make(client, QUEUES_VOLCANO, {"metadata": {"name": "old"}, "spec": {}})

            async def status() -> object:
                queue = await read(client, QUEUES_VOLCANO, "old")
                return queue and queue.get("status")

            opened = {"state": "Open", "allocated": {"cpu": "0", "memory": "0"}}
            async with running(client, maker()):
                await becomes(status, opened)


async def test_a_queue_that_cannot_be_written_keeps_no_other_one_closed(tmp_path: Path) -> None:
    """Its Command stays, that of the other queue goes."""
    async with FaultyCluster(Settings(nodes=0, crds=tuple(manifests()))) as cluster:
        path = cluster.kubeconfig(tmp_path / "kubeconfig")
        async with KubeClient(await load(str(path))) as client:
            for name in ("bad", "good"):
                queue = {"metadata": {"name": name}, "spec": {}, "status": {"state": "Open"}}
                made = await make(client, QUEUES_VOLCANO, queue)
                await command(client, "CloseQueue", made)
            cluster.faults.rules = [
                FaultRule(verb="patch", resource="queues", name="bad", status=403)
            ]

            async def closed() -> object:
                queue = await read(client, QUEUES_VOLCANO, "good")
                left = await names_of(client, COMMANDS, "default")
                return (queue or {})["status"]["state"], [name[:3] for name in left]

            async with running(client, maker(namespaces=("default",))):
                await becomes(closed, ("Closed", ["bad"]))


async def test_a_command_on_a_queue_that_cannot_be_written_is_given_up_with_an_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_controller, "_ATTEMPTS_MAX", 2)
    async with FaultyCluster(Settings(nodes=0, crds=tuple(manifests()))) as cluster:
        path = cluster.kubeconfig(tmp_path / "kubeconfig")
        async with KubeClient(await load(str(path))) as client:
            queue = {"metadata": {"name": "bad"}, "spec": {}, "status": {"state": "Open"}}
            await command(client, "CloseQueue", await make(client, QUEUES_VOLCANO, queue))
            (name,) = await names_of(client, COMMANDS, "default")
            cluster.faults.rules = [
                FaultRule(verb="patch", resource="queues", name="bad", status=403)
            ]

            async def reported() -> object:
                found = await events(client, "default", name)
                return found, await names_of(client, COMMANDS, "default")

            message = "target.name: in 2 attempts, the queue was not written"
            async with running(client, maker(namespaces=("default",))):
                await becomes(reported, ([("Warning", "CommandRefused", message)], []))


async def test_a_command_that_is_older_than_the_policy_is_refused_and_reported(
    tmp_path: Path,
) -> None:
    """Nothing reviewed it: it may be of a user without the right to update the queue."""
    async with FaultyCluster(Settings(nodes=0, crds=tuple(manifests()))) as cluster:
        path = cluster.kubeconfig(tmp_path / "kubeconfig")
        async with KubeClient(await load(str(path))) as client:
            queue = {"metadata": {"name": "team"}, "spec": {}, "status": {"state": "Open"}}
            await command(client, "CloseQueue", await make(client, QUEUES_VOLCANO, queue))
            (name,) = await names_of(client, COMMANDS, "default")

            async def reported() -> object:
                found = await events(client, "default", name)
                return [event[:2] for event in found], await names_of(client, COMMANDS, "default")

            async with running(client, maker(settle_ms=60_000)):
                await becomes(reported, ([("Warning", "CommandRefused")], []))
            stored = await read(client, QUEUES_VOLCANO, "team")
            assert stored is not None
            assert stored["status"]["state"] == "Open"
            assert await names_of(client, ADMISSION_POLICIES, "") == [POLICY]


async def test_a_policy_with_another_content_is_replaced_and_counts_from_then_on(
    tmp_path: Path,
) -> None:
    async with FaultyCluster(Settings(nodes=0, crds=tuple(manifests()))) as cluster:
        path = cluster.kubeconfig(tmp_path / "kubeconfig")
        async with KubeClient(await load(str(path))) as client:
            first = QueueCommandPolicy(client, POLICY)
            assert await first.reviewed_from_ms() == await first.reviewed_from_ms()
            before = await read(client, ADMISSION_POLICY_BINDINGS, POLICY)
            await QueueCommandPolicy(client, POLICY, namespaces=("ops",)).reviewed_from_ms()
            after = await read(client, ADMISSION_POLICY_BINDINGS, POLICY)
            assert before is not None
            assert after is not None
            assert before["metadata"]["uid"] != after["metadata"]["uid"]


async def test_an_api_server_that_refuses_the_policy_reviews_nothing(tmp_path: Path) -> None:
    async with FaultyCluster(Settings(nodes=0)) as cluster:
        cluster.faults.rules = [
            FaultRule(verb="create", resource="validatingadmissionpolicies", status=403)
        ]
        path = cluster.kubeconfig(tmp_path / "kubeconfig")
        async with KubeClient(await load(str(path))) as client:
            assert await QueueCommandPolicy(client, POLICY).reviewed_from_ms() is None
