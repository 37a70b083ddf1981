"""Members that started gangs lost while no planner saw it: in the first cycle of a planner that
takes over, they get holds like other lost members.

A planner that starts from a snapshot does not see the deletions before it. A planner may also end
between a loss and the note of its hold. In both cases only numbers are left: the log records that
the gang has started, and the cluster state has fewer members than the gang's minimum.

No hold is opened if it would be a guess, or a second one:
* The shape is unknown: members of the role with the shortfall have different shapes, or none is
  left, or the gang sets no minimum for each role and its members have different roles.
* The hold of the missing member has expired before, or the member was evicted for another gang
  (`History.holds_forgone`), or may have been: an eviction in the log has victims in the namespace
  whose end this planner did not see.
* The role may be a late one, whose pods are created last, and none of them exists.
* No controller creates the gang's pods again.
* The gang has lost all its members: its next ones are placed together.

A waiting successor is a member that exists; `allocation.replacements` places it before other gangs.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Final

from services.gang_planner.core.lifecycle import hold_rules
from services.gang_planner.core.lifecycle.assessment import absent_roles
from services.gang_planner.core.state.accounting import loss_of
from services.gang_planner.core.state.gang_settings import hold_ms
from services.gang_planner.core.state.gangs import Gang, Member
from services.gang_planner.core.state.holds import MISSING, Loss
from services.gang_planner.core.state.member_states import FAILED, LEAVING, LOST
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.preemptions import Preemptions
from shared.model.gang_keys import GangKey

_ENDED: Final = frozenset({FAILED, LOST})


def search(state: State) -> None:
    """Search once in an epoch, as soon as every binding in the log was matched with the cluster
    state. The active planner opens the holds in its next cycle.
    """
    if not state.view.epoch or state.unresolved:
        return
    state.losses_unsearched = False
    doubtful = _doubtful_namespaces(state.preemptions, state.members)
    covered = _covered(state)
    for key, gang in sorted(state.gangs.gangs.items()):
        # Without holds, a loss that awaits one would interrupt the gang's degraded grace.
        if not (gang.history.has_started and gang.have() and hold_ms(gang, state.defaults)):
            continue
        if gang.completed:
            continue
        missing = _missing(gang, covered.get(key, Counter()))
        if gang.namespace in doubtful:
            gang.history.holds_forgone += len(missing)
            continue
        for number, template in enumerate(missing):
            if template is not None:
                state.holds.lose(_loss(state, gang, template, number))
    hold_rules.judge(state)


def _doubtful_namespaces(preemptions: Preemptions, members: dict[str, Member]) -> set[str]:
    """Namespaces with victims of evictions that are gone. The log does not name the gangs of those
    whose end this planner did not see.
    """
    return {
        victim.namespace
        for preemption in preemptions.logged.values()
        for victim in preemption.act.victims
        if victim.uid not in members and victim.uid not in preemption.seen_left
    }


def _covered(state: State) -> dict[GangKey, Counter[str]]:
    """The number of holds and of losses that await one, by gang and role."""
    table = state.holds
    covered: defaultdict[GangKey, Counter[str]] = defaultdict(Counter)
    for loss in table.pending.values():
        covered[loss.key][loss.role] += 1
    for hold in table.by_uid.values():
        # A hold that was read from the log before the snapshot is attached to its gang in a cycle.
        gang = hold.gang or state.gangs.find(hold.gang_id)
        key = gang.key if gang is not None else hold.gang_key
        is_there = hold.announced and hold.uid in state.members
        if not hold.reserving and not is_there and key is not None:
            covered[key][hold.role] += 1
    return covered


def _missing(gang: Gang, covered: Counter[str]) -> list[Member | None]:
    """For each missing member, without those that forgo a hold, a living one to which it was
    equal; None: its shape is unknown.
    """
    members = list(gang.members.values())
    late = absent_roles(gang)
    missing = max(gang.declared, 1) - _existing(members) - gang.run.succeeded
    missing -= sum(covered.values()) + sum(late.values())
    templates: list[Member | None] = []
    for role, least in gang.role_minima:
        if role in late:
            continue
        of_role = [member for member in members if member.pod.role == role]
        short = least - _existing(of_role) - gang.run.by_role.get(role, 0) - covered[role]
        templates += [_template(of_role)] * short
    templates += [_template(members)] * (missing - len(templates))
    return templates[gang.history.holds_forgone :]


def _existing(members: Iterable[Member]) -> int:
    """The number of members that have not ended, or have succeeded. One that is being deleted is
    lost when its pod is gone.
    """
    return sum(member.state not in _ENDED for member in members)


def _template(members: Iterable[Member]) -> Member | None:
    """A living member to which the missing one was equal; None: its role or shape is unknown."""
    living = [
        member
        for member in members
        if member.state not in _ENDED and member.state != LEAVING and member.pod.owner is not None
    ]
    kinds = {(member.pod.role, member.pod.shape) for member in living}
    if len(kinds) != 1:
        return None
    return min(living, key=lambda member: (member.pod.name, member.pod.uid))


def _loss(state: State, gang: Gang, template: Member, number: int) -> Loss:
    role = f" (role {template.pod.role})" if template.pod.role else ""
    message = f"a member{role} was lost before the active planner took over"
    loss = loss_of(state, template, gang, MISSING, message)
    loss.uid, loss.lost_on = f"{gang.gang_id}/missing/{state.epoch}/{number}", ""
    # Its user may have deleted it: a gang that does not need it gets no hold.
    loss.plain, loss.refused = True, False
    return loss
