"""What deletes other objects' leftovers: dependents of owners, contents of namespaces, instances of definitions.

One task over a set of UIDs to look at. Everything is decided from the store's present state, so looking twice does no harm,
and a look that fails (a webhook refuses, a conflict) is repeated a second later.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable

from tutti.cluster.api import Api
from tutti.cluster.crds import CLEANUP
from tutti.cluster.deletion import FOREGROUND, ORPHAN
from tutti.cluster.errors import ApiError
from tutti.cluster.objects import Obj
from tutti.cluster.resources import CRDS, NAMESPACES, Key, Registry
from tutti.cluster.store import Change, Store

USER = "system:serviceaccount:kube-system:generic-garbage-collector"
RETRY_S = 1.0


def _owners(obj: Obj) -> list[Obj]:
    return obj["metadata"].get("ownerReferences") or []


class Collector:
    """The garbage collector. It must be made before the first object, or it misses that object's owners."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._store: Store = api.store
        self._registry: Registry = api.registry
        self._dependents: dict[str, set[str]] = defaultdict(set)
        self._due: dict[str, None] = {}  # an ordered set of UIDs, never more than there are objects
        self._wake = asyncio.Event()
        api.store.listeners.append(self._heard)

    async def run(self) -> None:
        """Works until it is cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await self._wake.wait()
            while self._due:
                uid = next(iter(self._due))
                del self._due[uid]
                try:
                    await self._look(uid)
                except ApiError as error:
                    if error.code != 404:
                        loop.call_later(RETRY_S, self._look_at, uid)
            self._wake.clear()

    def _look_at(self, uid: str | None) -> None:
        if uid is not None:
            self._due[uid] = None
            self._wake.set()

    def _heard(self, key: Key, change: Change) -> None:
        metadata = change.stored.obj["metadata"]
        uid = metadata["uid"]
        for owner in _owners(change.previous.obj) if change.previous else ():
            self._dependents[owner["uid"]].discard(uid)
            if not self._dependents[owner["uid"]]:
                del self._dependents[owner["uid"]]
        if change.type != "DELETED":
            for owner in _owners(change.stored.obj):
                self._dependents[owner["uid"]].add(uid)
            if metadata.get("deletionTimestamp") or _owners(change.stored.obj):
                self._look_at(uid)
            return
        for dependent in self._dependents.get(uid, ()):
            self._look_at(dependent)
        for owner in _owners(change.stored.obj):
            self._look_at(owner["uid"])
        self._look_at(self._uid(NAMESPACES, metadata.get("namespace", "")))
        self._look_at(self._uid(CRDS, f"{key[1]}.{key[0]}"))

    def _uid(self, key: Key, name: str) -> str | None:
        row = self._store.get(key, "", name)
        return row.obj["metadata"]["uid"] if row else None

    def _find(self, uid: str) -> tuple[Key, Obj] | None:
        known = self._store.uids.get(uid)
        row = self._store.get(known[0], *known[1]) if known else None
        return (known[0], row.obj) if known and row else None

    async def _look(self, uid: str) -> None:
        found = self._find(uid)
        if found is None:
            return
        key, obj = found
        if not obj["metadata"].get("deletionTimestamp"):
            await self._check_owners(key, obj)
            return
        finalizers = obj["metadata"].get("finalizers") or ()
        if ORPHAN in finalizers:
            for dependent in sorted(self._dependents.get(uid, ())):
                await self._drop_owners(dependent, {uid})
            await self._finalize(key, obj, ORPHAN)
        elif FOREGROUND in finalizers:
            blocking = [
                child
                for child in sorted(self._dependents.get(uid, ()))
                if await self._ended(child, uid)
            ]
            if not blocking:
                await self._finalize(key, obj, FOREGROUND)
        elif key == NAMESPACES:
            await self._empty_namespace(obj)
        elif key == CRDS and CLEANUP in finalizers:
            await self._remove_instances(obj)

    async def _check_owners(self, key: Key, obj: Obj) -> None:
        """Deletes an object whose owners are all gone; forgets those of several that are."""
        namespace = obj["metadata"].get("namespace", "")
        absent = set()
        for owner in _owners(obj):
            known = self._store.uids.get(owner["uid"])
            if known is None or known[1][0] not in ("", namespace):
                absent.add(owner["uid"])
        if absent and len(absent) == len(_owners(obj)):
            await self._delete(key, obj, "Background")
        elif absent:
            await self._drop_owners(obj["metadata"]["uid"], absent)

    async def _ended(self, uid: str, owner_uid: str) -> bool:
        """Deletes a dependent of an owner that waits for it; whether the owner has to wait on."""
        found = self._find(uid)
        if found is None:
            return False
        key, obj = found
        if not obj["metadata"].get("deletionTimestamp"):
            await self._delete(
                key, obj, "Foreground" if self._dependents.get(uid) else "Background"
            )
        still_there = self._find(uid) is not None
        return still_there and any(
            o["uid"] == owner_uid and o.get("blockOwnerDeletion") for o in _owners(obj)
        )

    async def _delete(self, key: Key, obj: Obj, policy: str) -> None:
        metadata = obj["metadata"]
        options = {"propagationPolicy": policy, "preconditions": {"uid": metadata["uid"]}}
        call = self._api.call(
            key[1], metadata.get("namespace", ""), metadata["name"], group=key[0], user=USER
        )
        await self._api.delete(call, options)

    async def _drop_owners(self, uid: str, gone: set[str]) -> None:
        found = self._find(uid)
        if found is None:
            return

        def change(new: Obj) -> None:
            new["metadata"]["ownerReferences"] = [o for o in _owners(new) if o["uid"] not in gone]

        await self._modify(*found, change)

    async def _finalize(self, key: Key, obj: Obj, finalizer: str) -> None:
        def change(new: Obj) -> None:
            new["metadata"]["finalizers"] = [
                f for f in new["metadata"].get("finalizers") or () if f != finalizer
            ]

        await self._modify(key, obj, change)

    async def _modify(
        self, key: Key, obj: Obj, change: Callable[[Obj], None], subresource: str = ""
    ) -> None:
        metadata = obj["metadata"]
        call = self._api.call(
            key[1],
            metadata.get("namespace", ""),
            metadata["name"],
            group=key[0],
            subresource=subresource,
            user=USER,
        )
        await self._api.modify(call, change)

    async def _empty_namespace(self, namespace: Obj) -> None:
        name = namespace["metadata"]["name"]
        for key in self._store.keys():
            for row in self._store.rows(key, name):
                if not row.obj["metadata"].get("deletionTimestamp"):
                    await self._delete(key, row.obj, "Background")
        if any(self._store.rows(key, name) for key in self._store.keys()):
            return  # the last one's end brings us back

        def change(new: Obj) -> None:
            new["spec"]["finalizers"] = []

        await self._modify(NAMESPACES, namespace, change, "finalize")

    async def _remove_instances(self, crd: Obj) -> None:
        key = (crd["spec"]["group"], crd["spec"]["names"]["plural"])
        for row in self._store.rows(key):
            if not row.obj["metadata"].get("deletionTimestamp"):
                await self._delete(key, row.obj, "Background")
        if not self._store.rows(key):
            await self._finalize(CRDS, crd, CLEANUP)
