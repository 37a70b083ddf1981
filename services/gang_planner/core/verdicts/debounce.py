"""Debounces transient verdicts, so that bindings come before status updates.

*Starting*: most gangs run shortly after their decision, and one verdict suffices. When thousands of
pods are bound, all are decided first, and the start takes many seconds. So Starting is published
after 20 s (and the controller writes it after 30 s more).

*Running*: while many bindings are in flight, status updates of running gangs take API server time
from bindings, a tenth of it with gangs of 20. Running is published when the rush is over, at the
latest after 20 s. With 10 s, the verdicts of a drain's first half halved the rate of its second.

*Starting* of a gang whose published verdict has a pending reason: readers would act on that reason,
but not within half a second, and most such gangs run by then. It is published after half a second.

*Running* of a gang whose object was made again: news of different kinds has no common order, so its
members may be gone like its former object, and some APIs never take back a condition that says that
a group was scheduled. It is published after two seconds, ten times what a busy API server needs to
send the deletions.

*Throttled*: a gang that waits for the in-flight limit is usually decided soon, and in a drain
nearly all gangs wait for it. It is published after 20 s.

Other corrections are not debounced: Running of a gang with a published pending reason, and verdicts
that request a PodGroup.
"""

from itertools import islice
from typing import Final

import msgspec

from services.gang_planner.core.state.gangs import Gang
from shared.contracts.identity import gang_trace_id
from shared.contracts.pending_reasons import PendingReason
from shared.contracts.verdicts import Verdict
from shared.model.gang_keys import GangKey
from shared.model.objects import Owner, PodGroup

_STARTING_MS: Final = 20_000
_RUNNING_MS: Final = 20_000
_MADE_AGAIN_MS: Final = 2_000
#: A quarter of the controller's delay before it marks the pods of a waiting gang.
_CORRECTING_MS: Final = 500
_THROTTLED_MS: Final = 20_000
#: Number of pods in flight that counts as a rush; the API server binds this many quickly.
RUSH: Final = 128


class _Entry(msgspec.Struct, frozen=True, gc=False):
    """One gang with a debounced verdict. If the gang is deleted before its verdict is published,
    its Gone verdict is built from this entry.
    """

    due_ms: int
    gang: Gang
    gang_id: str
    group: PodGroup | None
    #: The owner of its pods, if it has no group object.
    owner: Owner | None
    attempt: int
    epoch: int

    def gone(self, now_ms: int) -> Verdict:
        """The Gone verdict of the gang."""
        group, owner = self.group, self.owner
        root = (group.trace_root if group is not None else "") or self.gang_id
        return Verdict(
            gang_id=self.gang_id,
            epoch=self.epoch,
            at_ms=now_ms,
            dialect=group.dialect if group is not None else "",
            namespace=self.gang.namespace,
            name=self.gang.name,
            uid=group.uid if group is not None else "",
            owner_uid=owner.uid if owner is not None else "",
            phase="Gone",
            attempt=self.attempt,
            trace_id=gang_trace_id(root, max(self.attempt, 1)),
            first_seen_ms=self.gang.history.first_seen_ms,
        )


class Debouncer:
    """Gangs with debounced verdicts, by id and kind.

    Each kind is in the order of publication, because all its gangs wait equally long.
    """

    def __init__(self) -> None:
        self._starting: dict[str, _Entry] = {}
        self._correcting: dict[str, _Entry] = {}
        self._running: dict[str, _Entry] = {}
        self._throttled: dict[str, _Entry] = {}
        self._made_again: dict[str, _Entry] = {}
        #: All kinds, in the order of publication.
        self._each = (
            self._running,
            self._correcting,
            self._made_again,
            self._starting,
            self._throttled,
        )

    def holds(
        self,
        gang: Gang,
        last: Verdict | None,
        epoch: int,
        now_ms: int,
        *,
        throttled: bool = False,
        rush: bool = False,
    ) -> bool:
        """Whether to delay the verdict of this gang, which starts, runs or is `throttled`.

        `last` is its last published verdict; in a `rush`, many pods are being bound.
        """
        debounced = self._kind(gang, last, throttled=throttled, rush=rush)
        if debounced is None:
            return False
        held, wait_ms = debounced
        entry = held.get(gang.gang_id)
        if entry is None:
            group = gang.group
            entry = _Entry(
                now_ms + wait_ms,
                gang,
                gang.gang_id,
                group,
                gang.owner if group is None else None,
                gang.history.attempt,
                epoch,
            )
            held[gang.gang_id] = entry
        return entry.due_ms > now_ms

    def _kind(
        self, gang: Gang, last: Verdict | None, *, throttled: bool, rush: bool
    ) -> tuple[dict[str, _Entry], int] | None:
        """The kind's gangs and the delay in milliseconds; None: the verdict is not debounced."""
        if throttled:
            if last is not None and last.waits_for(PendingReason.BINDING_THROTTLED):
                return None
            return self._throttled, _THROTTLED_MS
        self._throttled.pop(gang.gang_id, None)
        waited = last is not None and last.why is not None
        if gang.phase == "Starting":
            if last is not None and last.phase == "Starting":
                return None
            if waited:
                return self._correcting, _CORRECTING_MS
            return self._starting, _STARTING_MS
        self._starting.pop(gang.gang_id, None)
        if last is None and gang.started_before:
            return self._made_again, _MADE_AGAIN_MS
        fresh = last is None or last.phase in {"Pending", "Inqueue"}
        return (self._running, _RUNNING_MS) if rush and fresh and not waited else None

    def take_published(self, gang_id: str) -> None:
        """Remove the gang, whose verdict was published."""
        for held in self._each:
            held.pop(gang_id, None)

    def take_due(self, now_ms: int, limit: int, *, rush: bool) -> list[GangKey]:
        """Remove and return the keys of at most `limit` gangs whose delay is over."""
        if not rush:
            self._all_due(self._running, now_ms)
        keys: list[GangKey] = []
        for held in self._each:
            due: list[str] = []
            for gang_id, entry in islice(held.items(), limit - len(keys)):
                if entry.due_ms > now_ms:
                    break
                due.append(gang_id)
            keys += [held.pop(gang_id).gang.key for gang_id in due]
        return keys

    def take_gone(self, gang_id: str, now_ms: int) -> Verdict | None:
        """Remove a deleted gang; return its Gone verdict if it was decided, so that its attempt
        ends.
        """
        self._throttled.pop(gang_id, None)
        entries = [held.pop(gang_id, None) for held in self._each]
        return next((entry.gone(now_ms) for entry in entries if entry is not None), None)

    def next_ms(self) -> int | None:
        """When the next debounced verdict is due; None: there is none."""
        firsts = (next(iter(held.values()), None) for held in self._each)
        return min((entry.due_ms for entry in firsts if entry is not None), default=None)

    def forget_pace(self, now_ms: int) -> None:
        """Make all debounced verdicts due now, after the clock was set back."""
        for held in self._each:
            self._all_due(held, now_ms)

    @staticmethod
    def _all_due(held: dict[str, _Entry], now_ms: int) -> None:
        for gang_id, entry in held.items():
            due_ms = min(entry.due_ms, now_ms)
            held[gang_id] = msgspec.structs.replace(entry, due_ms=due_ms)
