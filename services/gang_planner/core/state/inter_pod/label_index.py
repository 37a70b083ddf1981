"""An index of pods by the label keys that terms select, and the labels of namespaces."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

import msgspec

from services.gang_planner.core.state.gangs import Member
from services.gang_planner.core.state.inter_pod.terms import Matcher
from shared.model.object_table import Table
from shared.model.objects import Labels, Pod
from shared.model.reference_objects import Namespace

#: Label keys by which pods are found: finding one again takes a pass over all pods.
KEYS_MAX: Final = 512
_NONE: Final[Mapping[str, str]] = {}
_DECODER: Final = msgspec.msgpack.Decoder(Labels)


@lru_cache(maxsize=8192)
def decoded(labels: bytes) -> Mapping[str, str]:
    """The encoded labels of a pod as a mapping; empty if they cannot be decoded."""
    if not labels:
        return _NONE
    try:
        return dict(_DECODER.decode(labels))
    except (msgspec.DecodeError, msgspec.ValidationError):
        return _NONE


class LabelIndex:
    """Pods by the values of all label keys in anchors of matchers, and namespaces by name."""

    def __init__(self, namespaces: Table[Namespace]) -> None:
        self._by_key: dict[str, dict[str, dict[str, None]]] = {}
        self._namespaces = namespaces
        self._by_name: dict[str, Mapping[str, str]] = {}
        self._read_at: int | None = None

    def put(self, pod: Pod) -> None:
        if self._by_key:
            for key, value in decoded(pod.labels).items():
                values = self._by_key.get(key)
                if values is not None:
                    values.setdefault(value, {})[pod.uid] = None

    def remove(self, pod: Pod) -> None:
        """Remove a pod, because it is deleted or before its labels change."""
        if self._by_key:
            for key, value in decoded(pod.labels).items():
                values = self._by_key.get(key)
                if values is None:
                    continue
                del values[value][pod.uid]
                if not values[value]:
                    del values[value]

    def candidates(self, matcher: Matcher, members: Mapping[str, Member]) -> Iterable[str]:
        """UIDs of the pods that the matcher may match."""
        if not matcher.anchors:
            return list(members)
        uids: list[str] = []
        for key, value in matcher.anchors:
            values = self._by_key.get(key)
            if values is None:
                values = self._track(key, members)
            uids.extend(values.get(value, ()))
        return uids

    def namespace(self, name: str) -> Mapping[str, str]:
        """Labels of a namespace; empty if it is unknown."""
        if self._read_at != self._namespaces.changes:
            self._read_at = self._namespaces.changes
            self._by_name = {
                namespace.name: dict(namespace.labels) for namespace in self._namespaces.values()
            }
        return self._by_name.get(name, _NONE)

    def _track(self, key: str, members: Mapping[str, Member]) -> dict[str, dict[str, None]]:
        if len(self._by_key) >= KEYS_MAX:
            self._by_key.clear()
        values = self._by_key[key] = {}
        for uid, member in members.items():
            value = decoded(member.pod.labels).get(key)
            if value is not None:
                values.setdefault(value, {})[uid] = None
        return values
