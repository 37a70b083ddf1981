"""Questions about users' manifests, as they are sent to the process that reads them, and its
replies.
"""

from collections.abc import Iterable
from typing import Final, Literal

import msgspec

from services.api.core.fit_objects import GangQuestion, encoded, questions_of
from services.api.core.requests import read_body
from services.api.errors import RequestFailed
from shared.admission.judgement import KnownQueue
from shared.contracts.visibility import Explanation, Fit
from shared.dialects.manifests import InvalidManifest, flattened
from shared.explanation.understanding import understand

#: Objects in one Explanation: each takes some tenths of a millisecond.
OBJECTS_MAX: Final = 200

_decode_explanation: Final = msgspec.json.Decoder(Explanation).decode
_decode_fit: Final = msgspec.json.Decoder(Fit).decode


def explained(
    explanation: Explanation, namespace: str, scheduler_names: Iterable[str]
) -> Explanation:
    """The Explanation with its status; `namespace` is for objects without one.

    Raises:
        RequestFailed: 422, the manifests are no objects, or too many.
    """
    try:
        documents = [
            (place.partition(",")[0], document)
            for place, document in flattened(explanation.spec.manifests)
        ]
        if len(documents) > OBJECTS_MAX:
            raise RequestFailed(422, f"spec.manifests: must have at most {OBJECTS_MAX} objects")
        status = understand(documents, namespace=namespace, scheduler_names=tuple(scheduler_names))
    except (InvalidManifest, RecursionError) as error:
        raise RequestFailed(422, f"spec.manifests: {error}") from None
    return msgspec.structs.replace(explanation, status=status)


class ManifestQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A request's body, and what it is asked for."""

    kind: Literal["Fit", "Explanation"]
    #: Of the request; for objects without one.
    namespace: str
    scheduler_names: tuple[str, ...]
    body: bytes
    #: Those of the cluster; None: they are not checked.
    queues: tuple[KnownQueue, ...] | None = None


class ManifestReply(msgspec.Struct, frozen=True, kw_only=True):
    """The JSON of the object, or why there is none."""

    #: An Explanation with its status, a Fit without.
    json: bytes = b""
    gangs: tuple[GangQuestion, ...] = ()
    #: The warnings of admission about the manifests of a Fit.
    warnings: tuple[str, ...] = ()
    #: HTTP status of a refusal; None: there is none.
    refused: int | None = None
    message: str = ""
    #: Several violations: the field and the message of each.
    causes: tuple[tuple[str, str], ...] = ()


#: Bytes of the length before each question and reply.
LENGTH_BYTES: Final = 4
#: The largest questions for the planner, or the explanation of a body, with the body itself.
REPLY_BYTES_MAX: Final = 32 * 1024 * 1024

_encode: Final = msgspec.json.Encoder().encode
encode_question: Final = msgspec.msgpack.Encoder().encode
encode_reply: Final = msgspec.msgpack.Encoder().encode
decode_question: Final = msgspec.msgpack.Decoder(ManifestQuestion).decode
decode_reply: Final = msgspec.msgpack.Decoder(ManifestReply).decode


def reply_to(question: ManifestQuestion) -> ManifestReply:
    try:
        match question.kind:
            case "Explanation":
                return _explanation(question)
            case "Fit":
                return _fit(question)
    except RequestFailed as failure:
        return ManifestReply(refused=failure.status, message=failure.message, causes=failure.causes)


def _explanation(question: ManifestQuestion) -> ManifestReply:
    asked = read_body(question.body, _decode_explanation, question.kind)
    answered = explained(asked, question.namespace, question.scheduler_names)
    return ManifestReply(json=_encode(answered))


def _fit(question: ManifestQuestion) -> ManifestReply:
    fit = read_body(question.body, _decode_fit, question.kind)
    asked = questions_of(fit, question.namespace, question.scheduler_names, question.queues)
    return ManifestReply(
        json=_encode(msgspec.structs.replace(fit, status=None)),
        gangs=tuple(map(encoded, asked.gangs)),
        warnings=tuple(asked.warnings),
    )


def with_status(json: bytes, status: msgspec.Struct) -> bytes:
    """The JSON of an object without a status, with one."""
    return b'%b,"status":%b}' % (json[:-1], _encode(status))
