"""How many bytes a gang's members take in a decision: one message must hold a quorum."""

from typing import Final

from services.gang_planner.core.queueing.need import unplaced_quorum
from services.gang_planner.core.state.claim_choices import choice_bytes
from services.gang_planner.core.state.gangs import Gang, Member
from services.gang_planner.core.state.needs import Need
from services.gang_planner.core.state.planner_state import State
from shared.contracts.subjects import MESSAGE_BYTES_MAX

#: What a decision may take of a message: the rest is for its other fields and for the encoding.
DECISION_BYTES_MAX: Final = MESSAGE_BYTES_MAX - 32 * 1024
#: Field names, lengths and markers of one binding in msgpack.
_BINDING_OVERHEAD_BYTES: Final = 48
#: Names in Kubernetes have at most this many bytes.
_NAME_BYTES_MAX: Final = 253
#: Fewer members without claims fit into a message whatever they are called.
_ALWAYS_FIT: Final = DECISION_BYTES_MAX // (_BINDING_OVERHEAD_BYTES + 3 * _NAME_BYTES_MAX)


def binding_bytes(state: State, member: Member) -> int:
    """Upper bound of what one member takes in a decision."""
    pod, node_bytes = member.pod, state.nodes.name_bytes_max
    named = len(pod.uid) + len(pod.namespace) + len(pod.name) + node_bytes
    claims = choice_bytes(state.node_capacity, member, node_bytes) if member.shape.attached else 0
    return _BINDING_OVERHEAD_BYTES + named + claims


def is_too_large(state: State, gang: Gang, need: Need) -> bool:
    """Whether one decision cannot hold the gang's quorum."""
    needed = unplaced_quorum(gang)
    if needed < _ALWAYS_FIT and not need.attached:
        return False
    sizes = sorted(
        binding_bytes(state, member)
        for members in gang.waiting.values()
        for member in members.values()
    )
    return sum(sizes[:needed]) > DECISION_BYTES_MAX
