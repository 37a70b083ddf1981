"""Shares free capacity fairly among extra members: while other gangs wait, a gang gets its quorum
first, and the rest goes to members above quorums in equal parts.

Gangs of one queue that wait with extras of one shape share the nodes that fit it, so that all of
them come to have the same number of members as far as possible.
"""

from services.gang_planner.core.cycle_context import CycleContext
from services.gang_planner.core.queueing.fair_share import Party, water_fill
from services.gang_planner.core.state.backlog import Line
from services.gang_planner.core.state.gangs import Bucket, Gang
from shared.model.gang_keys import GangKey


class Extras:
    """What each gang may take in one pass over the line."""

    def __init__(self, work: CycleContext, line: Line) -> None:
        self._work = work
        self._line = line
        #: Parts by queue and shape, worked out when the first gang asks.
        self._parts: dict[tuple[str, int], dict[GangKey, int]] = {}

    def most(self, bucket: Bucket, gang: Gang) -> int | None:
        """How many members the gang may place now; None: any number.

        Its bucket is no longer in line. Members that a started gang lacks of its minima are not
        extras.
        """
        need = bucket.need
        if need.structure is not None:
            return None
        if need.quorum:
            wanted = sum(count for _, _, count in need.wanted)
            return need.quorum if wanted > need.quorum else None
        if len(need.wanted) != 1 or need.best_effort:
            return None
        ((_, shape_id, wanted),) = need.wanted
        if wanted == 1:
            return None
        key = (need.queue, shape_id)
        parts = self._parts.get(key)
        if parts is None:
            in_line = [bucket, *self._line.buckets_of(need.queue)]
            parts = self._parts[key] = self._share(shape_id, in_line)
        part = parts.get(gang.key)
        return None if part is None else max(part, need.lacking)

    def _share(self, shape_id: int, in_line: list[Bucket]) -> dict[GangKey, int]:
        #: Gang, members that wait, and how many of them are not extras.
        gangs: list[tuple[Gang, int, int]] = []
        for one in in_line:
            need = one.need
            if need.quorum or need.structure is not None or len(need.wanted) != 1:
                continue
            ((_, wanted_shape, wanted),) = need.wanted
            if wanted_shape == shape_id:
                lacking = min(need.lacking, wanted)
                gangs += [(gang, wanted, lacking) for _, _, gang in one.entries]
        if len(gangs) < 2:
            return {}
        fitting = self._work.session.total(self._work.state.shapes.entries[shape_id])
        if fitting >= sum(wanted for _, wanted, _ in gangs):
            return {}
        have = [gang.have() for gang, _, _ in gangs]
        parties = [
            Party(1, count + lacking, count + wanted)
            for count, (_, wanted, lacking) in zip(have, gangs, strict=True)
        ]
        shares = water_fill(fitting + sum(have), parties)
        return {
            gang.key: share - count
            for (gang, _, _), share, count in zip(gangs, shares, have, strict=True)
        }
