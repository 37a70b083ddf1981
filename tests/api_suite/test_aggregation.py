"""Aggregated APIs, and the reviews of users that their servers ask for."""

import asyncio
import base64
import json
import ssl
import tempfile
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest
from aiohttp import web

from shared.runtime.certificate_authority import Issued, issue, new_authority
from tests.api_suite.client import Client, Obj
from tests.support.waiting import eventually

SERVICES = "/api/v1/namespaces/{}/services"
API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
TOKENS = "/apis/authentication.k8s.io/v1/tokenreviews"
PODS = {"verb": "list", "resource": "pods", "version": "v1"}
LIFETIME = timedelta(days=1)


class Server:
    """A server of a group of its own, which repeats what it was asked."""

    def __init__(self, group: str, authority: Issued) -> None:
        self.group = group
        self.authority = authority
        self.port = 0
        #: Common name of the certificate that the API server has shown last.
        self.shown = ""
        self.ends = asyncio.Event()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        certificate = request.get_extra_info("peercert") or {}
        for relative_name in certificate.get("subject", ()):
            self.shown = dict(relative_name).get("commonName", "")
        if request.query.get("watch"):
            return await self._watch(request)
        if request.path.endswith("/teapots"):
            return web.json_response({"kind": "Status", "code": 418}, status=418)
        headers = {"ETag": '"7"', "Warning": '299 - "beware"'}
        reported = {
            "method": request.method,
            "path": request.path,
            "query": dict(request.query),
            "user": request.headers.get("X-Remote-User"),
            "groups": request.headers.getall("X-Remote-Group", []),
            "body": (await request.read()).decode(),
            "known": request.headers.get("If-None-Match"),
        }
        document: Obj = {"kind": "APIResourceList", "groupVersion": f"{self.group}/v1", **reported}
        return web.json_response({**document, "apiVersion": "v1", "resources": []}, headers=headers)

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        for name in ("one", "two"):
            event = {"type": "ADDED", "object": {"metadata": {"name": name}}}
            await response.write(json.dumps(event).encode() + b"\n")
        await self.ends.wait()
        return response


@asynccontextmanager
async def serving(namespace: str, front_proxies: str) -> AsyncIterator[Server]:
    """A server behind a Service of the namespace, that asks for certificates of front proxies."""
    now = datetime.now(UTC)
    authority = new_authority("echo-ca", now, LIFETIME)
    certificate = issue(authority, "echo", (f"echo.{namespace}.svc",), now, LIFETIME)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=front_proxies)
    context.verify_mode = ssl.CERT_OPTIONAL
    with tempfile.NamedTemporaryFile(suffix=".pem") as pem:
        pem.write(certificate.key_pem + certificate.certificate_pem)
        pem.flush()
        context.load_cert_chain(pem.name)
    server = Server(f"{namespace}.example.org", authority)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.answer)
    runner = web.AppRunner(app, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
        server.port = runner.addresses[0][1]
        yield server
    finally:
        server.ends.set()
        await runner.cleanup()


def registration(server: Server, namespace: str) -> Obj:
    bundle = base64.b64encode(server.authority.certificate_pem).decode()
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": f"v1.{server.group}"},
        "spec": {
            "group": server.group,
            "version": "v1",
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "service": {"namespace": namespace, "name": "echo", "port": server.port},
            "caBundle": bundle,
        },
    }


def service(host: str) -> Obj:
    spec = {"type": "ExternalName", "externalName": host}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "echo"}, "spec": spec}


async def available(api: Client, server: Server) -> str:
    """The status of the condition Available; "" while there is none."""
    found = await api.get(f"{API_SERVICES}/v1.{server.group}")
    conditions = (found.body.get("status") or {}).get("conditions") or []
    return next((one["status"] for one in conditions if one["type"] == "Available"), "")


@pytest.fixture
async def echo(api: Client, ns: str) -> AsyncIterator[Server]:
    """A registered server that the API server reaches."""
    path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
    trusted = (await api.get(path)).body["data"]
    async with serving(ns, trusted["requestheader-client-ca-file"]) as server:
        await api.create(SERVICES.format(ns), service("127.0.0.1"))
        await api.create(API_SERVICES, registration(server, ns))

        async def reached() -> bool:
            return await available(api, server) == "True"

        await eventually(reached, timeout_s=30, because="the API server reaches the server")
        yield server
        await api.call("DELETE", f"{API_SERVICES}/v1.{server.group}")


async def test_requests_to_a_registered_group_are_answered_by_its_server(
    api: Client, echo: Server
) -> None:
    path = f"/apis/{echo.group}/v1/namespaces/default/things"
    got = await api.get(path, limit="3")
    assert got.status == 200
    assert got.warnings == ["beware"]
    reported = {key: got.body[key] for key in ("method", "path", "query", "body")}
    assert reported == {"method": "GET", "path": path, "query": {"limit": "3"}, "body": ""}
    posted = await api.call("POST", path, {"a": 1})
    assert (posted.body["method"], posted.body["body"]) == ("POST", '{"a": 1}')
    assert (await api.get(f"/apis/{echo.group}/v1/teapots")).status == 418


async def test_the_front_proxy_vouches_for_the_user(api: Client, echo: Server) -> None:
    path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
    trusted = (await api.get(path)).body["data"]
    assert json.loads(trusted["requestheader-username-headers"]) == ["X-Remote-User"]
    assert json.loads(trusted["requestheader-group-headers"]) == ["X-Remote-Group"]
    got = (await api.get(f"/apis/{echo.group}/v1/things")).body
    assert got["user"]
    assert "system:masters" in got["groups"]
    assert echo.shown in json.loads(trusted["requestheader-allowed-names"])


async def test_a_client_cannot_name_another_user(api: Client, echo: Server) -> None:
    path = f"/apis/{echo.group}/v1/things"
    usual = (await api.get(path)).body
    headers = {"X-Remote-User": "eve", "X-Remote-Group": "evil", "If-None-Match": '"7"'}
    given = (await api.get_with_headers(path, headers)).body
    assert (given["user"], given["groups"]) == (usual["user"], usual["groups"])
    assert given["known"] == '"7"'


async def test_a_watch_is_passed_on_while_it_lasts(api: Client, echo: Server) -> None:
    async with api.watch(f"/apis/{echo.group}/v1/things") as events:
        assert await events.take(2) == [("ADDED", "one"), ("ADDED", "two")]
        echo.ends.set()
        with pytest.raises(EOFError):
            await events.next()


async def test_discovery_has_the_group(api: Client, echo: Server) -> None:
    groups = {one["name"]: one for one in (await api.get("/apis")).body["groups"]}
    assert groups[echo.group]["versions"] == [{"groupVersion": f"{echo.group}/v1", "version": "v1"}]
    document = (await api.get(f"/apis/{echo.group}/v1")).body
    assert document["groupVersion"] == f"{echo.group}/v1"


async def test_a_group_whose_server_is_not_reached_is_not_available(api: Client, ns: str) -> None:
    now = datetime.now(UTC)
    server = Server(f"{ns}.example.org", new_authority("echo-ca", now, LIFETIME))
    server.port = 1
    await api.create(SERVICES.format(ns), service("127.0.0.1"))
    await api.create(API_SERVICES, registration(server, ns))

    async def refused() -> bool:
        return await available(api, server) == "False"

    try:
        await eventually(refused, timeout_s=30, because="the condition says so")
        assert (await api.get(f"/apis/{server.group}/v1/things")).status == 503
    finally:
        await api.call("DELETE", f"{API_SERVICES}/v1.{server.group}")

    async def unknown() -> bool:
        return (await api.get(f"/apis/{server.group}/v1/things")).status == 404

    await eventually(unknown, timeout_s=30, because="nothing is registered")


@pytest.mark.parametrize(
    ("groups", "allowed"), [(["system:masters"], True), ([], False), (["others"], False)]
)
async def test_administrators_may_do_everything_and_strangers_nothing(
    api: Client, groups: list[str], allowed: bool
) -> None:
    spec = {"user": f"user-{uuid.uuid4().hex}", "groups": groups, "resourceAttributes": PODS}
    kind = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
    answered = await api.create(REVIEWS, {**kind, "spec": spec})
    assert answered["status"]["allowed"] is allowed
    assert (await api.get(REVIEWS)).status == 405


async def test_an_unknown_token_belongs_to_no_user(api: Client) -> None:
    kind = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview"}
    answered = await api.create(TOKENS, {**kind, "spec": {"token": "a-token"}})
    assert not answered["status"].get("authenticated", False)
    assert answered["status"]["error"]


async def test_the_name_of_a_registration_is_its_version_and_group(api: Client, ns: str) -> None:
    server = Server(f"{ns}.example.org", new_authority("echo-ca", datetime.now(UTC), LIFETIME))
    server.port = 443
    wrong = registration(server, ns) | {"metadata": {"name": f"v2.{server.group}"}}
    refused = await api.call("POST", API_SERVICES, wrong)
    assert (refused.status, refused.reason) == (422, "Invalid")
    assert f"v1.{server.group}" in refused.message
    empty = registration(server, ns) | {"spec": {}}
    assert (await api.call("POST", API_SERVICES, empty)).status == 422
    malformed = registration(server, ns)
    malformed["spec"]["service"]["port"] = "https"
    assert (await api.call("POST", API_SERVICES, malformed)).status == 400


async def test_a_registration_without_a_service_leaves_a_group_where_it_is(
    api: Client, ns: str
) -> None:
    spec = {"group": "policy", "version": "v1"}
    priorities = {"groupPriorityMinimum": 9_900, "versionPriority": 15}
    kind = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService"}
    body = {**kind, "metadata": {"name": "v1.policy"}, "spec": {**spec, **priorities}}
    # The real API server has made one for each of its own groups.
    assert (await api.call("POST", API_SERVICES, body)).status in {201, 409}
    listed = await api.get(f"/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets")
    assert (listed.status, listed.body["items"]) == (200, [])
