"""A gang's timeline from Tutti's API: its decisions and what followed each, its conditions, and why
it waits. Pure.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final, NamedTuple

import msgspec

from shared.contracts.visibility import Decision, DecisionEvent, DecisionStatus, Gang, GangStatus
from tutti.api.failures import Refusal
from tutti.client.gangs import is_named, is_uuid
from tutti.terminal import count
from tutti.timeline.history import gang_of, instant_ms

#: Reasons of evictions for another gang; all others release the gang itself.
_FOR_OTHERS: Final = frozenset({"Preempted", "Reclaimed"})
_WORDS: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """An event, or the end of an action."""

    at_ms: int
    what: str
    detail: str = ""
    #: Duration of the action; 0 for an event.
    took_ms: int = 0
    failed: bool = False


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    gang: str
    gang_id: str
    phase: str
    lines: tuple[Line, ...]
    #: Trace ids, one per attempt.
    traces: tuple[str, ...]


class Wanted(NamedTuple):
    """A reference to a gang: an id, or a namespace and a name."""

    gang_id: str
    namespace: str
    name: str
    #: The same reference as a gang's title, "job/train", in the namespace `place`; "": it is none.
    title: str = ""
    place: str = ""

    def is_named(self, gang: str) -> bool:
        """Whether a gang of this name, in its namespace, is meant."""
        return is_named(gang, self.name)


def read_reference(reference: str, namespace: str) -> Wanted:
    """`NAMESPACE/NAME`, `NAME` or `KIND/NAME` in the namespace given, or a gang's id."""
    if "/" in reference:
        first, _, name = reference.partition("/")
        return Wanted("", first, name, title=reference, place=namespace)
    gang_id = reference if is_uuid(reference) else ""
    return Wanted(gang_id, namespace, reference)


def with_lines(history: Timeline, exported: Iterable[Line]) -> Timeline:
    """A timeline with lines from other sources, ordered by time."""
    lines = sorted([*exported, *history.lines], key=lambda line: line.at_ms)
    return msgspec.structs.replace(history, lines=tuple(lines))


def timeline(wanted: Wanted, gangs: Iterable[Gang], decisions: Iterable[Decision]) -> Timeline:
    """The timeline of the gang that a user wants, also of one that is deleted, if decisions are
    left of it; `with_lines` orders it by time. `decisions` are in their order, the oldest first.

    Raises:
        Refusal: There is no such gang, and no decision for one.
    """
    gang = _find(wanted, gangs)
    if gang is not None:
        namespace, name = gang.metadata.namespace, gang.metadata.name
        existing = {f"{namespace}/{name}": gang}
        own = [decision.status for decision in decisions if gang_of(decision, existing) is gang]
        return Timeline(
            gang=f"{namespace}/{gang.status.title or name}",
            gang_id=own[-1].gang_id if own else gang.metadata.uid,
            phase=gang.status.phase,
            lines=(*_of_gang(gang, own), *_of_decisions(own)),
            traces=_traces(own) or _traces([gang.status]),
        )
    named = [decision.status for decision in decisions if _is_of(decision.status, wanted)]
    if not named:
        raise Refusal(
            f"no gang {wanted.namespace}/{wanted.name} is known: no PodGroup of that name, and no "
            "Job of that name"
        )
    # Several gangs may have had the name one after the other.
    last = named[-1]
    own = [status for status in named if status.gang_id == last.gang_id]
    namespace, _, name = last.gang.partition("/")
    return Timeline(
        gang=f"{namespace}/{last.title or name}",
        gang_id=last.gang_id,
        phase="Gone",
        lines=(*_of_gone(own), *_of_decisions(own)),
        traces=_traces(own),
    )


def _traces(statuses: Iterable[DecisionStatus | GangStatus]) -> tuple[str, ...]:
    return tuple(filter(None, dict.fromkeys(status.trace_id for status in statuses)))


def _is_of(decision: DecisionStatus, wanted: Wanted) -> bool:
    namespace, _, name = decision.gang.partition("/")
    is_named = namespace == wanted.namespace and wanted.is_named(name)
    return decision.gang_id == wanted.gang_id or is_named


def _find(wanted: Wanted, gangs: Iterable[Gang]) -> Gang | None:
    """The gang with the id or the exact name, otherwise the newest one of a Job of that name."""
    matching = [
        gang
        for gang in gangs
        if gang.metadata.uid == wanted.gang_id
        or (gang.metadata.namespace == wanted.namespace and wanted.is_named(gang.metadata.name))
    ]

    def key(gang: Gang) -> tuple[bool, float]:
        created = gang.metadata.creation_timestamp
        return gang.metadata.name == wanted.name, created.timestamp() if created else 0.0

    return max(matching, key=key, default=None)


def _queued(seen: Iterable[datetime | None]) -> Iterator[Line]:
    known = min(filter(None, seen), default=None)
    if known is not None:
        yield Line(at_ms=instant_ms(known), what="queued", detail="first seen by the planner")


def _of_gang(gang: Gang, own: Sequence[DecisionStatus]) -> Iterator[Line]:
    status = gang.status
    created = gang.metadata.creation_timestamp
    # Decisions have milliseconds.
    yield from _queued([status.first_seen for status in own if status.first_seen] or [created])
    for condition in status.conditions:
        if condition.status == "True" and condition.last_transition_time is not None:
            detail = ": ".join(filter(None, (condition.reason, condition.message)))
            yield Line(
                at_ms=instant_ms(condition.last_transition_time), what=condition.type, detail=detail
            )
    if status.pending is not None:
        since = status.pending.since or created
        if since is not None:
            detail = f"{status.pending.reason}: {status.pending.message}"
            yield Line(at_ms=instant_ms(since), what="waits", detail=detail)


def _of_gone(own: Sequence[DecisionStatus]) -> Iterator[Line]:
    yield from _queued(status.first_seen for status in own)
    ended = [
        instant_ms(pod.ended) for status in own for pod in status.pods if pod.ended is not None
    ]
    if ended:
        yield Line(at_ms=max(ended), what="gone", detail="the last of its pods has ended")


def _of_decisions(own: Iterable[DecisionStatus]) -> Iterator[Line]:
    for status in own:
        yield _of_decision(status)
        yield from map(_of_event, status.events)


def _of_decision(status: DecisionStatus) -> Line:
    at_ms = instant_ms(status.time)
    if status.action == "Bind":
        words = [f"attempt {status.attempt}: {count(status.count, 'binding')}"]
        words += [status.message] if status.message else []
        words += [f"in {status.domain}"] if status.domain else []
        return Line(at_ms=at_ms, what="decided", detail=", ".join(words))
    releases = status.reason not in _FOR_OTHERS
    reason = ": ".join(filter(None, (status.reason, status.message)))
    return Line(
        at_ms=at_ms,
        what="releasing" if releases else "evicting",
        detail=", ".join(filter(None, (count(status.count, "pod"), reason))),
        failed=releases,
    )


def _of_event(event: DecisionEvent) -> Line:
    failures = [f"{failure.name}: {failure.message}" for failure in event.failures]
    more = event.failures_count - len(failures)
    if failures and more > 0:
        failures.append(f"and {more} more")
    return Line(
        at_ms=instant_ms(event.time),
        what=_WORDS.sub(" ", event.type).lower(),
        detail=", ".join(filter(None, (event.message, "; ".join(failures)))),
        took_ms=event.took_ms,
        failed=event.failed,
    )
