"""A kind of several versions is read in the first one that the API server serves."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from shared.kube.client import KubeClient
from shared.kube.credentials import Credentials
from shared.kube.errors import MalformedAnswer
from shared.kube.kubeconfig import Access
from shared.kube.listwatch import Absent, Batch, Listed, ListWatch, Pace
from shared.kube.objects import Pod
from shared.kube.resources import PODS, Resource
from shared.kube.served_versions import LASTS_S, ServedVersions, served_variant
from tests.support.manual_clock import ManualClock
from tests.support.scripted_apiserver import pod
from tests.support.waiting import eventually

GROUPS = Resource("example.com", "v2", "groups", "Group", further_versions=("v1", "v1alpha1"))


class VersionedServer:
    """Serves one object in the versions that a test names."""

    def __init__(self, *served: str) -> None:
        self.served = set(served)
        #: Versions without the kind.
        self.empty: set[str] = set()
        self.resources: object = [{"name": "groups"}, {"name": "groups/status"}]
        self.paths: list[str] = []
        self.url = ""
        self._ending = asyncio.Event()

    def end_watches(self) -> None:
        """As an API server that stops."""
        self._ending.set()
        self._ending = asyncio.Event()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.paths.append(request.path)
        if request.path == f"/apis/{GROUPS.group}":
            versions = [{"version": one} for one in sorted(self.served | self.empty)]
            return web.json_response({"kind": "APIGroup", "versions": versions})
        _, _, group, version, *rest = request.path.split("/")
        if group != GROUPS.group or version not in self.served | self.empty:
            return web.json_response({"code": 404, "reason": "NotFound"}, status=404)
        if not rest:
            named = [] if version in self.empty else self.resources
            return web.json_response({"kind": "APIResourceList", "resources": named})
        if "watch" not in request.query:
            items = [pod(f"in-{version}")]
            return web.json_response({"metadata": {"resourceVersion": "7"}, "items": items})
        response = web.StreamResponse()
        await response.prepare(request)
        await self._ending.wait()
        return response


@asynccontextmanager
async def serving(*served: str) -> AsyncGenerator[tuple[VersionedServer, KubeClient]]:
    server = VersionedServer(*served)
    runner = web.ServerRunner(web.Server(server.handle), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        async with KubeClient(Credentials(Access(origin="test", server=server.url))) as client:
            yield server, client
    finally:
        server.end_watches()
        await runner.cleanup()


@asynccontextmanager
async def following(client: KubeClient) -> AsyncGenerator[tuple[ListWatch[Pod], list[Batch[Pod]]]]:
    """A list-watch that probes fast, and its batches."""
    batches: list[Batch[Pod]] = []

    async def sink(batch: Batch[Pod]) -> None:
        batches.append(batch)

    pace = Pace(probe_s=0.05, backoff_s_base=0.01, watch_s_short=0.0)
    followed = ListWatch(client, GROUPS, Pod, pace=pace)
    task = asyncio.create_task(followed.run(sink), name="list-watch")
    try:
        yield followed, batches
    finally:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


def shown(batches: list[Batch[Pod]]) -> list[str]:
    """What the sink has seen: names of listed objects, or that the kind is absent."""
    return [
        "absent"
        if isinstance(batch, Absent)
        else " ".join(one.metadata.name for one in batch.objects)
        for batch in batches
        if isinstance(batch, Listed | Absent)
    ]


def test_variants_are_the_versions_in_order() -> None:
    assert [one.api_version for one in GROUPS.variants] == [
        "example.com/v2",
        "example.com/v1",
        "example.com/v1alpha1",
    ]
    assert GROUPS.variants[0] == Resource("example.com", "v2", "groups", "Group")
    assert PODS.variants == (PODS,)


async def test_the_first_version_that_has_the_kind_is_used() -> None:
    async with serving("v1", "v1alpha1") as (server, client):
        server.empty.add("v2")
        assert await served_variant(client, GROUPS) == GROUPS.at("v1")
        server.served.clear()
        assert await served_variant(client, GROUPS) is None


async def test_an_answer_that_is_no_list_is_an_error() -> None:
    async with serving("v1") as (server, client):
        server.served, server.resources = {"v2"}, 1
        with pytest.raises(MalformedAnswer, match=r"/apis/example\.com/v2"):
            await served_variant(client, GROUPS)


async def test_only_the_group_is_read_where_no_version_of_the_kind_is_served() -> None:
    async with serving() as (server, client):
        assert await served_variant(client, GROUPS) is None
        assert server.paths == ["/apis/example.com"]


async def test_an_answer_is_used_for_a_few_seconds() -> None:
    clock = ManualClock()
    async with serving("v1") as (server, client):
        versions = ServedVersions(client, monotonic_s=clock)
        assert await versions.of(PODS) is PODS
        assert not server.paths
        assert await versions.of(GROUPS) == GROUPS.at("v1")
        server.served = {"v2"}
        assert await versions.of(GROUPS) == GROUPS.at("v1")
        assert await versions.of(GROUPS, again=True) == GROUPS.at("v2")
        server.served.clear()
        clock.now_s += LASTS_S
        assert await versions.of(GROUPS) == GROUPS.at("v2"), "the preferred one, if none is served"


async def test_a_preferred_version_that_appears_is_followed() -> None:
    async with serving("v1alpha1") as (server, client), following(client) as (followed, batches):
        await eventually(lambda: followed.state == "watching")
        server.served.add("v1")
        await eventually(lambda: shown(batches) == ["in-v1alpha1", "in-v1"])
        await eventually(lambda: followed.state == "watching")
        server.served.add("v2")
        await eventually(lambda: shown(batches)[2:] == ["in-v2"])


async def test_a_version_that_disappears_is_left_for_another_without_a_gap() -> None:
    async with serving("v2", "v1") as (server, client), following(client) as (followed, batches):
        await eventually(lambda: followed.state == "watching")
        server.served = {"v1"}
        server.end_watches()
        await eventually(lambda: shown(batches) == ["in-v2", "in-v1"])
        server.served.clear()
        server.end_watches()
        await eventually(lambda: shown(batches)[2:] == ["absent"])
        server.served.add("v1alpha1")
        await eventually(lambda: shown(batches)[3:] == ["in-v1alpha1"])
