"""Assignment of devices to requests for a number of them."""

from collections.abc import Sequence

from services.gang_planner.core.state.devices.selection import Device


def assign(needs: Sequence[tuple[int, Sequence[Device]]]) -> list[list[Device]] | None:
    """Give each need (number, candidates in order) so many of its candidates, none to two needs.

    Returns the devices of each need, or None: together, the needs cannot be served. Augmenting
    paths find an assignment if there is one.
    """
    places = [need for need, (number, _) in enumerate(needs) for _ in range(number)]
    candidates = [needs[need][1] for need in places]
    given: dict[int, Device] = {}
    holders: dict[Device, int] = {}
    for place in range(len(places)):
        if not _augment(place, candidates, given, holders):
            return None
    found: list[list[Device]] = [[] for _ in needs]
    for place, need in enumerate(places):
        found[need].append(given[place])
    return found


def _augment(
    place: int,
    candidates: Sequence[Sequence[Device]],
    given: dict[int, Device],
    holders: dict[Device, int],
) -> bool:
    """Find a device for one more place; places that have one may get another."""
    reached: dict[Device, int] = {}
    waiting = [place]
    for current in waiting:
        for device in candidates[current]:
            if device in reached:
                continue
            reached[device] = current
            if device in holders:
                waiting.append(holders[device])
                continue
            step: Device | None = device
            while step is not None:
                mover = reached[step]
                holders[step] = mover
                given[mover], step = step, given.get(mover)
            return True
    return False
