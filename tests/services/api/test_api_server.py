"""Answers of the server by status, header and body: what each user sees, and what is refused."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from services.api import api_server, authorization
from shared.contracts.cluster import Gone, NodeChanges, PodChanges
from shared.contracts.decisions import Cycle, EvictionDecision, Victim
from shared.contracts.questions import (
    FitAnswer,
    FragmentationAnswer,
    LedgerAnswer,
    LedgerQueue,
    LedgerReservation,
    ServiceStatus,
    ShapeCapacity,
    TierCapacity,
)
from shared.contracts.verdicts import Why
from shared.contracts.visibility import ExplanationStatus, Queue
from shared.explanation.understanding import understand
from shared.model.objects import Node
from tests.services.api.scene import FIRST_SEEN_MS, verdict, waiting
from tests.services.api.serving import REFUSED, Client, Serving, a_server
from tests.services.observer.scene import EPOCH, pod
from tests.support.golden import Golden
from tests.support.snapshots import snapshot_of
from tests.support.waiting import eventually
from tutti.queues_command import reservations


@pytest.fixture
def serving() -> Serving:
    serving = Serving()
    why = waiting("a/x", "b/first")
    for seq, one in enumerate(
        [verdict("a", "x"), verdict("b", "first"), verdict("b", "second", why=why)], start=1
    ):
        serving.state.take_verdict(seq, one)
    serving.rights.namespaces |= {"of-a": {"a"}, "of-b": {"b"}}
    return serving


@pytest.fixture
async def client(serving: Serving, tmp_path: Path) -> AsyncIterator[Client]:
    async with a_server(serving, tmp_path) as client:
        yield client


async def test_a_user_gets_gangs_of_the_namespaces_whose_pods_the_user_may_list(
    client: Client,
    golden: Golden,
) -> None:
    assert await client.names("/gangs") == ["a/x", "b/first", "b/second"]
    assert await client.names("/gangs", user="of-b") == ["b/first", "b/second"]
    assert await client.names("/gangs", user="nothing") == []
    for path in ("/namespaces/a/gangs", "/namespaces/a/gangs/x", "/namespaces/a/gangs/none"):
        refused = await client.get(path, user="of-b", status=403)
        assert refused["reason"] == "Forbidden"
        golden(refused["message"])
    ahead = (await client.get("/namespaces/b/gangs/second", user="of-b"))["status"]["pending"]
    assert ahead["ahead"] == {"count": 2, "names": ["b/first"]}
    missing = await client.get("/namespaces/b/gangs/none", user="of-b", status=404)
    assert missing["message"] == 'gangs.visibility.tutti.dev "none" not found'
    group = "visibility.tutti.dev"
    assert missing["details"] == {"name": "none", "group": group, "kind": "gangs"}
    unknown = await client.get("/nothing", status=404)
    assert "details" not in unknown
    await client.get("/gangs", user="", status=401)


@pytest.mark.parametrize(
    ("path", "verb"),
    [
        ("/gangs", "list"),
        ("/gangs?watch=1", "watch"),
        ("/namespaces/a/gangs/x", "get"),
        ("/queues", "list"),
        ("/nodes", "list"),
        ("/decisions", "list"),
    ],
)
async def test_the_right_to_pods_is_none_to_the_services_own_resources(
    path: str, verb: str, client: Client, serving: Serving
) -> None:
    serving.rights.strangers.add("admin")
    refused = await client.get(path, status=403)
    assert refused["message"].startswith(f"user admin cannot {verb} ")


async def test_a_refused_token_and_a_missing_one_have_different_challenges(client: Client) -> None:
    """By which the console behind a proxy that adds a token knows that a form is of no use."""
    challenges = {}
    for user in ("", REFUSED):
        headers = {"Authorization": f"Bearer {user}"} if user else {}
        async with client.session.get(f"{client.url}/gangs", headers=headers) as response:
            assert response.status == 401
            challenges[user] = response.headers["WWW-Authenticate"]
    assert challenges == {"": "Bearer", REFUSED: 'Bearer error="invalid_token"'}


async def test_a_user_without_rights_gets_a_warning_with_an_empty_list(
    client: Client, serving: Serving, golden: Golden
) -> None:
    async def warning(user: str, path: str = "/gangs") -> str | None:
        headers = {"Authorization": f"Bearer {user}"}
        async with client.session.get(f"{client.url}{path}", headers=headers) as response:
            assert response.status == 200
            return response.headers.get("Warning")

    remark = "may list pods in no namespace that has gangs, so sees none of them"
    assert await warning("nothing") == f'299 - "user nothing {remark}"'
    assert await warning("of-a") is None
    assert await warning("admin") is None
    # A user's name has any characters, a header has not.
    assert await warning('a"\\b\u00e9') == f'299 - "user a\'b? {remark}"'
    # None matches, but some are seen.
    assert await warning("of-a", "/gangs?fieldSelector=status.phase%3DRunning") is None
    serving.warning = "the planner is silent"
    golden(str(await warning("nothing")))


async def test_pages_continue_after_what_the_user_has_seen(client: Client) -> None:
    seen, token = [], ""
    while True:
        page = await client.get(f"/gangs?limit=1&continue={token}", user="of-b")
        assert len(page["items"]) == 1
        seen += [one["metadata"]["name"] for one in page["items"]]
        token = page["metadata"].get("continue", "")
        if not token:
            break
    assert seen == ["first", "second"]


async def test_decisions_have_pods_of_namespaces_that_the_user_sees_only(
    client: Client, serving: Serving
) -> None:
    for seq, namespace in enumerate("aba", start=1):
        victims = tuple(Victim(uid=one, namespace=one, name=f"pod-{one}") for one in "ab")
        decision = EvictionDecision(
            gang_id="g",
            gang=f"{namespace}/g",
            epoch=1,
            attempt=1,
            victims=victims,
            via="delete",
            reason="Preempted",
            why="priority 1 has precedence in queue default: 2 pods of 2 gangs",
            trace_id="",
            cycle=Cycle(cluster_seq=1, outcomes_seq=1, now_ms=1_000, configuration=""),
        )
        serving.state.decisions.take(seq, decision)
    assert len((await client.get("/decisions"))["items"]) == 3
    found = await client.get("/decisions?limit=1", user="of-a")
    (first,) = found["items"]
    assert first["metadata"]["name"] == "000000000001"
    assert first["status"]["count"] == 2
    assert [one["name"] for one in first["status"]["pods"]] == ["pod-a"]
    assert found["metadata"]["remainingItemCount"] == 1
    one = await client.get("/namespaces/a/decisions/000000000003", user="of-a")
    assert [pod["namespace"] for pod in one["status"]["pods"]] == ["a"]
    await client.get("/namespaces/a/decisions/000000000002", user="of-a", status=404)
    await client.get("/namespaces/a/decisions/000000000001", user="of-b", status=403)


@pytest.mark.parametrize(
    "path", ["/nodes", "/nodes/n", "/podshapes", "/podshapes/p", "/namespaces/b/decisions"]
)
async def test_what_needs_a_right_that_the_user_lacks_is_refused_whether_it_exists_or_not(
    path: str, client: Client
) -> None:
    await client.get(path, user="of-a", status=403)


async def test_a_watch_ends_when_its_user_may_see_all_gangs_or_no_longer(
    client: Client, serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its events have been made for the rights that the user had."""
    monkeypatch.setattr(authorization, "KEEP_S", 0.0)
    headers = {"Authorization": "Bearer of-b"}
    async with client.session.get(f"{client.url}/gangs?watch=1", headers=headers) as watch:
        for name in ("first", "second"):
            line = json.loads(await watch.content.readline())
            assert line["object"]["metadata"]["name"] == name
        serving.rights.namespaces["of-b"] = {""}
        serving.watching.changed(serving.state.take_verdict(9, verdict("b", "third")))
        line = json.loads(await watch.content.readline())
        assert (line["type"], line["object"]["code"]) == ("ERROR", 410)


async def test_queues_name_gangs_of_namespaces_that_the_user_sees_only(
    client: Client, serving: Serving
) -> None:
    queue = LedgerQueue(name="default", exists=True, holders=("a/x", "b/first"))
    serving.planner.queues = LedgerAnswer(queues=(queue,))
    one = await client.get("/queues/default", user="of-b")
    assert one["status"]["holders"] == {"count": 2, "names": ["b/first"]}
    assert await client.names("/queues", user="nothing") == ["default"]
    await client.get("/queues/other", status=404)
    await client.get("/nodes", user="of-b", status=403)


async def test_reservations_of_other_namespaces_are_amounts_without_an_owner(
    client: Client, serving: Serving, golden: Golden
) -> None:
    kept = [
        LedgerReservation(
            gang=gang,
            reason="MinResources",
            amounts=(("cpu", 31_500),),
            count=32,
            until_ms=1_700_000_000_000,
        )
        for gang in ("a/x", "b/first")
    ]
    queue = LedgerQueue(name="default", exists=True, reservations=tuple(kept), reservations_count=2)
    serving.planner.queues = LedgerAnswer(queues=(queue,))
    one = await client.get("/queues/default", user="of-b")
    other, own = one["status"]["reservations"]
    assert own["gang"] == "b/first"
    assert other == {
        "reason": "MinResources",
        "resources": {"cpu": "31500m"},
        "count": 32,
        "until": "2023-11-14T22:13:20Z",
    }
    golden(*reservations(msgspec.convert(one, Queue)))


async def test_a_node_has_the_version_of_its_last_change_and_is_built_again_after_that_only(
    client: Client, serving: Serving
) -> None:
    nodes = [
        Node(uid=name, name=name, resource_version=1, allocatable=(("cpu", 4_000), ("pods", 10)))
        for name in ("n1", "n2")
    ]
    page = snapshot_of([*nodes, pod("p1", on="n1")], at_ms=1, epoch=EPOCH, cluster_seq=5)
    serving.state.replace_cluster([page])

    async def listed() -> dict[str, tuple[str, int]]:
        found = await client.get("/nodes")
        return {
            one["metadata"]["name"]: (one["metadata"]["resourceVersion"], one["status"]["pods"])
            for one in found["items"]
        }

    assert await listed() == {"n1": ("5", 1), "n2": ("5", 0)}
    bound = PodChanges(epoch=EPOCH, at_ms=1, changed=(pod("p2", on="n2"), pod("p3")))
    serving.state.apply_cluster(6, bound)
    assert await listed() == {"n1": ("5", 1), "n2": ("6", 1)}
    one = await client.get("/nodes/n2")
    assert (one["metadata"]["resourceVersion"], one["status"]["pods"]) == ("6", 1)
    gone = NodeChanges(epoch=EPOCH, at_ms=1, removed=(Gone(uid="n2", resource_version=2),))
    serving.state.apply_cluster(7, gone)
    assert await listed() == {"n1": ("5", 1)}
    assert (await client.get("/nodes"))["metadata"]["resourceVersion"] == "7"
    await client.get("/nodes/n2", status=404)


async def test_pod_shapes_need_the_right_to_list_nodes(client: Client, serving: Serving) -> None:
    shapes = [
        ShapeCapacity(
            id=name,
            requests=(("cpu", 500), ("memory", 1 << 30), ("pods", 1)),
            node_selector=(("pool", "a"),),
            members=3,
            waiting=1,
            total=4,
            unfragmented=5,
            node="n1",
            on_node=2,
            tiers=(TierCapacity(tier="rack", domain="r1", pods=3), TierCapacity(tier="tier 2")),
        )
        for name in ("bb", "aa")
    ]
    serving.planner.shapes = FragmentationAnswer(shapes=tuple(shapes))
    await client.get("/podshapes", user="of-b", status=403)
    await client.get("/podshapes/aa", user="of-b", status=403)
    assert await client.names("/podshapes") == ["aa", "bb"]
    status = (await client.get("/podshapes/bb"))["status"]
    assert status["requests"] == {"cpu": "500m", "memory": "1Gi"}
    assert status["tiers"] == [
        {"tier": "rack", "domain": "r1", "pods": 3},
        {"tier": "tier 2", "pods": 0},
    ]
    table = await client.get("/podshapes", Accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    assert table["rows"][0]["cells"] == [
        *("aa", "500m cpu, 1Gi memory", 3, 1, 4, "2 (n1)", "3 (r1)", 5, "pool=a"),
    ]
    await client.get("/podshapes/cc", status=404)


async def test_all_users_see_whether_the_services_are_ready_and_no_figures(
    client: Client, serving: Serving
) -> None:
    common: dict[str, Any] = {"pid": 7, "version": "0.1.0", "http_port": 8080}
    serving.instances.answers = [
        ServiceStatus(
            service="gang-planner",
            instance="gang-planner-1",
            ready=True,
            active=False,
            started_ms=FIRST_SEEN_MS,
            notes={"a": "b"},
            figures={"c": 1.0},
            **common,
        ),
        ServiceStatus(
            service="binder", instance="binder-0", ready=False, not_ready=("nats",), **common
        ),
    ]
    assert await client.names("/instances", user="nothing") == ["binder-0", "gang-planner-1"]
    one = await client.get("/instances/gang-planner-1", user="nothing")
    assert one["status"].keys() == {"service", "ready", "active", "version", "started"}
    table = await client.get("/instances", Accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    assert [row["cells"] for row in table["rows"]] == [
        ["binder-0", "binder", False, True, "0.1.0", "<unknown>", "nats"],
        ["gang-planner-1", "gang-planner", True, False, "0.1.0", "60s", ""],
    ]
    await client.get("/instances/other", status=404)


def a_fit(**spec: object) -> dict[str, Any]:
    container = {"name": "main", "resources": {"requests": {"cpu": "1"}}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    manifest: dict[str, Any] = {**pod, "spec": {"containers": [container]}, **spec}
    return {
        "apiVersion": "visibility.tutti.dev/v1alpha1",
        "kind": "Fit",
        "spec": {"manifests": [manifest]},
    }


async def test_a_fit_names_gangs_that_the_user_sees_and_asks_about_namespaces_of_the_user_only(
    client: Client, serving: Serving
) -> None:
    serving.planner.fit = FitAnswer(
        fits=False, ever=True, displaces=(("a/x", 2), ("b/first", 1)), displaces_by="preempt"
    )

    async def ask(body: bytes, status: int, user: str = "of-b") -> dict[str, Any]:
        return await client.create("/namespaces/b/fits", body, user=user, status=status)

    answer = await ask(json.dumps(a_fit()).encode(), 201)
    (gang,) = answer["status"]["gangs"]
    assert gang["displaces"] == {
        "action": "preempt",
        "members": 3,
        "gangs": {"count": 2, "names": ["b/first"]},
    }
    elsewhere = a_fit(metadata={"name": "p", "namespace": "a"})
    refused = await ask(json.dumps(elsewhere).encode(), 403)
    assert "cannot create pods in the namespace a" in refused["message"]
    assert "not of kind Fit" in (await ask(b'{"kind": "Fit"}', 400))["message"]
    assert "not of kind Fit" in (await ask(b"[" * 100_000, 400))["message"]
    too_long = b" " * (api_server.BODY_BYTES_MAX + 1)
    assert (await ask(too_long, 413))["reason"] == "RequestEntityTooLarge"
    assert (await ask(json.dumps(a_fit()).encode(), 403, "of-a"))["reason"] == "Forbidden"
    many = a_fit()
    many["spec"]["manifests"] = [
        {**many["spec"]["manifests"][0], "metadata": {"name": f"p{n}"}} for n in range(51)
    ]
    assert "at most 50 gangs" in (await ask(json.dumps(many).encode(), 422))["message"]


async def test_an_explanation_says_how_manifests_are_understood_as_the_command_does(
    client: Client, serving: Serving, golden: Golden
) -> None:
    pod = a_fit()["spec"]["manifests"][0]
    mark = {"name": "p", "annotations": {"scheduling.k8s.io/group-name": "train"}}
    manifests = [
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": "train"},
            "spec": {"minMember": 2, "queue": "research"},
        },
        {**pod, "metadata": mark, "spec": {**pod["spec"], "schedulerName": "tutti"}},
        {**pod, "metadata": {"name": "alone"}},
    ]
    body = {
        "apiVersion": "visibility.tutti.dev/v1alpha1",
        "kind": "Explanation",
        "spec": {"manifests": manifests},
    }
    path = "/namespaces/team/explanations"
    answer = await client.create(path, json.dumps(body).encode(), user="nothing")
    status = answer["status"]
    (gang,) = status["gangs"]
    assert (gang["title"], gang["minimum"], gang["members"]) == ("team/train", 2, 1)
    assert (gang["queue"], gang["scheduled"]) == ("research", True)
    assert [one["title"] for one in status["objects"]] == [
        "PodGroup team/train",
        "Pod team/p",
        "Pod team/alone",
    ]
    golden(*gang["missing"])
    report = understand(
        [(f"document {n}", one) for n, one in enumerate(manifests, 1)],
        namespace="team",
        scheduler_names=("tutti",),
    )
    assert status["complete"] == report.complete
    found = msgspec.convert(status, ExplanationStatus)
    assert (found.objects, found.gangs) == (report.objects, report.gangs)
    assert serving.rights.asked == 1, "only the verb needs a right"
    for given, code, words in (
        ([1], 400, "not of kind Explanation"),
        ([{"metadata": {}}], 422, "document 1: must be an object with a kind"),
        ([{"kind": "List", "items": [2]}], 422, "document 1: items: must be objects"),
        ([{"kind": "Pod"}] * 201, 422, "at most 200 objects"),
    ):
        wrong = json.dumps(body | {"spec": {"manifests": given}}).encode()
        refused = await client.create(path, wrong, status=code)
        assert words in refused["message"]


async def test_an_answer_that_the_client_has_is_sent_without_its_body(client: Client) -> None:
    headers = {"Authorization": "Bearer admin"}
    async with client.session.get(f"{client.url}/gangs", headers=headers) as response:
        etag = response.headers["ETag"]
    for known in (etag, f'"other", W/{etag}', "*"):
        sent = headers | {"If-None-Match": known}
        async with client.session.get(f"{client.url}/gangs", headers=sent) as response:
            assert (response.status, await response.read()) == (304, b"")


async def test_what_is_not_served_is_a_status_with_the_reason(
    client: Client, serving: Serving
) -> None:
    for method, path, status in (
        ("DELETE", "/namespaces/a/gangs/x", 405),
        ("POST", "/namespaces/a/gangs", 405),
        ("POST", "/fits", 405),
        ("GET", "/namespaces/a/fits", 405),
        ("GET", "/nodes?watch=1", 405),
        ("GET", "/other", 404),
        ("GET", "/gangs?limit=x", 400),
    ):
        headers = {"Authorization": "Bearer admin"}
        async with client.session.request(method, f"{client.url}{path}", headers=headers) as found:
            answer = await found.json()
            assert (found.status, answer["kind"], answer["code"]) == (status, "Status", status)
    serving.unavailable = "the API service has no connection to NATS"
    refused = await client.get("/gangs", status=503)
    assert refused["message"] == serving.unavailable
    assert refused["details"] == {"retryAfterSeconds": 1}
    assert (await client.get("", status=200))["kind"] == "APIResourceList"


async def test_a_bug_is_an_error_of_the_server_and_other_requests_are_answered(
    client: Client, serving: Serving, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(serving.state.gangs, "places", None)
        refused = await client.get("/gangs", status=500)
        golden(refused["message"])
    assert len(await client.names("/gangs")) == 3


async def test_watches_are_limited_end_in_time_and_end_when_the_server_stops(
    client: Client, serving: Serving, golden: Golden
) -> None:
    headers = {"Authorization": "Bearer of-b"}
    path = f"{client.url}/gangs?watch=1"
    async with client.session.get(f"{path}&timeoutSeconds=1", headers=headers) as brief:
        lines = [json.loads(line) async for line in brief.content]
    assert [one["object"]["metadata"]["name"] for one in lines] == ["first", "second"]
    opened = [await client.session.get(path, headers=headers) for _ in range(2)]
    async with client.session.get(path, headers=headers) as refused:
        assert (refused.status, refused.headers["Retry-After"]) == (429, "10")
        status = await refused.json()
    assert (status["kind"], status["reason"]) == ("Status", "TooManyRequests")
    assert status["details"] == {"retryAfterSeconds": 10}
    golden(status["message"])
    # Another user has watches left, up to the number of all users.
    opened.append(await client.session.get(path, headers={"Authorization": "Bearer of-a"}))
    assert opened[-1].status == 200
    refused_all = await client.get("/gangs?watch=1", status=429)
    golden(refused_all["message"])
    serving.watching.end(None)
    for one, lines_count in zip(opened, (2, 2, 1), strict=True):
        async with asyncio.timeout(5):
            assert (await one.read()).count(b"\n") == lines_count
    async with client.session.get(f"{path}&timeoutSeconds=1", headers=headers) as again:
        assert again.status == 200


async def test_a_watch_that_fails_is_disconnected_and_not_answered_twice(
    client: Client, serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving.state.gangs, "forms", None)
    headers = {"Authorization": "Bearer admin"}
    response = await client.session.get(f"{client.url}/gangs?watch=1", headers=headers)
    assert response.status == 200
    with pytest.raises(aiohttp.ClientError):
        await response.text()


@pytest.mark.parametrize(
    "characters",
    [
        pytest.param(50_000, id="more than the kernel takes"),
        pytest.param(5_000, id="as much as the kernel would take by default"),
    ],
)
async def test_a_client_that_does_not_read_its_watch_is_disconnected(
    characters: int, client: Client, serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Long enough for a client on a busy machine, until the test pauses its reading.
    monkeypatch.setattr(api_server, "SLOW_READER_S", 2.0)
    for seq in range(10, 400):
        why = Why(reason="QueueOrder", sentence="x" * characters)
        serving.state.take_verdict(seq, verdict("b", f"g{seq}", why=why))
    headers = {"Authorization": "Bearer admin"}
    async with client.session.get(f"{client.url}/gangs?watch=1", headers=headers) as response:
        assert response.connection is not None
        assert response.connection.transport is not None
        assert len(serving.watching) == 1
        response.connection.transport.pause_reading()
        await eventually(lambda: not len(serving.watching), timeout_s=20)


async def test_the_console_is_served_without_a_token_and_nothing_else_is(client: Client) -> None:
    address = client.url.partition("/apis")[0]
    async with client.session.get(f"{address}/console") as response:
        assert response.status == 200
        assert str(response.url) == f"{address}/console/"
        assert "default-src 'none'" in response.headers["Content-Security-Policy"]
        etag = response.headers["ETag"]
    known = {"If-None-Match": etag}
    async with client.session.get(f"{address}/console/", headers=known) as response:
        assert response.status == 304
    for path in ("/console/../apis", "/", "/console/x/y"):
        async with client.session.get(f"{address}{path}") as response:
            assert response.status == 401, path
    async with client.session.post(f"{address}/console/") as response:
        assert response.status == 401


async def test_a_warning_is_one_bounded_line_whatever_its_text_has(
    client: Client, serving: Serving
) -> None:
    serving.warning = 'of "é\r\nSet-Cookie: a' + "x" * 10_000
    headers = {"Authorization": "Bearer admin"}
    async with client.session.get(f"{client.url}/gangs", headers=headers) as response:
        assert "Set-Cookie" not in response.headers
        warning = response.headers["Warning"]
    assert len(warning) < 1_000
    assert warning.startswith("299 - \"of '???Set-Cookie: ax")
