"""The verdict as an annotation of the group, which `tutti why` reads with a user's own rights.

It omits values that change in each cycle (instants, epochs) and lists of pods, so that two verdicts
of equal meaning have equal texts and a comparison shows whether a write is needed. All
users with the right to read the group may read it: gangs of other namespaces are only counted.
"""

from typing import Final

import msgspec

from shared.contracts.verdicts import Reason, Verdict, Why
from shared.model.bounded_text import shortened

#: Annotations of an object share 256 KiB, which also its user's need.
ANNOTATION_BYTES_MAX: Final = 32 * 1024
_SHAPES_MAX: Final = 16
_REASONS_MAX: Final = 8
_REASON_BYTES_MAX: Final = 120
_GANGS_MAX: Final = 10
_CONDITIONS_MAX: Final = 8
_TEXT_BYTES_MAX: Final = 1_000

_encode: Final = msgspec.json.Encoder(order="deterministic").encode


def annotation_of(verdict: Verdict) -> str:
    """The annotation's text: JSON that decodes as a `Verdict`, at most `ANNOTATION_BYTES_MAX` bytes
    in UTF-8.
    """
    text = _encode(_shown(verdict, _SHAPES_MAX))
    if len(text) > ANNOTATION_BYTES_MAX:
        # The longest names, in characters that JSON escapes.
        text = _encode(_shown(verdict, 0))
    return text.decode()


def _shown(verdict: Verdict, shapes_max: int) -> Verdict:
    return msgspec.structs.replace(
        verdict,
        epoch=0,
        at_ms=0,
        group_wanted="",
        provisioning=None,
        waiting=(),
        unnamed=(),
        placed=(),
        evicted=(),
        ended=(),
        conditions=tuple(
            msgspec.structs.replace(
                condition, message=shortened(condition.message, _TEXT_BYTES_MAX)
            )
            for condition in verdict.conditions[:_CONDITIONS_MAX]
        ),
        why=None if verdict.why is None else _public(verdict.why, verdict.namespace, shapes_max),
    )


def _public(why: Why, namespace: str, shapes_max: int) -> Why:
    """The reason without names of other namespaces, and with bounded lengths."""
    return msgspec.structs.replace(
        why,
        sentence=shortened(why.sentence, _TEXT_BYTES_MAX),
        shapes=tuple(
            msgspec.structs.replace(shape, reasons=_few(shape.reasons))
            for shape in why.shapes[:shapes_max]
        ),
        shapes_count=why.shapes_count or _count_if_more(why.shapes, shapes_max),
        quota=_few(why.quota),
        quota_count=why.quota_count or _count_if_more(why.quota, _REASONS_MAX),
        ahead=_own(why.ahead, namespace),
        ahead_count=max(why.ahead_count, len(why.ahead)),
        holders=_own(why.holders, namespace),
        holders_count=max(why.holders_count, len(why.holders)),
    )


def _count_if_more(entries: tuple[object, ...], listed_max: int) -> int:
    """The number of all entries, or 0 if all are listed."""
    return len(entries) if len(entries) > listed_max else 0


def _own(gangs: tuple[str, ...], namespace: str) -> tuple[str, ...]:
    return tuple(gang for gang in gangs if gang.startswith(f"{namespace}/"))[:_GANGS_MAX]


def _few(reasons: tuple[Reason, ...]) -> tuple[Reason, ...]:
    return tuple(
        msgspec.structs.replace(reason, reason=shortened(reason.reason, _REASON_BYTES_MAX))
        for reason in reasons[:_REASONS_MAX]
    )
