"""The members in a verdict: references, as many as fit into a message, and the succeeded ones, from
which a planner that starts restores a gang's run.
"""

from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from typing import Final

from services.gang_planner.core.state.gang_settings import undisturbed
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.member_states import (
    PLACED,
    RUNNING,
    SUCCEEDED,
    UNSUPPORTED,
    WAITING,
)
from services.gang_planner.core.state.sub_gangs import sub_gangs
from shared.contracts.verdicts import PodRef, Verdict
from shared.model.bounded_text import NAME_BYTES_MAX

#: Maximum size of the references to waiting members in a message, and of those to placed members:
#: a third of a message each. The third third holds those to unnamed and to evicted members (with
#: the longest names 160 and 60 KiB), and every other field of a verdict (at most 120 KiB).
_REFS_BYTES_MAX: Final = 340 * 1024
#: Field names, lengths and markers of one reference in msgpack.
_REF_OVERHEAD_BYTES: Final = 24
#: This many references fit with names (pod, node, UID) of any length.
_REFS_ALWAYS_FIT: Final = _REFS_BYTES_MAX // (_REF_OVERHEAD_BYTES + 3 * 253)
#: Maximum number of unnamed members in a verdict.
_UNNAMED_MAX: Final = 500
#: Roles, and sub-gangs, that a verdict counts: it must fit into an annotation. Of further ones a
#: planner that starts knows only how many members of the whole gang have succeeded.
_COUNTED_MAX: Final = 32
_UNPLACED_STATES: Final = frozenset({WAITING, UNSUPPORTED})
_PLACED_STATES: Final = frozenset({PLACED, RUNNING, SUCCEEDED})


def unnamed(gang: Gang) -> tuple[PodRef, ...]:
    pods = (member.pod for member in gang.members.values() if member.pod.group_implied)
    return tuple(PodRef(uid=pod.uid, name=pod.name) for pod in islice(pods, _UNNAMED_MAX))


def waiting(
    gang: Gang, helped: Collection[str], nominated: Mapping[str, str]
) -> tuple[tuple[PodRef, ...], int]:
    """The members without a node, those in `helped` first, and how many of these are listed.
    `nominated` has nodes by UID.
    """
    chosen = frozenset(helped)
    first: list[PodRef] = []
    rest: list[PodRef] = []
    for uid, member in gang.members.items():
        if member.state in _UNPLACED_STATES:
            pod = PodRef(uid=uid, name=member.pod.name, node=nominated.get(uid, ""))
            (first if uid in chosen else rest).append(pod)
    listed = _bounded([*first, *rest])
    return listed, min(len(first), len(listed))


def placed(gang: Gang, last: Verdict | None) -> tuple[PodRef, ...]:
    """The placed members of a started gang's newest decision, and those of earlier ones that no
    verdict has named.

    After a restart the newest decision may be unknown; then the last verdict's members are used.
    """
    if not gang.history.started:
        return ()
    uids = [pod.uid for pod in gang.latest]
    if not uids and last is not None and last.attempt == gang.history.attempt:
        uids = [pod.uid for pod in last.placed]
    members = gang.members
    return _bounded(
        [
            PodRef(uid=uid, name=member.pod.name, node=member.pod.node)
            for uid in uids
            if (member := members.get(uid)) is not None and member.state in _PLACED_STATES
        ]
    )


def ended(gang: Gang) -> tuple[PodRef, ...]:
    """The members of a gang that has ended, if autoscalers were asked to keep their nodes."""
    if gang.shown_phase != "Completed" or not undisturbed(gang):
        return ()
    return _bounded([PodRef(uid=uid, name=member.pod.name) for uid, member in gang.members.items()])


def _bounded(pods: list[PodRef]) -> tuple[PodRef, ...]:
    """The first references, as many as fit into their part of a message."""
    if len(pods) <= _REFS_ALWAYS_FIT:
        return tuple(pods)
    left = _REFS_BYTES_MAX
    for index, pod in enumerate(pods):
        left -= len(pod.uid) + len(pod.name) + len(pod.node) + _REF_OVERHEAD_BYTES
        if left < 0:
            return tuple(pods[:index])
    return tuple(pods)


def succeeded_by_role(gang: Gang) -> tuple[tuple[str, int], ...]:
    """(role, succeeded members) of the roles with a minimum."""
    if not gang.succeeded:
        return ()
    gone = gang.run.by_role
    counts = (
        (role, gone.get(role, 0) + (gang.roles[role][SUCCEEDED] if role in gang.roles else 0))
        for role, _ in gang.role_minima
    )
    return _counted(counts)


def succeeded_by_part(gang: Gang) -> tuple[tuple[str, int], ...]:
    """(sub-gang, succeeded members)."""
    if not gang.succeeded:
        return ()
    return _counted((sub_gang.name, sub_gang.succeeded) for sub_gang in sub_gangs(gang))


def jobs(gang: Gang) -> tuple[str, ...]:
    """The UIDs of the Jobs whose next pods continue the run of a gang without pods."""
    if gang.members or not (gang.run.ended or gang.run.succeeded):
        return ()
    return tuple(islice(gang.run.jobs, _COUNTED_MAX))


def _counted(counts: Iterable[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    named = (
        named_count
        for named_count in counts
        if named_count[1] and len(named_count[0].encode()) <= NAME_BYTES_MAX
    )
    return tuple(sorted(islice(named, _COUNTED_MAX)))
