"""What a gang's group, or its queue, or the planner's configuration says of deadlines and
preflight: the first that says anything counts.

Values that do not parse are objections of the dialect's reader and never come here.
"""

from typing import Final, Literal

import msgspec

from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.queues import QueueEntry
from shared.contracts import annotations

Preflight = Literal["owners", "always"]

#: Groups per queue that are admitted although no node can hold them, unless something else is said.
WITHOUT_ROOM: Final = 4

_SECOND_MS: Final = 1_000


class Defaults(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What holds for gangs that say nothing; part of the configuration, so that a replay decides
    alike.
    """

    #: owners: prove bindings beforehand where a release would cost something; always: every gang's.
    preflight: Preflight = "owners"
    repair_deadline_s: int = 30
    hold_s: int = 60
    #: Longer than it takes to pull the image of a driver or leader and to start it; short enough
    #: that an operator which never creates the other pods does not keep nodes empty for hours.
    reserve_s: int = 600


def repair_deadline_ms(gang: Gang, defaults: Defaults) -> int:
    """From the first binding until what is bound of an incomplete gang is released."""
    found = _seconds(gang, annotations.REPAIR_DEADLINE_SECONDS)
    return _SECOND_MS * (defaults.repair_deadline_s if found is None else found)


def hold_ms(gang: Gang, defaults: Defaults) -> int:
    """How long room of a lost member is held; 0: not at all."""
    found = _seconds(gang, annotations.HOLD_SECONDS)
    return _SECOND_MS * (defaults.hold_s if found is None else found)


def reserve_ms(gang: Gang, defaults: Defaults) -> int:
    """How long the rest of a gang's `minResources` is reserved for its pods, from when its first
    pods were placed; 0: never, and `minResources` gate nothing.
    """
    found = _seconds(gang, annotations.RESERVE_SECONDS)
    return _SECOND_MS * (defaults.reserve_s if found is None else found)


def start_deadline_ms(gang: Gang) -> int:
    """From its quorum placed until it must run; 0: no deadline."""
    return _SECOND_MS * (_seconds(gang, annotations.START_DEADLINE_SECONDS) or 0)


def degraded_grace_ms(gang: Gang) -> int:
    """How long a started gang may stay below its quorum; 0: for ever."""
    return _SECOND_MS * (_seconds(gang, annotations.DEGRADED_GRACE_SECONDS) or 0)


def minimum_run_ms(gang: Gang) -> int:
    """How long its pods run before they may be evicted for others; 0: not at all."""
    return _SECOND_MS * (_seconds(gang, annotations.MINIMUM_RUN_SECONDS) or 0)


def late_roles(gang: Gang) -> dict[str, int]:
    """Roles that come only when the other roles run, as the group's annotation says, and how many
    pods of each. A queue cannot say so: that would lower the minimum of every gang in it.
    """
    found: dict[str, int] = {}
    text = dict(gang.group.settings).get(annotations.LATE_ROLES, "") if gang.group else ""
    for part in text.split(","):
        role, _, count = part.partition("=")
        if role:
            found[role] = int(count or 1)
    return found


def without_room(queue: QueueEntry, default: int) -> int:
    """How many groups of the queue are admitted although no node can hold them."""
    if queue.queue is not None:
        for name, value in queue.queue.settings:
            if name == annotations.ENQUEUE_WITHOUT_ROOM:
                return int(value)
    return default


def preflight_always(gang: Gang, defaults: Defaults) -> bool:
    """Whether all bindings are proven before the first is sent, whatever owns the pods."""
    found = _given(gang, annotations.PREFLIGHT)
    return defaults.preflight == "always" if found is None else found == "always"


def _seconds(gang: Gang, key: str) -> int | None:
    found = _given(gang, key)
    return None if found is None else int(found)


def _given(gang: Gang, key: str) -> str | None:
    # Asked for every gang that is placed, and hardly anybody says anything.
    group, queue = gang.group, gang.queue.queue
    kept = gang.kept.settings if gang.kept is not None else ()
    of_group = group.settings if group is not None else kept
    of_queue = queue.settings if queue is not None else ()
    for settings in (of_group, of_queue) if of_group or of_queue else ():
        for name, value in settings:
            if name == key:
                return value
    return None
