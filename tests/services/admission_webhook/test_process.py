"""The whole webhook on both API servers: refusals, defaults and warnings as users see them."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography import x509

from shared.bus.connection import Bus
from shared.bus.questions import serve
from shared.bus.setup import ensure_streams
from shared.contracts import codec, subjects
from shared.contracts.annotations import GROUP_NAME
from shared.contracts.questions import FitAnswer, FitRequest
from shared.kube.client import KubeClient
from shared.kube.errors import ApiError
from shared.kube.resources import (
    DEPLOYMENTS,
    JOBS_VOLCANO,
    MUTATING_WEBHOOKS,
    PODGROUPS_INCUBATOR,
    PODGROUPS_VOLCANO,
    PODS,
    QUEUES_VOLCANO,
    VALIDATING_WEBHOOKS,
    Resource,
)
from tests.services.admission_webhook.process import WebhookProcess, a_webhook
from tests.services.admission_webhook.reviews import (
    Object,
    a_job,
    a_pod,
    a_pod_group,
    a_queue,
    a_task,
)
from tests.services.admission_webhook.serving import HOST
from tests.services.admission_webhook.stand_in_watcher import Watcher, a_watcher
from tests.services.watcher.running import running_watcher
from tests.support.waiting import eventually
from tutti.nats_server import NatsServer

pytestmark = [pytest.mark.integration, pytest.mark.slow]


@pytest.fixture
async def bus(nats_server: NatsServer) -> AsyncIterator[Bus]:
    """The bus of the suite, its streams made."""
    bus = await Bus.connect(nats_server.url, name="test")
    await ensure_streams(bus)
    yield bus
    await bus.close()


@pytest.fixture
async def queues(nats_server: NatsServer) -> AsyncIterator[Watcher]:
    """A cluster that is known to have no queues: else readiness waits for that."""
    async with a_watcher(nats_server.url) as watcher:
        yield watcher


@asynccontextmanager
async def the_suite(
    folder: Path, nats_server: NatsServer, bus: Bus, kubeconfig: Path
) -> AsyncIterator[WebhookProcess]:
    """A watcher and a webhook that is registered and knows the queues."""
    async with (
        running_watcher(folder, nats_server.url, kubeconfig, "watcher-0"),
        a_webhook(
            folder, bus, nats_server.url, f"--kubeconfig={kubeconfig}", f"--cert-dir={folder}"
        ) as webhook,
    ):
        status = await webhook.status()
        assert status.figures["webhook_registered"] == 1, webhook.log
        assert status.figures["queues_known"] == 1, webhook.log
        yield webhook


async def tried(client: KubeClient, resource: Resource, candidate: Object) -> tuple[str, str]:
    """Try to create; the body (or the refusal's message) and the warnings."""
    namespace = "default" if resource.namespaced else ""
    try:
        reply = await client.create(resource, candidate, namespace=namespace, dry_run=True)
    except ApiError as refusal:
        return refusal.message, ""
    return reply.body.decode(), reply.headers.get("Warning", "")


async def is_asked(client: KubeClient) -> None:
    """Wait until the API server has noticed the configurations."""

    async def refused() -> bool:
        bad = a_pod_group(PODGROUPS_INCUBATOR, minMember=-1)
        defaulted, _ = await tried(client, PODGROUPS_INCUBATOR, a_pod_group(PODGROUPS_INCUBATOR))
        refusal, _ = await tried(client, PODGROUPS_INCUBATOR, bad)
        return "denied the request" in refusal and '"queue":"default"' in defaulted

    await eventually(refused, timeout_s=20)


async def test_what_users_see_of_it(
    client: KubeClient, kubeconfig: Path, nats_server: NatsServer, bus: Bus, tmp_path: Path
) -> None:
    async with the_suite(tmp_path, nats_server, bus, kubeconfig) as webhook:
        await is_asked(client)

        async def answer(question: FitRequest) -> FitAnswer:
            return FitAnswer(fits=False, ever=len(question.pods) < 9, sentence="9 GPUs on no node")

        await serve(bus, subjects.ASK_FIT, codec.decode_fit_request, answer)

        bad = a_job(a_task("a", 1, minAvailable=2), a_task("a", 1), minAvailable=5, queue="nowhere")
        refusal, _ = await tried(client, JOBS_VOLCANO, bad)
        for fragment in (
            'admission webhook "validate-job.tutti.dev" denied the request',
            "spec.tasks[0].minAvailable",
            "'minAvailable' is greater than 'replicas' in task",
            "duplicated task name a",
            "should not be greater than total replicas in tasks",
            "unable to find job queue",
        ):
            assert fragment in refusal

        stored, _ = await tried(client, JOBS_VOLCANO, a_job({**a_task("", 3), "name": ""}))
        for fragment in ('"minAvailable":3', '"schedulerName":"volcano"', '"name":"default0"'):
            assert fragment in stored

        queue = a_queue("trunk", capability={"cpu": 4})
        await client.create(QUEUES_VOLCANO, queue)
        # At once: the webhook waits for what it has not seen yet.
        stored, _ = await tried(client, JOBS_VOLCANO, a_job(a_task(), queue="trunk"))
        assert '"queue":"trunk"' in stored
        child = a_queue("leaf", parent="trunk", capability={"cpu": 5})
        refusal, _ = await tried(client, QUEUES_VOLCANO, child)
        assert "capability[cpu]=5 exceeds its ancestor's capability=4" in refusal

        _, warning = await tried(client, JOBS_VOLCANO, a_job(a_task(replicas=9)))
        assert "this gang can never run here: 9 GPUs on no node" in warning
        await client.delete(QUEUES_VOLCANO, "trunk")

        group = {"scheduling.k8s.io/group-name": "Not Valid"}
        refusal, _ = await tried(client, PODS, a_pod("tutti", group))
        assert "metadata.annotations[scheduling.k8s.io/group-name]" in refusal
        foreign, _ = await tried(client, PODS, a_pod("default-scheduler", group))
        assert "Not Valid" in foreign

        assert await webhook.terminate() == 0, webhook.log
        for resource in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS):
            page = await client.list(resource, dict[str, Any])
            assert page.items == []


async def test_a_pod_whose_group_does_not_exist_is_warned_of_and_no_other(
    client: KubeClient,
    kubeconfig: Path,
    nats_server: NatsServer,
    bus: Bus,
    tmp_path: Path,
    queues: Watcher,
) -> None:
    """No planner runs: the webhook reads the group from the API server."""

    async def warning_for(group: str) -> str:
        pod = a_pod("tutti", {GROUP_NAME: group})
        reply = await client.create(PODS, pod, namespace="default")
        await client.delete(PODS, pod["metadata"]["name"], namespace="default", grace_s=0)
        return reply.headers.get("Warning", "")

    async def warning_for_a_misspelt_group() -> str:
        return await warning_for("groub-7")

    async with a_webhook(tmp_path, bus, nats_server.url, f"--kubeconfig={kubeconfig}") as webhook:

        async def look_ups() -> dict[str, float]:
            figures = (await webhook.status()).figures
            kept = "group_lookups_total"
            return {one: value for one, value in figures.items() if one.startswith(kept)}

        await webhook.status()
        await is_asked(client)
        for index in range(50):
            group = a_pod_group(minMember=1) | {"metadata": {"name": f"group-{index}"}}
            await client.create(PODGROUPS_VOLCANO, group, namespace="default")
            assert await warning_for(f"group-{index}") == ""
        before = await look_ups()
        assert sum(before.values()) == 50
        assert before['group_lookups_total{ending="found"}'] > 0

        # On a busy machine the API server may take longer than a review waits.
        warning = await eventually(warning_for_a_misspelt_group, timeout_s=20)
        expected = "PodGroup default/groub-7 does not exist"
        assert expected in warning

        before = await look_ups()
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u"}
        pod = a_pod("tutti", {GROUP_NAME: "groub-7"})
        pod["metadata"]["ownerReferences"] = [owner | {"controller": True}]
        _, warning = await tried(client, PODS, pod)
        assert warning == ""
        assert await look_ups() == before, "a controller's pod costs no look-up"
    for index in range(50):
        await client.delete(PODGROUPS_VOLCANO, f"group-{index}", namespace="default")


@pytest.mark.parametrize("kubeconfig", ["real"], indirect=True)
async def test_a_deployment_whose_pods_name_a_missing_group_is_warned_of(
    client: KubeClient,
    kubeconfig: Path,
    nats_server: NatsServer,
    bus: Bus,
    tmp_path: Path,
    queues: Watcher,
) -> None:
    labels = {"app": "trial"}
    pod = a_pod("tutti", {GROUP_NAME: "traim"})
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    template = {"metadata": {**pod["metadata"], "labels": labels}, "spec": pod["spec"]}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}

    async def warned_of(**metadata: object) -> list[str]:
        deployment = {"metadata": {"name": "trial", **metadata}, "spec": spec}
        reply = await client.create(DEPLOYMENTS, deployment, namespace="default")
        await client.delete(DEPLOYMENTS, "trial", namespace="default")
        return [text for name, text in reply.headers.items() if name == "Warning"]

    async with a_webhook(tmp_path, bus, nats_server.url, f"--kubeconfig={kubeconfig}") as webhook:
        await webhook.status()
        await is_asked(client)
        # On a busy machine the API server may take longer than a review waits.
        (warning,) = await eventually(warned_of, timeout_s=20)
        assert "PodGroup default/traim does not exist; its pods wait until it is" in warning
        assert await warned_of(ownerReferences=[owner]) == []


async def test_a_killed_webhook_blocks_no_request_and_the_next_one_cleans_up(
    client: KubeClient,
    kubeconfig: Path,
    nats_server: NatsServer,
    bus: Bus,
    tmp_path: Path,
    queues: Watcher,
) -> None:
    flags = (f"--kubeconfig={kubeconfig}",)
    async with a_webhook(tmp_path, bus, nats_server.url, *flags) as webhook:
        await webhook.status()
        await is_asked(client)
        await webhook.kill()
    stored, _ = await tried(client, PODGROUPS_INCUBATOR, a_pod_group(PODGROUPS_INCUBATOR))
    assert '"queue"' not in stored, "admission goes on without it"
    async with a_webhook(tmp_path, bus, nats_server.url, *flags) as webhook:
        await webhook.status()
        await is_asked(client)
        assert await webhook.terminate() == 0
    page = await client.list(VALIDATING_WEBHOOKS, dict[str, Any])
    assert page.items == []


async def test_a_burst_of_pods_is_answered_without_a_single_failure(
    client: KubeClient,
    kubeconfig: Path,
    nats_server: NatsServer,
    bus: Bus,
    tmp_path: Path,
    queues: Watcher,
) -> None:
    flags = (f"--kubeconfig={kubeconfig}",)
    async with a_webhook(tmp_path, bus, nats_server.url, *flags) as webhook:
        await webhook.status()
        await is_asked(client)
        pods = [a_pod("tutti") for _ in range(200)]
        for index, pod in enumerate(pods):
            pod["metadata"]["name"] = f"burst-{index}"
        before = (await webhook.status()).figures['reviews_total{result="allowed"}']
        limit = asyncio.Semaphore(32)

        async def create(pod: Object) -> None:
            async with limit:
                await tried(client, PODS, pod)

        await asyncio.gather(*(create(pod) for pod in pods))
        after = (await webhook.status()).figures['reviews_total{result="allowed"}']
        assert after - before == len(pods)


async def test_files_that_are_given_are_served_and_reloaded(
    nats_server: NatsServer, bus: Bus, tmp_path: Path, queues: Watcher
) -> None:
    authority = trustme.CA()

    def rotate() -> int:
        leaf = authority.issue_cert(HOST)
        leaf.private_key_pem.write_to_path(tmp_path / "key.pem")
        leaf.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
        authority.cert_pem.write_to_path(tmp_path / "ca.pem")
        return serial(leaf.cert_chain_pems[0].bytes())

    async def shown(port: int) -> int:
        trust = ssl.create_default_context()
        authority.configure_trust(trust)
        _, writer = await asyncio.open_connection(HOST, port, ssl=trust)
        found = int(writer.get_extra_info("peercert")["serialNumber"], 16)
        writer.close()
        return found

    first = rotate()
    files = {"tls-cert": "cert.pem", "tls-key": "key.pem", "ca": "ca.pem"}
    flags = [f"--{name}-file={tmp_path / file}" for name, file in files.items()]
    async with a_webhook(tmp_path, bus, nats_server.url, "--no-register", *flags) as webhook:
        await webhook.status()
        port = int(webhook.log.partition(f"https://{HOST}:")[2].partition('"')[0])
        assert await shown(port) == first
        second = rotate()

        async def rotated() -> bool:
            return await shown(port) == second

        await eventually(rotated)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--tls-cert-file=x"], "must be given together"),
        (["--service-name=x"], "must be given together"),
        (["--webhook-url=http://x"], "must be https://"),
        (["--port=70000"], "--port"),
        (["--scheduler-name=Not Valid"], "--scheduler-name"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_wrong_setting_is_refused_by_name(
    flags: list[str], message: str, nats_server: NatsServer, bus: Bus, tmp_path: Path
) -> None:
    async with a_webhook(tmp_path, bus, nats_server.url, *flags) as webhook:
        assert await webhook.process.wait() == 2
        assert message in webhook.log


def serial(pem: bytes) -> int:
    return x509.load_pem_x509_certificate(pem).serial_number
