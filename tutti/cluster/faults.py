"""Faults on demand: latency, refusals, answers lost after the deed, broken and expired watches.

Rules are met in order, and only by requests over HTTP: the simulated kubelets and the stand-in
operator live inside and are spared. Nothing here is random, so what fails once fails again.
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
    """One fault. What is not given matches all."""

    verb: str = ""  # get, list, watch, create, update, patch, delete
    resource: str = ""  # plural
    subresource: str | None = None
    name: str = ""
    dry_run: bool | None = None
    status: int = 0  # the answer's code; 0: only late
    retry_after_s: int | None = None
    latency_ms: Annotated[int, msgspec.Meta(ge=0)] = 0
    after: bool = False  # do what is asked, then answer as if it had failed
    times: int = -1  # how often; -1: without end
    done: int = 0  # how many requests it spoilt

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
        """The answer of a rule that has a status."""
        return ApiError(
            self.status,
            _REASONS[self.status],
            "configured to misbehave",
            details=details_of(call.resource, call.name),
            retry_after_s=self.retry_after_s,
        )


class FaultRequest(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What is posted to /tutti/misbehave, done in this order."""

    clear: bool = False
    rules: list[FaultRule] = []
    drop_watches: bool = False
    expire_watches: bool = False


class FaultInjector:
    """The rules in force, and the two things that happen at once."""

    def __init__(
        self, drop_watches: Callable[[], None], expire_watches: Callable[[], None]
    ) -> None:
        self.drop_watches = drop_watches
        self.expire_watches = expire_watches
        self.rules: list[FaultRule] = []

    @property
    def done(self) -> list[int]:
        """How many requests each rule spoilt."""
        return [rule.done for rule in self.rules]

    def apply(self, body: bytes) -> None:
        """Does what was posted. Raises ApiError 400 for an order that cannot be read."""
        try:
            order = msgspec.json.decode(body, type=FaultRequest)
        except msgspec.DecodeError as error:
            raise bad_request(str(error)) from error
        self.rules = [] if order.clear else self.rules
        if len(self.rules) + len(order.rules) > RULES_MAX:
            raise bad_request(f"at most {RULES_MAX} rules")
        self.rules += order.rules
        if order.drop_watches:
            self.drop_watches()
        if order.expire_watches:
            self.expire_watches()

    def rule_for(self, verb: str, call: Call) -> FaultRule | None:
        """The first rule that matches this request, counted as done."""
        rule = next((rule for rule in self.rules if rule.matches(verb, call)), None)
        if rule is not None:
            rule.done += 1
        return rule
