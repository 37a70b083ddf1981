"""The admission queue: groups whose pods are created only after the enqueue action admits them.

Groups that get the same votes in every cluster state share a bucket.
"""

from bisect import bisect_left, insort

import msgspec

from services.gang_planner.core.state.gangs import Gang, OrderKey
from services.gang_planner.core.state.queues import QueueEntry
from shared.model.gang_keys import GangKey


class AdmissionBucket(msgspec.Struct, eq=False):
    """Groups that get the same votes, in their order."""

    signature: tuple[object, ...]
    queue: QueueEntry
    #: Keys are unique, so gangs are never compared.
    entries: list[tuple[OrderKey, GangKey, Gang]] = []
    #: Versions of the voters' input when its first group was refused; (): not tried yet.
    refused_at: tuple[int, ...] = ()


class AdmissionQueue:
    """All groups that wait for admission."""

    def __init__(self) -> None:
        self.buckets: dict[tuple[object, ...], AdmissionBucket] = {}
        self._of: dict[GangKey, tuple[AdmissionBucket, OrderKey]] = {}

    def __len__(self) -> int:
        return len(self._of)

    def put(self, gang: Gang, signature: tuple[object, ...], order: OrderKey) -> None:
        """Add a group to the bucket of this signature, or move it there, placed by `order`."""
        known = self._of.get(gang.key)
        if known is not None:
            if known[0].signature == signature and known[1] == order:
                return
            self.take(gang)
        bucket = self.buckets.get(signature)
        if bucket is None:
            bucket = self.buckets[signature] = AdmissionBucket(signature, gang.queue)
        self._of[gang.key] = bucket, order
        insort(bucket.entries, (order, gang.key, gang))

    def take(self, gang: Gang) -> None:
        """Remove a group; no-op if it does not wait."""
        known = self._of.pop(gang.key, None)
        if known is None:
            return
        bucket, order = known
        del bucket.entries[bisect_left(bucket.entries, (order, gang.key))]
        if not bucket.entries:
            del self.buckets[bucket.signature]

    def first(self, queue: QueueEntry) -> Gang | None:
        """The first waiting group of a queue; None: there is none."""
        heads = [one.entries[0] for one in self.buckets.values() if one.queue is queue]
        return min(heads)[2] if heads else None
