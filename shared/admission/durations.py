"""Warnings about durations above the operator's ceilings (`shared.dialects.ceilings`), in whatever
field an object's dialect has them.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from shared.admission.parts import as_int, as_object, decoded_member, text_at
from shared.admission.rules import Case
from shared.admission.warnings import has_controller
from shared.contracts import annotations
from shared.dialects.ceilings import LIMITED, in_words
from shared.dialects.discovery import by_precedence
from shared.dialects.field_checks import natural
from shared.dialects.protocol import DurationAnnotation, JsonObject
from shared.kinds.durations import duration_ms


class Field(NamedTuple):
    """A field of a user's object that has the seconds of a setting."""

    path: str
    setting: str
    #: The seconds in an object; None: it has none, or none that can be read.
    read: Callable[[JsonObject], int | None]


def long_durations(case: Case) -> tuple[str, ...]:
    """A warning for each duration above its ceiling in an object that a user writes.

    Cluster-scoped kinds, queues among them, are the administrator's and have no ceiling.
    """
    if not case.namespace or has_controller(case.candidate):
        return ()
    warnings: list[str] = []
    for field in FIELDS:
        most_s = case.known.ceilings.of(field.setting)
        given_s = field.read(case.candidate)
        if most_s is not None and given_s is not None and given_s > most_s:
            warnings.append(f"tutti: {in_words(field.path, given_s, most_s, field.setting)}")
    return tuple(warnings)


def _setting(key: str) -> Field:
    def read(candidate: JsonObject) -> int | None:
        return natural(text_at(candidate, "metadata", "annotations", key))

    return Field(f"metadata.annotations[{key}]", key, read)


def _duration(of: str, key: str, setting: str) -> Field:
    """An annotation or a label in Go's syntax."""

    def read(candidate: JsonObject) -> int | None:
        found_ms = duration_ms(text_at(candidate, "metadata", of, key))
        return None if found_ms is None else found_ms // 1_000

    return Field(f"metadata.{of}[{key}]", setting, read)


def _of_dialect(duration: DurationAnnotation) -> Field:
    def read(candidate: JsonObject) -> int | None:
        given = text_at(candidate, "metadata", "annotations", duration.key)
        return duration.read(given) if given else None

    return Field(f"metadata.annotations[{duration.key}]", duration.setting, read)


def _schedule_timeout(candidate: JsonObject) -> int | None:
    spec = as_object(candidate.get("spec")) or {}
    return as_int(decoded_member(spec, "scheduleTimeoutSeconds"))


_COOLDOWN: Final = annotations.COOLDOWN_TIME
FIELDS: Final = (
    *(_setting(key) for key in LIMITED if key != _COOLDOWN),
    _duration("annotations", _COOLDOWN, _COOLDOWN),
    _duration("labels", _COOLDOWN, _COOLDOWN),
    *(_of_dialect(duration) for dialect in by_precedence() for duration in dialect.durations),
    Field("spec.scheduleTimeoutSeconds", annotations.REPAIR_DEADLINE_SECONDS, _schedule_timeout),
)
