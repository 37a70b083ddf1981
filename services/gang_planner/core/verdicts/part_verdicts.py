"""Verdicts of the groups in a tree (`shared.model.group_trees`): each object of a tree gets a
status, but only the gang of the whole tree is planned.

A group waits for what its gang waits for, until its own pods are placed. Its verdict names no pods:
that of the gang does.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from services.gang_planner.core.state.gang_table import GangTable
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.member_states import FAILED, RUNNING, SUCCEEDED
from services.gang_planner.core.state.sub_gangs import complete_groups
from services.gang_planner.core.verdicts.conditions import SCHEDULED
from shared.contracts.verdicts import Condition, GangPhase, Verdict, Why
from shared.model.objects import PodGroup

_RAN: Final = frozenset({"Running", "Completed"})


def part_verdicts(
    gangs: GangTable, gang: Gang, of_gang: Verdict, known: Mapping[str, Verdict]
) -> Iterator[Verdict]:
    """The verdicts of a gang's groups; none for a gang that is no tree.

    Args:
        gangs: The table that has the gang and its groups.
        gang: The gang.
        of_gang: Its verdict as of now.
        known: The last published verdicts, by id: a group's id is its UID.
    """
    parts = gangs.trees.parts(gang.key)
    if not parts:
        return
    groups, sets = complete_groups(gang)
    counts: dict[str, Counter[int]] = {}
    for member in gang.members.values():
        counts.setdefault(member.pod.group_name, Counter())[member.state] += 1
    for part in parts:
        last = known.get(part.uid)
        of_pods = part.min_groups is None
        complete = part.name in (groups if of_pods else sets)
        placed = complete and of_gang.phase in _RAN
        members = counts.get(part.name, Counter()) if of_pods else Counter[int]()
        total, running = members.total(), members[RUNNING]
        gone = gang.run.by_part.get(part.name, 0) if of_pods else 0
        succeeded, failed = members[SUCCEEDED], members[FAILED]
        yield Verdict(
            gang_id=part.uid,
            epoch=of_gang.epoch,
            at_ms=of_gang.at_ms,
            dialect=part.dialect,
            namespace=part.namespace,
            name=part.name,
            uid=part.uid,
            queue=of_gang.queue,
            phase=_phase(of_gang.phase, placed=placed),
            min_member=part.min_member,
            members=total,
            pending=total - running - succeeded - failed,
            running=running,
            succeeded=succeeded + gone,
            failed=failed,
            conditions=_conditions(part, of_gang, last, placed=placed),
            why=None if placed else _why(of_gang, last),
            attempt=of_gang.attempt,
            trace_id=of_gang.trace_id,
            first_seen_ms=of_gang.first_seen_ms,
        )


def _phase(of_gang: GangPhase, *, placed: bool) -> GangPhase:
    """The gang's phase; a group that is not placed waits also while its gang runs."""
    return of_gang if placed or of_gang not in _RAN else "Inqueue"


def _why(of_gang: Verdict, last: Verdict | None) -> Why | None:
    """Why the gang waits: its sentence alone, because the rest is about the gang's pods."""
    why = of_gang.why
    if why is None:
        return None
    before = last.why if last is not None else None
    since_ms = before.since_ms if before is not None and before.reason == why.reason else None
    return Why(
        reason=why.reason,
        sentence=why.sentence,
        since_ms=why.since_ms if since_ms is None else since_ms,
    )


def _conditions(
    part: PodGroup, of_gang: Verdict, last: Verdict | None, *, placed: bool
) -> tuple[Condition, ...]:
    """Scheduled for the group's own pods, and Evicted as its gang has it. A group that never had
    nodes has neither.
    """
    before = (
        {condition.type: condition for condition in last.conditions} if last is not None else {}
    )
    known = before.get("Scheduled")
    if known is None and part.scheduled_once:
        # The last verdict is lost.
        known = Condition(type="Scheduled", status="False", reason="Scheduled")
    is_other = known is None or (known.status == "True") != placed
    if is_other and (known is not None or placed):
        known = Condition(
            type="Scheduled",
            status="True" if placed else "False",
            reason=SCHEDULED if placed else of_gang.phase,
            since_ms=of_gang.at_ms,
        )
    if known is None:
        return ()
    return known, *(condition for condition in of_gang.conditions if condition.type == "Evicted")
