"""What a request asks for: its resource, verb and options, read from path, query and headers.

Every violation is a `RequestFailed` that names the parameter and its rule.
"""

import base64
import binascii
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Literal, TypeAlias, TypeVar

import msgspec

from services.api.core.openapi import VERSION_PATH
from services.api.core.versions import Version, read_version
from services.api.errors import RequestFailed
from shared.contracts.visibility import ListMeta, ObjectMeta
from shared.contracts.visibility_resources import RESOURCES, ServedResource

T = TypeVar("T")

_BY_PLURAL: Final = {resource.plural: resource for resource in RESOURCES}

#: Items of a page without `limit`, and the most that a page has: all gangs of a large cluster.
LIMIT_MAX: Final = 20_000
#: Watches without `timeoutSeconds` end after this time, as those of the API server do; and the
#: longest that a watch may ask for.
WATCH_S: Final = 1_800
WATCH_S_MAX: Final = 7_200
_TEXT_CHARACTERS_MAX: Final = 1_000

Answer: TypeAlias = Literal["object", "table"]
"""Whether objects are sent, or tables of them."""
RowObject: TypeAlias = Literal["None", "Metadata", "Object"]


class FieldSelector(msgspec.Struct, frozen=True, kw_only=True):
    """Fields and the values that they must have; None: any."""

    name: str | None = None
    namespace: str | None = None
    phase: str | None = None
    queue: str | None = None


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A resource, in a namespace ("": in all, or it has none), and an object of it ("": all)."""

    resource: ServedResource
    namespace: str
    name: str


class ReadOptions(msgspec.Struct, frozen=True, kw_only=True):
    answer: Answer = "object"
    row_object: RowObject = "Metadata"
    limit: int = LIMIT_MAX
    #: Namespace and name behind which the page begins; None: it is the first one.
    after: tuple[str, str] | None = None
    selector: FieldSelector = FieldSelector()
    watch: bool = False
    #: The version to begin at, or to have reached; None: any.
    version: Version | None = None
    #: Begin a watch with the objects that exist, and then send a bookmark.
    send_initial: bool = False
    #: Length of a watch.
    timeout_s: int = WATCH_S


def read_target(path: str) -> Target:
    """The target of a path. Raises RequestFailed: there is nothing at it."""
    folder = f"{VERSION_PATH}/"
    parts = path.removeprefix(folder).split("/") if path.startswith(folder) else []
    whole = all(parts)
    namespace = ""
    if len(parts) >= 3 and parts[0] == "namespaces":
        _, namespace, *parts = parts
    resource = _BY_PLURAL.get(parts[0]) if 1 <= len(parts) <= 2 else None
    name = parts[1] if len(parts) == 2 else ""
    if resource is None or not whole or (namespace and not resource.namespaced):
        raise RequestFailed(404, "the server could not find the requested resource")
    if resource.namespaced and name and not namespace:
        raise RequestFailed(404, f"{resource.plural} are in namespaces: {path} names none")
    return Target(resource=resource, namespace=namespace, name=name)


def read_options(query: Mapping[str, str], accept: str) -> ReadOptions:
    """The options of a read. Raises RequestFailed."""
    row_object = query.get("includeObject", "Metadata")
    if row_object not in {"None", "Metadata", "Object"}:
        raise RequestFailed(400, "includeObject: must be None, Metadata or Object")
    if query.get("resourceVersionMatch") == "Exact":
        raise RequestFailed(400, "resourceVersionMatch: Exact is not served, NotOlderThan is")
    if query.get("labelSelector"):
        raise RequestFailed(400, "labelSelector: these objects have no labels")
    try:
        version = read_version(query.get("resourceVersion", ""))
    except ValueError as error:
        raise RequestFailed(400, str(error)) from None
    return ReadOptions(
        answer=_answer(accept),
        row_object=row_object,  # type: ignore[arg-type]  # checked above
        limit=min(_number(query, "limit") or LIMIT_MAX, LIMIT_MAX),
        after=_after(query.get("continue", "")),
        selector=_selector(query.get("fieldSelector", "")),
        watch=_boolean(query, "watch"),
        version=version,
        send_initial=_boolean(query, "sendInitialEvents"),
        timeout_s=min(_number(query, "timeoutSeconds") or WATCH_S, WATCH_S_MAX),
    )


def read_body(body: bytes, decode: Callable[[bytes], T], kind: str) -> T:
    """The object in a request's body. Raises RequestFailed: 400, it is not of this kind."""
    try:
        return decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise RequestFailed(400, f"not of kind {kind}: {error}") from None


def continue_token(place: tuple[str, str]) -> str:
    """The token of the page that begins behind a place."""
    return base64.urlsafe_b64encode(msgspec.json.encode(place)).decode().rstrip("=")


def _after(token: str) -> tuple[str, str] | None:
    if not token:
        return None
    try:
        raw = base64.urlsafe_b64decode(token[:_TEXT_CHARACTERS_MAX] + "==")
        return msgspec.json.decode(raw, type=tuple[str, str])
    except (binascii.Error, ValueError, msgspec.MsgspecError):
        raise RequestFailed(400, "continue: is not a token of this API") from None


def _number(query: Mapping[str, str], name: str) -> int:
    text = query.get(name, "") or "0"
    if not (text.isascii() and text.isdigit() and len(text) < 12):
        raise RequestFailed(400, f"{name}: must be a number")
    return int(text)


def _boolean(query: Mapping[str, str], name: str) -> bool:
    text = query.get(name, "false").lower()
    if text not in {"true", "1", "false", "0", ""}:
        raise RequestFailed(400, f"{name}: must be true or false")
    return text in {"true", "1"}


_FIELDS: Final = {
    "metadata.name": "name",
    "metadata.namespace": "namespace",
    "status.phase": "phase",
    "status.queue": "queue",
}


def _selector(text: str) -> FieldSelector:
    fields: dict[str, str] = {}
    for term in filter(None, text.split(",")):
        field, equals, value = term.partition("=")
        if not equals or field not in _FIELDS or value.startswith("!"):
            known = ", ".join(_FIELDS)
            raise RequestFailed(400, f"fieldSelector: must be FIELD=VALUE with one of {known}")
        value = value.removeprefix("=")
        if fields.setdefault(_FIELDS[field], value) != value:
            raise RequestFailed(400, f"fieldSelector: two values of {field}")
    return msgspec.convert(fields, FieldSelector)


def _answer(accept: str) -> Answer:
    """The first form in `Accept` that is served; the header's own preferences (q) are ignored, as
    kubectl orders its choices.
    """
    for media, parameters in _media_types(accept):
        form, version = parameters.get("as"), parameters.get("v")
        if media not in {"application/json", "application/*", "*/*"}:
            continue
        if form is None:
            return "object"
        if form == "Table" and version == "v1" and parameters.get("g") == "meta.k8s.io":
            return "table"
    raise RequestFailed(406, "only application/json is served, also as Table of meta.k8s.io/v1")


def _media_types(accept: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    for media_type in (accept or "*/*")[:_TEXT_CHARACTERS_MAX].split(","):
        media, *rest = (part.strip() for part in media_type.split(";"))
        pairs = (part.partition("=") for part in rest)
        yield media, {key: value for key, _, value in pairs}


def page_of(
    ordered: Sequence[T],
    metadata_of: Callable[[T], ObjectMeta],
    target: Target,
    options: ReadOptions,
    version: str,
) -> tuple[list[T], ListMeta]:
    """The objects of one page of a list in order of namespace and name. Phase and queue select
    nothing here.
    """
    selected = [obj for obj in ordered if _selected(metadata_of(obj), target, options)]
    chosen = selected[: options.limit]
    rest = len(selected) - len(chosen)
    last = metadata_of(chosen[-1]) if rest else None
    return chosen, ListMeta(
        resource_version=version,
        continue_="" if last is None else continue_token((last.namespace, last.name)),
        remaining_item_count=rest or None,
    )


def _selected(metadata: ObjectMeta, target: Target, options: ReadOptions) -> bool:
    selector, place = options.selector, (metadata.namespace, metadata.name)
    return (
        target.namespace in {"", metadata.namespace}
        and selector.name in {None, metadata.name}
        and selector.namespace in {None, metadata.namespace}
        and (options.after is None or place > options.after)
    )
