"""Makes bindings scarce on a real API server, so that little is a lot for the binder.

Two things together, both the API server's own: a PriorityLevelConfiguration that leaves the binder
next to no seats, and a webhook on `pods/binding` that keeps each seat for a while. What finds no
seat waits in the API server, or is answered 429 with Retry-After.
"""

import asyncio
import base64
import json
import re
import ssl
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from aiohttp import web

from bench.testbed import Bed
from tests.controlplane.components import ControlPlaneOptions

#: A binding keeps its seat for so long at least: two pods can be bound a second.
_SLOW_S_MIN: Final = 1.5
#: At most: a gang of a few pods has to be bound well within its repair deadline.
_SLOW_S_MAX: Final = 5.0
#: Kubernetes' own defaults: of their 600 seats one share is three.
SMALL: Final = ControlPlaneOptions(requests_inflight_max=400, mutating_requests_inflight_max=200)
_SEATS: Final = 3
USER: Final = "tutti-overload"
_LEVEL: Final = "tutti-overload"
_PATH: Final = "/binding"
_FLOW_CONTROL: Final = "/apis/flowcontrol.apiserver.k8s.io/v1"
_WEBHOOKS: Final = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
_BINDINGS: Final = {"apiGroups": [""], "resources": ["pods/binding"]}
_REJECTED: Final = re.compile(
    r"^apiserver_flowcontrol_rejected_requests_total\{[^}]*"
    rf'priority_level="{_LEVEL}"[^}}]*\}} (\S+)',
    re.MULTILINE,
)


class Scarcity:
    """For how long a binding keeps its seat; it may be changed at any time."""

    def __init__(self) -> None:
        self.slow_s = _SLOW_S_MIN

    def leave(self, pods_per_s: float) -> None:
        """Make bindings so slow that at most about as many pods are bound, within limits."""
        self.slow_s = min(max(_SEATS / pods_per_s, _SLOW_S_MIN), _SLOW_S_MAX)


@asynccontextmanager
async def scarce_bindings(bed: Bed, *, reject: bool) -> AsyncIterator[Scarcity]:
    """Let `USER` do all, and bind few pods at a time and slowly, until the block is left.

    Args:
        bed: Where.
        reject: 429 instead of a queue.
    """
    await _admit_user(bed)
    await _few_seats(bed, reject=reject)
    scarcity = Scarcity()
    async with _slow_webhook(bed, scarcity):
        yield scarcity


async def rejected(bed: Bed) -> int:
    """How many bindings the API server has answered with 429 so far."""
    metrics = await bed.client.text("/metrics")
    return int(sum(float(one) for one in _REJECTED.findall(metrics)))


async def _admit_user(bed: Bed) -> None:
    role = {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "ClusterRole",
        "name": "cluster-admin",
    }
    subject = {"kind": "User", "name": USER, "apiGroup": "rbac.authorization.k8s.io"}
    await bed.client.create(
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        {"metadata": {"name": USER}, "roleRef": role, "subjects": [subject]},
    )


async def _few_seats(bed: Bed, *, reject: bool) -> None:
    answer: dict[str, Any] = {"type": "Reject"}
    if not reject:
        answer = {
            "type": "Queue",
            "queuing": {"queues": 8, "handSize": 4, "queueLengthLimit": 50},
        }
    limited = {
        "nominalConcurrencyShares": 1,
        "lendablePercent": 0,
        "borrowingLimitPercent": 0,
        "limitResponse": answer,
    }
    await bed.client.create(
        f"{_FLOW_CONTROL}/prioritylevelconfigurations",
        {"metadata": {"name": _LEVEL}, "spec": {"type": "Limited", "limited": limited}},
    )
    rule = {
        "subjects": [{"kind": "User", "user": {"name": USER}}],
        "resourceRules": [{**_BINDINGS, "verbs": ["create"], "namespaces": ["*"]}],
    }
    spec = {
        "priorityLevelConfiguration": {"name": _LEVEL},
        "matchingPrecedence": 100,
        "rules": [rule],
    }
    await bed.client.create(
        f"{_FLOW_CONTROL}/flowschemas", {"metadata": {"name": _LEVEL}, "spec": spec}
    )


@asynccontextmanager
async def _slow_webhook(bed: Bed, scarcity: Scarcity) -> AsyncIterator[None]:
    authority = bed.control_plane.authority
    runner = web.AppRunner(_application(scarcity), access_log=None)
    await runner.setup()
    pair = authority.server(["127.0.0.1"])
    site = web.TCPSite(
        runner, "127.0.0.1", 0, ssl_context=_server_tls(pair.certificate_pem + pair.key_pem)
    )
    await site.start()
    webhook = {
        "name": "slow.tutti.test",
        "clientConfig": {
            "url": f"https://127.0.0.1:{runner.addresses[0][1]}{_PATH}",
            "caBundle": base64.b64encode(authority.certificate_pem).decode(),
        },
        "rules": [{**_BINDINGS, "apiVersions": ["v1"], "operations": ["CREATE"]}],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "admissionReviewVersions": ["v1"],
    }
    try:
        await bed.client.create(_WEBHOOKS, {"metadata": {"name": _LEVEL}, "webhooks": [webhook]})
        yield
    finally:
        await bed.client.delete(f"{_WEBHOOKS}/{_LEVEL}")
        await runner.cleanup()


def _application(scarcity: Scarcity) -> web.Application:
    async def allow_late(request: web.Request) -> web.Response:
        review = json.loads(await request.read())
        await asyncio.sleep(scarcity.slow_s)
        answer = {"uid": review["request"]["uid"], "allowed": True}
        return web.json_response(
            {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": answer}
        )

    application = web.Application()
    application.router.add_post(_PATH, allow_late)
    return application


def _server_tls(pem: bytes) -> ssl.SSLContext:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:
        file.write(pem)
        file.flush()
        tls.load_cert_chain(file.name)
    return tls
