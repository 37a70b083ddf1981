"""Injects faults: latency, errors, lost answers, broken and expired watches.

Rules are matched in order, and only against requests over HTTP: the simulated kubelets and the
stand-in operator run inside and are not affected. Nothing is random, so failures are reproducible.
"""

from collections.abc import Callable
from typing import Annotated

import msgspec

from tutti.cluster.admission import Call
from tutti.cluster.errors import ApiError, bad_request, details_of

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
    """The body of POST /tutti/misbehave; its fields apply in this request."""

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
