"""Fields of objects that a dialect knows and does not act upon, each with the reason. Pure.

`tutti explain-dialect` prints those that a manifest sets. A test compares them with the schemas of
the APIs: each field is either read or listed.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, cast

import msgspec

#: Each item of a list, in `IgnoredField.steps`.
EACH: Final = ""
_STEP: Final = re.compile(r"([^.\[\]]+)|\[([^\]]*)\]")


class IgnoredField(msgspec.Struct, frozen=True, kw_only=True):
    """A field that has no effect by design, with all that is below it.

    Attributes:
        kind: Kubernetes kind of the objects ("PodGroup"); "Pod" is also for templates of pods.
        path: Its path: "spec.subGroups[].parent" for a field of each item of a list,
            "metadata.labels[example.com/key]" for a label or an annotation. What follows such a key
            is in its value, which is JSON.
        because: Why, as a clause.
    """

    kind: str
    path: str
    because: str

    @property
    def steps(self) -> tuple[str, ...]:
        """The members from the object to the field; `EACH` for all items of a list."""
        return tuple(member or key for member, key in _STEP.findall(self.path))

    @property
    def sentence(self) -> str:
        """As users see it."""
        return f"{self.path}: {self.because}"


def ignored(kind: str, because: str, *paths: str) -> tuple[IgnoredField, ...]:
    """Fields of one kind that are ignored for one reason."""
    return tuple(IgnoredField(kind=kind, path=path, because=because) for path in paths)


def ignored_marks(place: str, because: str, *keys: str) -> tuple[IgnoredField, ...]:
    """Keys of pods. `place`: "labels" or "annotations"."""
    return ignored("Pod", because, *(f"metadata.{place}[{key}]" for key in keys))


def fields_set(manifest: object, fields: Iterable[IgnoredField]) -> Iterator[IgnoredField]:
    """Those of the fields that an object sets to anything."""
    return (field for field in fields if _is_set(manifest, field.steps))


def _is_set(value: object, steps: tuple[str, ...]) -> bool:
    if not steps:
        return value not in (None, "", [], {})
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value)
        except msgspec.DecodeError:
            return False
    if steps[0] == EACH:
        items = cast("list[object]", value) if isinstance(value, list) else []
        return any(_is_set(item, steps[1:]) for item in items)
    members = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    return _is_set(members.get(steps[0]), steps[1:])
