"""The API server's front: what clients reach, with latency and with everything that can go wrong.

A request is carried out at one instant, when it arrives; its answer travels back after that. Both
ways can be lost, independently: what was carried out and never answered is the case that matters.
Watches are sent what happened in order, late; they can be cut, and their version can be compacted.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from shared.kube.errors import ConnectionLost, KubeError
from shared.kube.resources import CORE_EVENTS, PODS, RESOURCE_CLAIMS, Resource
from shared.kube.transport import Reply
from tests.simulation.kube_server import Etcd, Obj, Row, Watch, Write, stamp, with_

Answered = Callable[[Reply | KubeError], None]

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode
ENDED: Final = ("Succeeded", "Failed")
#: On a pod: its disruption budget is spent.
BUDGET: Final = "simulation/budget"
_PAGED_MAX: Final = 32


class KubeRates(msgspec.Struct):
    """How often what goes wrong, as shares of all requests (or watch deliveries); all off."""

    lost_request: float = 0.0
    lost_reply: float = 0.0
    throttled: float = 0.0
    broken: float = 0.0
    broken_applied: float = 0.0
    slow: float = 0.0
    watch_late: float = 0.0
    watch_cut: float = 0.0


class Request(msgspec.Struct, frozen=True):
    """What a client sent."""

    by: str
    method: str
    path: str
    params: Mapping[str, str]
    body: bytes


class Refusal(Exception):
    """An answer of 400 or above."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status, self.reason, self.message = status, reason, message


Policy = Callable[[Obj, str], Refusal | None]
"""Whether an admission policy refuses to bind this pod to this node; asked for dry runs alike."""
PatchPolicy = Callable[[Resource, str], Refusal | None]
"""Whether an admission policy refuses to patch a subresource of an object."""


class ApiServer:
    """One API server on one etcd."""

    def __init__(self, etcd: Etcd, *, on_fault: Callable[[str], None]) -> None:
        self.etcd = etcd
        self.loop = etcd.loop
        self.rates = KubeRates()
        self.policies: list[Policy] = []
        self.patch_policies: list[PatchPolicy] = []
        self.requests = 0
        self._on_fault = on_fault
        self._rng = etcd.loop.dice.rng("kube")
        self._watches: list[Watch] = []
        #: Lists whose later pages have not been asked for, by their version.
        self._paged: dict[str, list[Row]] = {}
        #: Bindings that a client has sent and that have not arrived: (pod UID, node).
        self.pods_in_flight: dict[int, tuple[str, str]] = {}
        #: Virtual seconds: refuses connections until then; carries nothing out until then.
        self.down_until_s = 0.0
        self.hung_until_s = 0.0
        self._resources = {(each.group, each.version, each.plural): each for each in etcd.tables}
        etcd.observers.append(self._changed)
        etcd.on_restore.append(self.cut_watches)

    # ---- requests

    def submit(self, request: Request, answered: Answered) -> None:
        """A client has sent this; `answered` is called once, or never (lost)."""
        self.requests += 1
        at, rng, rates = self.loop.at, self._rng, self.rates
        if self.loop.time() < self.down_until_s:
            at(0.001, answered, ConnectionLost("connection refused"))
            return
        delay_s = 0.0005 + rng.random() * 0.004
        roll = rng.random()
        for kind, share in (
            ("lost_request", rates.lost_request),
            ("lost_reply", rates.lost_reply),
            ("throttled", rates.throttled),
            ("broken", rates.broken),
            ("broken_applied", rates.broken_applied),
            ("slow", rates.slow),
        ):
            roll -= share
            if roll < 0:
                self._on_fault(f"api.{kind}")
                break
        else:
            kind = ""
        if kind == "slow":
            delay_s += rng.random() ** 2 * 12.0
        delay_s = max(delay_s, self.hung_until_s - self.loop.time())
        if kind == "lost_request":
            self._lose(request, delay_s, answered)
            return
        if kind not in _FAILURES and request.path.endswith("/binding") and not request.params:
            binding: Obj = _decode(request.body)
            pair = binding["metadata"].get("uid", ""), binding["target"]["name"]
            self.pods_in_flight[self.requests] = pair
        at(delay_s, self._arrive, request, kind, answered, self.requests)

    def _arrive(self, request: Request, kind: str, answered: Answered, number: int) -> None:
        self.pods_in_flight.pop(number, None)
        if self.loop.time() < self.down_until_s:
            answered(ConnectionLost("the server went away"))
            return
        reply = _FAILURES[kind] if kind in _FAILURES else self.carry_out(request)
        back_s = 0.0005 + self._rng.random() * 0.002
        if kind == "lost_reply":
            self._lose(request, back_s, answered)
            return
        if kind == "broken_applied" and request.method != "GET":
            reply = _status(504, "Timeout", "request did not complete within the allotted time")
        self.loop.at(back_s, answered, reply)

    def _lose(self, request: Request, delay_s: float, answered: Answered) -> None:
        """The client sees the connection break: mostly at once, sometimes only when its kernel
        finds the other end gone.
        """
        if self._rng.random() < 0.25:
            delay_s += self._rng.random() * 8.0
            if request.method == "GET":
                self._on_fault("api.silence")
        self.loop.at(delay_s, answered, ConnectionLost("broken before the answer"))

    def carry_out(self, request: Request) -> Reply:
        """Do it now and return the answer."""
        try:
            return self._route(request)
        except Refusal as refusal:
            return refused(refusal)

    def _route(self, request: Request) -> Reply:
        match request.path.split("/"):
            case ["", "version"]:
                return Reply(200, b"{}", {})
            case ["", "apis", group]:
                return self._discover(group)
            case ["", "apis", group, version]:
                return self._discover(group, version)
            case _:
                return self._serve(request)

    def _serve(self, request: Request) -> Reply:
        resource, namespace, name, sub = self._parse(request.path)
        match request.method, bool(name), sub:
            case "GET", False, "":
                return self._list(resource, request.params)
            case "GET", True, "":
                row = self.etcd.row(resource, namespace, name)
                if row is None:
                    raise _not_found(resource, name)
                return Reply(200, row.encoded(), {})
            case "POST", True, "binding":
                return self._bind(request, namespace, name)
            case "POST", True, "eviction":
                return self._evict(request, namespace, name)
            case "POST", False, "":
                return self._create(request, resource, namespace)
            case "PATCH" | "PUT", True, "" | "status":
                change = self._replace if request.method == "PUT" else self._patch
                return change(request, resource, namespace, name, sub)
            case "DELETE", True, "":
                return self._delete(request, resource, namespace, name)
            case _:
                raise Refusal(405, "MethodNotAllowed", f"{request.method} {request.path}")

    def _discover(self, group: str, version: str = "") -> Reply:
        """The versions of a group, or the kinds of one version."""
        served = [(one, kind) for of, one, kind in self._resources if of == group]
        if not any(version in ("", one) for one, _ in served):
            raise Refusal(404, "NotFound", "the server could not find the requested resource")
        if not version:
            names = sorted({one for one, _ in served})
            return Reply(200, _encode({"versions": [{"version": one} for one in names]}), {})
        kinds = [{"name": kind} for one, kind in served if one == version]
        return Reply(200, _encode({"resources": kinds}), {})

    def _parse(self, path: str) -> tuple[Resource, str, str, str]:
        parts = path.split("/")
        if parts[1] == "api":
            group, version, rest = "", parts[2], parts[3:]
        else:
            group, version, rest = parts[2], parts[3], parts[4:]
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2:
            namespace, rest = rest[1], rest[2:]
        resource = self._resources.get((group, version, rest[0]))
        if resource is None:
            raise Refusal(404, "NotFound", "the server could not find the requested resource")
        return resource, namespace, rest[1] if len(rest) > 1 else "", "/".join(rest[2:])

    # ---- verbs

    def _list(self, resource: Resource, params: Mapping[str, str]) -> Reply:
        version, begin, limit = str(self.etcd.version), 0, int(params.get("limit", "0"))
        if continue_ := params.get("continue"):
            version, _, at = continue_.partition("/")
            begin = int(at)
            if int(version) < self.etcd.compacted or version not in self._paged:
                raise Refusal(410, "Expired", "the provided continue parameter is too old")
            rows = self._paged[version]
        else:
            rows = list(self.etcd.tables[resource].values())
        end = begin + limit if limit else len(rows)
        more = ""
        if end < len(rows):
            more = f"{version}/{end}"
            self._paged[version] = rows
            if len(self._paged) > _PAGED_MAX:
                del self._paged[next(iter(self._paged))]
        meta = b'{"resourceVersion":"%s","continue":"%s"}' % (version.encode(), more.encode())
        items = b",".join([row.encoded() for row in rows[begin:end]])
        return Reply(200, b'{"kind":"List","metadata":%s,"items":[%s]}' % (meta, items), {})

    def _create(self, request: Request, resource: Resource, namespace: str) -> Reply:
        if resource == CORE_EVENTS:
            return Reply(201, request.body, {})
        obj: Obj = _decode(request.body)
        obj = with_(obj, metadata={"namespace": namespace or None})
        if resource == PODS:
            obj.setdefault("status", {"phase": "Pending"})
        elif resource == RESOURCE_CLAIMS:
            obj.setdefault("status", {})
        made = self.etcd.create(resource, obj, by=request.by)
        if made is None:
            name = obj["metadata"]["name"]
            raise Refusal(409, "AlreadyExists", f'{resource.plural} "{name}" already exists')
        return Reply(201, _encode(made), {})

    def _bind(self, request: Request, namespace: str, name: str) -> Reply:
        binding: Obj = _decode(request.body)
        node, wanted = binding["target"]["name"], binding["metadata"]
        pod = self.etcd.get(PODS, namespace, name)
        if pod is None:
            raise _not_found(PODS, name)
        for policy in self.policies:
            refusal = policy(pod, node)
            if refusal is not None:
                raise refusal
        if why := _why_not_bound(pod, wanted):
            words = f'Operation cannot be fulfilled on pods/binding "{name}": {why}'
            raise Refusal(409, "Conflict", words)
        if request.params.get("dryRun") != "All":
            notes = {
                **(pod["metadata"].get("annotations") or {}),
                **(wanted.get("annotations") or {}),
            }
            given = pod["status"].get("conditions", ())
            bound = {
                "type": "PodScheduled",
                "status": "True",
                "lastTransitionTime": stamp(self.etcd.loop.now_ms),
            }
            conditions = [*(one for one in given if one["type"] != "PodScheduled"), bound]
            self.etcd.change(
                PODS,
                pod,
                lambda now: with_(
                    now,
                    metadata={"annotations": notes},
                    spec={"nodeName": node},
                    status={"conditions": conditions},
                ),
                by=request.by,
                verb="bind",
            )
        return _CREATED

    def _patch(
        self, request: Request, resource: Resource, namespace: str, name: str, sub: str
    ) -> Reply:
        patch: Obj = _decode(request.body)
        now = self.etcd.get(resource, namespace, name)
        if now is None:
            raise _not_found(resource, name)
        for policy in self.patch_policies:
            refusal = policy(resource, sub)
            if refusal is not None:
                raise refusal
        uid = (patch.get("metadata") or {}).pop("uid", "")
        version = (patch.get("metadata") or {}).pop("resourceVersion", "")
        strategic = "strategic" in request.params.get("content-type", "")
        if uid and uid != now["metadata"]["uid"]:
            if strategic or not resource.group:
                words = f'metadata.uid: Invalid value: "{uid}": field is immutable'
                raise Refusal(422, "Invalid", words)
            raise Refusal(409, "Conflict", f"Precondition failed: UID in precondition: {uid}")
        if version and version != now["metadata"]["resourceVersion"]:
            raise Refusal(409, "Conflict", "the object has been modified")
        patch.pop("apiVersion", None)
        patch.pop("kind", None)
        if sub == "status":
            patch = {"status": patch.get("status") or {}}
        new = self.etcd.change(
            resource, now, lambda obj: _merged(obj, patch, strategic), by=request.by
        )
        return Reply(200, _encode(new), {})

    def _replace(
        self, request: Request, resource: Resource, namespace: str, name: str, sub: str
    ) -> Reply:
        """Write a status whole, if the object has not changed since it was read."""
        assert sub == "status", "only statuses are replaced here"
        given: Obj = _decode(request.body)
        now = self.etcd.get(resource, namespace, name)
        if now is None:
            raise _not_found(resource, name)
        if given["metadata"].get("resourceVersion") != now["metadata"]["resourceVersion"]:
            raise Refusal(409, "Conflict", "the object has been modified")
        status = given.get("status") or {}
        new = self.etcd.change(
            resource, now, lambda obj: {**obj, "status": status}, by=request.by, verb="status"
        )
        return Reply(200, _encode(new), {})

    def _delete(self, request: Request, resource: Resource, namespace: str, name: str) -> Reply:
        options: Obj = _decode(request.body) if request.body else {}
        now = self.etcd.get(resource, namespace, name)
        if now is None:
            raise _not_found(resource, name)
        preconditions = options.get("preconditions") or {}
        for field, named in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
            given, present = preconditions.get(field, ""), now["metadata"][field]
            if given and given != present:
                words = (
                    f'Operation cannot be fulfilled on {resource.kind} "{name}": '
                    f"the {named} in the precondition ({given}) "
                    f"does not match the {named} in record ({present})"
                )
                raise Refusal(409, "Conflict", words)
        if request.params.get("dryRun") != "All":
            delete(self.etcd, resource, now, by=request.by)
        return Reply(200, _encode(now), {})

    def _evict(self, request: Request, namespace: str, name: str) -> Reply:
        """A deletion that a budget may refuse; the options are inside the Eviction."""
        options: Obj = _decode(request.body).get("deleteOptions") or {}
        pod = self.etcd.get(PODS, namespace, name)
        if pod is not None and BUDGET in (pod["metadata"].get("annotations") or {}):
            words = "Cannot evict pod as it would violate the pod's disruption budget."
            raise Refusal(429, "TooManyRequests", words)
        dry_run = options.pop("dryRun", None) or request.params.get("dryRun") == "All"
        params = {"dryRun": "All"} if dry_run else {}
        asked = msgspec.structs.replace(request, params=params, body=_encode(options))
        self._delete(asked, PODS, namespace, name)
        return _CREATED

    # ---- watches

    def watch(self, request: Request) -> Watch:
        """Open one; raises ConnectionLost, or Refusal (410, 404)."""
        if self.loop.time() < max(self.down_until_s, self.hung_until_s):
            raise ConnectionLost("connection refused")
        resource = self._parse(request.path)[0]
        version = int(request.params.get("resourceVersion", "0"))
        if version < self.etcd.compacted:
            raise Refusal(410, "Expired", f"too old resource version: {version}")
        opened = Watch(resource, version)
        self._watches.append(opened)
        missed = [line for at, of, line in self.etcd.history if of == resource and at > version]
        if missed:
            self._send_late(opened, missed)
        self.loop.at(float(request.params.get("timeoutSeconds", "300")), self._time_out, opened)
        self.loop.at(60.0, self._bookmark, opened)
        return opened

    def close(self, watch: Watch) -> None:
        """The reader has gone."""
        watch.ended = True
        if watch in self._watches:
            self._watches.remove(watch)

    def cut_watches(self) -> None:
        """Break every watch, as a restart does."""
        for watch in self._watches:
            watch.end(ConnectionLost("the connection broke"))
        self._watches.clear()

    def _changed(self, write: Write) -> None:
        """etcd has written: have it sent to all watches."""
        line = self.etcd.history[-1][2]
        for watch in self._watches:
            if watch.resource == write.resource and write.version > watch.version:
                self._send_late(watch, [line])

    def _send_late(self, watch: Watch, lines: list[bytes]) -> None:
        """Order is kept: what comes while a delivery is on its way goes with the next one."""
        watch.pending += lines
        if watch.delivering:
            return
        watch.delivering = True
        rng = self._rng
        late_s = 0.001 + rng.random() * 0.006
        if rng.random() < self.rates.watch_late:
            self._on_fault("api.watch_late")
            late_s += rng.random() ** 2 * 6.0
        self.loop.at(late_s, self._deliver, watch)

    def _deliver(self, watch: Watch) -> None:
        watch.delivering = False
        if watch.ended:
            return
        if self._rng.random() < self.rates.watch_cut:
            self._on_fault("api.watch_cut")
            self._watches.remove(watch)
            watch.end(ConnectionLost("the connection broke"))
            return
        watch.hand()

    def _bookmark(self, watch: Watch) -> None:
        if watch.ended:
            return
        if not watch.pending and self.etcd.version >= watch.version:
            version = str(self.etcd.version).encode()
            watch.pending.append(
                b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"%s"}}}' % version
            )
            watch.hand()
        self.loop.at(60.0, self._bookmark, watch)

    def _time_out(self, watch: Watch) -> None:
        if not watch.ended and watch in self._watches:
            self._watches.remove(watch)
            watch.hand()
            watch.end()


def delete(etcd: Etcd, resource: Resource, now: Obj, *, by: str, force: bool = False) -> None:
    """Delete as the API server does: a pod on a node only begins to, its kubelet ends it."""
    if resource == PODS and not force and now["spec"].get("nodeName"):
        if now["metadata"].get("deletionTimestamp"):
            return
        if now["status"].get("phase") not in ENDED:
            at = stamp(etcd.loop.now_ms)
            etcd.change(
                resource,
                now,
                lambda pod: with_(pod, metadata={"deletionTimestamp": at}),
                by=by,
                verb="delete",
            )
            return
    etcd.remove(resource, now, by=by)


def _why_not_bound(pod: Obj, wanted: Obj) -> str:
    """Why a pod is not bound as the metadata of the Binding asks; "": it is."""
    metadata, spec = pod["metadata"], pod["spec"]
    for field, named in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        given, present = wanted.get(field), metadata[field]
        if given and given != present:
            return (
                f"Precondition failed: {named} in precondition: {given}, "
                f"{named} in object meta: {present}"
            )
    if metadata.get("deletionTimestamp"):
        return f"pod {metadata['name']} is being deleted, cannot be assigned to a host"
    if spec.get("nodeName"):
        return f'pod {metadata["name"]} is already assigned to node "{spec["nodeName"]}"'
    if spec.get("schedulingGates"):
        return f"pod {metadata['name']} has non-empty .spec.schedulingGates"
    return ""


def _merged(obj: Any, patch: Any, strategic: bool) -> Any:
    """A merge patch applied; strategic merges conditions by their type, and finalizers."""
    if not isinstance(patch, dict):
        return patch
    old = obj if isinstance(obj, dict) else {}
    new = dict(old)
    for key, value in patch.items():
        if value is None:
            new.pop(key, None)
        elif strategic and key == "conditions":
            named = {one["type"]: one for one in old.get(key) or ()}
            named.update({one["type"]: one for one in value})
            new[key] = list(named.values())
        elif strategic and key == "finalizers":
            new[key] = list(dict.fromkeys([*(old.get(key) or ()), *value]))
        else:
            new[key] = _merged(old.get(key), value, strategic)
    return new


def _not_found(resource: Resource, name: str) -> Refusal:
    return Refusal(404, "NotFound", f'{resource.plural} "{name}" not found')


def refused(refusal: Refusal) -> Reply:
    """The answer that a client gets."""
    return _status(refusal.status, refusal.reason, refusal.message)


def _status(status: int, reason: str, message: str, retry_after: str = "") -> Reply:
    body = _encode(
        {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "message": message,
            "reason": reason,
            "code": status,
        }
    )
    return Reply(status, body, {"Retry-After": retry_after} if retry_after else {})


_CREATED: Final = Reply(201, b'{"kind":"Status","status":"Success","code":201}', {})
_FAILURES: Final = {
    "throttled": _status(429, "TooManyRequests", "too many requests, please try again", "1"),
    "broken": _status(500, "InternalError", "etcdserver: leader changed"),
}
