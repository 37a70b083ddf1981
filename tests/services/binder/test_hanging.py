"""A binder that hangs with a message in its hands and comes back after another has done its work.

Real processes, stopped by SIGSTOP for longer than the ack wait: neither may the one that wakes up
do anything to the pods, nor may anything of it count.
"""

import signal
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from shared.bus.questions import ask_all
from shared.contracts import codec, subjects
from shared.contracts.decisions import EvictionDecision, GangDecision
from shared.contracts.outcomes import Outcome
from shared.contracts.questions import ServiceStatus, StatusRequest
from tests.controlplane.client import Object, RawClient
from tests.controlplane.nodes import bind_pod, create_namespace, create_pods, pod_manifest
from tests.services.binder.harness import Desk, a_desk
from tests.services.binder.test_on_kubernetes import decision_for
from tests.services.binder.test_releases import release_of
from tests.support.faulty_cluster import FaultyCluster
from tests.support.service_process import a_service
from tests.support.waiting import eventually
from tutti.cluster.embedded import Settings
from tutti.nats_server import NatsServer

pytestmark = pytest.mark.integration

NAMESPACE = "hanging"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"


class Site:
    """An embedded API server, a NATS, and what the tests do with them."""

    def __init__(
        self, cluster: FaultyCluster, api: RawClient, desk: Desk, url: str, folder: Path
    ) -> None:
        self._cluster = cluster
        self.api = api
        self.desk = desk
        self._url = url
        self._folder = folder

    def slow(self, verb: str, subresource: str) -> None:
        """Let every such request wait for a second before anything is done."""
        rule = {"verb": verb, "resource": "pods", "subresource": subresource, "latencyMs": 1_000}
        self._cluster.faults.apply(msgspec.json.encode({"clear": True, "rules": [rule]}))

    @property
    def slowed(self) -> int:
        """How many requests have come that wait."""
        return sum(self._cluster.faults.done)

    def well(self) -> None:
        """Be quick again."""
        self._cluster.faults.apply(msgspec.json.encode({"clear": True}))

    def binder(self, ordinal: int) -> AbstractAsyncContextManager[Process]:
        """Run a binder process that sends one request after the other."""
        return a_service(
            "binder",
            self.desk.bus,
            self._url,
            self._folder / f"binder-{ordinal}.log",
            f"--kubeconfig={self._folder / 'kubeconfig'}",
            f"--ordinal={ordinal}",
            "--posts-max=1",
        )

    async def figure(self, ordinal: int, name: str) -> float:
        """A metric of a binder, 0 while it does not answer."""
        answers: list[ServiceStatus] = await ask_all(
            self.desk.bus,
            subjects.ASK_STATUS,
            StatusRequest(),
            codec.decode_status,
            wait_s=0.2,
        )
        figures = [one.figures for one in answers if one.instance == f"binder-{ordinal}"]
        return figures[0].get(name, 0.0) if figures else 0.0

    async def pods(self) -> list[Object]:
        return list((await self.api.get(PODS))["items"])

    async def answered(self, seq: int) -> Outcome:
        """Wait for the outcome of a decision; fails after longer than a redelivery takes."""
        outcome = await eventually(lambda: self.desk.outcome(seq))
        assert outcome is not None
        return outcome


@pytest.fixture
async def site(nats_server: NatsServer, tmp_path: Path) -> AsyncIterator[Site]:
    async with FaultyCluster(Settings(nodes=0)) as cluster:
        kubeconfig = cluster.kubeconfig(tmp_path / "kubeconfig")
        async with RawClient(kubeconfig) as api, a_desk(nats_server.url) as desk:
            await create_namespace(api, NAMESPACE)
            yield Site(cluster, api, desk, nats_server.url, tmp_path)


@asynccontextmanager
async def hanging(site: Site, decision: GangDecision | EvictionDecision) -> AsyncIterator[Outcome]:
    """Have one binder hang in the middle of a decision, and a second one carry it out; at the end
    the first wakes up, and looks at what it holds.
    """
    async with site.binder(0) as sleeper:
        seq = await site.desk.decide(decision)
        await eventually(lambda: site.slowed >= 1, because="a request is in flight")
        sleeper.send_signal(signal.SIGSTOP)
        try:
            site.well()
            async with site.binder(1):
                outcome = await site.answered(seq)
                yield outcome
        finally:
            sleeper.send_signal(signal.SIGCONT)

        async def looked() -> bool:
            return await site.figure(0, "abandoned_total") == 1.0

        await eventually(looked, because="the sleeper gives up what it held")
        assert await site.desk.outcome(seq) == outcome, "the first outcome stands"


async def test_what_it_was_binding_is_bound_once_and_as_the_other_said(site: Site) -> None:
    pods = await create_pods(
        site.api, NAMESPACE, [pod_manifest(f"w-{index}") for index in range(4)]
    )
    site.slow("create", "binding")
    async with hanging(site, decision_for(pods)) as outcome:
        assert (outcome.binder, outcome.delivered, outcome.bound) == ("binder-1", 2, 4)
        before = await site.pods()
        assert [pod["spec"]["nodeName"] for pod in before] == ["node-0"] * 4
    assert await site.pods() == before


async def test_pods_made_again_while_it_slept_are_not_deleted_by_what_it_still_holds(
    site: Site,
) -> None:
    manifests = [pod_manifest(f"w-{index}") for index in range(4)]
    pods = await create_pods(site.api, NAMESPACE, manifests)
    for pod in pods:
        await bind_pod(site.api, pod, "node-0")
    site.slow("delete", "")
    async with hanging(site, release_of(pods)) as outcome:
        assert (outcome.binder, outcome.delivered, outcome.evicted) == ("binder-1", 2, 4)
        for pod in pods:
            await site.api.delete(f"{PODS}/{pod['metadata']['name']}", {"gracePeriodSeconds": 0})
        await create_pods(site.api, NAMESPACE, manifests)
        before = await site.pods()
    assert await site.pods() == before
    assert not any("deletionTimestamp" in pod["metadata"] for pod in before)
