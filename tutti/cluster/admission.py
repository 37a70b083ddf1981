"""Admission webhooks: who is asked, what they are sent (AdmissionReview v1), what answers do.

Not served: reinvocation, CEL match conditions, and webhooks behind a Service (there is no network
to reach one: a call that fails, so its failurePolicy decides).
"""

import asyncio
import base64
import ssl
import uuid
from collections.abc import Iterator
from typing import NamedTuple

import aiohttp
import msgspec

from tutti.cluster.errors import ApiError, bad_request
from tutti.cluster.objects import Obj, decode, dig, encode
from tutti.cluster.patches import apply_json_patch
from tutti.cluster.resources import MUTATING, NAMESPACES, VALIDATING, Key, Resource
from tutti.cluster.selectors import labels_of_object
from tutti.cluster.store import Store

# TLS contexts kept, one per caBundle: certificates rotate.
_CONTEXTS_MAX = 32
_OWN_KINDS = {"binding": "Binding", "eviction": "Eviction"}


class Call(msgspec.Struct):
    """One request after its address and query were understood."""

    resource: Resource
    version: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    dry_run: bool = False
    field_validation: str = "Warn"
    user: str = "system:admin"
    warnings: list[str] = msgspec.field(default_factory=list)  # what the client is told besides


class Review(NamedTuple):
    """What an operation (CREATE, UPDATE, DELETE) is about to do, in stored form."""

    call: Call
    operation: str
    obj: Obj | None
    old: Obj | None = None
    options: Obj | None = None


class _CallFailedError(Exception):
    """The webhook gave no usable answer."""


class Admission:
    """The webhooks that are configured in the store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._session: aiohttp.ClientSession | None = None
        self._contexts: dict[str, ssl.SSLContext] = {}

    async def close(self) -> None:
        """Closes the connections to webhooks."""
        if self._session is not None:
            await self._session.close()

    def mutating(self, review: Review) -> list[tuple[Obj, str]]:
        """The mutating webhooks to ask, in order, each with the version it reads."""
        return list(self._asked(MUTATING, review))

    async def mutate(self, hook: Obj, version: str, review: Review) -> Obj | None:
        """Asks one mutating webhook.

        Returns the object it wants (in that version's view), None when it changes nothing.

        Raises:
            ApiError: It refused, failed under failurePolicy Fail, or its patch does not apply.
        """
        response = await self._ask(hook, version, review)
        if response is None or not response.get("patch"):
            return None
        try:
            patch = decode(base64.b64decode(response["patch"]))
            return apply_json_patch(review.call.resource.view(review.obj or {}, version), patch)
        except (ApiError, ValueError) as error:
            text = f"Internal error occurred: {error}"
            raise ApiError(500, "InternalError", text) from error

    async def validate(self, review: Review) -> None:
        """Asks all validating webhooks at once.

        Raises:
            ApiError: The first (in their order) that refused, or failed under failurePolicy Fail.
        """
        asked = [self._ask(*one, review) for one in self._asked(VALIDATING, review)]
        for answer in await asyncio.gather(*asked, return_exceptions=True):
            if isinstance(answer, BaseException):
                raise answer

    def _asked(self, key: Key, review: Review) -> Iterator[tuple[Obj, str]]:
        """The webhooks whose rules and selectors match, by configuration and their order in it."""
        if review.call.resource.key in (MUTATING, VALIDATING):
            return  # webhooks do not guard their own configuration
        for row in self._store.rows(key):
            for hook in row.obj.get("webhooks") or ():
                version = _matched_version(hook, review)
                if version is not None and self._selected(hook, review):
                    yield hook, version

    def _selected(self, hook: Obj, review: Review) -> bool:
        call = review.call
        holder: Obj | None = None
        if call.resource.key == NAMESPACES:
            holder = review.obj or review.old
        elif row := self._store.get(NAMESPACES, "", call.namespace):
            holder = row.obj
        labels = dig(holder, "metadata.labels") or {}
        if holder is not None and not labels_of_object(hook["namespaceSelector"])(labels):
            return False
        matches = labels_of_object(hook["objectSelector"])
        states = [obj for obj in (review.obj, review.old) if obj is not None]
        return any(matches(dig(obj, "metadata.labels") or {}) for obj in states)

    async def _ask(self, hook: Obj, version: str, review: Review) -> Obj | None:
        """The response of a webhook that allows; None of one whose failure is to be ignored.

        Raises:
            ApiError: It refused, or failed under failurePolicy Fail.
        """
        if review.call.dry_run and hook["sideEffects"] not in ("None", "NoneOnDryRun"):
            raise bad_request(f'admission webhook "{hook["name"]}" does not support dry run')
        try:
            response = await self._response(hook, _request(version, review))
        except _CallFailedError as error:
            if hook["failurePolicy"] == "Ignore":
                return None
            text = f'failed calling webhook "{hook["name"]}": {error}'
            causes = {"causes": [{"message": text}]}
            message = f"Internal error occurred: {text}"
            raise ApiError(500, "InternalError", message, details=causes) from error
        review.call.warnings.extend(str(text) for text in response.get("warnings") or ())
        if response.get("allowed") is True:
            return response
        status: Obj = response.get("status") or {}
        reason, why = status.get("reason") or "", status.get("message") or status.get("reason")
        denied = f'admission webhook "{hook["name"]}" denied the request'
        message = f"{denied}: {why}" if why else f"{denied} without explanation"
        raise ApiError(max(status.get("code") or 0, 400), reason, message)

    async def _response(self, hook: Obj, request: Obj) -> Obj:
        """AdmissionReview.response. Raises _CallFailedError where there is no usable one."""
        review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}
        try:
            answer = await self._post(hook, encode(review | {"request": request}))
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            why = "context deadline exceeded" if isinstance(error, TimeoutError) else str(error)
            raise _CallFailedError(f"failed to call webhook: {why}") from error
        response: Obj | None = dig(answer, "response")
        if dig(response, "uid") != request["uid"] or response is None:
            raise _CallFailedError("invalid response: its uid must be the request's")
        if response.get("patch") and response.get("patchType") != "JSONPatch":
            raise _CallFailedError("webhook returned a patch but not patchType=JSONPatch")
        return response

    async def _post(self, hook: Obj, body: bytes) -> object:
        target = hook["clientConfig"]
        if "url" not in target:
            raise OSError("a Service cannot be reached from here")
        if self._session is None:
            self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        bundle = target.get("caBundle") or ""
        if bundle not in self._contexts:
            if len(self._contexts) >= _CONTEXTS_MAX:
                self._contexts.clear()
            authorities = base64.b64decode(bundle).decode() if bundle else None
            self._contexts[bundle] = ssl.create_default_context(cadata=authorities)
        headers, context = {"Content-Type": "application/json"}, self._contexts[bundle]
        post = self._session.post(target["url"], data=body, headers=headers, ssl=context)
        async with asyncio.timeout(hook["timeoutSeconds"]), post as answer:
            if answer.status != 200:
                raise OSError(f"the server answered {answer.status}")
            return decode(await answer.read())


def _matched_version(hook: Obj, review: Review) -> str | None:
    """The served version in which the webhook wants this kind; None if no rule matches."""
    call = review.call
    resource, sub = call.resource, call.subresource
    versions = [call.version]
    if hook["matchPolicy"] == "Equivalent":
        versions += [version for version in resource.versions if version != call.version]
    wanted = {resource.plural, "*", "*/*"}
    if sub:
        wanted = {f"{resource.plural}/{sub}", f"{resource.plural}/*", f"*/{sub}", "*/*"}
    for rule in hook.get("rules") or ():
        tests = (
            ("operations", {review.operation, "*"}),
            ("apiGroups", {resource.group, "*"}),
            ("resources", wanted),
        )
        scope = rule["scope"] in ("*", "Namespaced" if resource.namespaced else "Cluster")
        if scope and all(values & set(rule[key]) for key, values in tests):
            for version in versions:
                if {version, "*"} & set(rule["apiVersions"]):
                    return version
    return None


def _request(version: str, review: Review) -> Obj:
    """AdmissionReview.request. A subresource's own object (Binding, Eviction) goes as it is."""
    call = review.call
    resource = call.resource
    own_kind = _OWN_KINDS.get(call.subresource)

    def seen(obj: Obj | None) -> Obj | None:
        return obj if obj is None or own_kind else resource.view(obj, version)

    served = {"group": resource.group, "version": version}
    asked = {"group": resource.group, "version": call.version}
    kind, plural = {"kind": own_kind or resource.kind}, {"resource": resource.plural}
    action = review.operation.capitalize()
    dry_run = {"dryRun": ["All"]} if call.dry_run else {}
    request: Obj = {
        "uid": str(uuid.uuid4()),
        "kind": served | kind,
        "resource": served | plural,
        "requestKind": asked | kind,
        "requestResource": asked | plural,
        "name": call.name or dig(review.obj, "metadata.name") or "",
        "operation": review.operation,
        "userInfo": {"username": call.user, "groups": ["system:masters", "system:authenticated"]},
        "object": seen(review.obj),
        "oldObject": seen(review.old),
        "dryRun": call.dry_run,
        "options": {"kind": f"{action}Options", "apiVersion": "meta.k8s.io/v1"}
        | dry_run
        | (review.options or {}),
    }
    if call.namespace:
        request["namespace"] = call.namespace
    if call.subresource:
        request |= {"subResource": call.subresource, "requestSubResource": call.subresource}
    return request
