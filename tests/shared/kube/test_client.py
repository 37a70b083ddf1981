"""Requests, their faults and their bodies, against an API server that answers by script."""

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trustme

from shared.kube.client import KubeClient
from shared.kube.credentials import Credentials
from shared.kube.errors import (
    ApiError,
    Conflict,
    ConnectionLost,
    Forbidden,
    Gone,
    Invalid,
    KubeError,
    MalformedAnswer,
    NotFound,
    RequestTimeout,
    TooManyRequests,
    TransportError,
    Unauthorized,
    api_error,
)
from shared.kube.kubeconfig import Access
from shared.kube.objects import Node, Pod
from shared.kube.resources import NODES, PODGROUPS_VOLCANO, PODS
from tests.support.scripted_apiserver import (
    Answer,
    ScriptedApiServer,
    answer,
    failure,
    listing,
    pod,
    reset,
    scripted_apiserver,
    status,
    watch,
)

OK = answer(200, {})


class Talk:
    """A client, the server it talks to, and what the client counted."""

    def __init__(self, server: ScriptedApiServer, client: KubeClient) -> None:
        self.server = server
        self.client = client
        self.calls: list[tuple[str, int]] = []

    @property
    def asked(self) -> Any:
        return self.server.requests[-1]


@asynccontextmanager
async def talking(*script: Answer, **access: Any) -> AsyncGenerator[Talk]:
    async with scripted_apiserver(*script) as server:
        calls: list[tuple[str, int]] = []
        credentials = Credentials(Access(origin="test", server=server.url, **access))
        async with KubeClient(
            credentials, user_agent="tutti-test", on_call=lambda *call: calls.append(call)
        ) as client:
            talk = Talk(server, client)
            talk.calls = calls
            yield talk


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (401, Unauthorized),
        (403, Forbidden),
        (404, NotFound),
        (409, Conflict),
        (410, Gone),
        (422, Invalid),
        (429, TooManyRequests),
        (500, ApiError),
        (503, ApiError),
    ],
)
async def test_an_answer_of_400_or_more_is_raised_as_what_it_stands_for(
    code: int, kind: type[ApiError]
) -> None:
    details = {"name": "a", "causes": [{"field": "spec.x", "message": "bad"}]}
    async with talking(failure(code, "Because", "so it is", details=details)) as talk:
        with pytest.raises(ApiError, match=f"{code} Because: so it is") as error:
            await talk.client.get(PODS, "a", Pod, namespace="shop")
        assert type(error.value) is kind
        assert error.value.details.causes[0].field == "spec.x"
        assert talk.calls == [("GET", code)]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "empty answer"),
        (b"404 page not found\n", "404 page not found"),
        (b"<html>" + b"x" * 5000, "<html>" + "x" * 506),
        (b'{"kind":"Pod"}', '{"kind":"Pod"}'),
        (b"\xff\xfe", "\ufffd\ufffd"),
    ],
)
def test_an_error_that_is_no_status_is_reported_in_the_servers_words(
    body: bytes, message: str
) -> None:
    error = api_error(502, body)
    assert (error.status, error.reason, error.message) == (502, "", message)


@pytest.mark.parametrize(
    ("header", "in_status", "expected"),
    [("3", 0, 3.0), (None, 5, 5.0), ("3", 5, 3.0), ("Wed, 21 Oct 2026 07:28:00 GMT", 0, None)],
)
def test_when_to_try_again_comes_from_the_header_or_the_status(
    header: str | None, in_status: int, expected: float | None
) -> None:
    body = status(429, "TooManyRequests", details={"retryAfterSeconds": in_status})
    assert api_error(429, msgspec.json.encode(body), header).retry_after_s == expected


async def test_no_answer_in_time_is_a_timeout() -> None:
    async with talking() as talk:
        with pytest.raises(RequestTimeout, match=r"GET /api/v1/pods: no answer within 0\.05 s"):
            await talk.client.request("GET", "/api/v1/pods", timeout_s=0.05)
        assert talk.calls == [("GET", 0)]


async def test_cancellation_passes_through_and_is_no_timeout() -> None:
    async with talking() as talk:
        with pytest.raises(TimeoutError) as ours:
            async with asyncio.timeout(0.05):
                await talk.client.request("GET", "/api/v1/pods", timeout_s=5)
        assert not isinstance(ours.value, TransportError)


async def test_a_connection_that_breaks_or_cannot_be_made_is_lost() -> None:
    async with talking(reset) as talk:
        with pytest.raises(ConnectionLost, match="POST /api/v1/nodes"):
            await talk.client.create(NODES, {})
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        async with KubeClient(Credentials(Access(origin="test", server=url))) as client:
            with pytest.raises(ConnectionLost, match="GET /version"):
                await client.request("GET", "/version")


async def test_a_client_that_is_not_open_says_so() -> None:
    client = KubeClient(Credentials(Access(origin="test", server="http://127.0.0.1:1")))
    with pytest.raises(ConnectionLost, match="not open"):
        await client.request("GET", "/version")


async def test_an_answer_without_sense_is_malformed() -> None:
    script = [answer(200, b"<html>"), answer(200, {"spec": 1}), answer(200, b"{}}")]
    async with talking(*script) as talk:
        for _ in script:
            with pytest.raises(MalformedAnswer, match="pods"):
                await talk.client.get(PODS, "a", Pod, namespace="shop")


async def test_every_request_carries_our_credentials_and_user_agent() -> None:
    async with talking(OK, token="secret", impersonate=(("Impersonate-User", "jane"),)) as talk:
        await talk.client.request("GET", "/version")
        headers = talk.asked.headers
        assert headers["Authorization"] == "Bearer secret"
        assert headers["Impersonate-User"] == "jane"
        assert headers["User-Agent"] == "tutti-test"
        assert headers["Accept-Encoding"] == "identity"
    async with talking(OK, username="jane", password="pass") as talk:
        await talk.client.request("GET", "/version")
        assert talk.asked.headers["Authorization"] == "Basic amFuZTpwYXNz"


async def test_after_a_401_a_new_token_is_read_and_the_request_repeated_once(
    tmp_path: Path,
) -> None:
    token = tmp_path / "token"
    token.write_text("old\n")
    refused = failure(401, "Unauthorized")
    now_s = 100.0
    async with scripted_apiserver(OK, refused, OK, refused) as server:
        access = Access(origin="test", server=server.url, token_file=str(token))
        async with KubeClient(Credentials(access, monotonic_s=lambda: now_s)) as client:
            await client.request("GET", "/version")
            token.write_text("new\n")
            now_s += 5
            await client.request("GET", "/version")
            sent = [request.headers["Authorization"] for request in server.requests]
            assert sent == ["Bearer old", "Bearer old", "Bearer new"]
            with pytest.raises(Unauthorized):
                await client.request("GET", "/version")


async def test_after_a_401_a_fixed_token_is_not_tried_again() -> None:
    async with talking(failure(401, "Unauthorized"), OK, token="secret") as talk:
        with pytest.raises(Unauthorized):
            await talk.client.request("GET", "/version")
        assert len(talk.server.requests) == 1


async def test_a_redirect_is_not_followed() -> None:
    async with talking(answer(302, b"", {"Location": "/elsewhere"}), OK) as talk:
        reply = await talk.client.send("GET", "/version")
        assert reply.status == 302
        assert len(talk.server.requests) == 1


async def test_a_list_is_asked_for_by_page_and_selector() -> None:
    async with talking(listing(5, pod("a"), continue_="more")) as talk:
        page = await talk.client.list(
            PODS, Pod, namespace="shop", label_selector="a in (b,c)", limit=1, continue_="x y"
        )
        assert [item.metadata.name for item in page.items] == ["a"]
        assert page.metadata.continue_ == "more"
        assert talk.asked.path == "/api/v1/namespaces/shop/pods"
        assert talk.asked.query == {
            "labelSelector": "a in (b,c)", "limit": "1", "continue": "x y"
        }  # fmt: skip


async def test_objects_are_created_replaced_and_patched() -> None:
    async with talking(*[OK] * 5) as talk:
        client = talk.client
        await client.create(PODGROUPS_VOLCANO, {"a": 1}, namespace="shop", dry_run=True)
        asked = talk.asked
        assert (asked.method, asked.json, asked.query) == ("POST", {"a": 1}, {"dryRun": "All"})
        assert asked.path == "/apis/scheduling.volcano.sh/v1beta1/namespaces/shop/podgroups"
        assert asked.headers["Content-Type"] == "application/json"
        await client.replace(NODES, "n1", {"b": 2}, subresource="status")
        assert (talk.asked.method, talk.asked.path) == ("PUT", "/api/v1/nodes/n1/status")
        types = []
        for patch_type in ("merge", "json", "strategic"):
            await client.patch(PODS, "p", [], namespace="shop", patch_type=patch_type)
            types.append(talk.asked.headers["Content-Type"])
        assert types == [
            "application/merge-patch+json",
            "application/json-patch+json",
            "application/strategic-merge-patch+json",
        ]


async def test_a_delete_carries_its_conditions() -> None:
    async with talking(OK, OK) as talk:
        await talk.client.delete(PODS, "p", namespace="shop")
        assert talk.asked.json == {"apiVersion": "v1", "kind": "DeleteOptions"}
        await talk.client.delete(
            PODS, "p", namespace="shop", uid="u", grace_s=0, propagation="Foreground"
        )
        assert talk.asked.json == {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": "u"},
            "gracePeriodSeconds": 0,
            "propagationPolicy": "Foreground",
        }


async def test_a_binding_names_pod_uid_node_and_annotations_and_returns_every_answer() -> None:
    conflict = failure(409, "Conflict", 'pod p is already assigned to node "n2"')
    async with talking(answer(201, {}), conflict) as talk:
        reply = await talk.client.bind("shop", "p", "u", "n1", {"tutti.dev/decision": "7"})
        assert reply.status == 201
        assert talk.asked.path == "/api/v1/namespaces/shop/pods/p/binding"
        assert talk.asked.query == {}
        assert talk.asked.json == {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {
                "name": "p",
                "namespace": "shop",
                "uid": "u",
                "annotations": {"tutti.dev/decision": "7"},
            },
            "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"},
        }
        refused = await talk.client.bind("shop", "p", "u", "n1", {}, dry_run=True)
        assert talk.asked.query == {"dryRun": "All"}
        with pytest.raises(Conflict, match="already assigned"):
            refused.raise_for_status()


@pytest.mark.parametrize(
    ("first", "error", "message"),
    [
        (reset, ConnectionLost, "POST /api/v1/namespaces/shop/pods/p/binding: the server closed"),
        (answer(200, b"x" * 2_000_000), MalformedAnswer, "longer than 1048576 bytes"),
    ],
)
async def test_a_binding_that_gets_no_proper_answer_says_so(
    first: Answer, error: type[KubeError], message: str
) -> None:
    async with talking(first, answer(201, {})) as talk:
        with pytest.raises(error, match=message):
            await talk.client.bind("shop", "p", "u", "n1", {})
        assert (await talk.client.bind("shop", "p", "u", "n1", {})).status == 201
        assert talk.calls == [("POST", 0), ("POST", 201)]


async def test_a_binding_carries_our_token_and_renews_it_after_a_401(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old")
    now_s = 100.0
    script = [answer(201, {}), failure(401, "Unauthorized"), answer(201, {})]
    async with scripted_apiserver(*script) as server:
        access = Access(origin="test", server=server.url, token_file=str(token))
        credentials = Credentials(access, monotonic_s=lambda: now_s)
        async with KubeClient(credentials, user_agent="tutti-test") as client:
            await client.bind("shop", "p", "u", "n1", {})
            token.write_text("new")
            now_s += 5
            assert (await client.bind("shop", "p", "u", "n1", {})).status == 201
        sent = [request.headers["Authorization"] for request in server.requests]
        assert sent == ["Bearer old", "Bearer old", "Bearer new"]
        headers = server.requests[0].headers
        assert headers["User-Agent"] == "tutti-test"
        assert headers["Content-Type"] == "application/json"
        assert headers["Host"] == server.url.removeprefix("http://")


async def test_how_long_to_wait_is_kept_from_a_binding_refused_for_load() -> None:
    busy = answer(429, b"later", {"Retry-After": "2"})
    async with talking(busy) as talk:
        reply = await talk.client.bind("shop", "p", "u", "n1", {})
        with pytest.raises(TooManyRequests) as error:
            reply.raise_for_status()
        assert error.value.retry_after_s == 2.0


async def test_a_base_path_of_the_server_is_kept() -> None:
    async with talking(answer(200, {"metadata": {"name": "n"}})) as talk:
        access = Access(origin="test", server=f"{talk.server.url}/k8s/clusters/c1")
        async with KubeClient(Credentials(access)) as client:
            assert (await client.get(NODES, "n", Node)).metadata.name == "n"
        assert talk.asked.path == "/k8s/clusters/c1/api/v1/nodes/n"


async def test_the_servers_name_in_its_certificate_may_be_given() -> None:
    ca = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("api.internal").configure_cert(context)
    trusted: dict[str, Any] = {"origin": "test", "ca_pem": ca.cert_pem.bytes()}
    async with scripted_apiserver(OK, answer(201, {}), tls=context) as server:
        named = Access(**trusted, server=server.url, tls_server_name="api.internal")
        async with KubeClient(Credentials(named)) as client:
            await client.request("GET", "/version")
            assert (await client.bind("shop", "p", "u", "n1", {})).status == 201
        async with KubeClient(Credentials(Access(**trusted, server=server.url))) as client:
            with pytest.raises(ConnectionLost, match="CERTIFICATE_VERIFY_FAILED"):
                await client.request("GET", "/version")
            with pytest.raises(ConnectionLost, match="CERTIFICATE_VERIFY_FAILED"):
                await client.bind("shop", "p", "u", "n1", {})


async def test_a_stream_that_is_refused_is_an_api_error() -> None:
    async with talking(failure(403, "Forbidden", "no watch")) as talk:
        with pytest.raises(Forbidden, match="no watch"):
            async with talk.client.stream("/api/v1/pods", {"watch": "true"}, silence_s=1):
                pytest.fail("it was refused")
        assert talk.calls == [("WATCH", 403)]


async def test_closing_the_client_breaks_an_open_stream() -> None:
    async with scripted_apiserver() as server:
        server.then(watch(lambda: server, b"one\n"))
        async with (
            KubeClient(Credentials(Access(origin="test", server=server.url))) as client,
            client.stream("/x", {}, silence_s=5) as stream,
        ):
            assert await stream.batch() == [b"one"]
            await client.close()
            with pytest.raises(ConnectionLost):
                await stream.batch()


@pytest.mark.parametrize(
    ("namespace", "name", "subresource", "path"),
    [
        ("", "", "", "/api/v1/pods"),
        ("shop", "", "", "/api/v1/namespaces/shop/pods"),
        ("shop", "p", "status", "/api/v1/namespaces/shop/pods/p/status"),
        ("shop", "../x", "", "/api/v1/namespaces/shop/pods/..%2Fx"),
        ("a/b", "é", "", "/api/v1/namespaces/a%2Fb/pods/%C3%A9"),
    ],
)
def test_paths_hold_whatever_a_name_holds(
    namespace: str, name: str, subresource: str, path: str
) -> None:
    assert PODS.path(namespace, name, subresource) == path


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(("", "p"), "a namespace is needed"), (("shop", "", "status"), "a name is needed")],
)
def test_paths_that_make_no_sense_are_refused(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PODS.path(*arguments)
    with pytest.raises(ValueError, match="cluster-scoped"):
        NODES.path("shop")
