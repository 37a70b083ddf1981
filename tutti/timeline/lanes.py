"""Stays side by side where they overlap. Pure."""

from collections.abc import Iterable

from tutti.timeline.story import Stay


def lanes(stays: Iterable[Stay]) -> list[list[Stay]]:
    """As few lanes as possible in which no two stays overlap; at least one."""
    found: list[list[Stay]] = []
    for stay in sorted(stays, key=lambda one: (one.began_ms, one.gang)):
        for lane in found:
            last = lane[-1]
            if last.ended_ms and last.ended_ms <= stay.began_ms:
                lane.append(stay)
                break
        else:
            found.append([stay])
    return found or [[]]
