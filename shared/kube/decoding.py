"""Decodes lists and watch lines so that one malformed object never breaks the whole stream.

The fast path decodes a whole list or watch line into typed structs in one pass. When that fails,
the slow path reads the item alone, with nulls removed (null means absent to Kubernetes), and if it
still does not fit its type it becomes an `Undecodable`: its identity and the reason, so that the
caller can report it.

An object that is nested too deep for the decoder is read without its deepest parts. A user can
create one with a field that no schema checks (labels of a template, a part that the schema
preserves), ten thousand levels deep: the API server stores it, and every recursive decoder fails on
the whole object. If such an object is long too, a watch reads only its metadata (`TOKENS_MAX`).
"""

import re
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar, cast

import msgspec

from shared.kube.errors import ApiError, watch_error
from shared.kube.objects import KubeStruct, ObjectMeta, Status

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
R = TypeVar("R")

ChangeType = Literal["ADDED", "MODIFIED", "DELETED"]


class Undecodable(KubeStruct, frozen=True, kw_only=True):
    """An object that does not fit its type: its metadata, and the error in msgspec's words, with
    the field's path.
    """

    metadata: ObjectMeta
    error: str


class Change(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """One event of a watch: an object was created, changed or deleted. A deleted object is in its
    last state.
    """

    type: ChangeType
    object: T | Undecodable


class Bookmark(msgspec.Struct, frozen=True, gc=False):
    """A watch has reported everything up to this resourceVersion."""

    resource_version: str


class ListMeta(KubeStruct, frozen=True, kw_only=True):
    """`metadata` of a list."""

    resource_version: str = ""
    #: Token for the next page; "" on the last one.
    continue_: str = msgspec.field(default="", name="continue")


class ListPage(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """One answer to a list request."""

    metadata: ListMeta
    items: list[T | Undecodable]


class _List(KubeStruct, Generic[T], frozen=True, kw_only=True):
    metadata: ListMeta = ListMeta()
    items: list[T]


class _RawList(KubeStruct, frozen=True, kw_only=True):
    metadata: ListMeta = ListMeta()
    items: list[msgspec.Raw] | None = None


class _Event(KubeStruct, Generic[T], frozen=True, kw_only=True):
    type: ChangeType
    object: T


class _RawEvent(KubeStruct, frozen=True, kw_only=True):
    type: str
    object: msgspec.Raw = msgspec.Raw(b"null")


#: Limit of an error's text, which goes into conditions and logs, and may quote the object.
_REASON_CHARACTERS_MAX: Final = 500
#: Kubernetes' own kinds are about thirty levels deep.
DEPTH_MAX: Final = 200
#: Brackets and strings that a watch reads of an object nested too deep, beside its metadata, which
#: the API server writes first: some 10 ms. An object near etcd's limit has more than a million.
TOKENS_MAX: Final = 20_000
#: A bracket, or a whole string, so that brackets within it do not count. A string without an end
#: reaches to the end of the text. Possessive (`++`), because backtracking would be quadratic.
_TOKEN: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)
_CLOSING: Final = {b"[": b"]", b"{": b"}"}
_UNREAD: Final = (
    f"it is nested in more than {DEPTH_MAX} levels, and Tutti reads at most {TOKENS_MAX} brackets "
    "and texts of such an object"
)

_decode_raw_list: Final = msgspec.json.Decoder(_RawList).decode
_decode_raw_event: Final = msgspec.json.Decoder(_RawEvent).decode
_decode_any: Final = msgspec.json.Decoder().decode


class KindDecoder(Generic[T]):
    """Decodes lists, single objects and watch lines of one kind. Stateless after construction; make
    one per kind.
    """

    def __init__(self, kind: type[T]) -> None:
        self._kind = kind
        # The subscripts are types made at run time, which type checkers cannot follow.
        any_list: Any = _List
        any_event: Any = _Event
        self._list: Callable[[bytes], _List[T]] = msgspec.json.Decoder(any_list[kind]).decode
        self._event: Callable[[bytes], _Event[T]] = msgspec.json.Decoder(any_event[kind]).decode
        self._object: Callable[[bytes | msgspec.Raw], T] = msgspec.json.Decoder(kind).decode

    def page(self, body: bytes) -> ListPage[T]:
        """Decode the answer to a list request. Raises msgspec.DecodeError only when it is no list
        at all.
        """
        return _guarded(self._page, body)

    def object(self, body: bytes | msgspec.Raw) -> T | Undecodable:
        """Decode one object. Raises msgspec.DecodeError only when it is no JSON."""
        return _guarded(self._any_object, body, beginning=_unread)

    def change(self, line: bytes) -> Change[T] | Bookmark:
        """Decode one line of a watch.

        Raises:
            ApiError: The line is an ERROR event (`Gone` for an expired resourceVersion).
            msgspec.DecodeError: The line is no event at all: the stream is broken from here on.
        """
        return _guarded(self._change, line, beginning=_unread_change)

    def _page(self, body: bytes) -> ListPage[T]:
        try:
            fast = self._list(body)
        except msgspec.ValidationError:
            slow = _decode_raw_list(body)
            return ListPage(slow.metadata, [self._any_object(item) for item in slow.items or ()])
        return ListPage(fast.metadata, [*fast.items])

    def _any_object(self, body: bytes | msgspec.Raw) -> T | Undecodable:
        try:
            return self._object(body)
        except msgspec.ValidationError:
            return self._tolerant(_decode_any(body))

    def _change(self, line: bytes) -> Change[T] | Bookmark:
        try:
            fast = self._event(line)
        except msgspec.ValidationError:
            return self._slow_change(line)
        return Change(fast.type, fast.object)

    def _slow_change(self, line: bytes) -> Change[T] | Bookmark:
        event = _decode_raw_event(line)
        match event.type:
            case "ADDED" | "MODIFIED" | "DELETED":
                return Change(event.type, self._any_object(event.object))
            case "BOOKMARK":
                return Bookmark(_identify(_decode_any(event.object)).resource_version)
            case "ERROR":
                raise _error_event(event.object)
            case _:
                raise msgspec.ValidationError(f"unknown type of watch event: {event.type[:64]!r}")

    def _tolerant(self, plain: Any) -> T | Undecodable:
        plain = without_nulls(plain)
        try:
            return msgspec.convert(plain, self._kind)
        except msgspec.ValidationError as error:
            return Undecodable(metadata=_identify(plain), error=str(error)[:_REASON_CHARACTERS_MAX])


def _guarded(
    read: "Callable[[Any], R]",
    body: bytes | msgspec.Raw,
    beginning: "Callable[[bytes], R | None] | None" = None,
) -> R:
    """Call `read`. If the JSON is nested too deep, call `beginning` with its beginning if it is
    long; else, or for a result of None, call `read` again without the deepest parts.

    Raises:
        msgspec.DecodeError: As `read`, and for bytes that are not UTF-8.
    """
    try:
        return read(body)
    except RecursionError:
        text = bytes(body)
        beginning_read = None if beginning is None else beginning(text)
        return _guarded(read, shallow(text)) if beginning_read is None else beginning_read
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError(str(error)) from None


def _unread(body: bytes) -> Undecodable | None:
    """A long object by its metadata; None: it is short, or they are not at its beginning."""
    cut = _beginning(body, 1)
    metadata = ObjectMeta() if cut is None else _identify(_decode_any(cut))
    return Undecodable(metadata=metadata, error=_UNREAD) if metadata.uid else None


def _unread_change(line: bytes) -> Change[Any] | None:
    cut = _beginning(line, 2)
    event = _RawEvent(type="") if cut is None else _decode_raw_event(cut)
    metadata = _identify(_decode_any(event.object))
    if event.type not in {"ADDED", "MODIFIED", "DELETED"} or not metadata.uid:
        return None
    unread = Undecodable(metadata=metadata, error=_UNREAD)
    return Change(cast("ChangeType", event.type), unread)


def _beginning(body: bytes, level: int) -> bytes | None:
    """JSON of the first TOKENS_MAX tokens, or of more up to the end of the first object or array
    that is `level` deep; None: there are no more tokens.
    """
    end, tokens, has_first = 0, 0, False
    closing: list[bytes] = []
    for token in _TOKEN.finditer(body):
        tokens += 1
        if tokens > TOKENS_MAX and has_first:
            # A text that ends with a bracket is JSON when those still open are closed.
            return shallow(body[:end] + b"".join(reversed(closing)))
        bracket = token[0]
        if bracket in _CLOSING:
            closing.append(_CLOSING[bracket])
        elif bracket in {b"]", b"}"}:
            if not closing:
                return None
            closing.pop()
            has_first = has_first or len(closing) == level
        else:
            continue
        end = token.end()
    return None


def shallow(body: bytes) -> bytes:
    """The same JSON with null for each array or object that is more than DEPTH_MAX deep.

    Linear in time, and without recursion. A text that is not JSON is not JSON afterwards either.
    """
    kept: list[bytes] = []
    depth, begin = 0, 0
    for token in _TOKEN.finditer(body):
        bracket = token[0]
        if bracket in {b"[", b"{"}:
            depth += 1
            if depth == DEPTH_MAX + 1:
                kept.append(body[begin : token.start()])
        elif bracket in {b"]", b"}"}:
            depth -= 1
            if depth == DEPTH_MAX:
                kept.append(b"null")
                begin = token.end()
    # With brackets that never close, the rest is dropped, and the result is not JSON.
    return b"".join([*kept, body[begin:]]) if depth <= DEPTH_MAX else b"".join(kept)


def without_nulls(value: Any) -> Any:
    """The same JSON value without null members of objects and null items of arrays."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value if item is not None]
    return value


def _identify(plain: Any) -> ObjectMeta:
    metadata = plain.get("metadata") if isinstance(plain, dict) else None
    if not isinstance(metadata, dict):
        return ObjectMeta()
    metadata = without_nulls(metadata)
    try:
        return msgspec.convert(metadata, ObjectMeta)
    except msgspec.ValidationError:
        texts = {key: value for key, value in metadata.items() if isinstance(value, str)}
        return ObjectMeta(
            name=texts.get("name", ""),
            namespace=texts.get("namespace", ""),
            uid=texts.get("uid", ""),
            resource_version=texts.get("resourceVersion", ""),
        )


def _error_event(body: msgspec.Raw) -> ApiError:
    try:
        return watch_error(msgspec.convert(without_nulls(_decode_any(body)), Status))
    except msgspec.ValidationError:
        return ApiError(500, "", "the watch ended with an ERROR event that is no Status")
