"""Admission webhooks, served by this test over TLS."""

import base64
import ssl
from collections.abc import AsyncIterator, Callable

import pytest
import trustme
from aiohttp import web

from tests.api_suite.client import Client, Obj
from tests.api_suite.objects import binding, config_map, pod
from tests.support.waiting import eventually

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"
LABEL = "suite.tutti.dev/admitted"

Respond = Callable[[Obj], Obj]


class Hook:
    """A webhook: what it was asked, and what it answers."""

    def __init__(self) -> None:
        self.asked: list[Obj] = []
        self.respond: Respond = lambda _: {"allowed": True}
        self.status = 200
        self.url = ""
        self.bundle = ""

    async def handle(self, request: web.Request) -> web.Response:
        review = await request.json()
        assert (review["apiVersion"], review["kind"]) == (
            "admission.k8s.io/v1",
            "AdmissionReview",
        )
        asked = review["request"]
        if asked.get("name") != "probe":
            self.asked.append(asked)
        answer = self.respond(asked)
        if asked.get("name") == "probe":
            answer = {"allowed": False, "status": {"message": "the webhook is in force"}}
        body = {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "response": {"uid": asked["uid"], **answer},
        }
        return web.json_response(body, status=self.status)


@pytest.fixture
async def hook() -> AsyncIterator[Hook]:
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    served = Hook()
    app = web.Application(client_max_size=2**22)
    app.router.add_post("/hook", served.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.5)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    port = runner.addresses[0][1]
    served.url = f"https://127.0.0.1:{port}/hook"
    served.bundle = base64.b64encode(authority.cert_pem.bytes()).decode()
    yield served
    await runner.cleanup()


class Registration:
    """Puts a webhook in force for the test's namespace, and takes it away again."""

    def __init__(self, api: Client, hook: Hook, ns: str) -> None:
        self.api, self.hook, self.ns = api, hook, ns
        self.paths: list[str] = []

    async def add(
        self, kind: str, *, resource: str = "configmaps", wait: bool = True, **webhook: object
    ) -> None:
        plural = f"{kind.lower()}webhookconfigurations"
        name = f"{self.ns}-{kind.lower()}"
        rule = {
            "operations": ["*"],
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "resources": [resource, *(() if "/" not in resource else ("configmaps",))],
        }
        own = {"kubernetes.io/metadata.name": self.ns}
        body = {
            "name": "gate.suite.tutti.dev",
            "clientConfig": {"url": self.hook.url, "caBundle": self.hook.bundle},
            "rules": [rule],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "namespaceSelector": {"matchLabels": own},
            "timeoutSeconds": 2,
            **webhook,
        }
        head = {"apiVersion": "admissionregistration.k8s.io/v1"}
        configuration = {
            **head,
            "kind": f"{kind}WebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": [body],
        }
        await self.api.create(f"{CONFIGURATIONS}/{plural}", configuration)
        self.paths.append(f"{CONFIGURATIONS}/{plural}/{name}")
        if wait:
            await eventually(self._in_force)

    async def _in_force(self) -> bool:
        probe = config_map("probe", labels={LABEL: "yes"})
        path = f"/api/v1/namespaces/{self.ns}/configmaps"
        return (await self.api.call("POST", path, probe, dryRun="All")).status != 201


@pytest.fixture
async def register(api: Client, hook: Hook, ns: str) -> AsyncIterator[Registration]:
    registration = Registration(api, hook, ns)
    yield registration
    for path in registration.paths:
        await api.call("DELETE", path)


def patching(*operations: Obj) -> Respond:
    import json

    patch = base64.b64encode(json.dumps(operations).encode()).decode()
    return lambda _: {"allowed": True, "patchType": "JSONPatch", "patch": patch}


async def test_a_validating_webhook_receives_the_whole_request(
    api: Client, maps: str, ns: str, hook: Hook, register: Registration
) -> None:
    await register.add("Validating")
    made = await api.create(maps, config_map("one"))
    await api.patch(f"{maps}/one", {"data": {"a": "1"}})
    await api.call("DELETE", f"{maps}/one")
    create, update, delete = hook.asked
    assert [asked["operation"] for asked in hook.asked] == ["CREATE", "UPDATE", "DELETE"]
    assert create["kind"] == {"group": "", "version": "v1", "kind": "ConfigMap"}
    assert create["resource"] == {"group": "", "version": "v1", "resource": "configmaps"}
    assert (create["namespace"], create["name"], create["dryRun"]) == (ns, "one", False)
    assert create["object"]["metadata"]["uid"] == made["metadata"]["uid"]
    assert create["oldObject"] is None
    assert create["userInfo"]["username"]
    assert create["options"]["kind"] == "CreateOptions"
    assert (update["object"]["data"], "data" in update["oldObject"]) == ({"a": "1"}, False)
    assert delete["object"] is None
    assert delete["oldObject"]["data"] == {"a": "1"}


async def test_a_refusal_reaches_the_client(
    api: Client, maps: str, hook: Hook, register: Registration
) -> None:
    await register.add("Validating")
    hook.respond = lambda _: {"allowed": False, "status": {"message": "no such queue"}}
    refused = await api.call("POST", maps, config_map("one"))
    assert refused.status == 400
    expected = 'admission webhook "gate.suite.tutti.dev" denied the request: no such queue'
    assert refused.message == expected
    hook.respond = lambda _: {"allowed": False, "status": {"code": 403, "reason": "Forbidden"}}
    refused = await api.call("POST", maps, config_map("one"))
    assert (refused.status, refused.reason) == (403, "Forbidden")
    hook.respond = lambda _: {"allowed": False}
    refused = await api.call("POST", maps, config_map("one"))
    assert refused.message.endswith("denied the request without explanation")
    assert (await api.get(f"{maps}/one")).status == 404


async def test_a_mutating_webhook_changes_the_object(
    api: Client, maps: str, hook: Hook, register: Registration
) -> None:
    await register.add("Mutating")
    hook.respond = patching({"op": "add", "path": "/data", "value": {"by": "webhook"}})
    made = await api.create(maps, config_map("one"))
    assert made["data"] == {"by": "webhook"}
    assert (await api.get(f"{maps}/one")).body["data"] == {"by": "webhook"}


async def test_what_a_webhook_made_is_validated(
    api: Client, maps: str, hook: Hook, register: Registration
) -> None:
    await register.add("Mutating")
    labels = {"op": "add", "path": "/metadata/labels", "value": {"a": "not valid"}}
    hook.respond = patching(labels)
    refused = await api.call("POST", maps, config_map("one"))
    assert (refused.status, refused.reason) == (422, "Invalid")
    hook.respond = patching({"op": "remove", "path": "/not/there"})
    refused = await api.call("POST", maps, config_map("one"))
    assert (refused.status, refused.reason) == (500, "InternalError")


async def test_the_validating_webhook_sees_what_the_mutating_one_made(
    api: Client, maps: str, hook: Hook, register: Registration
) -> None:
    await register.add("Mutating")
    await register.add("Validating")
    change = patching({"op": "add", "path": "/data", "value": {"by": "webhook"}})
    hook.respond = lambda asked: {"allowed": True} if "data" in asked["object"] else change(asked)
    await api.create(maps, config_map("one"))
    assert ["data" in asked["object"] for asked in hook.asked] == [False, True]


async def test_warnings_reach_the_client(
    api: Client, maps: str, hook: Hook, register: Registration
) -> None:
    await register.add("Validating")
    hook.respond = lambda _: {"allowed": True, "warnings": ["this gang can never run", "two"]}
    answer = await api.call("POST", maps, config_map("one"))
    assert (answer.status, answer.warnings) == (201, ["this gang can never run", "two"])


@pytest.mark.parametrize(("policy", "status"), [("Ignore", 201), ("Fail", 500)])
async def test_the_failure_policy_decides_when_no_webhook_answers(
    api: Client, maps: str, hook: Hook, register: Registration, policy: str, status: int
) -> None:
    await register.add("Validating", failurePolicy=policy)
    hook.status = 503
    answer = await api.call("POST", maps, config_map("one"))
    assert answer.status == status
    if status == 500:
        assert answer.reason == "InternalError"
        text = 'failed calling webhook "gate.suite.tutti.dev": '
        assert answer.message.startswith(f"Internal error occurred: {text}")


async def test_selectors_choose_the_objects(
    api: Client, maps: str, hook: Hook, register: Registration
) -> None:
    await register.add("Validating", objectSelector={"matchLabels": {LABEL: "yes"}})
    await api.create(maps, config_map("other"))
    await api.create(maps, config_map("one", labels={LABEL: "yes"}))
    await api.create("/api/v1/namespaces/default/configmaps", config_map("elsewhere"))
    await api.call("DELETE", "/api/v1/namespaces/default/configmaps/elsewhere")
    assert [asked["name"] for asked in hook.asked] == ["one"]
    hook.asked.clear()
    await api.patch(f"{maps}/one", {"metadata": {"labels": None}})
    assert len(hook.asked) == 1, "an object that was selected before is asked about"


async def test_dry_runs_say_so(api: Client, maps: str, hook: Hook, register: Registration) -> None:
    await register.add("Validating")
    await api.create(maps, config_map("one"), dryRun="All")
    assert hook.asked[0]["dryRun"] is True
    assert hook.asked[0]["options"]["dryRun"] == ["All"]


async def test_subresources_are_asked_about_by_name(
    api: Client, pods: str, hook: Hook, register: Registration
) -> None:
    await register.add("Validating", resource="pods/binding")
    await api.create(pods, pod())
    await api.create(f"{pods}/one/binding", binding())
    (asked,) = hook.asked
    assert (asked["subResource"], asked["operation"]) == ("binding", "CREATE")
    assert asked["kind"]["kind"] == "Binding"
    assert asked["resource"]["resource"] == "pods"
    assert asked["object"]["target"]["name"] == "node-a"
    hook.respond = lambda _: {"allowed": False, "status": {"message": "not there"}}
    await api.create(pods, pod("two"))
    refused = await api.call("POST", f"{pods}/two/binding", binding("two"))
    assert refused.status == 400
    assert "denied the request: not there" in refused.message


async def test_broken_configurations_are_refused(api: Client, ns: str) -> None:
    path = f"{CONFIGURATIONS}/validatingwebhookconfigurations"
    body = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": ns},
        "webhooks": [{"name": "a.example.com", "clientConfig": {"url": "http://x"}}],
    }
    refused = await api.call("POST", path, body)
    assert (refused.status, refused.reason) == (422, "Invalid")
    fields = {cause["field"] for cause in refused.body["details"]["causes"]}
    assert {"webhooks[0].sideEffects", "webhooks[0].admissionReviewVersions"} <= fields
    assert "webhooks[0].clientConfig.url" in fields
