"""Verdicts that are debounced: transient ones wait, while bindings go first.

*Starting*: a gang whose bindings go well runs a moment after it was decided, and then one verdict
says all. When thousands of pods are bound they are all decided first, and that moment lasts many
seconds. So Starting is published only when it has lasted 20 s (the controller writes it when it has
lasted 30 s more).

*Running*: while many bindings are in flight, what is written of gangs that run takes the API
server's time from those that wait to be bound, a tenth of it with gangs of 20. It is published when
the rush is over, after 20 s at most: after 10 s, the verdicts of a drain's first half came upon its
second and halved its rate.

*Starting*, of a gang whose verdict says that it waits: readers would act on that, but not in half a
second, and most such gangs run by then. So it is published after half a second.

*Throttled*: a gang that waits for its turn because binders have enough before them is decided a
moment later, too, and in a drain nearly all wait so. It is published when it has lasted 20 s.

Not debounced is what else corrects a verdict: that a gang runs which was said to wait; nor what
wants a PodGroup made.
"""

from itertools import islice
from typing import Final

import msgspec

from services.gang_planner.core.state.gangs import Gang
from shared.contracts.identity import gang_trace_id
from shared.contracts.verdicts import Verdict
from shared.model.gang_keys import GangKey
from shared.model.objects import Owner, PodGroup

_STARTING_MS: Final = 20_000
_RUNNING_MS: Final = 20_000
#: A quarter of what the controller lets pass before it marks the pods of a gang that waits.
_CORRECTING_MS: Final = 500
_THROTTLED_MS: Final = 20_000
#: Pods in flight from which on there is a rush: a moment's work for the API server.
RUSH: Final = 128


#: Why a gang waits that binders have no time for.
THROTTLED: Final = "BindingThrottled"


class _Entry(msgspec.Struct, frozen=True, gc=False):
    """One gang, and its verdict that is debounced: it is published should the gang go before
    anything else was.
    """

    due_ms: int
    gang: Gang
    gang_id: str
    group: PodGroup | None
    #: Of its pods, where no object declares it.
    owner: Owner | None
    attempt: int
    epoch: int

    def gone(self, now_ms: int) -> Verdict:
        """The verdict that it is no more."""
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


class HeldBack:
    """Gangs of which it is not published yet that they are starting, or that they run, by id.

    Each in the order in which it will be published: all of one kind wait equally long.
    """

    def __init__(self) -> None:
        """None."""
        self._starting: dict[str, _Entry] = {}
        self._correcting: dict[str, _Entry] = {}
        self._running: dict[str, _Entry] = {}
        self._throttled: dict[str, _Entry] = {}
        #: In this order they are published.
        self._each = self._running, self._correcting, self._starting, self._throttled

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
        """Whether nothing is to be said yet of this gang that starts or runs, or is `throttled`;
        `last` is what was said last, in a `rush` many pods are being bound.
        """
        found = self._kind(gang, last, throttled=throttled, rush=rush)
        if found is None:
            return False
        held, wait_ms = found
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
        """Among which gangs it is debounced, and for how long; None: it is not."""
        if throttled:
            said = last is not None and last.why is not None and last.why.reason == THROTTLED
            return None if said else (self._throttled, _THROTTLED_MS)
        self._throttled.pop(gang.gang_id, None)
        waited = last is not None and last.why is not None
        if gang.phase == "Starting":
            if last is not None and last.phase == "Starting":
                return None
            if waited:
                return self._correcting, _CORRECTING_MS
            return self._starting, _STARTING_MS
        self._starting.pop(gang.gang_id, None)
        fresh = last is None or last.phase in {"Pending", "Inqueue"}
        return (self._running, _RUNNING_MS) if rush and fresh and not waited else None

    def said(self, gang_id: str) -> None:
        """Something was said of the gang."""
        for held in self._each:
            held.pop(gang_id, None)

    def take_due(self, now_ms: int, limit: int, *, rush: bool) -> list[GangKey]:
        """Gangs, at most `limit`, that have waited for long enough; they are let go."""
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
        """What to say of a gang that is no more: it was decided, so its attempt has to end."""
        self._throttled.pop(gang_id, None)
        found = [held.pop(gang_id, None) for held in self._each]
        return next((entry.gone(now_ms) for entry in found if entry is not None), None)

    def next_ms(self) -> int | None:
        """When the next one is due; None: none is debounced."""
        firsts = (next(iter(held.values()), None) for held in self._each)
        return min((entry.due_ms for entry in firsts if entry is not None), default=None)

    def forget_pace(self, now_ms: int) -> None:
        """The clock was set back: all are due at this instant."""
        for held in self._each:
            self._all_due(held, now_ms)

    @staticmethod
    def _all_due(held: dict[str, _Entry], now_ms: int) -> None:
        for gang_id, entry in held.items():
            due_ms = min(entry.due_ms, now_ms)
            held[gang_id] = msgspec.structs.replace(entry, due_ms=due_ms)
