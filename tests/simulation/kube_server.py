"""The simulated API server and its etcd: objects, versions, watches, and every way to fail.

`Etcd` is the truth: the world writes to it directly, checkers look at it after every write.
`ApiServer` is what clients reach: requests arrive late or never, are refused, throttled or broken
off after they were carried out; watches lag, are cut, or find their version compacted.

Objects are plain dicts that are never changed in place: an `edit` returns a new one (`with_`).
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal

import msgspec

from shared.kube.resources import Resource
from tests.simulation.loop import SimLoop

Obj = dict[str, Any]
WriteType = Literal["ADDED", "MODIFIED", "DELETED"]

_encode: Final = msgspec.json.Encoder().encode
#: Events kept for watches that resume; older ones are compacted.
_HISTORY: Final = 4000


class Write(msgspec.Struct, frozen=True, gc=False):
    """One change of one object, as etcd made it."""

    type: WriteType
    resource: Resource
    version: int
    #: None when it did not exist before; `new` is the last state of what was deleted.
    old: Obj | None
    new: Obj
    #: The client that asked for it: a generation's name, or "kubelet", "controller", "user", ….
    by: str
    #: "bind", "delete", "create", "patch", …
    verb: str
    at_ms: int


Observer = Callable[[Write], None]


def with_(obj: Obj, **parts: Obj) -> Obj:
    """The object with members of its sections replaced: `with_(pod, status={"phase": "Failed"})`.
    A member given as None is left out.
    """
    new = dict(obj)
    for section, members in parts.items():
        merged = {**(obj.get(section) or {}), **members}
        new[section] = {key: value for key, value in merged.items() if value is not None}
    return new


class Row:
    """A stored object and its JSON."""

    __slots__ = ("line", "obj")

    def __init__(self, obj: Obj) -> None:
        self.obj = obj
        self.line = b""

    def encoded(self) -> bytes:
        """Its JSON, made once."""
        if not self.line:
            self.line = _encode(self.obj)
        return self.line


class Backup(msgspec.Struct, frozen=True):
    """Everything that etcd held at an instant."""

    version: int
    tables: dict[Resource, dict[tuple[str, str], Row]]


class Etcd:
    """All objects. Every write is seen by all observers before it returns."""

    def __init__(self, loop: SimLoop, resources: Iterable[Resource]) -> None:
        self.loop = loop
        self.version = 1
        self.tables: dict[Resource, dict[tuple[str, str], Row]] = {each: {} for each in resources}
        #: (version, resource, event as JSON): what a resumed watch is sent.
        self.history: deque[tuple[int, Resource, bytes]] = deque(maxlen=_HISTORY)
        #: Watches from a version below this one get the answer that it is gone.
        self.compacted = 1
        self.observers: list[Observer] = []
        self.on_restore: list[Callable[[], None]] = []
        self._uids = 0

    # ---- reading

    def get(self, resource: Resource, namespace: str, name: str) -> Obj | None:
        """The object, or None."""
        row = self.tables[resource].get((namespace, name))
        return row.obj if row is not None else None

    def all(self, resource: Resource) -> list[Obj]:
        """Every object of a kind, in the order of creation."""
        return [row.obj for row in self.tables[resource].values()]

    def row(self, resource: Resource, namespace: str, name: str) -> Row | None:
        """With its encoding, for answers."""
        return self.tables[resource].get((namespace, name))

    # ---- writing

    def create(self, resource: Resource, obj: Obj, *, by: str) -> Obj | None:
        """Store a new object, with UID, version and creation time; None when the name is taken."""
        metadata = obj["metadata"]
        key = (metadata.get("namespace", ""), metadata["name"])
        table = self.tables[resource]
        if key in table:
            return None
        self._uids += 1
        made = with_(
            obj,
            metadata={
                "uid": metadata.get("uid") or f"{resource.plural[:3]}-{self._uids}",
                "creationTimestamp": stamp(self.loop.now_ms),
            },
        )
        return self._store("ADDED", resource, key, None, made, by, "create")

    def change(
        self,
        resource: Resource,
        obj: Obj,
        edit: Callable[[Obj], Obj],
        *,
        by: str,
        verb: str = "patch",
    ) -> Obj | None:
        """Apply `edit` to the object as it is now; None when this UID is no longer there."""
        key = _key(obj)
        row = self.tables[resource].get(key)
        if row is None or row.obj["metadata"]["uid"] != obj["metadata"]["uid"]:
            return None
        return self._store("MODIFIED", resource, key, row.obj, edit(row.obj), by, verb)

    def remove(self, resource: Resource, obj: Obj, *, by: str) -> bool:
        """Delete at once. False when this UID is no longer there."""
        key = _key(obj)
        row = self.tables[resource].get(key)
        if row is None or row.obj["metadata"]["uid"] != obj["metadata"]["uid"]:
            return False
        self._store("DELETED", resource, key, row.obj, row.obj, by, "delete")
        return True

    def _store(
        self,
        type_: WriteType,
        resource: Resource,
        key: tuple[str, str],
        old: Obj | None,
        new: Obj,
        by: str,
        verb: str,
    ) -> Obj:
        self.version += 1
        new = {**new, "metadata": {**new["metadata"], "resourceVersion": str(self.version)}}
        row = Row(new)
        if type_ == "DELETED":
            del self.tables[resource][key]
        else:
            self.tables[resource][key] = row
        if len(self.history) == self.history.maxlen:
            # The oldest event is dropped: no watch can resume from before it.
            self.compacted = self.history[0][0]
        event = b'{"type":"%s","object":%s}' % (type_.encode(), row.encoded())
        self.history.append((self.version, resource, event))
        write = Write(type_, resource, self.version, old, new, by, verb, self.loop.now_ms)
        for observer in self.observers:
            observer(write)
        return new

    # ---- what happens to etcds

    def compact(self) -> None:
        """Forget all history."""
        self.compacted = self.version
        self.history.clear()

    def backup(self) -> Backup:
        """Take one; cheap, since objects are never changed in place."""
        return Backup(self.version, {kind: dict(rows) for kind, rows in self.tables.items()})

    def restore(self, backup: Backup) -> None:
        """Be as at the backup: versions go back, and all that happened since has not happened."""
        self.version = backup.version
        self.tables = {kind: dict(rows) for kind, rows in backup.tables.items()}
        self.history.clear()
        self.compacted = backup.version
        for listener in self.on_restore:
            listener()


def _key(obj: Mapping[str, Any]) -> tuple[str, str]:
    metadata = obj["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def stamp(at_ms: int) -> str:
    """RFC 3339 in whole seconds, as metadata has it."""
    days, rest = divmod(at_ms // 1000, 86_400)
    hours, rest = divmod(rest, 3600)
    minutes, seconds = divmod(rest, 60)
    # Runs begin on the first of January and last hours at most.
    day = days - _JANUARY_FIRST_2026 + 1
    return f"2026-01-{day:02d}T{hours:02d}:{minutes:02d}:{seconds:02d}Z"


_JANUARY_FIRST_2026: Final = 20_454


class Watch:
    """One open watch: what is on its way to the reader, and what the reader has not taken."""

    def __init__(self, resource: Resource, version: int) -> None:
        self.resource = resource
        #: Only what happened after this version is sent.
        self.version = version
        self.pending: list[bytes] = []
        self.lines: list[bytes] = []
        self.delivering = False
        self.ended = False
        self.error: Exception | None = None
        #: Set by the reader while it waits; called once.
        self.wake: Callable[[], None] | None = None

    def hand(self) -> None:
        """What was on its way has arrived at the reader's end."""
        self.lines += self.pending
        self.pending.clear()
        self._woken()

    def end(self, error: Exception | None = None) -> None:
        """The connection is over; with `error` it broke."""
        self.ended = True
        self.error = error
        self._woken()

    def _woken(self) -> None:
        if self.wake is not None:
            wake, self.wake = self.wake, None
            wake()
