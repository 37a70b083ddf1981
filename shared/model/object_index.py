"""Objects by a field that their users may change."""

from collections.abc import Collection, Hashable, Iterator
from typing import Generic, TypeVar

_Key = TypeVar("_Key", bound=Hashable)


class ObjectIndex(Generic[_Key]):
    """UIDs by key. An object leaves the key that was stored when it came, whatever its fields have
    become, and a key without objects is forgotten.
    """

    def __init__(self) -> None:
        self._keys: dict[str, _Key] = {}
        self._uids: dict[_Key, dict[str, None]] = {}

    def __iter__(self) -> Iterator[_Key]:
        """The keys, in the order in which they got their first object."""
        return iter(self._uids)

    def put(self, uid: str, key: _Key) -> None:
        """Store the object under this key only."""
        if self._keys.get(uid) == key:
            return
        self.remove(uid)
        self._keys[uid] = key
        self._uids.setdefault(key, {})[uid] = None

    def remove(self, uid: str) -> None:
        """Forget the object; an unknown one is ignored."""
        if uid not in self._keys:
            return
        key = self._keys.pop(uid)
        uids = self._uids[key]
        del uids[uid]
        if not uids:
            del self._uids[key]

    def uids(self, key: _Key) -> Collection[str]:
        """The objects under this key, in the order in which they came."""
        return self._uids.get(key, {})
