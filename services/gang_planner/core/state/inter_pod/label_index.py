"""Pods by the values of their labels, and labels of namespaces, as far as terms ask for them."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

import msgspec

from services.gang_planner.core.state.gangs import Member
from services.gang_planner.core.state.inter_pod.terms import Matcher
from services.gang_planner.core.state.reference_objects import Table
from shared.model.objects import Labels, Pod
from shared.model.reference_objects import Namespace

_NONE: Final[Mapping[str, str]] = {}
_DECODER: Final = msgspec.msgpack.Decoder(Labels)


@lru_cache(maxsize=8192)
def decoded(labels: bytes) -> Mapping[str, str]:
    """Labels as a pod carries them, as a mapping; what is none has none."""
    if not labels:
        return _NONE
    try:
        return dict(_DECODER.decode(labels))
    except (msgspec.DecodeError, msgspec.ValidationError):
        return _NONE


class LabelIndex:
    """Pods by value of the label keys that some matcher is anchored at, and namespaces by name."""

    def __init__(self, namespaces: Table[Namespace]) -> None:
        self._by_key: dict[str, dict[str, dict[str, None]]] = {}
        self._namespaces = namespaces
        self._by_name: dict[str, Mapping[str, str]] = {}
        self._read_at = -1

    def put(self, pod: Pod) -> None:
        """A pod appeared."""
        if self._by_key:
            for key, value in decoded(pod.labels).items():
                values = self._by_key.get(key)
                if values is not None:
                    values.setdefault(value, {})[pod.uid] = None

    def remove(self, pod: Pod) -> None:
        """A pod is gone, or changes its labels."""
        if self._by_key:
            for key, value in decoded(pod.labels).items():
                values = self._by_key.get(key)
                if values is None:
                    continue
                del values[value][pod.uid]
                if not values[value]:
                    del values[value]

    def candidates(self, matcher: Matcher, members: Mapping[str, Member]) -> Iterable[str]:
        """UIDs of the pods that it can be about."""
        if not matcher.anchors:
            return list(members)
        found: list[str] = []
        for key, value in matcher.anchors:
            values = self._by_key.get(key)
            if values is None:
                values = self._track(key, members)
            found.extend(values.get(value, ()))
        return found

    def namespace(self, name: str) -> Mapping[str, str]:
        """Labels of a namespace."""
        if self._read_at != self._namespaces.changes:
            self._read_at = self._namespaces.changes
            self._by_name = {one.name: dict(one.labels) for one in self._namespaces.values()}
        return self._by_name.get(name, _NONE)

    def _track(self, key: str, members: Mapping[str, Member]) -> dict[str, dict[str, None]]:
        values = self._by_key[key] = {}
        for uid, member in members.items():
            value = decoded(member.pod.labels).get(key)
            if value is not None:
                values.setdefault(value, {})[uid] = None
        return values
