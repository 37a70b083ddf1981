"""A cache of one kind, kept current by a list-watch, that also knows its own writes.

In: batches of `shared.kube.listwatch`, and answers to our own writes (`learn`). Out: objects by key
and by owner, and a call of every handler for each change, in order, with (old, new).

Invariants:
* `get` never shows an older state than one it has shown before, whatever order news comes in
  (unless the API server itself went back: its etcd was restored from a backup).
* What cannot be read is as good as gone: no controller acts on what it was.
* After a gap in the watch, what vanished meanwhile is reported as gone, with its last known state.
* Handlers run before the next batch is read; they must be quick and must not raise.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from shared.kube.client import KubeClient
from shared.kube.decoding import Undecodable
from shared.kube.listwatch import Absent, Changes, Listed, ListWatch, Pace
from shared.kube.resources import Resource

logger = logging.getLogger(__name__)


class Owner(Protocol):
    """What is read of an owner reference."""

    @property
    def uid(self) -> str:
        """The owner's UID."""
        ...


class Metadata(Protocol):
    """What is read of an object's metadata."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def namespace(self) -> str:
        """Its namespace, "" without."""
        ...

    @property
    def uid(self) -> str:
        """Its UID."""
        ...

    @property
    def resource_version(self) -> str:
        """Its resourceVersion."""
        ...

    @property
    def owner_references(self) -> Sequence[Owner]:
        """Its owners."""
        ...


class Keyed(Protocol):
    """Any typed object."""

    @property
    def metadata(self) -> Metadata:
        """Its metadata."""
        ...


T = TypeVar("T", bound=Keyed)

Handler = Callable[[T | None, T | None], object]
"""Called with (old, new): (None, new) appeared, (old, None) went, both changed."""


def key_of(thing: Keyed) -> str:
    """The name, with the namespace and a slash before it if there is one."""
    metadata = thing.metadata
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name


class Informer(Generic[T]):
    """One kind's objects. Read it from the event loop in which `run` runs.

    Attributes:
        resource: What is cached.
        synced: Set once the first list is in, or the kind is known to be absent.
        absent: The API server does not serve the kind at present.
    """

    def __init__(
        self,
        client: KubeClient,
        resource: Resource,
        kind: type[T],
        *,
        label_selector: str = "",
        namespace: str = "",
        name: str = "",
        pace: Pace | None = None,
    ) -> None:
        """Prepare; nothing is sent before `run`. A namespace or a name keeps all others out."""
        self.resource = resource
        self.kind = kind
        self.synced = asyncio.Event()
        self.absent = False
        self._watch = ListWatch(
            client,
            resource,
            kind,
            namespace=namespace,
            label_selector=label_selector,
            field_selector=f"metadata.name={name}" if name else "",
            pace=pace,
        )
        self._decode = msgspec.json.Decoder(kind).decode
        self._objects: dict[str, T] = {}
        self._by_owner: dict[str, set[str]] = {}
        self._handlers: list[Handler[T]] = []
        #: Everything up to this resourceVersion has been shown.
        self._seen = 0

    def on_change(self, handler: Handler[T]) -> None:
        """Call `handler` for every later change."""
        self._handlers.append(handler)

    def get(self, key: str) -> T | None:
        """The object of this key, if there is one."""
        return self._objects.get(key)

    def all(self) -> Iterable[T]:
        """Every object, in no particular order."""
        return self._objects.values()

    def keys(self) -> Iterable[str]:
        """Every key, in no particular order."""
        return self._objects.keys()

    def owned_by(self, uid: str) -> list[T]:
        """Objects with an owner of this UID, by key."""
        return [self._objects[key] for key in sorted(self._by_owner.get(uid, ()))]

    async def run(self) -> None:
        """Keep the cache current until cancelled."""
        await self._watch.run(self._take)

    def wake(self) -> None:
        """Look for an absent kind now."""
        self._watch.wake()

    def learn(self, body: bytes) -> None:
        """Take in the answer to a write of ours, so that the next reading knows of it.

        Ignored when the watch has come past it (the object may be gone since), and when the answer
        is not such an object (a Status).
        """
        try:
            thing = self._decode(body)
        except msgspec.MsgspecError:
            return
        if not thing.metadata.uid or _version(thing) <= self._seen:
            return
        self._put(thing)

    async def _take(self, batch: Listed[T] | Changes[T] | Absent) -> None:
        if isinstance(batch, Absent):
            self.absent = True
            self._keep_only({})
        elif isinstance(batch, Listed):
            self.absent = False
            listed = {key_of(one): one for one in self._decoded(batch.objects)}
            if batch.resource_version < self._seen:
                # Restored from a backup: versions of before mean nothing any more.
                self._forget_all_but(listed)
            # What was learned of a write after this list is newer than it.
            for key, known in self._objects.items():
                if key not in listed and _version(known) > batch.resource_version:
                    listed[key] = known
            self._keep_only(listed)
            self._seen = batch.resource_version
        else:
            for change in batch.changes:
                thing = change.object
                if isinstance(thing, Undecodable):
                    self._complain(thing)
                    self._lose(thing)
                elif change.type == "DELETED":
                    self._drop(thing)
                else:
                    self._put(thing)
            self._seen = max(self._seen, batch.resource_version)
        self.synced.set()

    def _decoded(self, things: Iterable[T | Undecodable]) -> Iterable[T]:
        for thing in things:
            if isinstance(thing, Undecodable):
                self._complain(thing)
            else:
                yield thing

    def _complain(self, thing: Undecodable) -> None:
        logger.error(
            "%s %s/%s cannot be read: %s",
            self.resource.title,
            thing.metadata.namespace,
            thing.metadata.name,
            thing.error,
        )

    def _lose(self, thing: Undecodable) -> None:
        metadata = thing.metadata
        prefix = f"{metadata.namespace}/" if metadata.namespace else ""
        if f"{prefix}{metadata.name}" in self._objects:
            self._remove(f"{prefix}{metadata.name}")

    def _forget_all_but(self, listed: dict[str, T]) -> None:
        """Have exactly these at the versions that they have."""
        for key, known in list(self._objects.items()):
            now = listed.get(key)
            if now is None or now.metadata.uid != known.metadata.uid:
                self._remove(key)
            elif _version(now) < _version(known):
                self._objects[key] = now
                self._index(key, known, now)
                self._report(known, now)

    def _keep_only(self, listed: dict[str, T]) -> None:
        for key in [key for key in self._objects if key not in listed]:
            self._remove(key)
        for thing in listed.values():
            self._put(thing)

    def _put(self, thing: T) -> None:
        key = key_of(thing)
        old = self._objects.get(key)
        if old is not None and old.metadata.uid != thing.metadata.uid:
            if _version(thing) < _version(old):
                return
            # Made again under its name: the old one went, which the watch may not have said yet.
            self._remove(key)
            old = None
        if old is not None and _version(thing) <= _version(old):
            return
        self._objects[key] = thing
        self._index(key, old, thing)
        self._report(old, thing)

    def _drop(self, thing: T) -> None:
        """A DELETED change carries the last state, which can hold more than the one known."""
        key = key_of(thing)
        known = self._objects.get(key)
        if known is None or known.metadata.uid != thing.metadata.uid:
            return
        self._objects[key] = thing
        self._index(key, known, thing)
        self._remove(key)

    def _remove(self, key: str) -> None:
        old = self._objects.pop(key)
        self._index(key, old, None)
        self._report(old, None)

    def _index(self, key: str, old: T | None, new: T | None) -> None:
        was = {owner.uid for owner in old.metadata.owner_references} if old is not None else set()
        now = {owner.uid for owner in new.metadata.owner_references} if new is not None else set()
        for uid in was - now:
            keys = self._by_owner[uid]
            keys.discard(key)
            if not keys:
                del self._by_owner[uid]
        for uid in now - was:
            self._by_owner.setdefault(uid, set()).add(key)

    def _report(self, old: T | None, new: T | None) -> None:
        for handler in self._handlers:
            handler(old, new)


def _version(thing: Keyed) -> int:
    version = thing.metadata.resource_version
    return int(version) if version.isdigit() else 0


class Informers:
    """The caches of one process: reconcilers that ask for the same one share it."""

    def __init__(self, client: KubeClient, pace: Pace | None = None) -> None:
        """Have none yet."""
        self._client = client
        self._pace = pace
        self._informers: dict[tuple[str, type, str], Informer[Any]] = {}

    def of(
        self,
        resource: Resource,
        kind: type[T],
        *,
        label_selector: str = "",
        namespace: str = "",
        name: str = "",
    ) -> Informer[T]:
        """The cache of this resource, or of one namespace or name of it. Ask before `run`."""
        part = " ".join(filter(None, (namespace, name, label_selector)))
        at = (f"{resource.title}/{resource.version}", kind, part)
        informer: Informer[T] | None = self._informers.get(at)
        if informer is None:
            informer = Informer(
                self._client,
                resource,
                kind,
                label_selector=label_selector,
                namespace=namespace,
                name=name,
                pace=self._pace,
            )
            self._informers[at] = informer
        return informer

    async def run(self) -> None:
        """Keep all of them current until cancelled."""
        async with asyncio.TaskGroup() as group:
            for (title, _, part), informer in self._informers.items():
                group.create_task(informer.run(), name=f"informer {title} {part}".strip())
