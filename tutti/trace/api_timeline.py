"""A gang's timeline from Tutti's API: its decisions, its conditions, and why it waits. Pure.

It has less than the records in NATS: no outcomes of binders, and decisions only while the API keeps
them.
"""

from collections.abc import Iterable, Iterator

from shared.contracts.visibility import Decision, DecisionStatus, Gang, GangStatus
from tutti.api.failures import Refusal
from tutti.terminal import count
from tutti.timeline.history import gang_of, instant_ms
from tutti.trace.records import Wanted
from tutti.trace.timeline import Line, Timeline


def api_timeline(wanted: Wanted, gangs: Iterable[Gang], decisions: Iterable[Decision]) -> Timeline:
    """The timeline of the gang that a user wants, also of one that is deleted, if decisions are
    left of it; `with_lines` orders it by time. `decisions` are in their order, the oldest first.

    Raises:
        Refusal: There is no such gang, and no decision for one.
    """
    gang = _find(wanted, gangs)
    if gang is not None:
        namespace, name = gang.metadata.namespace, gang.metadata.name
        existing = {f"{namespace}/{name}": gang}
        own = [one.status for one in decisions if gang_of(one, existing) is gang]
        return Timeline(
            gang=f"{namespace}/{gang.status.title or name}",
            gang_id=own[-1].gang_id if own else gang.metadata.uid,
            phase=gang.status.phase,
            lines=(*_of_gang(gang), *map(_of_decision, own)),
            traces=_traces(own) or _traces([gang.status]),
        )
    named = [one.status for one in decisions if _is_of(one.status, wanted)]
    if not named:
        raise Refusal(
            f"no gang {wanted.namespace}/{wanted.name} is known: no PodGroup of that name, and no "
            "Job of that name"
        )
    # Several gangs may have had the name one after the other.
    last = named[-1]
    own = [one for one in named if one.gang_id == last.gang_id]
    namespace, _, name = last.gang.partition("/")
    return Timeline(
        gang=f"{namespace}/{last.title or name}",
        gang_id=last.gang_id,
        phase="Gone",
        lines=tuple(map(_of_decision, own)),
        traces=_traces(own),
    )


def _traces(found: Iterable[DecisionStatus | GangStatus]) -> tuple[str, ...]:
    return tuple(filter(None, dict.fromkeys(one.trace_id for one in found)))


def _is_of(decision: DecisionStatus, wanted: Wanted) -> bool:
    namespace, _, name = decision.gang.partition("/")
    is_named = namespace == wanted.namespace and wanted.is_named(name)
    return decision.gang_id == wanted.gang_id or is_named


def _find(wanted: Wanted, gangs: Iterable[Gang]) -> Gang | None:
    """The gang with the id or the exact name, otherwise the newest one of a Job of that name."""
    found = [
        one
        for one in gangs
        if one.metadata.uid == wanted.gang_id
        or (one.metadata.namespace == wanted.namespace and wanted.is_named(one.metadata.name))
    ]

    def key(one: Gang) -> tuple[bool, float]:
        created = one.metadata.creation_timestamp
        return one.metadata.name == wanted.name, created.timestamp() if created else 0.0

    return max(found, key=key, default=None)


def _of_gang(gang: Gang) -> Iterator[Line]:
    status = gang.status
    created = gang.metadata.creation_timestamp
    if created is not None:
        yield Line(at_ms=instant_ms(created), what="queued", detail="first seen by the planner")
    for one in status.conditions:
        if one.status == "True" and one.last_transition_time is not None:
            detail = ": ".join(filter(None, (one.reason, one.message)))
            yield Line(at_ms=instant_ms(one.last_transition_time), what=one.type, detail=detail)
    if status.pending is not None:
        since = status.pending.since or created
        if since is not None:
            detail = f"{status.pending.reason}: {status.pending.message}"
            yield Line(at_ms=instant_ms(since), what="waits", detail=detail)


def _of_decision(status: DecisionStatus) -> Line:
    if status.action == "Bind":
        what, number = "decided", count(status.count, "binding")
        words = [f"attempt {status.attempt}: {number}"]
        words += [status.message] if status.message else []
        words += [f"in {status.domain}"] if status.domain else []
        detail = ", ".join(words)
    else:
        what, number = "evicting", count(status.count, "pod")
        reason = ": ".join(filter(None, (status.reason, status.message)))
        detail = ", ".join(filter(None, (number, reason)))
    return Line(at_ms=instant_ms(status.time), what=what, detail=detail)
