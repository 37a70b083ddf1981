"""Derives an answer from facts: one sentence first, then the details. Pure.

The pods' state has precedence over the verdict, which may be a moment old: a gang whose pods all
have nodes does not wait, and a member that the kubelet cannot start is reported at once.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal, get_args

import msgspec

from shared.contracts.annotations import GANG, SCHEDULE
from shared.contracts.reasons import GroupMissing, NotRunning, OtherScheduler, in_words
from shared.contracts.verdicts import Condition, Reason, ShapeReport, Verdict, Why
from shared.contracts.visibility import ExpectedStart
from shared.contracts.visibility_suggestions import SuggestionStatus
from shared.dialects.discovery import OWN_SCHEDULER
from shared.dialects.owner_kinds import OWNER_KINDS
from shared.dialects.workload_sizes import ALL
from shared.kube.resources import PODS
from shared.model.gang_keys import MADE_FOR_PODS_PREFIX, has_objects
from shared.model.objects import Owner, PodPhase
from tutti.why.facts import (
    PODS_MISSING,
    Facts,
    Group,
    MemberPod,
    belongs,
    declared_gang,
    not_admitted,
)
from tutti.why.planner_liveness import PlannerLiveness

#: In the order of the answer for several gangs: failures, then waiting gangs, then running ones.
State = Literal[
    "stuck",
    "releasing",
    "degraded",
    "waiting",
    "unknown",
    "suspended",
    "growing",
    "starting",
    "running",
    "not-ours",
    "completed",
]
_URGENCY: tuple[State, ...] = get_args(State)
#: Kinds whose objects are one gang if their annotation says so.
_GANG_KINDS = frozenset(kind.resource.kind for kind in OWNER_KINDS) - {PODS.kind}
_NOT_WAITING = Why(reason="", sentence="")


class GangAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One gang, or pods without a group."""

    #: "namespace/name" of the group; without a group, of the owner or the pod.
    gang: str
    #: The object that the user created: kind and name of the topmost owner, "job/train". Of a group
    #: without an owner, the one above all its members, if there is one.
    name: str = ""
    #: Resource and UID of its group object; "" when there is none.
    group: str = ""
    uid: str = ""
    state: State
    sentence: str
    #: The pending reason in CamelCase; "" if it does not wait.
    reason: str = ""
    #: RFC 3339 instant from which it waits; "" when unknown.
    since: str = ""
    #: Its quorum; 0 when unknown.
    min_member: int = 0
    #: The number of its pods, also by phase ("Pending" without a node, "Placed" with one), and by
    #: role and phase, where there are roles.
    members: int = 0
    phases: dict[str, int] = {}
    roles: dict[str, dict[str, int]] = {}
    #: Names of members by node, and members that have a node but do not run.
    nodes: dict[str, list[str]] = {}
    not_running: tuple[NotRunning, ...] = ()
    #: How many pods fit on how many nodes, per role.
    shapes: tuple[ShapeReport, ...] = ()
    #: The number of all, if not all are listed; 0: all are.
    shapes_count: int = 0
    #: The resources of which the queue's share is too small.
    quota: tuple[Reason, ...] = ()
    queue: str = ""
    #: Gangs of the same namespace that are ahead of it in the queue, and the number of all of them.
    ahead: tuple[str, ...] = ()
    ahead_count: int = 0
    #: The same for gangs that use the capacity which it lacks.
    holders: tuple[str, ...] = ()
    holders_count: int = 0
    #: While it waits, if Tutti's API has them: its place among the waiting gangs of its queue, and
    #: when it is expected to start.
    position: int | None = None
    expected_start: ExpectedStart | None = None
    #: If it was asked: the changes with which it would start at once.
    what_would_help: SuggestionStatus | None = None
    conditions: tuple[Condition, ...] = ()


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    asked: str
    namespace: str
    sentence: str
    state: State
    #: Whether a planner reports, and when it reported last: the age of this answer.
    planner: PlannerLiveness = PlannerLiveness()
    #: A warning to be printed first; "" without one.
    warning: str = ""
    gangs: tuple[GangAnswer, ...] = ()
    #: If pods are missing: the newest warnings about the controllers that create them.
    troubles: tuple[str, ...] = ()
    #: Other errors of the object, such as a PriorityClass that does not exist.
    faults: tuple[str, ...] = ()
    #: Resources that the user may not read.
    forbidden: tuple[str, ...] = ()


def explain(facts: Facts) -> Answer:
    """The answer to "why does it wait?"."""
    loose = [
        member for member in facts.pods if not any(belongs(member, group) for group in facts.groups)
    ]
    gangs = [_group_answer(group, facts) for group in facts.groups]
    gangs += [_loose_answer(*gang, facts) for gang in _without_object(loose, facts)]
    gangs.sort(key=lambda gang: (_URGENCY.index(gang.state), gang.gang))
    if not gangs:
        return _nothing(facts)
    sentence = gangs[0].sentence
    if len(gangs) > 1:
        states = Counter(gang.state for gang in gangs)
        counts = ", ".join(f"{states[state]} {state}" for state in _URGENCY if states[state])
        sentence = f"{facts.title} has {len(gangs)} gangs ({counts}); the first: {sentence}"
    if gangs[0].state != "completed":
        sentence = "; ".join([sentence, *_undeclared(facts)])
    return _answer(facts, sentence, gangs[0].state, gangs)


def _undeclared(facts: Facts) -> Iterator[str]:
    """A sentence about an object whose pods only name a scheduler, where users expect a gang."""
    pods = [each.pod for each in facts.pods]
    if len(pods) < 2 or facts.kind not in _GANG_KINDS:
        return
    declared = any(pod.group_min_member or not pod.group_implied for pod in pods)
    if declared or any(group.min_member > 1 for group in facts.groups):
        return
    if all(any(belongs(each, group) for group in facts.groups) for each in facts.pods):
        yield (
            f"nothing declares its {len(pods)} pods one gang, so each is placed by itself: with "
            f"the annotation {GANG}: {ALL} on the {facts.kind} they start together"
        )


def _nothing(facts: Facts) -> Answer:
    if facts.suspended:
        return _answer(facts, f"{facts.title} is suspended: {facts.suspended}", "suspended", [])
    if facts.forbidden:
        what = " and ".join(facts.forbidden)
        sentence = (
            f"{facts.title}: not allowed to list {what} in namespace {facts.namespace}, "
            "so its state is unknown"
        )
    elif facts.foreign_scheduler:
        sentence = (
            f"{facts.title} names the scheduler {facts.foreign_scheduler}, which Tutti does not "
            f"serve, so Tutti creates no pods for it: create it with schedulerName {OWN_SCHEDULER}"
        )
        return _answer(facts, sentence, "not-ours", [])
    elif facts.troubles:
        sentence = f"{facts.title} has no pods and no PodGroup: {facts.troubles[0]}"
        return _answer(facts, sentence, "stuck", [])
    else:
        sentence = (
            f"{facts.title} has no pods and no PodGroup yet: its operator "
            "or controller has not created them"
        )
    return _answer(facts, sentence, "unknown", [])


def _answer(facts: Facts, sentence: str, state: State, gangs: Sequence[GangAnswer]) -> Answer:
    return Answer(
        asked=facts.title,
        namespace=facts.namespace,
        sentence=sentence,
        state=state,
        planner=facts.planner,
        warning=facts.planner.warning,
        gangs=tuple(gangs),
        troubles=facts.troubles,
        faults=facts.faults,
        forbidden=facts.forbidden,
    )


def _group_answer(group: Group, facts: Facts) -> GangAnswer:
    members = [each for each in facts.pods if belongs(each, group)]
    verdict = group.verdict
    name = "" if group.owner is not None else _common_title(members, facts)
    name = name or _title(group.owner, group.kind, group.name, facts)
    least = (verdict.min_member if verdict is not None else 0) or group.min_member
    why = verdict.why if verdict is not None else None
    state, sentence = _judge(name, group, members, least)
    pending = why if state == "waiting" and why is not None else _NOT_WAITING
    if state == "waiting" or (state == "running" and any(not each.pod.node for each in members)):
        sentence = "; ".join([sentence, *_more(verdict, facts.troubles)])
    if state not in {"running", "completed", "not-ours"}:
        sentence = "; ".join([sentence, *_obstacles(members, facts, sentence)])
    if facts.suspended and not any(each.pod.node and not _has_ended(each) for each in members):
        state, sentence = "suspended", f"{name} is suspended: {facts.suspended}"
    return GangAnswer(
        gang=f"{group.namespace}/{group.name}",
        name=name,
        group=group.title,
        uid=group.uid,
        state=state,
        sentence=sentence,
        reason=pending.reason,
        since=_instant(pending.since_ms),
        min_member=least,
        members=len(members),
        phases=_phases(members),
        roles=_roles(members),
        nodes=_nodes(members),
        not_running=_not_running(members),
        shapes=pending.shapes,
        shapes_count=pending.shapes_count,
        quota=pending.quota,
        queue=verdict.queue if verdict is not None else "",
        ahead=pending.ahead,
        ahead_count=pending.ahead_count,
        holders=pending.holders,
        holders_count=pending.holders_count,
        conditions=verdict.conditions if verdict is not None else (),
    )


def _more(verdict: Verdict | None, troubles: Sequence[str]) -> list[str]:
    """Further reasons why a gang waits: its pods are not created, or former ones were evicted."""
    reasons: list[str] = []
    why = verdict.why if verdict is not None else None
    if troubles and (verdict is None or (why is not None and why.reason in PODS_MISSING)):
        reasons.append(troubles[0])
    evicted = _holding(verdict).get("Evicted")
    if evicted:
        reasons.append(evicted)
    return reasons


def _judge(name: str, group: Group, members: Sequence[MemberPod], least: int) -> tuple[State, str]:
    """State and sentence of a gang with a group object."""
    verdict = group.verdict
    holds = _holding(verdict)
    if "Releasing" in holds:
        return "releasing", f"{name} is being released: {holds['Releasing']}"
    # Failed and deleted members do not count as placed once the verdict reports a problem.
    has_problem = bool(holds.keys() & {"PartlyBound", "Degraded"}) or (
        verdict is not None and verdict.why is not None
    )
    placed = [
        each
        for each in members
        if each.pod.node and not (has_problem and (each.pod.phase == "Failed" or each.pod.deleting))
    ]
    # A Job that is suspended, or whose other pods are lost, has ended pods and waits.
    waits = verdict is not None and verdict.why is not None
    if (_all_ended(members) and not waits) or len(placed) >= max(1, least):
        # A group that was made for pods without a declared minimum is no gang.
        is_gang = least > 1 or not group.name.startswith(MADE_FOR_PODS_PREFIX)
        quorum = f" beyond its quorum of {least}" if is_gang else ""
        state, sentence = _placed(name, members, quorum)
        notices = [holds[type_] for type_ in ("RoomHeld", "RunLimit") if type_ in holds]
        return state, "; ".join([sentence, *notices])
    if verdict is None:
        return _unjudged(name, group, members)
    return _judged(name, verdict, holds, members, (len(placed), least))


def _judged(
    name: str,
    verdict: Verdict,
    holds: Mapping[str, str],
    members: Sequence[MemberPod],
    counts: tuple[int, int],
) -> tuple[State, str]:
    """State and sentence by the verdict. `counts`: placed members, and how many it needs."""
    placed, least = counts
    if verdict.phase == "Completed":
        return "completed", f"{name} has ended: {_ended(members, verdict)}"
    if "PartlyBound" in holds:
        return "stuck", f"{name} is bound in part: {holds['PartlyBound']}"
    if "Degraded" in holds:
        return "degraded", f"{name} is degraded: {holds['Degraded']}"
    if verdict.phase == "Unknown" and placed and not holds.keys() & {"RoomHeld", "Evicted"}:
        words = f": {verdict.why.sentence}" if verdict.why is not None else ""
        return (
            "growing",
            f"{name} is growing: {placed} of {least} members are placed{words}",
        )
    if verdict.why is not None:
        return "waiting", f"{name} waits: {verdict.why.sentence}"
    if verdict.phase == "Unknown":
        return (
            "degraded",
            f"{name} had started and is below its quorum: {placed} of {least} members are placed",
        )
    if verdict.phase in {"Starting", "Running"}:
        return "starting", f"{name} is being placed: {placed} of {least} members have a node"
    return "waiting", f"{name} waits: {verdict.phase}, no reason has been given yet"


def _placed(name: str, members: Sequence[MemberPod], quorum: str) -> tuple[State, str]:
    """State and sentence of a gang whose quorum has nodes. `quorum`: words about it."""
    phases = _phase_counts(members)
    if _all_ended(members):
        ended = [f"{phases[each]} {each}" for each in ("Succeeded", "Failed") if phases[each]]
        return "completed", f"{name} has ended: {', '.join(ended)}"
    stuck = _not_running(members)
    explained = [each for each in stuck if each.why]
    if explained:
        first = explained[0]
        others = f" (and {len(explained) - 1} more)" if len(explained) > 1 else ""
        return (
            "stuck",
            f"{name} is placed, but {in_words(first)}{others}",
        )
    nodes = len(_nodes(members))
    where = f"on {nodes} node{'s' if nodes != 1 else ''}"
    if stuck:
        return (
            "starting",
            f"{name} is placed {where}: {phases['Running']} of {len(members)} members run, "
            "the rest are starting",
        )
    waiting = sum(1 for member in members if not member.pod.node)
    extra = f"; {waiting}{quorum} wait" if waiting else ""
    return "running", f"{name} runs {where}: {_counted(phases)}{extra}"


def _holding(verdict: Verdict | None) -> dict[str, str]:
    """Messages of the conditions that are True, by type."""
    conditions = verdict.conditions if verdict is not None else ()
    return {
        condition.type: condition.message for condition in conditions if condition.status == "True"
    }


def _all_ended(members: Sequence[MemberPod]) -> bool:
    return bool(members) and all(map(_has_ended, members))


def _has_ended(member: MemberPod) -> bool:
    return member.pod.phase in {"Succeeded", "Failed"}


def _unjudged(name: str, group: Group, members: Sequence[MemberPod]) -> tuple[State, str]:
    """State and sentence of a gang without a verdict."""
    if group.unreadable:
        return "unknown", f"{name}: its verdict cannot be read: {group.unreadable}"
    if members and (foreign := _foreign(members)):
        return "not-ours", _not_ours(name, foreign, _unscheduled_message(members))
    if not members and group.shared:
        return (
            "waiting",
            f"{name} has no pods yet. Several schedulers use {group.title}, so Tutti reports on a "
            "group once it has a pod with one of Tutti's scheduler names",
        )
    if not members:
        return "waiting", f"{name} has no pods yet, and no verdict: is Tutti running?"
    return "unknown", f"{name} has no verdict yet: is Tutti running?{_unscheduled_message(members)}"


def _loose_answer(title: str, members: Sequence[MemberPod], facts: Facts) -> GangAnswer:
    events = facts.events
    missing = _missing_groups(members, facts)
    foreign = _foreign(members)
    message = _unscheduled_message(members) or next(
        (f": {events[each.pod.name]}" for each in members if each.pod.name in events), ""
    )
    unplaced = [member for member in members if not member.pod.node]
    state: State
    reason = ""
    if not unplaced:
        state, sentence = _placed(title, members, "")
    elif foreign:
        state, sentence = "not-ours", _not_ours(title, foreign, message)
    elif missing:
        state, sentence = "waiting", f"{title} waits: {' and '.join(map(_missing, missing))}"
        reason = GroupMissing.reason.value
    elif message:
        state, sentence = "waiting", f"{title} waits{message}"
    else:
        state, sentence = "unknown", f"{title} waits, and no reason is known yet: is Tutti running?"
    if state in {"waiting", "unknown"}:
        sentence = "; ".join([sentence, *_obstacles(members, facts, sentence)])
    pod = members[0].pod
    name = pod.owner.name if pod.owner is not None else pod.name
    return GangAnswer(
        gang=f"{facts.namespace}/{pod.group_name if declared_gang(pod) else name}",
        name=title,
        state=state,
        sentence=sentence,
        reason=reason,
        since=min((m.unscheduled_since for m in unplaced if m.unscheduled_since), default=""),
        min_member=max(map(_declared_minimum, members)),
        members=len(members),
        phases=_phases(members),
        roles=_roles(members),
        nodes=_nodes(members),
        not_running=_not_running(members),
    )


def _title(owner: Owner | None, kind: str, name: str, facts: Facts) -> str:
    """The object that the user created: the topmost owner, or the object itself without one."""
    if owner is None:
        return f"{kind.lower()}/{name}"
    return facts.tops.get(owner.uid) or f"{owner.kind.lower()}/{owner.name}"


def _without_object(
    members: Sequence[MemberPod], facts: Facts
) -> list[tuple[str, list[MemberPod]]]:
    """Title and members of each gang without a group object: gangs that their pods declare, and
    for other pods those of one owner.
    """
    declared: dict[tuple[str, str], list[MemberPod]] = {}
    grouped: dict[str, list[MemberPod]] = {}
    for member in members:
        gang = declared_gang(member.pod)
        if gang is not None:
            declared.setdefault(gang, []).append(member)
        else:
            grouped.setdefault(_pod_title(member, facts), []).append(member)
    named = [
        (_common_title(each, facts) or f"gang/{gang[1]}", each) for gang, each in declared.items()
    ]
    return [*named, *grouped.items()]


def _pod_title(member: MemberPod, facts: Facts) -> str:
    return _title(member.pod.owner, "Pod", member.pod.name, facts)


def _common_title(members: Sequence[MemberPod], facts: Facts) -> str:
    """The one object that all of these pods belong to; "" if there is none."""
    titles = {
        _pod_title(member, facts) if member.pod.owner is not None else "" for member in members
    }
    return titles.pop() if len(titles) == 1 else ""


def _declared_minimum(member: MemberPod) -> int:
    """The minimum that a pod of a declared gang states; 0: none."""
    group = member.pod.declared_group
    if declared_gang(member.pod) is None:
        return 0
    return group.min_member if group is not None else member.pod.group_min_member


def _missing_groups(members: Sequence[MemberPod], facts: Facts) -> list[GroupMissing]:
    """The groups that these pods name and that do not exist, as far as that is known."""
    if facts.forbidden:
        return []
    named = {
        (each.pod.group_scope, each.pod.group_name)
        for each in members
        if each.pod.group_name and not each.pod.group_implied and not each.pod.group_self_declared
    }
    return [GroupMissing(scope, facts.namespace, name) for scope, name in sorted(named)]


def _missing(group: GroupMissing) -> str:
    """A sentence about one missing group, and what to do if it is an object."""
    return in_words(group) + (": create it" if has_objects(group.scope) else "")


def _not_ours(name: str, foreign: str, message: str) -> str:
    """A sentence about pods of other schedulers, with the condition of one of them."""
    return (
        f"{name} is scheduled by {foreign}, not by Tutti{message}; Tutti takes pods that are "
        f"created with the scheduler name {OWN_SCHEDULER}, or as members of a gang in a namespace "
        f'with the label {SCHEDULE}: "true"'
    )


def _obstacles(members: Sequence[MemberPod], facts: Facts, said: str) -> list[str]:
    """What else than `said` keeps a gang from being placed: other actors, and errors of the
    object.
    """
    queues = sorted({each.awaited_queue for each in members} - {""})
    return [*map(not_admitted, queues), *_foreign_members(members, said), *facts.faults]


def _foreign_members(members: Sequence[MemberPod], said: str) -> Iterator[str]:
    """Sentences about the unbound members that name another scheduler, unless `said` has it: the
    planner's verdict counts those that a namespace could send to Tutti.
    """
    foreign = Counter(
        each.pod.scheduler_name for each in members if not (each.pod.ours or each.pod.node)
    )
    for name, count in sorted(foreign.items()):
        if f" the scheduler {name}" not in said:
            yield in_words(OtherScheduler(name, count))


def _foreign(members: Sequence[MemberPod]) -> str:
    """The schedulers of these pods if Tutti serves none of them; "" otherwise."""
    names = {member.pod.scheduler_name for member in members}
    return "" if any(member.pod.ours for member in members) else " and ".join(sorted(names))


def _unscheduled_message(members: Sequence[MemberPod]) -> str:
    """The most frequent message of the pods' own conditions, after a colon."""
    texts = Counter(member.unscheduled for member in members if member.unscheduled)
    return f": {texts.most_common(1)[0][0]}" if texts else ""


def _phases(members: Sequence[MemberPod]) -> dict[str, int]:
    counts = Counter(
        "Placed" if each.pod.phase == "Pending" and each.pod.node else each.pod.phase
        for each in members
    )
    return dict(sorted(counts.items()))


def _roles(members: Sequence[MemberPod]) -> dict[str, dict[str, int]]:
    by_role: dict[str, list[MemberPod]] = {}
    for member in members:
        by_role.setdefault(member.pod.role, []).append(member)
    if not by_role.keys() - {""}:
        return {}
    return {role or "other": _phases(each) for role, each in sorted(by_role.items())}


def _nodes(members: Sequence[MemberPod]) -> dict[str, list[str]]:
    nodes: dict[str, list[str]] = {}
    for member in sorted(members, key=lambda each: each.pod.name):
        if member.pod.node and member.pod.phase not in {"Succeeded", "Failed"}:
            nodes.setdefault(member.pod.node, []).append(member.pod.name)
    return dict(sorted(nodes.items()))


def _not_running(members: Sequence[MemberPod]) -> tuple[NotRunning, ...]:
    """Members with a node that do not run, first those with a reason from the kubelet."""
    stuck = [
        NotRunning(pod=pod.name, node=pod.node, why=pod.waiting or pod.reason)
        for member in members
        if (pod := member.pod).node
        and (
            pod.phase == "Pending"
            or (pod.phase in {"Running", "Unknown"} and pod.waiting)
            or (pod.phase == "Failed" and pod.reason)
        )
    ]
    return tuple(sorted(stuck, key=lambda each: (not each.why, each.pod)))


def _ended(members: Sequence[MemberPod], verdict: Verdict) -> str:
    if members:
        return _counted(_phase_counts(members))
    if not (verdict.succeeded or verdict.failed):
        return "its pods were deleted before they had ended"
    return f"{verdict.succeeded} Succeeded, {verdict.failed} Failed"


def _phase_counts(members: Sequence[MemberPod]) -> Counter[PodPhase]:
    return Counter(member.pod.phase for member in members)


def _counted(phases: Mapping[PodPhase, int]) -> str:
    return ", ".join(f"{count} {phase}" for phase, count in sorted(phases.items()))


def _instant(at_ms: int) -> str:
    if not at_ms:
        return ""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
