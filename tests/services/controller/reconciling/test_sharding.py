"""Two replicas divide keys by their Leases, and one takes over when the other goes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from services.controller.other_controllers import OtherControllers
from services.controller.reconciling.sharding import Shards
from services.controller.reconciling.work_queue import WorkQueue
from shared.kube.client import KubeClient
from shared.kube.credentials import load
from shared.kube.errors import ConnectionLost
from shared.kube.leases import VOLCANO_CONTROLLERS, Lease
from shared.kube.objects import KubeStruct, ObjectMeta
from shared.kube.resources import LEASES, PODS
from shared.kube.transport import Reply
from tests.services.controller.leases import a_lease
from tests.support.waiting import eventually
from tutti.cluster.embedded import EmbeddedCluster

KEYS = [f"default/job-{number}" for number in range(20)]


@asynccontextmanager
async def replica(
    client: KubeClient,
    name: str,
    woken: list[str],
    *,
    take_over: bool = False,
    expire_s: float = 1.0,
) -> AsyncIterator[Shards]:
    """One replica, until the end of the block; it leaves without a word."""

    async def work(key: str) -> float | None:
        woken.append(key)
        return None

    shards = Shards(
        client,
        name,
        ["job"],
        namespace="kube-system",
        others=OtherControllers(
            client, [VOLCANO_CONTROLLERS], take_over=take_over, check_every_s=0.2
        ),
        renew_s=0.05,
        expire_s=expire_s,
    )
    queue = WorkQueue(name, work)
    shards.join(queue, lambda: KEYS)
    tasks = [
        asyncio.create_task(shards.run(), name="shards"),
        asyncio.create_task(queue.run(), name="queue"),
    ]
    try:
        yield shards
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def test_replicas_divide_the_keys_and_the_one_that_is_left_takes_them_all(
    cluster: EmbeddedCluster, client: KubeClient
) -> None:
    woken: list[str] = []
    async with replica(client, "a", woken) as first:
        await eventually(lambda: all(map(first.owns, KEYS)))
        await eventually(lambda: set(woken) == set(KEYS))
        async with replica(client, "b", []) as second:
            await eventually(
                lambda: (
                    all(first.owns(key) != second.owns(key) for key in KEYS)
                    and 0 < sum(map(second.owns, KEYS)) < len(KEYS)
                )
            )
            woken.clear()
        # It was killed: its keys are taken over once it has been silent for long enough.
        await eventually(lambda: all(map(first.owns, KEYS)))
        await eventually(lambda: len(woken) >= len(KEYS))
        async with replica(client, "c", []) as third:
            await eventually(lambda: any(map(third.owns, KEYS)))
            await third.leave()
            assert not any(map(third.owns, KEYS))
            await eventually(lambda: all(map(first.owns, KEYS)))


async def test_the_lease_of_a_replica_that_was_killed_goes_in_the_end(
    cluster: EmbeddedCluster, client: KubeClient
) -> None:
    async def leases() -> list[str]:
        page = await client.list(LEASES, Lease, namespace="kube-system")
        return [one.metadata.name for one in page.items if isinstance(one, Lease)]

    async with replica(client, "a", [], expire_s=0.2) as first:
        async with replica(client, "b", [], expire_s=0.2):
            await eventually(lambda: not all(map(first.owns, KEYS)))

        async def only_ours() -> bool:
            return [name.rpartition("-")[2] for name in await leases()] == ["a"]

        assert not await only_ours()
        await eventually(only_ours)


class _Stumbling(KubeClient):
    """A client whose second renewal of a Lease gets lost."""

    patches = 0

    @override
    async def patch(self, *given: Any, **named: Any) -> Reply:
        self.patches += 1
        if self.patches == 2:
            raise ConnectionLost("the second one")
        return await super().patch(*given, **named)


async def test_keys_that_became_ours_are_woken_although_the_round_fails_in_its_middle(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    credentials = await load(str(cluster.kubeconfig(tmp_path / "kubeconfig")))
    woken: list[str] = []
    async with (
        _Stumbling(credentials) as stumbles,
        replica(stumbles, "a", woken, take_over=True),
    ):
        await eventually(lambda: set(woken) == set(KEYS))
        assert stumbles.patches > 2


async def test_nothing_is_owned_while_volcanos_controllers_live(
    cluster: EmbeddedCluster, client: KubeClient
) -> None:
    await client.create(LEASES, a_lease(VOLCANO_CONTROLLERS), namespace="kube-public")
    woken: list[str] = []
    async with replica(client, "a", woken) as waits:
        # It has said that it lives, and nevertheless acts on nothing.
        await eventually(lambda: read_lease(client))
        assert not any(map(waits.owns, KEYS))
        async with replica(client, "b", [], take_over=True) as bold:
            await eventually(lambda: any(map(bold.owns, KEYS)))
        released = a_lease(VOLCANO_CONTROLLERS, holder="")
        await client.patch(LEASES, VOLCANO_CONTROLLERS, released, namespace="kube-public")
        await eventually(lambda: all(map(waits.owns, KEYS)))
        await eventually(lambda: set(woken) == set(KEYS))


async def read_lease(client: KubeClient) -> bool:
    """Whether a replica's own Lease is there, with a view."""
    reply = await client.request("GET", LEASES.path("kube-system"))
    return b'"tutti.dev/view":"a"' in reply.body.replace(b": ", b":")


@pytest.mark.usefixtures("cluster")
async def test_a_replicas_lease_goes_with_its_pod(client: KubeClient) -> None:
    """What is uninstalled has no right to delete its Leases any more: garbage collection does."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "pod-a", "namespace": "kube-system"},
        "spec": {"containers": [{"name": "main", "image": "none"}]},
    }
    await client.create(PODS, pod, namespace="kube-system")
    made = await client.get(PODS, "pod-a", _Named, namespace="kube-system")
    shards = Shards(
        client,
        "pod-a",
        ["job"],
        namespace="kube-system",
        others=OtherControllers(client, []),
        pod_uid=made.metadata.uid,
        renew_s=0.05,
    )
    running = asyncio.create_task(shards.run(), name="shards")

    async def owners() -> list[str]:
        page = await client.list(LEASES, Lease, namespace="kube-system")
        return [
            owner.uid
            for one in page.items
            if isinstance(one, Lease)
            for owner in one.metadata.owner_references
        ]

    try:
        assert await eventually(owners) == [made.metadata.uid]
    finally:
        running.cancel()
        await asyncio.wait([running])
    await client.delete(PODS, "pod-a", namespace="kube-system", uid=made.metadata.uid)

    async def gone() -> bool:
        return not await owners()

    await eventually(gone, timeout_s=30.0)


class _Named(KubeStruct, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
