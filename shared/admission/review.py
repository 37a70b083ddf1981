"""AdmissionReview (admission.k8s.io/v1) on the wire.

The review is decoded into structs; the object in it stays raw until a rule reads it.
"""

from typing import Any, Final, Literal, TypeAlias

import msgspec

from shared.admission.parts import as_object
from shared.dialects.protocol import FieldError, JsonObject
from shared.kube.objects import KubeStruct

API_VERSION: Final = "admission.k8s.io/v1"

Operation: TypeAlias = Literal["CREATE", "UPDATE", "DELETE"]

#: An object can have tens of thousands of violations; no user reads more than these.
ERRORS_MAX: Final = 50
#: The API server cuts a warning at 256 characters.
WARNING_CHARACTERS_MAX: Final = 256
_ABSENT: Final = msgspec.Raw(b"null")


class BadReview(Exception):
    """A request's body is no AdmissionReview of a known version."""


class GroupVersionResource(KubeStruct, frozen=True, kw_only=True):
    """A resource as the review names it."""

    group: str = ""
    version: str = ""
    resource: str = ""


class UserInfo(KubeStruct, frozen=True, kw_only=True):
    """The user whose request is reviewed."""

    username: str = ""


class AdmissionRequest(KubeStruct, frozen=True, kw_only=True):
    """The members of a review's `request` that are read."""

    uid: str
    resource: GroupVersionResource
    sub_resource: str = ""
    name: str = ""
    namespace: str = ""
    operation: str
    object: msgspec.Raw = _ABSENT
    old_object: msgspec.Raw = _ABSENT
    dry_run: bool | None = None
    user_info: UserInfo = UserInfo()


class _Review(KubeStruct, frozen=True, kw_only=True):
    api_version: str = ""
    kind: str = ""
    request: AdmissionRequest | None = None


class PatchOperation(msgspec.Struct, frozen=True, kw_only=True):
    """One operation of a JSON patch. `add` also replaces an existing member; `remove` ignores its
    value.
    """

    op: Literal["add", "remove"] = "add"
    path: str
    value: Any = None


def added(value: object, *path: str | int) -> PatchOperation:
    """Set the member at a path, given by its parts, to `value`."""
    return PatchOperation(path=_pointer(path), value=value)


def removed(*path: str | int) -> PatchOperation:
    """Remove the member at a path, given by its parts; it must exist."""
    return PatchOperation(op="remove", path=_pointer(path))


def _pointer(path: tuple[str | int, ...]) -> str:
    parts = (str(part).replace("~", "~0").replace("/", "~1") for part in path)
    return "".join(f"/{part}" for part in parts)


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a review: a refusal when there are errors."""

    errors: tuple[FieldError, ...] = ()
    patch: tuple[PatchOperation, ...] = ()
    warnings: tuple[str, ...] = ()
    #: Name of a queue that an error or a warning reports missing; it may have been created a moment
    #: ago. The same for PriorityClasses.
    missing_queue: str = ""
    missing_classes: tuple[str, ...] = ()
    #: Name of a queue that an error reports to have children; they may have been deleted a moment
    #: ago.
    parent_queue: str = ""

    @property
    def allowed(self) -> bool:
        """Whether the operation may continue."""
        return not self.errors


class _Cause(msgspec.Struct, frozen=True, kw_only=True):
    reason: str = "FieldValueInvalid"
    message: str
    field: str


class _Details(msgspec.Struct, frozen=True, kw_only=True):
    causes: tuple[_Cause, ...]


class _Status(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    status: str = "Failure"
    message: str
    reason: str = "BadRequest"
    details: _Details
    # As Volcano's webhooks answer: their clients distinguish it from the schema's refusals (422).
    code: int = 400


class _Response(KubeStruct, frozen=True, kw_only=True):
    uid: str
    # No default, since omit_defaults would omit a False.
    allowed: bool
    status: _Status | None = None
    patch_type: str = ""
    #: msgspec encodes bytes as base64, as the API server expects.
    patch: bytes = b""
    warnings: tuple[str, ...] = ()


class _Answer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    api_version: str = API_VERSION
    kind: str = "AdmissionReview"
    response: _Response


_decode_review: Final = msgspec.json.Decoder(_Review).decode
_decode_any: Final = msgspec.json.Decoder().decode
_encode: Final = msgspec.json.Encoder().encode


def decode_review(body: bytes) -> AdmissionRequest:
    """The request of a review.

    Raises:
        BadReview: The body is no AdmissionReview of v1.
    """
    try:
        review = _decode_review(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BadReview(f"no AdmissionReview: {error}") from None
    if review.kind != "AdmissionReview" or review.api_version != API_VERSION:
        raise BadReview(
            f"kind and apiVersion must be AdmissionReview and {API_VERSION}, "
            f"not {review.kind[:64]!r} and {review.api_version[:64]!r}"
        )
    if review.request is None:
        raise BadReview("request: must be set")
    return review.request


def plain_object(raw: msgspec.Raw) -> JsonObject:
    """The object as plain JSON; {} when there is none (a DELETE has no object, a CREATE no old
    object).
    """
    return as_object(_decode_any(raw)) or {}


def encode_answer(uid: str, verdict: Verdict) -> bytes:
    """The AdmissionReview with the answer to the request `uid`."""
    response = _Response(
        uid=uid,
        allowed=verdict.allowed,
        status=None if verdict.allowed else _refusal(verdict.errors),
        patch_type="JSONPatch" if verdict.patch else "",
        patch=_encode(verdict.patch) if verdict.patch else b"",
        warnings=tuple(_shortened(text) for text in verdict.warnings),
    )
    return _encode(_Answer(response=response))


def _refusal(errors: tuple[FieldError, ...]) -> _Status:
    shown = errors[:ERRORS_MAX]
    left = len(errors) - len(shown)
    message = "; ".join(error.text for error in shown) + (f"; and {left} more" if left else "")
    causes = tuple(_Cause(field=error.path, message=error.message) for error in shown)
    return _Status(message=message, details=_Details(causes=causes))


def _shortened(text: str) -> str:
    cut = WARNING_CHARACTERS_MAX
    return text if len(text) <= cut else f"{text[: cut - 1]}…"
