"""Objects of one kind, as CLUSTER has them: by UID, and by namespace and name."""

from collections.abc import Collection, Hashable, Iterator
from typing import Generic, TypeVar

from shared.model.objects import PriorityClass, ReferenceObject

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


_Kind = TypeVar("_Kind", bound=ReferenceObject | PriorityClass)


class Table(dict[str, _Kind]):
    """Objects of one kind by UID; `changes` is the number of effective puts and removals."""

    def __init__(self, kind: type[_Kind]) -> None:
        super().__init__()
        self.kind = kind
        self.changes = 0
        #: By (namespace, name); the namespace is "" for cluster-scoped kinds.
        self.by_name: dict[tuple[str, str], _Kind] = {}

    def put(self, stored: _Kind, /, *, from_snapshot: bool = False) -> bool:
        """Store an object; False: the known one is equal, or newer and this is from no snapshot."""
        before = self.get(stored.uid)
        if before == stored or (
            before is not None
            and not from_snapshot
            and stored.resource_version < before.resource_version
        ):
            return False
        if before is not None and _name_of(before) != _name_of(stored):
            self._leave_name(before)
        self[stored.uid] = stored
        self.by_name[_name_of(stored)] = stored
        self.changes += 1
        return True

    def remove(self, uid: str) -> bool:
        """Remove an object. Returns False if it was not known."""
        removed = self.pop(uid, None)
        if removed is None:
            return False
        self._leave_name(removed)
        self.changes += 1
        return True

    def _leave_name(self, left: _Kind) -> None:
        name = _name_of(left)
        # A new object of the same name may have arrived before this one's deletion.
        if name in self.by_name and self.by_name[name].uid == left.uid:
            del self.by_name[name]

    def keep_only(self, named: Collection[str]) -> None:
        """Remove all objects except those with these UIDs."""
        for uid in [uid for uid in self if uid not in named]:
            self.remove(uid)


def _name_of(named: ReferenceObject | PriorityClass) -> tuple[str, str]:
    return getattr(named, "namespace", ""), named.name
