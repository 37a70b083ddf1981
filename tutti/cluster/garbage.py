"""The garbage collector: deletes dependents of deleted owners, namespaces and CRDs.

One task works on a set of UIDs. Everything is decided from the present state of the store, so a UID
may be processed twice, and a failure (a webhook refuses, a conflict) is retried.
"""

import asyncio
from collections import defaultdict

from tutti.cluster.admission import Call
from tutti.cluster.api import Api
from tutti.cluster.crds import defined_by
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


class Collector:
    """The garbage collector. Create it before the first object, whose owners it would miss."""

    def __init__(self, api: Api) -> None:
        self._api, self._store = api, api.store
        self._dependents: dict[str, set[str]] = defaultdict(set)
        self._due: dict[str, None] = {}  # an ordered set of UIDs, at most as many as objects
        self._wake = asyncio.Event()
        api.store.listeners.append(self._on_change)

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._due:
                uid = next(iter(self._due))
                del self._due[uid]
                try:
                    await self._process(uid)
                except ApiError as error:
                    if error.code != 404:
                        asyncio.get_running_loop().call_later(RETRY_S, self._enqueue, uid)

    def _enqueue(self, uid: str) -> None:
        self._due[uid] = None
        self._wake.set()

    def _on_change(self, key: Key, change: Change) -> None:
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
                self._enqueue(uid)
            return
        # Its dependents, its namespace and its CRD may have waited for its end.
        for other in self._dependents.get(uid, ()):
            self._enqueue(other)
        for other_key, name in ((NAMESPACES, namespace), (CRDS, f"{key[1]}.{key[0]}")):
            if row := self._store.get(other_key, "", name):
                self._enqueue(row.obj["metadata"]["uid"])

    async def _process(self, uid: str) -> None:
        known = self._store.uids.get(uid)
        row = self._store.get(known[0], *known[1]) if known else None
        if known is None or row is None:
            return
        key, obj = known[0], row.obj
        if not _is_going(obj):
            await self._check_owners(key, obj)
        elif key in (NAMESPACES, CRDS) and not obj["metadata"].get("finalizers"):
            if key == CRDS:
                left = await self._delete_all(defined_by(obj))
            else:
                name = obj["metadata"]["name"]
                left = any([await self._delete_all(each, name) for each in self._store.kinds()])
            if not left:
                self._api.remove(self._call(key, obj), obj)

    async def _check_owners(self, key: Key, obj: Obj) -> None:
        """Delete an object without existing owners; otherwise remove references to deleted ones."""
        absent = set()
        for owner in _owners(obj):
            known = self._store.uids.get(owner["uid"])
            if known is None or known[1][0] not in ("", obj["metadata"].get("namespace", "")):
                absent.add(owner["uid"])

        def change(new: Obj) -> None:
            new["metadata"]["ownerReferences"] = [o for o in _owners(new) if o["uid"] not in absent]

        if absent and len(absent) == len(_owners(obj)):
            await self._delete(key, obj)
        elif absent:
            await self._api.modify(self._call(key, obj), change)

    async def _delete_all(self, key: Key, namespace: str = "") -> bool:
        """Delete all objects of a kind; whether some still exist (their end enqueues us again)."""
        for row in self._store.rows(key, namespace):
            if not _is_going(row.obj):
                await self._delete(key, row.obj)
        return bool(self._store.rows(key, namespace))

    async def _delete(self, key: Key, obj: Obj) -> None:
        options = {"preconditions": {"uid": obj["metadata"]["uid"]}}
        await self._api.delete(self._call(key, obj), options)

    def _call(self, key: Key, obj: Obj) -> Call:
        place = (obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
        return self._api.call(key[1], *place, group=key[0], user=USER)
