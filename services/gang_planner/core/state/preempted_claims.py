"""ResourceClaims whose devices a preemptor gets: which of them become free when pods leave."""

from collections import Counter
from collections.abc import Container, Iterable
from collections.abc import Set as AbstractSet

from services.gang_planner.core.state.claim_ledger import Key
from services.gang_planner.core.state.devices.demand import claim_key
from services.gang_planner.core.state.devices.vacated import ClaimConsumers
from services.gang_planner.core.state.member_states import TERMINAL
from services.gang_planner.core.state.tables import Tables
from shared.model.devices import ResourceClaim


def consumers_of(tables: Tables, kept: Container[Key]) -> ClaimConsumers:
    """The pods that allocated claims are reserved for; `kept`: claims that keep their devices."""

    def is_there(uid: str) -> bool:
        member = tables.members.get(uid)
        if member is None or member.pod.phase in TERMINAL:
            return False
        return member.slot is not None or not member.pod.deleting

    return ClaimConsumers(tables.reference_objects.resource_claims.values(), is_there, kept)


def vacated_for(
    tables: Tables, pods: AbstractSet[str], victims: Container[str]
) -> list[ResourceClaim]:
    """Claims that lose their devices once all pods that are leaving are gone, as in the search
    for victims. Those that the preemptor's pods name keep them.

    `pods`: UIDs of the preemptor's pods. `victims`: UIDs of pods whose evictions are in flight.
    """
    own = [tables.members.get(uid) for uid in pods]
    kept = {key for member in own if member is not None for key in member.shape.device_keys}
    consumers = consumers_of(tables, kept)
    away: set[str] = set()
    leaving: Counter[Key] = Counter()
    for uid in consumers.uids():
        member = tables.members.get(uid)
        if member is None or member.slot is None:
            continue
        if member.pod.deleting or uid in victims:
            away.add(uid)
            leaving.update(member.shape.device_keys)
    consumers.away = away
    freed = consumers.freed()
    uses = tables.node_capacity.devices.grants.uses
    keys = {claim.uid: claim_key(claim) for claim in freed}
    users = {uid: sum(uses.get(key, {}).values()) for uid, key in keys.items()}
    return [claim for claim in freed if users[claim.uid] <= leaving[keys[claim.uid]]]


def are_reserved_for(claims: Iterable[ResourceClaim], pods: AbstractSet[str]) -> bool:
    """Whether a claim with devices is reserved for any of these pods."""
    return any(claim.is_allocated and not pods.isdisjoint(claim.reserved_for) for claim in claims)
