"""Decisions and answers for the tests of the binder's core."""

from services.binder.core.answers import Answer, PodView
from services.binder.core.commands import Limits
from services.binder.core.machine import Machine
from services.binder.core.outcome import Sender
from services.binder.core.removal import Removal
from shared.contracts.decisions import Binding, Cycle, EvictionDecision, GangDecision, Victim

LIMITS = Limits()
BOUND = Answer(201)
BUSY = Answer(429, "TooManyRequests", "the server has received too many requests", 0)
SILENT = Answer(0, "Timeout", "no answer within 5 s")
TAKEN = Answer(409, "Conflict", 'pod w-0 is already assigned to node "n"')
CYCLE = Cycle(cluster_seq=7, outcomes_seq=1, now_ms=1_000, configuration="c")


def make_decision(members: int, *, preflight: bool = False, epoch: int = 2) -> GangDecision:
    """A decision that binds `members` pods w-0, w-1, … with the UIDs u-0, … to the nodes n-0, …"""
    return GangDecision(
        gang_id="g",
        gang="team/job",
        dialect="volcano",
        epoch=epoch,
        attempt=1,
        bindings=tuple(
            Binding(uid=f"u-{index}", namespace="team", name=f"w-{index}", node=f"n-{index}")
            for index in range(members)
        ),
        quorum=members,
        preflight=preflight,
        trace_id="0" * 32,
        first_seen_ms=900,
        cycle=CYCLE,
    )


def make_machine(members: int, *, preflight: bool = False, delivered: int = 1) -> Machine:
    """A machine for delivery number `delivered` of such a decision, at sequence 17."""
    sender = Sender(binder="binder-0", decision_seq=17, delivered=delivered)
    return Machine(make_decision(members, preflight=preflight), sender, LIMITS)


def make_release(victims: int, *, epoch: int = 2) -> EvictionDecision:
    """A decision that removes the pods w-0, w-1, … with the UIDs u-0, …"""
    return EvictionDecision(
        gang_id="g",
        gang="team/job",
        epoch=epoch,
        attempt=1,
        victims=tuple(
            Victim(uid=f"u-{index}", namespace="team", name=f"w-{index}")
            for index in range(victims)
        ),
        via="delete",
        reason="BindingRefused",
        why="w-7 was refused: policy says no",
        trace_id="0" * 32,
        cycle=CYCLE,
    )


def make_removal(victims: int, *, delivered: int = 1) -> Removal:
    """A machine for delivery number `delivered` of such a decision, at sequence 17."""
    sender = Sender(binder="binder-0", decision_seq=17, delivered=delivered)
    return Removal(make_release(victims), sender, LIMITS)


def on_its_node(index: int) -> PodView:
    """What a read shows of a member that is bound as decided."""
    return PodView(f"u-{index}", f"n-{index}")
