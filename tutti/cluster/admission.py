"""Admission webhooks: selects those that match, sends AdmissionReview v1, applies the responses.

Not supported: reinvocation, CEL match conditions, matchPolicy Equivalent (a rule must name the
version of the request), and webhooks behind a Service (there is no network to reach one, so the
call fails and its failurePolicy decides).
"""

import asyncio
import base64
import ssl
import uuid
from functools import lru_cache
from typing import Final, NamedTuple

import aiohttp
import msgspec

from tutti.api.objects import field
from tutti.cluster.errors import ApiError
from tutti.cluster.objects import Obj, decode, encode
from tutti.cluster.patches import apply_json_patch
from tutti.cluster.resources import MUTATING, NAMESPACES, VALIDATING, Key, Resource
from tutti.cluster.selectors import labels_of_object
from tutti.cluster.store import Store

#: The user of every request: this cluster has no login, so each client that reaches it may do
#: everything.
ADMIN: Final = "system:admin"
ADMIN_GROUPS: Final = ("system:masters", "system:authenticated")
_OWN_KINDS = {"binding": "Binding", "eviction": "Eviction"}


class Call(msgspec.Struct):
    """One request after its path and query were parsed."""

    resource: Resource
    version: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    dry_run: bool = False
    field_validation: str = ""  # "Strict": refuse unknown fields; "Warn": warn of them
    user: str = ADMIN
    warnings: list[str] = msgspec.field(default_factory=list)  # warnings for the client


class Review(NamedTuple):
    """An operation (CREATE, UPDATE, DELETE) with its objects in stored form."""

    call: Call
    operation: str
    obj: Obj | None
    old: Obj | None = None


class Admission:
    """The webhooks of the configurations in the store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Close the connections to webhooks."""
        if self._session is not None:
            await self._session.close()

    async def mutate(self, hook: Obj, review: Review) -> Obj | None:
        """Call one mutating webhook; return the patched object in the call's version, or None if it
        does not change.

        Raises:
            ApiError: It refused, failed under failurePolicy Fail, or its patch does not apply.
        """
        response = await self._call(hook, review)
        if not response.get("patch"):
            return None
        try:
            patch = decode(base64.b64decode(response["patch"]))
            call = review.call
            return apply_json_patch(call.resource.view(review.obj or {}, call.version), patch)
        except (ApiError, ValueError) as error:
            raise _internal_error(str(error)) from error

    async def validate(self, review: Review) -> None:
        """Call all validating webhooks concurrently.

        Raises:
            ApiError: The first (in their order) that refused, or failed under failurePolicy Fail.
        """
        calls = [self._call(hook, review) for hook in self.matching(VALIDATING, review)]
        for answer in await asyncio.gather(*calls, return_exceptions=True):
            if isinstance(answer, BaseException):
                raise answer

    def matching(self, key: Key, review: Review) -> list[Obj]:
        """The webhooks of a kind of configuration to call, in order: their rules and selectors
        match.
        """
        if review.call.resource.key in (MUTATING, VALIDATING):
            return []  # webhooks are not called for webhook configurations
        hooks = [hook for row in self._store.rows(key) for hook in row.obj.get("webhooks") or ()]
        return [hook for hook in hooks if _matches(hook, review) and self._selected(hook, review)]

    def _selected(self, hook: Obj, review: Review) -> bool:
        call = review.call
        holder: Obj | None = None
        if call.resource.key == NAMESPACES:
            holder = review.obj or review.old
        elif row := self._store.get(NAMESPACES, "", call.namespace):
            holder = row.obj
        labels = field(holder, "metadata.labels") or {}
        if holder is not None and not labels_of_object(hook["namespaceSelector"])(labels):
            return False
        matches = labels_of_object(hook["objectSelector"])
        states = [obj for obj in (review.obj, review.old) if obj is not None]
        return any(matches(field(obj, "metadata.labels") or {}) for obj in states)

    async def _call(self, hook: Obj, review: Review) -> Obj:
        """The response of a webhook that allows the request; empty if its failure is ignored.

        Raises:
            ApiError: It refused, or failed under failurePolicy Fail.
        """
        try:
            response = await self._response(hook, _request(review))
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            if hook["failurePolicy"] == "Ignore":
                return {}
            text = "context deadline exceeded" if isinstance(error, TimeoutError) else str(error)
            raise _internal_error(f'failed calling webhook "{hook["name"]}": {text}') from error
        review.call.warnings.extend(str(text) for text in response.get("warnings") or ())
        if response.get("allowed") is True:
            return response
        status: Obj = response.get("status") or {}
        reason, why = status.get("reason") or "", status.get("message") or status.get("reason")
        denied = f'admission webhook "{hook["name"]}" denied the request'
        message = f"{denied}: {why}" if why else f"{denied} without explanation"
        raise ApiError(max(status.get("code") or 0, 400), reason, message)

    async def _response(self, hook: Obj, request: Obj) -> Obj:
        """AdmissionReview.response. Raises ValueError, or as aiohttp does, if it is not usable."""
        target = hook["clientConfig"]
        if "url" not in target:
            raise ValueError("a Service cannot be reached from the embedded cluster")
        if self._session is None:
            self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        body = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
        async with (
            asyncio.timeout(hook["timeoutSeconds"]),
            self._session.post(
                target["url"],
                data=encode(body),
                headers={"Content-Type": "application/json"},
                ssl=_context(target.get("caBundle") or ""),
            ) as answer,
        ):
            if answer.status != 200:
                raise ValueError(f"the server answered {answer.status}")
            response: Obj = field(decode(await answer.read()), "response")
        if field(response, "uid") != request["uid"]:
            raise ValueError("invalid response: its uid must be the request's")
        if response.get("patch") and response.get("patchType") != "JSONPatch":
            raise ValueError("webhook returned a patch but not patchType=JSONPatch")
        return response


@lru_cache(maxsize=32)  # certificates rotate
def _context(bundle: str) -> ssl.SSLContext:
    """The TLS context for a caBundle."""
    authorities = base64.b64decode(bundle).decode() if bundle else None
    return ssl.create_default_context(cadata=authorities)


def _internal_error(text: str) -> ApiError:
    causes = {"causes": [{"message": text}]}
    return ApiError(500, "InternalError", f"Internal error occurred: {text}", details=causes)


def _matches(hook: Obj, review: Review) -> bool:
    """Whether one of the webhook's rules covers the operation."""
    resource, sub = review.call.resource, review.call.subresource
    wanted = {resource.plural, "*", "*/*"}
    if sub:
        wanted = {f"{resource.plural}/{sub}", f"{resource.plural}/*", f"*/{sub}", "*/*"}
    tests = (
        ("operations", {review.operation, "*"}),
        ("apiGroups", {resource.group, "*"}),
        ("apiVersions", {review.call.version, "*"}),
        ("resources", wanted),
    )
    return any(
        rule["scope"] in ("*", "Namespaced" if resource.namespaced else "Cluster")
        and all(values & set(rule[key]) for key, values in tests)
        for rule in hook.get("rules") or ()
    )


def _request(review: Review) -> Obj:
    """AdmissionReview.request. A subresource's object (Binding, Eviction) is sent unchanged."""
    call = review.call
    own_kind = _OWN_KINDS.get(call.subresource)

    def seen(obj: Obj | None) -> Obj | None:
        return obj if obj is None or own_kind else call.resource.view(obj, call.version)

    served = {"group": call.resource.group, "version": call.version}
    kind = served | {"kind": own_kind or call.resource.kind}
    resource = served | {"resource": call.resource.plural}
    options = {"kind": f"{review.operation.capitalize()}Options", "apiVersion": "meta.k8s.io/v1"}
    request: Obj = {
        "uid": str(uuid.uuid4()),
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "name": call.name or field(review.obj, "metadata.name") or "",
        "operation": review.operation,
        "userInfo": {"username": call.user, "groups": ADMIN_GROUPS},
        "object": seen(review.obj),
        "oldObject": seen(review.old),
        "dryRun": call.dry_run,
        "options": options | ({"dryRun": ["All"]} if call.dry_run else {}),
    }
    if call.namespace:
        request["namespace"] = call.namespace
    if call.subresource:
        request |= {"subResource": call.subresource, "requestSubResource": call.subresource}
    return request
