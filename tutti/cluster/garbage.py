"""What deletes other objects' leftovers: of owners, of namespaces, of definitions.

One task over a set of UIDs to look at. Everything is decided from the store's present state, so
looking twice does no harm, and a look that fails (a webhook refuses, a conflict) is repeated.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable

from tutti.cluster.api import Api
from tutti.cluster.crds import CLEANUP, defined_by
from tutti.cluster.deletion import FOREGROUND, ORPHAN
from tutti.cluster.errors import ApiError
from tutti.cluster.objects import Obj
from tutti.cluster.resources import CRDS, NAMESPACES, Key
from tutti.cluster.store import Change

USER = "system:serviceaccount:kube-system:generic-garbage-collector"
RETRY_S = 1.0


def _owners(obj: Obj) -> list[Obj]:
    return obj["metadata"].get("ownerReferences") or []


def _is_going(obj: Obj) -> bool:
    return bool(obj["metadata"].get("deletionTimestamp"))


def _without_finalizers(namespace: Obj) -> None:
    namespace["spec"]["finalizers"] = []


class Collector:
    """The garbage collector. Make it before the first object, or it misses that one's owners."""

    def __init__(self, api: Api) -> None:
        self._api, self._store = api, api.store
        self._dependents: dict[str, set[str]] = defaultdict(set)
        self._due: dict[str, None] = {}  # an ordered set of UIDs, at most as many as objects
        self._wake = asyncio.Event()
        api.store.listeners.append(self._heard)

    async def run(self) -> None:
        """Works until it is cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._due:
                uid = next(iter(self._due))
                del self._due[uid]
                try:
                    await self._look(uid)
                except ApiError as error:
                    if error.code != 404:
                        asyncio.get_running_loop().call_later(RETRY_S, self._look_at, uid)

    def _look_at(self, uid: str) -> None:
        self._due[uid] = None
        self._wake.set()

    def _heard(self, key: Key, change: Change) -> None:
        obj = change.stored.obj
        uid, namespace = obj["metadata"]["uid"], obj["metadata"].get("namespace", "")
        for owner in _owners(change.previous.obj) if change.previous else ():
            self._dependents[owner["uid"]].discard(uid)
            if not self._dependents[owner["uid"]]:
                del self._dependents[owner["uid"]]
        if change.type != "DELETED":
            for owner in _owners(obj):
                self._dependents[owner["uid"]].add(uid)
            if _is_going(obj) or _owners(obj):
                self._look_at(uid)
            return
        # Who may have waited for its end: dependents, owners, its namespace, its definition.
        for other in (*self._dependents.get(uid, ()), *(owner["uid"] for owner in _owners(obj))):
            self._look_at(other)
        for other_key, name in ((NAMESPACES, namespace), (CRDS, f"{key[1]}.{key[0]}")):
            if row := self._store.get(other_key, "", name):
                self._look_at(row.obj["metadata"]["uid"])

    def _find(self, uid: str) -> tuple[Key, Obj] | None:
        known = self._store.uids.get(uid)
        row = self._store.get(known[0], *known[1]) if known else None
        return (known[0], row.obj) if known and row else None

    async def _look(self, uid: str) -> None:
        found = self._find(uid)
        if found is None:
            return
        key, obj = found
        finalizers = obj["metadata"].get("finalizers") or ()
        dependents = sorted(self._dependents.get(uid, ()))
        if not _is_going(obj):
            await self._check_owners(key, obj)
        elif ORPHAN in finalizers:
            for dependent in dependents:
                await self._drop_owners(dependent, {uid})
            await self._finalize(key, obj, ORPHAN)
        elif FOREGROUND in finalizers:
            if not any([await self._blocks(dependent, uid) for dependent in dependents]):
                await self._finalize(key, obj, FOREGROUND)
        elif key == NAMESPACES:
            left = [await self._left(each, obj["metadata"]["name"]) for each in self._store.kinds()]
            if not any(left):
                await self._modify(key, obj, _without_finalizers, "finalize")
        elif key == CRDS and not await self._left(defined_by(obj)):
            await self._finalize(CRDS, obj, CLEANUP)

    async def _check_owners(self, key: Key, obj: Obj) -> None:
        """Deletes an object whose owners are all gone; forgets those of several that are."""
        absent = set()
        for owner in _owners(obj):
            known = self._store.uids.get(owner["uid"])
            if known is None or known[1][0] not in ("", obj["metadata"].get("namespace", "")):
                absent.add(owner["uid"])
        if absent and len(absent) == len(_owners(obj)):
            await self._delete(key, obj, "Background")
        elif absent:
            await self._drop_owners(obj["metadata"]["uid"], absent)

    async def _blocks(self, uid: str, owner_uid: str) -> bool:
        """Deletes a dependent of an owner that waits for it; whether the owner has to wait on."""
        found = self._find(uid)
        if found is not None and not _is_going(found[1]):
            policy = "Foreground" if self._dependents.get(uid) else "Background"
            await self._delete(*found, policy)
        if self._find(uid) is None or found is None:
            return False
        blocking = [each for each in _owners(found[1]) if each.get("blockOwnerDeletion")]
        return owner_uid in [each["uid"] for each in blocking]

    async def _left(self, key: Key, namespace: str = "") -> bool:
        """Deletes all objects of a kind; whether some wait on (their end brings us back)."""
        for row in self._store.rows(key, namespace):
            if not _is_going(row.obj):
                await self._delete(key, row.obj, "Background")
        return bool(self._store.rows(key, namespace))

    async def _delete(self, key: Key, obj: Obj, policy: str) -> None:
        metadata = obj["metadata"]
        options = {"propagationPolicy": policy, "preconditions": {"uid": metadata["uid"]}}
        place = (metadata.get("namespace", ""), metadata["name"])
        await self._api.delete(self._api.call(key[1], *place, group=key[0], user=USER), options)

    async def _drop_owners(self, uid: str, gone: set[str]) -> None:
        def change(new: Obj) -> None:
            new["metadata"]["ownerReferences"] = [o for o in _owners(new) if o["uid"] not in gone]

        found = self._find(uid)
        if found is not None:
            await self._modify(*found, change)

    async def _finalize(self, key: Key, obj: Obj, finalizer: str) -> None:
        def change(new: Obj) -> None:
            left = [each for each in new["metadata"].get("finalizers") or () if each != finalizer]
            new["metadata"]["finalizers"] = left

        await self._modify(key, obj, change)

    async def _modify(
        self, key: Key, obj: Obj, change: Callable[[Obj], None], sub: str = ""
    ) -> None:
        place = (obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
        call = self._api.call(key[1], *place, group=key[0], sub=sub, user=USER)
        await self._api.modify(call, change)
