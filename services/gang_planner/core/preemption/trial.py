"""The node capacity without some pods, for the duration of a trial.

Pods are taken away from the real node capacity and their queues, so that all caches follow, and put
back exactly when the trial ends. The capacity that was free in between does not count as freed.
"""

from typing import TYPE_CHECKING, Self

import numpy as np

from services.gang_planner.core.state.devices.demand import claim_key
from services.gang_planner.core.state.preempted_claims import consumers_of
from shared.model.invariants import required

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from services.gang_planner.core.state.claim_ledger import Key
    from services.gang_planner.core.state.devices.vacated import ClaimConsumers
    from services.gang_planner.core.state.gangs import Member
    from services.gang_planner.core.state.planner_state import State
    from services.gang_planner.core.state.pod_shapes import ShapeEntry
    from services.gang_planner.core.state.queues import QueueEntry
    from shared.model.devices import ResourceClaim


class Trial:
    """A context in which pods can be taken away; when it is left, all are back."""

    def __init__(self, state: "State", claims: "Container[Key] | None" = None) -> None:
        """`claims`: ResourceClaims of the gang for which pods are taken away; None: it has none, so
        that devices do not matter.
        """
        self._state = state
        self._claims = claims
        self.consumers: ClaimConsumers | None = None
        self._freed = 0
        #: Pods taken away, by UID.
        self.away: dict[str, Member] = {}

    def __enter__(self) -> Self:
        self._freed = self._state.node_capacity.freed
        if self._claims is not None:
            self.consumers = consumers_of(self._state, self._claims)
            self.consumers.away = self.away.keys()
            # Pods are gone, and the claims controller has not deallocated their claims yet.
            self._vacate(self.consumers.freed())
        return self

    def __exit__(self, *_: object) -> None:
        self.put_back(list(self.away.values()))
        self._vacate(())
        self._state.node_capacity.freed = self._freed

    def take_away(self, members: "Iterable[Member]") -> None:
        taken: list[Member] = []
        for member in members:
            if member.slot is not None and member.pod.uid not in self.away:
                self.away[member.pod.uid] = member
                taken.append(member)
        self._keep_devices(taken)
        self._change(taken, away=True)
        if self.consumers is not None:
            self._vacate(self.consumers.freed())

    def put_back(self, members: "Iterable[Member]") -> None:
        back = [member for member in members if self.away.pop(member.pod.uid, None) is not None]
        if self.consumers is not None:
            self._vacate(self.consumers.freed())
        self._change(back, away=False)

    def _keep_devices(self, members: "Iterable[Member]") -> None:
        """Devices of claims that CLUSTER does not show with devices yet stay chosen: put back, a
        claim might get others than its binder has allocated.
        """
        for member in members:
            self._state.node_capacity.devices.grants.keep(member.shape, member.pod.resource_version)

    def _vacate(self, claims: "Iterable[ResourceClaim]") -> None:
        node_capacity = self._state.node_capacity
        uses = node_capacity.devices.grants.uses
        # A pod that is not bound yet may use a claim that is not reserved for it yet.
        unused = [claim for claim in claims if claim_key(claim) not in uses]
        node_capacity.changes.extend(node_capacity.devices.allocated.vacate(unused))

    def _change(self, members: "list[Member]", *, away: bool) -> None:
        if not members:
            return
        per_shape: dict[int, tuple[ShapeEntry, dict[int, int]]] = {}
        charged: dict[tuple[int, int], tuple[QueueEntry, ShapeEntry, int]] = {}
        for member in members:
            _, counts = per_shape.setdefault(member.shape.id, (member.shape, {}))
            slot = required(member.slot, member.pod.uid, "is on no node")
            counts[slot] = counts.get(slot, 0) + 1
            if member.charged and member.gang is not None:
                key = id(member.gang.queue), member.shape.id
                _, _, before = charged.get(key, (member.gang.queue, member.shape, 0))
                charged[key] = member.gang.queue, member.shape, before + 1
        node_capacity = self._state.node_capacity
        change = node_capacity.give_many if away else node_capacity.take_many
        for shape, counts in per_shape.values():
            slots = np.fromiter(counts, dtype=np.int64)
            change(slots, np.fromiter(counts.values(), dtype=np.int64), shape)
        for queue, shape, count in charged.values():
            queue.charge(shape, -count if away else count)
