"""Deadlines, holds and pre-flight of a gang: set by its group, else by its queue, else by the
configuration.

A group's duration that acts on other gangs is at most its ceiling (`shared.dialects.ceilings`), or
as long as it would be without the group's own value, if that is longer. Only this module reads
durations of groups.

The dialect's reader rejects values that do not parse, so this module never reads them.
"""

from typing import Final, Literal

import msgspec

from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.queues import QueueEntry
from shared.contracts import annotations
from shared.dialects.ceilings import LIMITED, Ceilings, in_words
from shared.model.objects import Labels, Pod

Preflight = Literal["owners", "always"]

#: Default number of groups per queue that are admitted without free capacity for them.
WITHOUT_ROOM: Final = 4


class Defaults(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Defaults for gangs without settings of their own. They are part of the configuration, so that
    a replay makes the same decisions.
    """

    #: owners: pre-flight bindings if a release would cost a retry or the pod; always: every gang.
    preflight: Preflight = "owners"
    repair_deadline_s: int = 30
    hold_s: int = 60
    #: Long enough to pull the image of a driver or leader and to start it. Short enough that an
    #: operator that never creates the other pods does not keep nodes empty for hours.
    reserve_s: int = 600
    #: Reservations for gangs that wait for capacity, for each root of the queue tree.
    reservations: int = 0
    #: The longest durations that groups and pods may ask for.
    ceilings: Ceilings = Ceilings()


def repair_deadline_ms(gang: Gang, defaults: Defaults) -> int:
    """The time from the first binding until an incomplete gang is released, in milliseconds."""
    return _milliseconds(gang, annotations.REPAIR_DEADLINE_SECONDS, defaults)


def hold_ms(gang: Gang, defaults: Defaults) -> int:
    """How long capacity is reserved for a lost member, in milliseconds; 0: not at all."""
    return _milliseconds(gang, annotations.HOLD_SECONDS, defaults)


def reserve_ms(gang: Gang, defaults: Defaults) -> int:
    """How long the rest of a gang's `minResources` is reserved after its first pods were placed, in
    milliseconds; 0: never, and `minResources` do not delay placement.
    """
    return _milliseconds(gang, annotations.RESERVE_SECONDS, defaults)


def start_deadline_ms(gang: Gang) -> int:
    """The time in which a placed quorum must run, in milliseconds; 0: no deadline."""
    return _milliseconds(gang, annotations.START_DEADLINE_SECONDS)


def degraded_grace_ms(gang: Gang) -> int:
    """How long a started gang may stay below its quorum, in milliseconds; 0: no limit."""
    return _milliseconds(gang, annotations.DEGRADED_GRACE_SECONDS)


def placement_deadline_ms(gang: Gang) -> int:
    """How long none of its pods may be placed until none is placed any more, in milliseconds; 0: no
    deadline.
    """
    return _milliseconds(gang, annotations.PLACEMENT_DEADLINE_SECONDS)


def minimum_run_ms(gang: Gang, defaults: Defaults) -> int:
    """How long its pods run before they may be evicted, in milliseconds; 0: no protection."""
    return _milliseconds(gang, annotations.MINIMUM_RUN_SECONDS, defaults)


def cooldown_ms(pod: Pod, defaults: Defaults) -> int:
    """How long Volcano's cool-down protects a pod from its start on, in milliseconds; 0: not."""
    return min(pod.cooldown_ms, 1_000 * defaults.ceilings.minimum_run_s)


def shortened_durations(gang: Gang, defaults: Defaults) -> list[str]:
    """A sentence for each duration of the gang's group that is longer than what applies."""
    sentences: list[str] = []
    for key, value in gang.group.settings if gang.group is not None else ():
        if key in LIMITED and int(value) > (most_s := _most_s(gang, key, defaults)):
            sentences.append(in_words(key, int(value), most_s, key))
    return sentences


def late_roles(gang: Gang) -> dict[str, int]:
    """The late roles in the group's annotation, with their number of pods. Queues cannot set them,
    because that would lower the minimum of every gang in the queue.
    """
    roles: dict[str, int] = {}
    text = dict(gang.group.settings).get(annotations.LATE_ROLES, "") if gang.group else ""
    for part in text.split(","):
        role, _, count = part.partition("=")
        if role:
            roles[role] = int(count or 1)
    return roles


def without_room(queue: QueueEntry, default: int) -> int:
    """The number of groups that the queue admits without free capacity for them."""
    if queue.queue is not None:
        for name, value in queue.queue.settings:
            if name == annotations.ENQUEUE_WITHOUT_ROOM:
                return int(value)
    return default


def preflight_always(gang: Gang, defaults: Defaults) -> bool:
    """Whether all bindings are pre-flighted before the first is sent, whatever owns the pods."""
    given = _given(gang, annotations.PREFLIGHT)
    return defaults.preflight == "always" if given is None else given == "always"


def undisturbed(gang: Gang) -> bool:
    """Whether autoscalers are asked to keep the nodes of its pods."""
    return _given(gang, annotations.UNDISTURBED) == "true"


def _milliseconds(gang: Gang, key: str, defaults: Defaults | None = None) -> int:
    """A duration of the gang; with `defaults`, at most its ceiling."""
    given = _given(gang, key)
    if defaults is None:
        return 1_000 * int(given or 0)
    if given is None:
        return 1_000 * _usual_s(key, defaults)
    return 1_000 * min(int(given), _most_s(gang, key, defaults))


def _most_s(gang: Gang, key: str, defaults: Defaults) -> int:
    """The longest duration that the gang's group may ask for, in seconds."""
    queue = gang.queue.queue
    of_queue = _value(queue.settings, key) if queue is not None else None
    usual_s = _usual_s(key, defaults) if of_queue is None else int(of_queue)
    return max(usual_s, defaults.ceilings.of(key) or 0)


def _usual_s(key: str, defaults: Defaults) -> int:
    """The configured default of a duration, in seconds; 0: off."""
    return int(getattr(defaults, LIMITED[key], 0))


def _given(gang: Gang, key: str) -> str | None:
    # Called for every placed gang, and few have settings.
    group, queue = gang.group, gang.queue.queue
    kept = gang.kept.settings if gang.kept is not None else ()
    of_group = group.settings if group is not None else kept
    of_queue = queue.settings if queue is not None else ()
    if not of_group and not of_queue:
        return None
    value_of_group = _value(of_group, key)
    return _value(of_queue, key) if value_of_group is None else value_of_group


def _value(settings: Labels, key: str) -> str | None:
    for name, value in settings:
        if name == key:
            return value
    return None
