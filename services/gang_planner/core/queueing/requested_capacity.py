"""Which pods a gang requests capacity for, and whether its quota allows it.

The minimum is requested, and the reserved units of its `minResources`: an autoscaler does not see
the later pods for which these stand. Only requests count the amounts of open requests as used, so
the placement of gangs does not depend on cycles that wrote no records.
"""

from collections import Counter
from typing import TYPE_CHECKING

from services.gang_planner.core.state.columns import add_amounts
from services.gang_planner.core.state.existing_requests import LOST, request_of
from services.gang_planner.core.state.gang_requests import GangRequest, class_of, parameters_of
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.needs import RESERVED, Need, Wanted
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.pod_shapes import ShapeTable
from shared.contracts.provisioning import POD_SETS_MAX, RequestName, content_digest
from shared.model.bounds import POD_RESOURCES_MAX
from shared.model.invariants import required

if TYPE_CHECKING:
    from services.gang_planner.core.state.queues import QueueEntry


def request_for(shapes: ShapeTable, gang: Gang, need: Need, attempt: int) -> GangRequest:
    """The request of this attempt for the gang's minimum and its units; it is not open."""
    entries = shapes.entries
    counts = _pods_by_shape(shapes, need)
    in_order = sorted(counts, key=lambda shape_id: entries[shape_id].encoded)
    units: dict[int, int] = {}
    for _, shape_id, count in (entry for entry in need.wanted if entry[0] == RESERVED):
        # Units that request what one of its pods does are further pods of that shape.
        requests = entries[shape_id].shape.requests
        same = next(
            (known for known in in_order if entries[known].shape.requests == requests), None
        )
        chosen = units if same is None else counts
        key = shape_id if same is None else same
        chosen[key] = chosen.get(key, 0) + count
    sets, of_units = (
        tuple(sorted(pods.items(), key=lambda item: entries[item[0]].encoded))
        for pods in (counts, units)
    )
    content = [(entries[shape_id].encoded, count) for shape_id, count in (*sets, *of_units)]
    digest = content_digest(class_of(gang.queue), parameters_of(gang.queue), content)
    name = RequestName(gang.gang_id, digest, attempt)
    return GangRequest(name, sets, shapes.sums((*sets, *of_units)), units=of_units)


def unrequestable_words(shapes: ShapeTable, request: GangRequest) -> str:
    """Why no ProvisioningRequest can ask for the gang's pods and units; "" if one can."""
    sets = len(request.sets) + len(request.units)
    if sets > POD_SETS_MAX:
        return f"its pods have {sets} shapes, and a ProvisioningRequest has at most {POD_SETS_MAX}"
    widest = max((len(shapes.entries[unit].pairs) for unit, _ in request.units), default=0)
    if widest > POD_RESOURCES_MAX:
        # A verdict has the names of all of them.
        return (
            f"its minResources divide into pods of {widest} resources, and Tutti judges pods of at "
            f"most {POD_RESOURCES_MAX}"
        )
    return ""


def _pods_by_shape(shapes: ShapeTable, need: Need) -> dict[int, int]:
    """How many pods of each shape the gang needs to start, by shape id.

    Roles with a minimum come first. The remaining pods are taken in the order of roles and shapes,
    which does not depend on the order in which pods arrived.
    """
    entries = shapes.entries
    wanted = [entry for entry in need.wanted if entry[0] != RESERVED]
    wanted.sort(key=lambda entry: (entry[0], entries[entry[1]].encoded))
    if need.structure is not None and need.structure.sub_gangs:
        quorum = sum(count for _, _, count in wanted)
    else:
        quorum = max(need.quorum - need.reserved, 1)
    minima = {role: count for role, count in need.minima if role != RESERVED}
    taken: dict[Wanted, int] = {}
    for entry in wanted:
        least = minima.get(entry[0], 0)
        taken[entry] = min(entry[2], least)
        minima[entry[0]] = least - taken[entry]
    left = quorum - sum(taken.values())
    for entry in wanted:
        more = max(min(entry[2] - taken[entry], left), 0)
        taken[entry] += more
        left -= more
    counts: Counter[int] = Counter()
    for (_, shape_id, _), count in taken.items():
        counts[shape_id] += count
    # A profile of terms makes several entries of one shape: their pods are alike for an autoscaler.
    first: dict[bytes, int] = {}
    merged: Counter[int] = Counter()
    for shape_id, count in sorted(counts.items()):
        merged[first.setdefault(entries[shape_id].encoded, shape_id)] += count
    return {shape_id: count for shape_id, count in merged.items() if count}


class RequestedQuota:
    """Amounts of open requests, by queue: computed once, and kept up to date by `open_request`."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._by_queue: dict[QueueEntry, dict[int, int]] = {}
        for key, gang in list(state.requesting.items()):
            request = gang.request
            open_ = request is not None and request.open and not gang.have()
            if request is None or not open_ or state.gangs.gangs.get(key) is not gang:
                # It was placed, or is gone.
                del state.requesting[key]
                continue
            existing = request_of(state.reference_objects, gang)
            if existing is None or existing.state not in LOST:
                # During a backoff it uses nothing; the next attempt needs its turn and quota again.
                self._add(gang, request)

    def allows(self, gang: Gang) -> bool:
        """Whether the gang's queue and its ancestors have quota for the gang's request, too."""
        wanted = asked_request(gang).amounts
        for entry in gang.queue.chain:
            requested = self._by_queue.get(entry, {})
            for row, limit in entry.ceiling.items():
                amount = wanted.get(row, 0)
                used = entry.used.get(row, 0) + requested.get(row, 0)
                if amount > 0 and used + amount > limit:
                    return False
        return True

    def open_request(self, gang: Gang) -> None:
        """Open the request of a gang in the backlog, which it leaves."""
        state, request = self._state, asked_request(gang)
        request.open = True
        state.requesting[gang.key] = gang
        self._add(gang, request)
        state.backlog.take(gang)
        state.gangs.touch(gang)

    def _add(self, gang: Gang, request: GangRequest) -> None:
        for entry in gang.queue.chain:
            add_amounts(self._by_queue.setdefault(entry, {}), request.amounts.items())


def asked_request(gang: Gang) -> GangRequest:
    """The request of a gang that asks for capacity."""
    return required(gang.request, gang.full_name, "asks for capacity and has no request")
