"""A cache of one kind, kept current by a list-watch and by the answers to this process's own
writes.

In: batches of `shared.kube.listwatch`, and answers to writes (`learn`). Out: objects by key and by
owner, and a call of each handler for each change, in order, with (old, new).

Invariants:
* `get` never returns an older state than before, in whatever order changes and answers arrive
  (unless the API server itself went back, because its etcd was restored from a backup).
* An object that cannot be decoded counts as deleted, so that no controller acts on an old state.
* After a gap in the watch, objects deleted during it are reported with their last known state.
* Handlers run before the next batch is read; they must be quick and must not raise.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

import msgspec

from services.controller.reconciling.writes import Keyed
from shared.kube.client import KubeClient
from shared.kube.decoding import Undecodable
from shared.kube.listwatch import Absent, Changes, Listed, ListWatch
from shared.kube.resources import Resource
from shared.model.invariants import required

logger = logging.getLogger(__name__)


T = TypeVar("T", bound=Keyed)

Handler = Callable[[T | None, T | None], object]
"""Called with (old, new): (None, new) for a creation, (old, None) for a deletion."""


def key_of(thing: Keyed) -> str:
    """The object's name, after "namespace/" if it has a namespace."""
    metadata = thing.metadata
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name


def latest(old: T | None, new: T | None) -> T:
    """The object that a handler was called for, in its latest state."""
    return required(new if new is not None else old, "a change", "is of an object")


class Informer(Generic[T]):
    """One kind's objects. Read it from the event loop in which `run` runs.

    Attributes:
        resource: The cached resource.
        synced: Set after the first list, or when the kind is known to be absent.
        absent: Whether the API server does not serve the kind at present.
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
    ) -> None:
        """Nothing is sent before `run`. A namespace or a name restricts the cache to it."""
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
        )
        self._decode = msgspec.json.Decoder(kind).decode
        self._objects: dict[str, T] = {}
        self._by_owner: dict[str, set[str]] = {}
        self._handlers: list[Handler[T]] = []
        #: All changes up to this resourceVersion are in the cache.
        self._seen = 0

    def on_change(self, handler: Handler[T]) -> None:
        """Call `handler` for every later change."""
        self._handlers.append(handler)

    def get(self, key: str) -> T | None:
        return self._objects.get(key)

    def all(self) -> Iterable[T]:
        """All objects, in no particular order."""
        return self._objects.values()

    def keys(self) -> Iterable[str]:
        """All keys, in no particular order."""
        return self._objects.keys()

    def owned_by(self, uid: str, *, namespace: str) -> list[T]:
        """Objects of an owner in its namespace, ordered by key. A user chooses the UIDs in owner
        references: those of objects in other namespaces do not count, as in Kubernetes.
        """
        keys = sorted(self._by_owner.get(uid, ()))
        return [self._objects[key] for key in keys if key.startswith(f"{namespace}/")]

    async def run(self) -> None:
        await self._watch.run(self._take)

    def learn(self, body: bytes) -> None:
        """Apply the answer to a write of this process, so that the next read returns it.

        It is ignored when the watch has passed its version (the object may be deleted by now), when
        it is another kind (a Status), and when the write had another outcome than DONE.
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
            listed = {key_of(thing): thing for thing in self._decoded(batch.objects)}
            if batch.resource_version < self._seen:
                # etcd was restored from a backup: the known versions are meaningless.
                self._forget_all_but(listed)
            # An object that was written after this list is newer than it.
            for key, known in self._objects.items():
                if key not in listed and _version(known) > batch.resource_version:
                    listed[key] = known
            self._keep_only(listed)
            self._seen = batch.resource_version
        else:
            for change in batch.changes:
                thing = change.object
                if isinstance(thing, Undecodable):
                    self._log_undecodable(thing)
                    if key_of(thing) in self._objects:
                        self._set(key_of(thing), None)
                elif change.type == "DELETED":
                    self._drop(thing)
                else:
                    self._put(thing)
            self._seen = max(self._seen, batch.resource_version)
        self.synced.set()

    def _decoded(self, things: Iterable[T | Undecodable]) -> Iterable[T]:
        for thing in things:
            if isinstance(thing, Undecodable):
                self._log_undecodable(thing)
            else:
                yield thing

    def _log_undecodable(self, thing: Undecodable) -> None:
        logger.error(
            "%s %s/%s cannot be read: %s",
            self.resource.title,
            thing.metadata.namespace,
            thing.metadata.name,
            thing.error,
        )

    def _forget_all_but(self, listed: dict[str, T]) -> None:
        """Keep exactly these objects, also those with older versions than known."""
        for key, known in list(self._objects.items()):
            now = listed.get(key)
            if now is None or now.metadata.uid != known.metadata.uid:
                self._set(key, None)
            elif _version(now) < _version(known):
                self._set(key, now)

    def _keep_only(self, listed: dict[str, T]) -> None:
        for key in [key for key in self._objects if key not in listed]:
            self._set(key, None)
        for thing in listed.values():
            self._put(thing)

    def _put(self, thing: T) -> None:
        key = key_of(thing)
        old = self._objects.get(key)
        if old is not None and old.metadata.uid != thing.metadata.uid:
            if _version(thing) < _version(old):
                return
            # Created again under its name: the watch has yet to report the deletion of the old one.
            self._set(key, None)
            old = None
        if old is not None and _version(thing) <= _version(old):
            return
        self._set(key, thing)

    def _drop(self, thing: T) -> None:
        """Apply a deletion, which has the last state; that can be newer than the known one."""
        key = key_of(thing)
        known = self._objects.get(key)
        if known is not None and known.metadata.uid == thing.metadata.uid:
            self._set(key, None, last=thing)

    def _set(self, key: str, new: T | None, *, last: T | None = None) -> None:
        """Replace or remove an object, and report it. `last`: the last state of a removed one, if
        it is not the known state.
        """
        old = self._objects.get(key)
        if new is None:
            del self._objects[key]
        else:
            self._objects[key] = new
        was = {owner.uid for owner in old.metadata.owner_references} if old is not None else set()
        now = {owner.uid for owner in new.metadata.owner_references} if new is not None else set()
        for uid in was - now:
            keys = self._by_owner[uid]
            keys.discard(key)
            if not keys:
                del self._by_owner[uid]
        for uid in now - was:
            self._by_owner.setdefault(uid, set()).add(key)
        for handler in self._handlers:
            handler(old if last is None else last, new)


def _version(thing: Keyed) -> int:
    version = thing.metadata.resource_version
    return int(version) if version.isdigit() else 0


class Informers:
    """The caches of one process; reconcilers share them."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
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
        """The cache of a resource, or of one namespace, name or label of it. Call it before
        `run`.
        """
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
            )
            self._informers[at] = informer
        return informer

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for (title, _, part), informer in self._informers.items():
                group.create_task(informer.run(), name=f"informer {title} {part}".strip())
