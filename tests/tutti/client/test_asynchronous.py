"""`AsyncClient` against the API service's server, with each user's own rights."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from shared.contracts.questions import (
    FitAnswer,
    LedgerAmount,
    LedgerAnswer,
    LedgerQueue,
    ServiceStatus,
    Suggestion,
    SuggestionsAnswer,
)
from shared.contracts.verdicts import Why
from shared.kube.client import KubeClient
from shared.kube.credentials import load
from shared.kube.errors import Forbidden, Invalid, NotFound, Unauthorized
from tests.services.api.scene import verdict
from tests.services.api.serving import Serving
from tests.support.waiting import eventually
from tests.tutti.client.conftest import JOB, Users, names, soon
from tutti import (
    ApiError,
    ApiNotServed,
    AsyncClient,
    GangDeleted,
    GangEvent,
    KubeError,
    Refusal,
    WaitTimeout,
)
from tutti.client.submission import Submitted

UID = "0f3c1c52-4a6c-4d5e-9f0e-1c2d3e4f5a6b"


async def test_gangs_are_those_of_the_contexts_namespace_unless_another_is_named(
    client: AsyncClient, users: Users
) -> None:
    assert names(await client.gangs()) == ["b/first", "b/second"]
    assert names(await client.gangs(namespace="a")) == ["a/x"]
    assert names(await client.gangs(all_namespaces=True)) == ["a/x", "b/first", "b/second"]
    assert names(await client.gangs(all_namespaces=True, queue="research")) == ["b/second"]
    assert names(await client.gangs(all_namespaces=True, phase="Running")) == ["b/first"]
    second = await client.gang("second")
    assert second.status.pending is not None
    assert second.status.pending.message == "2 gangs are ahead"
    async with AsyncClient(kubeconfig=users("of-b"), namespace="a") as other:
        assert names(await other.gangs(all_namespaces=True)) == ["b/first", "b/second"]
        with pytest.raises(Forbidden, match="user of-b cannot list pods in the namespace a"):
            await other.gangs()


async def test_an_error_carries_the_status(client: AsyncClient, users: Users) -> None:
    with pytest.raises(NotFound) as missing:
        await client.gang("none")
    assert isinstance(missing.value, ApiError)
    assert isinstance(missing.value, KubeError)
    assert (missing.value.status, missing.value.reason) == (404, "NotFound")
    assert missing.value.message == 'gangs.visibility.tutti.dev "none" not found'
    assert missing.value.details.name == "none"
    with pytest.raises(Invalid, match=r"manifests: .* declares no gang"):
        await client.fits({"apiVersion": "v1", "kind": "Unknown", "metadata": {"name": "x"}})
    async with AsyncClient(kubeconfig=users("")) as stranger:
        with pytest.raises(Unauthorized):
            await stranger.gangs()


async def test_queues_and_processes_are_the_objects_of_the_api(
    client: AsyncClient, serving: Serving
) -> None:
    amounts = (LedgerAmount(resource="cpu", used=4000, deserved=6000),)
    serving.planner.queues = LedgerAnswer(
        queues=(LedgerQueue(name="research", exists=True, amounts=amounts),)
    )
    serving.instances.answers = [
        ServiceStatus(
            service="binder", instance="binder-0", pid=1, version="1", http_port=1, ready=True
        )
    ]
    (queue,) = await client.queues()
    assert await client.queue("research") == queue
    assert (queue.status.resources[0].used, queue.status.resources[0].deserved) == ("4", "6")
    assert [one.metadata.name for one in await client.instances()] == ["binder-0"]
    assert await client.decisions(all_namespaces=True) == []
    assert await client.nodes() == []
    assert await client.pod_shapes() == []


async def test_a_fit_takes_manifests_in_any_form(
    client: AsyncClient, serving: Serving, tmp_path: Path
) -> None:
    serving.planner.fit = FitAnswer(fits=False, ever=True, sentence="1 of 2 pods fit")
    path = tmp_path / "job.yaml"
    path.write_text(JOB)
    manifest = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train"},
        "spec": {"parallelism": 2, "template": {"spec": {"containers": [{"name": "c"}]}}},
    }
    for given in (JOB, path, manifest, [manifest], iter([manifest])):
        found = await client.fits(given)
        assert not found.fits
        assert [(one.name, one.members, one.message) for one in found.gangs] == [
            ("train", 2, "1 of 2 pods fit")
        ]
    explained = await client.explain(JOB)
    assert [one.title for one in explained.objects] == ["Job b/train"]


async def test_what_would_help_a_gang_is_asked_by_its_name(
    client: AsyncClient, serving: Serving
) -> None:
    change = Suggestion(kind="end", change="when b/first ends")
    serving.planner.suggested = SuggestionsAnswer(suggestions=(change,))
    found = await client.what_would_help("second")
    assert [(one.kind, one.change) for one in found.suggestions] == [("end", change.change)]
    assert serving.planner.asked == ["b-second"]
    with pytest.raises(NotFound):
        await client.what_would_help("none")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        pytest.param("a: [", "the text: not YAML", id="no YAML"),
        pytest.param("", "manifests: there must be an object in them", id="empty"),
        pytest.param("[1]", "document 1: must be an object with a kind", id="no object"),
        pytest.param(Path("/none.yaml"), "/none.yaml: cannot be read", id="no file"),
        pytest.param([{"kind": "Job"}] * 1001, "at most 1000 objects, not 1001", id="too many"),
    ],
)
async def test_manifests_that_cannot_be_read_are_refused_before_a_request(
    client: AsyncClient, given: Any, words: str
) -> None:
    for ask in (client.fits, client.submit):
        with pytest.raises(Refusal, match=words):
            await ask(given)


async def test_a_watch_begins_with_what_exists_and_continues_with_changes(
    client: AsyncClient, serving: Serving
) -> None:
    async with aclosing(client.watch()) as events:

        async def next_event() -> str:
            event: GangEvent = await soon(anext(events))
            return f"{event.type} {event.gang.metadata.name} {event.gang.status.phase}"

        assert [await next_event(), await next_event()] == [
            "ADDED first Running",
            "ADDED second Inqueue",
        ]
        serving.publish(4, verdict("a", "hidden"))
        serving.publish(5, verdict("b", "third"))
        assert await next_event() == "ADDED third Inqueue"
        serving.publish(6, verdict("b", "third", phase="Completed"))
        assert await next_event() == "MODIFIED third Completed"
        serving.publish(7, verdict("b", "third", phase="Gone"))
        assert (await next_event()).startswith("DELETED third")


async def test_wait_returns_a_gang_that_runs_and_one_that_does_later(
    client: AsyncClient, serving: Serving
) -> None:
    assert (await soon(client.wait("first"))).status.phase == "Running"
    # It does not exist yet.
    waiting = asyncio.create_task(client.wait("later", until="finished"))
    for seq, phase in enumerate(("Inqueue", "Running", "Completed"), start=4):
        serving.publish(seq, verdict("b", "later", phase=phase))
    found = await soon(waiting)
    assert (found.metadata.name, found.status.phase) == ("later", "Completed")
    assert (await soon(client.wait(found))).status.phase == "Completed"


async def test_wait_finds_the_gang_of_a_volcano_job_by_the_jobs_name(
    client: AsyncClient, serving: Serving
) -> None:
    running = {"phase": "Running", "running": 3, "pending": 0}
    serving.publish(4, verdict("b", f"train-{UID}", **running))
    serving.publish(5, verdict("b", "train-more", **running))
    by_name = await soon(client.wait("train"))
    assert by_name.metadata.name == f"train-{UID}"
    job = Submitted(api_version="v1", kind="Job", namespace="b", name="train", uid=UID)
    assert await soon(client.wait(job)) == by_name


async def test_wait_goes_on_while_bound_members_have_not_started(
    client: AsyncClient, serving: Serving
) -> None:
    serving.publish(4, verdict("b", "bound", phase="Running", running=0, pending=3))
    with pytest.raises(WaitTimeout, match="b/bound is Running, 0 of 3 members run"):
        await client.wait("bound", timeout_s=0.3)
    serving.publish(5, verdict("b", "bound", phase="Running", running=3, pending=0))
    assert (await soon(client.wait("bound"))).status.members.running == 3


async def test_wait_ends_in_time_and_says_why_the_gang_waits(
    client: AsyncClient, serving: Serving
) -> None:
    why = Why(reason="NotEnoughResources", sentence="2 of 3 pods fit")
    serving.publish(4, verdict("b", "second", queue="research", why=why))
    with pytest.raises(WaitTimeout) as late:
        await client.wait("second", timeout_s=0.3)
    assert isinstance(late.value, TimeoutError)
    assert str(late.value) == (
        "not running after 0.3 s: b/second is Inqueue, 0 of 3 members run: "
        "NotEnoughResources: 2 of 3 pods fit"
    )
    assert late.value.gang is not None
    with pytest.raises(WaitTimeout, match="no gang none was seen") as unseen:
        await client.wait("none", timeout_s=0.3)
    assert unseen.value.gang is None
    with pytest.raises(ValueError, match="until: must be running or finished, not 'bound'"):
        await client.wait("second", until="bound")  # type: ignore[arg-type]  # as a user may


async def test_wait_ends_when_the_gang_is_deleted(client: AsyncClient, serving: Serving) -> None:
    waiting = asyncio.create_task(client.wait("second"))
    await eventually(lambda: len(serving.watching) == 1, because="it watches")
    serving.publish(4, verdict("b", "second", queue="research", phase="Gone"))
    with pytest.raises(GangDeleted, match="b/second was deleted") as deleted:
        await soon(waiting)
    assert deleted.value.gang.metadata.name == "second"


@pytest.fixture
async def bare_server() -> AsyncIterator[list[web.Response]]:
    """What a server without the API answers, in order."""
    answers: list[web.Response] = []

    async def answer(_: web.Request) -> web.Response:
        return answers.pop(0)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    answers.append(web.Response(text=str(runner.addresses[0][1])))
    yield answers
    await runner.cleanup()


async def test_a_cluster_without_the_api_is_named_with_the_remedy(
    bare_server: list[web.Response], users: Users
) -> None:
    port = bare_server.pop().text
    async with AsyncClient(kubeconfig=users(), server=f"http://127.0.0.1:{port}") as client:
        bare_server.append(web.Response(status=404, text="404 page not found\n"))
        with pytest.raises(ApiNotServed, match=r"does not serve visibility.tutti.dev .* --api`"):
            await client.gangs()
        bare_server.append(web.Response(status=503, text="service unavailable\n"))
        with pytest.raises(ApiNotServed, match="service unavailable"):
            await client.queue("default")
        bare_server.append(
            web.json_response(
                {"kind": "Status", "reason": "ServiceUnavailable", "message": "no planner"},
                status=503,
            )
        )
        with pytest.raises(ApiError, match="no planner") as refused:
            await client.queues()
        assert refused.value.status == 503


async def test_a_closed_client_refuses_and_closes_only_its_own_connections(users: Users) -> None:
    first = AsyncClient(kubeconfig=users())
    await first.gangs()
    await first.close()
    await first.close()
    with pytest.raises(RuntimeError, match="the client is closed"):
        await first.gangs()
    async with KubeClient(await load(str(users()))) as kube:
        await AsyncClient(kube=kube).close()
        assert len(await AsyncClient(kube=kube).gangs()) == 2


async def test_no_address_of_a_cluster_is_named_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    with pytest.raises(KubeError, match="no such file"):
        async with AsyncClient():
            pass
