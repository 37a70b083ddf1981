"""An embedded cluster with injected faults: latency, errors, lost answers, broken and expired
watches, as tests set them, in process or by a POST to ORDERS.

Rules are matched in order, and only against requests over HTTP: the simulated kubelets and the
stand-in operator run inside and are not affected. Nothing is random, so failures are reproducible.
"""

import asyncio
from collections.abc import Callable
from typing import Annotated

import msgspec
from aiohttp import web
from typing_extensions import override

from tutti.cluster.admission import Call
from tutti.cluster.aggregation import Aggregator
from tutti.cluster.api import Api
from tutti.cluster.embedded import EmbeddedCluster
from tutti.cluster.errors import ApiError, bad_request, details_of
from tutti.cluster.server import Server

#: Where orders (`FaultRequest`) are sent, and the numbers of affected requests are read.
ORDERS = "/tutti/misbehave"
RULES_MAX = 100
_REASONS = {
    403: "Forbidden",
    409: "Conflict",
    410: "Expired",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class FaultRule(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """One fault. A field that is not set matches everything."""

    verb: str = ""  # get, list, watch, create, update, patch, delete, deletecollection
    resource: str = ""  # plural
    subresource: str | None = None
    name: str = ""
    dry_run: bool | None = None
    status: int = 0  # code of the answer; 0: only the latency applies
    retry_after_s: int | None = None
    latency_ms: Annotated[int, msgspec.Meta(ge=0)] = 0
    after: bool = False  # carry out the request, then answer with the error
    times: int = -1  # number of requests; -1: no limit
    done: int = 0  # number of affected requests

    def __post_init__(self) -> None:
        if self.status and self.status not in _REASONS:
            raise ValueError(f"status: {self.status} is not one of {sorted(_REASONS)}")

    def matches(self, verb: str, call: Call) -> bool:
        return (
            self.done != self.times
            and self.verb in ("", verb)
            and self.resource in ("", call.resource.plural)
            and self.subresource in (None, call.subresource)
            and self.name in ("", call.name)
            and self.dry_run in (None, call.dry_run)
        )

    def error(self, call: Call) -> ApiError:
        return ApiError(
            self.status,
            _REASONS[self.status],
            "configured to misbehave",
            details=details_of(call.resource, call.name),
            retry_after_s=self.retry_after_s,
        )


class FaultRequest(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The body of a POST to ORDERS; its fields apply in this request."""

    clear: bool = False
    rules: list[FaultRule] = []
    drop_watches: bool = False
    expire_watches: bool = False


class FaultInjector:
    """The rules in force, and the two immediate faults."""

    def __init__(
        self, drop_watches: Callable[[], None], expire_watches: Callable[[], None]
    ) -> None:
        self.drop_watches = drop_watches
        self.expire_watches = expire_watches
        self.rules: list[FaultRule] = []

    @property
    def done(self) -> list[int]:
        """The number of affected requests, by rule."""
        return [rule.done for rule in self.rules]

    def apply(self, body: bytes) -> None:
        """Apply a posted request. Raises ApiError 400 if it cannot be read."""
        try:
            request = msgspec.json.decode(body, type=FaultRequest)
        except msgspec.DecodeError as error:
            raise bad_request(str(error)) from error
        self.rules = [] if request.clear else self.rules
        if len(self.rules) + len(request.rules) > RULES_MAX:
            raise bad_request(f"at most {RULES_MAX} rules")
        self.rules += request.rules
        if request.drop_watches:
            self.drop_watches()
        if request.expire_watches:
            self.expire_watches()

    def rule_for(self, verb: str, call: Call) -> FaultRule | None:
        """The first rule that matches this request, which it counts."""
        rule = next((rule for rule in self.rules if rule.matches(verb, call)), None)
        if rule is not None:
            rule.done += 1
        return rule


class _FaultyServer(Server):
    def __init__(self, api: Api, aggregator: Aggregator) -> None:
        super().__init__(api, aggregator)
        self.faults = FaultInjector(self.drop_watches, api.store.expire_all)

    @override
    async def answer(self, request: web.Request) -> web.StreamResponse:
        if request.path != ORDERS:
            return await super().answer(request)
        if request.method == "POST":
            self.faults.apply(await request.read())
        return web.json_response({"done": self.faults.done})

    @override
    async def carry_out(self, verb: str, call: Call, request: web.Request) -> web.StreamResponse:
        rule = self.faults.rule_for(verb, call)
        if rule is None:
            return await super().carry_out(verb, call, request)
        await asyncio.sleep(rule.latency_ms / 1000)
        if rule.status and not rule.after:
            raise rule.error(call)
        answer = await super().carry_out(verb, call, request)
        if rule.status:
            raise rule.error(call)
        return answer


class FaultyCluster(EmbeddedCluster):
    """An embedded cluster whose server has `faults`."""

    faults: FaultInjector

    @override
    def make_server(self, aggregator: Aggregator) -> Server:
        server = _FaultyServer(self.api, aggregator)
        self.faults = server.faults
        return server
