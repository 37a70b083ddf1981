"""Run limits: for how long a gang holds capacity at most.

A gang's limit is the smallest that its group or one of its pods states, else its queue's usual one,
and never more than its queue's maximum, which gangs without a limit have as well. It counts from
the instant at which the gang's minimum ran (`lifecycle.run_limits`). Each setting of a queue is
that of the nearest queue above it that has one.
"""

from typing import Final, NamedTuple

from services.gang_planner.core.state.gangs import Gang

#: The end of a gang without a limit, in milliseconds: later than every instant.
NEVER: Final = 1 << 60
#: An overrun that is not enforced counts as another part of its limit, this one, at least a minute.
_OVERRUN_PARTS: Final = 10
_OVERRUN_MS: Final = 60_000
#: In at most this time ends what should have ended.
_SOON_MS: Final = 10_000


class ReserveRules(NamedTuple):
    """What the action `reserve` may keep for waiting gangs."""

    #: Reservations of each root of the queue tree; 0: none, and no capacity is held.
    per_root: int = 0
    #: Percent of the nodes' amounts that are held for a gang whose instant is not known, and for
    #: how long; after that, for as long, none are.
    held_percent: int = 60
    held_ms: int = 3_600_000


NO_RESERVATIONS: Final = ReserveRules()


def limit_ms(gang: Gang) -> int:
    """The gang's run limit, in milliseconds; 0: none."""
    rules = gang.queue.run_rules
    stated = stated_ms(gang) or rules.usual_ms
    if rules.most_ms and not 0 < stated <= rules.most_ms:
        return rules.most_ms
    return stated


def stated_ms(gang: Gang) -> int:
    """The smallest limit that its group or one of its pods states, in milliseconds; 0: none."""
    stated = [gang.group.run_limit_s] if gang.group is not None else []
    if gang.traits.limited:
        stated += [member.pod.run_limit_s for member in gang.members.values()]
    return 1_000 * min(filter(None, stated), default=0)


def end_ms(gang: Gang, now_ms: int) -> int:
    """When the capacity of a gang that holds some becomes free, as far as its limit says; `NEVER`:
    it has no limit. A gang whose minimum does not run yet counts from its first binding.
    """
    if gang.history.releasing:
        return overdue_ms(now_ms, now_ms)
    note = gang.history.notes.run
    if note is not None:
        if now_ms < note.until_ms or gang.queue.run_rules.enforced:
            return overdue_ms(note.until_ms, now_ms)
        step_ms = max((note.until_ms - note.since_ms) // _OVERRUN_PARTS, _OVERRUN_MS)
        return note.until_ms + step_ms * ((now_ms - note.until_ms) // step_ms + 1)
    lasts_ms = limit_ms(gang)
    return overdue_ms((gang.bound_ms or now_ms) + lasts_ms, now_ms) if lasts_ms else NEVER


def overdue_ms(end_ms: int, now_ms: int) -> int:
    """An end that was expected; one that is due, or has passed, is expected soon, again and again:
    plans that count on it change a few times a minute.
    """
    return end_ms if end_ms > now_ms else (now_ms // _SOON_MS + 1) * _SOON_MS
