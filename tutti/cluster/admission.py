"""Admission webhooks: who is asked, what they are sent (AdmissionReview v1) and what their answer does.

Not served: reinvocation, CEL match conditions, and webhooks behind a Service (there is no network to reach one: a call that
fails, so its failurePolicy decides).
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


class Call(msgspec.Struct, kw_only=True):
    """One request after its address and query were understood; `warnings` collect what the client is told besides."""

    resource: Resource
    version: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    dry_run: bool = False
    field_validation: str = "Warn"
    user: str = "system:admin"
    warnings: list[str] = msgspec.field(default_factory=list)


class Review(NamedTuple):
    """What an operation is about to do, in stored form."""

    call: Call
    operation: str  # CREATE, UPDATE, DELETE
    obj: Obj | None
    old: Obj | None
    options: Obj


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
            self._session = None

    def mutating(self, review: Review) -> list[tuple[Obj, str]]:
        """The mutating webhooks to ask, in order, each with the version it reads."""
        return list(self._asked(MUTATING, review))

    async def mutate(self, hook: Obj, version: str, review: Review) -> Obj | None:
        """Asks one mutating webhook; the object it wants (in that version's view), or None when it changes nothing.

        Raises:
            ApiError: It refused, or failed under failurePolicy Fail.
        """
        try:
            response = await self._ask(hook, version, review)
            if response is None or not response.get("patch"):
                return None
            if response.get("patchType") != "JSONPatch":
                raise _CallFailedError(
                    "webhook returned response.patch but not response.patchType=JSONPatch"
                )
            patch = decode(base64.b64decode(response["patch"]))
        except (_CallFailedError, ValueError) as error:
            self._failed(hook, error)
            return None
        try:
            return apply_json_patch(review.call.resource.view(review.obj or {}, version), patch)
        except ApiError as error:
            raise ApiError(
                500, "InternalError", f"Internal error occurred: {error.message}"
            ) from error

    async def validate(self, review: Review) -> None:
        """Asks all validating webhooks at once.

        Raises:
            ApiError: The first (in their order) that refused, or failed under failurePolicy Fail.
        """
        asked = list(self._asked(VALIDATING, review))
        answers = await asyncio.gather(*(self._validate(*one, review) for one in asked))
        for answer in answers:
            if answer is not None:
                raise answer

    async def _validate(self, hook: Obj, version: str, review: Review) -> ApiError | None:
        try:
            await self._ask(hook, version, review)
        except _CallFailedError as error:
            try:
                self._failed(hook, error)
            except ApiError as refusal:
                return refusal
        except ApiError as refusal:
            return refusal
        return None

    def _failed(self, hook: Obj, error: Exception) -> None:
        if hook["failurePolicy"] == "Ignore":
            return
        text = f'failed calling webhook "{hook["name"]}": {error}'
        details = {"causes": [{"message": text}]}
        message = f"Internal error occurred: {text}"
        raise ApiError(500, "InternalError", message, details=details) from error

    def _asked(self, key: Key, review: Review) -> Iterator[tuple[Obj, str]]:
        """The webhooks whose rules and selectors match, by configuration name and then their order in it."""
        if review.call.resource.key in (MUTATING, VALIDATING):
            return  # webhooks do not guard their own configuration
        for row in self._store.rows(key):
            for hook in row.obj.get("webhooks") or ():
                version = _matched_version(hook, review)
                if version is not None and self._selected(hook, review):
                    yield hook, version

    def _selected(self, hook: Obj, review: Review) -> bool:
        call = review.call
        if call.resource.key == NAMESPACES:
            labels = dig(review.obj or review.old, "metadata.labels") or {}
        else:
            namespace = self._store.get(NAMESPACES, "", call.namespace) if call.namespace else None
            labels = dig(namespace.obj, "metadata.labels") or {} if namespace else None
        if labels is not None and not labels_of_object(hook["namespaceSelector"])(labels):
            return False
        matches = labels_of_object(hook["objectSelector"])
        return any(
            matches(dig(obj, "metadata.labels") or {})
            for obj in (review.obj, review.old)
            if obj is not None
        )

    async def _ask(self, hook: Obj, version: str, review: Review) -> Obj | None:
        """One call. Returns the response, allowed.

        Raises:
            ApiError: The webhook refused.
            _CallFailedError: It could not be asked or its answer makes no sense.
        """
        if review.call.dry_run and hook["sideEffects"] not in ("None", "NoneOnDryRun"):
            raise bad_request(f'admission webhook "{hook["name"]}" does not support dry run')
        request = _request(version, review)
        envelope = {
            "kind": "AdmissionReview",
            "apiVersion": "admission.k8s.io/v1",
            "request": request,
        }
        try:
            answer = await self._post(hook, encode(envelope))
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            why = "context deadline exceeded" if isinstance(error, TimeoutError) else str(error)
            raise _CallFailedError(f"failed to call webhook: {why}") from error
        response: Obj | None = answer.get("response") if isinstance(answer, dict) else None
        if not isinstance(response, dict) or response.get("uid") != request["uid"]:
            raise _CallFailedError(
                "received invalid webhook response: expected response.uid to be the request's"
            )
        warnings = response.get("warnings") or []
        review.call.warnings.extend(str(text) for text in warnings)
        if response.get("allowed") is not True:
            raise _denied(hook["name"], response.get("status") or {})
        return response

    async def _post(self, hook: Obj, body: bytes) -> object:
        target = hook["clientConfig"]
        if "url" not in target:
            service = target["service"]
            raise OSError(
                f'service "{service.get("namespace")}/{service.get("name")}" cannot be reached from here'
            )
        if self._session is None:
            self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        bundle = target.get("caBundle") or ""
        if bundle not in self._contexts:
            authorities = base64.b64decode(bundle).decode() if bundle else None
            self._contexts[bundle] = ssl.create_default_context(cadata=authorities)
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        async with asyncio.timeout(hook["timeoutSeconds"]):
            context = self._contexts[bundle]
            async with self._session.post(
                target["url"], data=body, headers=headers, ssl=context
            ) as answer:
                if answer.status != 200:
                    raise OSError(f"the server answered {answer.status}")
                return decode(await answer.read())


def _denied(name: str, status: Obj) -> ApiError:
    denied = f'admission webhook "{name}" denied the request'
    why = status.get("message") or status.get("reason")
    message = f"{denied}: {why}" if why else f"{denied} without explanation"
    code = status.get("code") or 0
    return ApiError(
        max(code, 400), status.get("reason") or "", message, details=status.get("details")
    )


def _matched_version(hook: Obj, review: Review) -> str | None:
    """The served version in which the webhook wants this kind, or None if no rule asks for the request."""
    call = review.call
    resource = call.resource
    versions = [call.version]
    if hook["matchPolicy"] == "Equivalent":
        versions += [version for version in resource.versions if version != call.version]
    plural = f"{resource.plural}/{call.subresource}" if call.subresource else resource.plural
    wanted = {plural, "*/*", *(() if call.subresource else ("*",))}
    if call.subresource:
        wanted |= {f"{resource.plural}/*", f"*/{call.subresource}"}
    scopes = ("*", "Namespaced" if resource.namespaced else "Cluster")
    for rule in hook.get("rules") or ():
        if not {review.operation, "*"} & set(rule["operations"]) or rule["scope"] not in scopes:
            continue
        if not {resource.group, "*"} & set(rule["apiGroups"]) or not wanted & set(
            rule["resources"]
        ):
            continue
        for version in versions:
            if {version, "*"} & set(rule["apiVersions"]):
                return version
    return None


def _request(version: str, review: Review) -> Obj:
    """AdmissionReview.request. A subresource's own object (Binding, Eviction) goes as it is."""
    call = review.call
    resource = call.resource
    own = call.subresource in ("binding", "eviction")
    kind = review.obj["kind"] if own and review.obj else resource.kind

    def seen(obj: Obj | None) -> Obj | None:
        return obj if obj is None or own else resource.view(obj, version)

    def named(at: str) -> tuple[Obj, Obj]:
        where = {"group": resource.group, "version": at}
        return where | {"kind": kind}, where | {"resource": resource.plural}

    (its_kind, its_resource), (request_kind, request_resource) = named(version), named(call.version)
    request: Obj = {
        "uid": str(uuid.uuid4()),
        "kind": its_kind,
        "resource": its_resource,
        "requestKind": request_kind,
        "requestResource": request_resource,
        "name": call.name or dig(review.obj, "metadata.name") or "",
        "operation": review.operation,
        "userInfo": {"username": call.user, "groups": ["system:masters", "system:authenticated"]},
        "object": seen(review.obj),
        "oldObject": seen(review.old),
        "dryRun": call.dry_run,
        "options": review.options,
    }
    if call.namespace:
        request["namespace"] = call.namespace
    if call.subresource:
        request |= {"subResource": call.subresource, "requestSubResource": call.subresource}
    return request
