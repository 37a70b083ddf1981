"""The API server's verbs, typed: get, list, create, replace, patch, delete, bind.

All of them are `Transport.request` or `Transport.send` with the right path and body. Nothing is
retried here.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeVar

import msgspec

from shared.kube.decoding import KindDecoder, ListPage, Undecodable
from shared.kube.errors import MalformedAnswer
from shared.kube.resources import PODS, Resource
from shared.kube.transport import TIMEOUT_S, Reply, Transport

T = TypeVar("T")

PatchType = Literal["merge", "json", "strategic"]
#: `fieldValidation` of a creation.
UnknownFields = Literal["Strict", "Warn"]

_PATCH_TYPES: Final[dict[PatchType, str]] = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}

#: An unpaged list of a large resource takes seconds, from an overloaded server longer.
_LIST_TIMEOUT_S: Final = 60.0
_encode: Final = msgspec.json.Encoder().encode


class KubeClient(Transport):
    """A client of one API server; see `Transport` for how it is made, opened and closed."""

    async def get(self, resource: Resource, name: str, kind: type[T], *, namespace: str = "") -> T:
        """Read one object.

        Raises:
            NotFound: There is no such object.
            MalformedAnswer: It does not fit `kind`.
            KubeError: As `request`.
        """
        reply = await self.request("GET", resource.path(namespace, name))
        return _typed(kind, reply, resource)

    async def list(
        self,
        resource: Resource,
        kind: type[T],
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 0,
        continue_: str = "",
    ) -> ListPage[T]:
        """List with a consistent read: one page, or everything when `limit` is 0.

        For the next page, pass `metadata.continue_` of the last one. Objects that do not fit `kind`
        are returned as `Undecodable`.
        """
        given = {
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
            "limit": str(limit) if limit else "",
            "continue": continue_,
        }
        params = {key: value for key, value in given.items() if value}
        reply = await self.request(
            "GET", resource.path(namespace), params=params, timeout_s=_LIST_TIMEOUT_S
        )
        try:
            return _decoder(kind).page(reply.body)
        except msgspec.MsgspecError as error:
            raise MalformedAnswer(f"list of {resource.title}: {error}") from None

    async def create(
        self,
        resource: Resource,
        manifest: object,
        *,
        namespace: str = "",
        dry_run: bool = False,
        unknown_fields: UnknownFields | None = None,
    ) -> Reply:
        """Create an object from a value that msgspec can encode. Raises Conflict if it exists.

        `unknown_fields`: refuse an object with a field that its kind does not have (Strict), or
        warn of it in the answer's headers (Warn); None: drop it, with a warning of the API server.
        """
        params = {"dryRun": "All"} if dry_run else {}
        if unknown_fields is not None:
            params["fieldValidation"] = unknown_fields
        return await self.request(
            "POST",
            resource.path(namespace),
            params=params or None,
            body=_encode(manifest),
        )

    async def replace(
        self,
        resource: Resource,
        name: str,
        manifest: object,
        *,
        namespace: str = "",
        subresource: str = "",
    ) -> Reply:
        """Replace an object. Raises Conflict when its resourceVersion is not the newest."""
        return await self.request(
            "PUT", resource.path(namespace, name, subresource), body=_encode(manifest)
        )

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: object,
        *,
        namespace: str = "",
        subresource: str = "",
        patch_type: PatchType = "merge",
    ) -> Reply:
        """Change parts of an object. `strategic` exists for built-in kinds only."""
        return await self.request(
            "PATCH",
            resource.path(namespace, name, subresource),
            body=_encode(patch),
            content_type=_PATCH_TYPES[patch_type],
        )

    async def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str = "",
        uid: str = "",
        grace_s: int | None = None,
        propagation: Literal["", "Background", "Foreground"] = "",
    ) -> Reply:
        """Delete an object. Raises NotFound, and Conflict if `uid` is given and is not the
        object's.
        """
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if uid:
            options["preconditions"] = {"uid": uid}
        if grace_s is not None:
            options["gracePeriodSeconds"] = grace_s
        if propagation:
            options["propagationPolicy"] = propagation
        return await self.request("DELETE", resource.path(namespace, name), body=_encode(options))

    async def bind(
        self,
        namespace: str,
        pod: str,
        uid: str,
        node: str,
        annotations: Mapping[str, str],
        *,
        dry_run: bool = False,
        timeout_s: float = TIMEOUT_S,
    ) -> Reply:
        """Bind a pod to a node, if it still has this UID; `annotations` are merged into the pod's
        in the same write. Like `send`, it returns every answer.

        The API server checks neither the node's capacity nor its existence. 201 is success; 409
        means another UID, bound already (to any node), being deleted or gated; `errors.api_error`
        reads the answer.
        """
        body = _encode(
            _Binding(
                metadata=_BindingMeta(pod, namespace, uid, annotations), target=_BindingTarget(node)
            )
        )
        path = PODS.path(namespace, pod, "binding")
        return await self.post(f"{path}?dryRun=All" if dry_run else path, body, timeout_s=timeout_s)


class _BindingMeta(msgspec.Struct, frozen=True, gc=False):
    name: str
    namespace: str
    uid: str
    annotations: Mapping[str, str]


class _BindingTarget(msgspec.Struct, frozen=True, rename="camel", gc=False):
    name: str
    api_version: str = "v1"
    kind: str = "Node"


class _Binding(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    api_version: str = "v1"
    kind: str = "Binding"
    metadata: _BindingMeta
    target: _BindingTarget


_decoders: dict[type[Any], KindDecoder[Any]] = {}


def _decoder(kind: type[T]) -> KindDecoder[T]:
    """The decoder of a type, made once; a program uses few types."""
    known = _decoders.get(kind)
    if known is None:
        known = _decoders[kind] = KindDecoder(kind)
    return known


def _typed(kind: type[T], reply: Reply, resource: Resource) -> T:
    try:
        decoded = _decoder(kind).object(reply.body)
    except msgspec.MsgspecError as error:
        raise MalformedAnswer(f"{resource.title}: {error}") from None
    if isinstance(decoded, Undecodable):
        raise MalformedAnswer(f"{resource.title} {decoded.metadata.name}: {decoded.error}")
    return decoded
