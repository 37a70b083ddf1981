"""Faults on demand: latency, refusals, answers lost after the deed, broken and expired watches.

Rules are met in order, and only by requests over HTTP: the simulated kubelets and the stand-in
operator live inside and are spared. Nothing here is random, so what fails once fails again.
"""

import re
from collections.abc import Callable

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


class Rule(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """One fault. Empty conditions match all; `name` and `namespace` are regular expressions."""

    verb: str = ""  # get, list, watch, create, update, patch, delete, deletecollection
    resource: str = ""  # plural
    subresource: str | None = None
    namespace: str = ""
    name: str = ""
    dry_run: bool | None = None
    status: int = 0  # the answer's code; 0: only late
    message: str = "told to misbehave"
    retry_after_s: int | None = None
    latency_ms: int = 0
    after: bool = False  # do what is asked, then answer as if it had failed
    every: int = 1  # only each n-th request that matches
    times: int = -1  # how often; -1: without end


class Order(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What is posted to /tutti/misbehave, done in this order."""

    clear: bool = False
    rules: list[Rule] = []
    drop_watches: bool = False
    expire_watches: bool = False


class Fault(msgspec.Struct, frozen=True):
    """What happens to one request; it has an effect, so one of latency and error is set."""

    latency_ms: int
    after: bool
    error: ApiError | None


class _Entry(msgspec.Struct):
    rule: Rule
    met: int = 0  # requests that matched
    done: int = 0  # those that it spoilt


class Misbehaviour:
    """The rules in force, and the two things that happen at once."""

    def __init__(
        self, drop_watches: Callable[[], None], expire_watches: Callable[[], None]
    ) -> None:
        self.drop_watches = drop_watches
        self.expire_watches = expire_watches
        self._entries: list[_Entry] = []

    def add(self, rule: Rule) -> None:
        """Puts a rule in force, after those that are. Raises ApiError 400 if it could not work."""
        if len(self._entries) >= RULES_MAX:
            raise bad_request(f"at most {RULES_MAX} rules")
        if rule.status and rule.status not in _REASONS:
            raise bad_request(f"status: {rule.status} is not one of {sorted(_REASONS)}")
        if rule.every < 1 or rule.latency_ms < 0:
            raise bad_request("every must be positive, latencyMs not negative")
        try:
            re.compile(rule.name)
            re.compile(rule.namespace)
        except re.error as error:
            raise bad_request(f"name, namespace: no regular expression: {error}") from error
        self._entries.append(_Entry(rule))

    def clear(self) -> None:
        """Good behaviour again."""
        self._entries = []

    @property
    def done(self) -> list[int]:
        """How many requests each rule spoilt."""
        return [entry.done for entry in self._entries]

    def obey(self, body: bytes) -> None:
        """Does what was posted. Raises ApiError 400 for an order that cannot be read."""
        try:
            order = msgspec.json.decode(body, type=Order)
        except msgspec.DecodeError as error:
            raise bad_request(str(error)) from error
        if order.clear:
            self.clear()
        for rule in order.rules:
            self.add(rule)
        if order.drop_watches:
            self.drop_watches()
        if order.expire_watches:
            self.expire_watches()

    def fault(self, verb: str, call: Call) -> Fault | None:
        """What the first rule that matches does to this request."""
        for entry in self._entries:
            rule = entry.rule
            if entry.done == rule.times or not _matches(rule, verb, call):
                continue
            entry.met += 1
            if entry.met % rule.every == 0:
                entry.done += 1
                return Fault(rule.latency_ms, rule.after, _error(rule, call))
        return None


def _matches(rule: Rule, verb: str, call: Call) -> bool:
    return (
        rule.verb in ("", verb)
        and rule.resource in ("", call.resource.plural)
        and rule.subresource in (None, call.subresource)
        and rule.dry_run in (None, call.dry_run)
        and (not rule.name or re.fullmatch(rule.name, call.name) is not None)
        and (not rule.namespace or re.fullmatch(rule.namespace, call.namespace) is not None)
    )


def _error(rule: Rule, call: Call) -> ApiError | None:
    if not rule.status:
        return None
    details, reason = details_of(call.resource, call.name), _REASONS[rule.status]
    retry = rule.retry_after_s
    return ApiError(rule.status, reason, rule.message, details=details, retry_after_s=retry)
