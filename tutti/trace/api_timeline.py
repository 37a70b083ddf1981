"""A gang's timeline from Tutti's API: its decisions, its conditions, and why it waits. Pure.

It has less than the records in NATS: no outcomes of binders, and decisions only while the API keeps
them.
"""

from collections.abc import Iterable, Iterator, Sequence

from shared.contracts.visibility import Decision, Gang
from tutti.api.failures import Refusal
from tutti.terminal import count
from tutti.timeline.history import gang_of, instant_ms
from tutti.trace.records import Wanted
from tutti.trace.timeline import Line, Timeline


def api_timeline(wanted: Wanted, gangs: Iterable[Gang], decisions: Iterable[Decision]) -> Timeline:
    """The timeline of the gang that a user wants, also of one that is deleted, if decisions are
    left of it.

    Args:
        wanted: The gang's name in a namespace, or its id.
        gangs: Gangs of the namespace.
        decisions: Decisions of the namespace, the oldest first.

    Raises:
        Refusal: There is no such gang, and no decision for one.
    """
    gang = _find(wanted, gangs)
    if gang is not None:
        namespace, name = gang.metadata.namespace, gang.metadata.name
        title = f"{namespace}/{gang.status.title or name}"
        existing = {f"{namespace}/{name}": gang}
        own = [one for one in decisions if gang_of(one, existing) is gang]
        gang_id, phase = own[-1].status.gang_id if own else gang.metadata.uid, gang.status.phase
        return _timeline(title, gang_id, phase, [*_of_gang(gang), *_of_decisions(own)], own, gang)
    named = [
        one
        for one in decisions
        if one.status.gang_id == wanted.gang_id
        or (
            one.status.gang.startswith(f"{wanted.namespace}/")
            and wanted.is_named(one.status.gang.partition("/")[2])
        )
    ]
    if not named:
        raise Refusal(
            f"no gang {wanted.namespace}/{wanted.name} is known: no PodGroup of that name, and no "
            "Job of that name"
        )
    # Several gangs may have had the name one after the other.
    last = named[-1].status
    own = [one for one in named if one.status.gang_id == last.gang_id]
    title = f"{last.gang.partition('/')[0]}/{last.title or last.gang.partition('/')[2]}"
    return _timeline(title, last.gang_id, "Gone", list(_of_decisions(own)), own, None)


def _timeline(
    title: str,
    gang_id: str,
    phase: str,
    lines: Sequence[Line],
    decisions: Iterable[Decision],
    gang: Gang | None,
) -> Timeline:
    traces = dict.fromkeys(one.status.trace_id for one in decisions)
    if gang is not None and not any(traces):
        traces = dict.fromkeys([gang.status.trace_id])
    return Timeline(
        gang=title,
        gang_id=gang_id,
        phase=phase,
        lines=tuple(sorted(lines, key=lambda line: line.at_ms)),
        traces=tuple(filter(None, traces)),
    )


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


def _of_decisions(decisions: Iterable[Decision]) -> Iterator[Line]:
    for one in decisions:
        status = one.status
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
        yield Line(at_ms=instant_ms(status.time), what=what, detail=detail)
