"""Messages for waiting gangs with a topology: the tier without a suitable domain, and how many
members its best domain would hold.
"""

from collections import Counter
from typing import assert_never

import numpy as np

from services.gang_planner.core.placement.domains import counts_by_domain
from services.gang_planner.core.placement.gang_placement import GangPlacement
from services.gang_planner.core.placement.session import Session
from services.gang_planner.core.state.needs import Need
from services.gang_planner.core.state.topology.levels import Level, MissingLevels, TopologyProblem


def in_words(session: Session, need: Need, attempt: GangPlacement) -> str:
    """A message why the gang's topology prevents its placement; "" if it has no topology, or if
    that is not the reason.

    `attempt`: a placement that was run partly and discarded.
    """
    structure = need.structure
    if structure is None:
        return ""
    said: list[str] = []
    topology = structure.topology
    if topology is not None:
        table = session.node_capacity.topology
        found = table.levels(topology)
        if found.problem is not None:
            said.append(_missing_in_words(found.problem))
        elif not found.open:
            said.append(_best(session, need, found.levels[-1]))
        if not topology.label_key and (said or structure.sub_gangs):
            said.extend(table.problems[:1])
    parts = attempt.sub_gangs
    there = Counter(part.policy for part in parts)
    whole = Counter(part.policy for part in parts if part.whole)
    said += [
        f"{whole[policy]} of {count} sub-gangs {policy} fit"
        for policy, count in sorted(there.items())
        if whole[policy] < count
    ]
    return "; ".join(said)


def _missing_in_words(problem: TopologyProblem) -> str:
    match problem.missing:
        case MissingLevels.HYPER_NODES:
            return "the cluster has no HyperNodes"
        case MissingLevels.TIER_NAME:
            return f"no HyperNode has the tier {problem.what}"
        case MissingLevels.TIER:
            return f"no HyperNode has tier {problem.what} or a lower one"
        case MissingLevels.LABEL:
            return f"no node has the label {problem.what}"
        case _:
            assert_never(problem.missing)


def _best(session: Session, need: Need, level: Level) -> str:
    """A message about the domain of the widest allowed tier that would hold the most members."""
    shapes = session.shapes.entries
    fits = np.zeros(len(level.names), dtype=np.int64)
    for _, shape_id, wanted in need.wanted:
        counts = session.fits.counts(shapes[shape_id])
        fits += np.minimum(counts_by_domain(level, counts, None), wanted)
    best = int(np.argmax(fits))
    wanted = max(need.quorum, 1)
    members = "1 member" if wanted == 1 else f"{wanted} members"
    if need.structure is not None and need.structure.near:
        return (
            f"it has members in a domain of {level.title} already, and the other members must be "
            "placed there too"
        )
    if int(fits[best]) >= wanted:
        return f"no domain of {level.title} holds {members} of all its shapes together"
    return (
        f"no domain of {level.title} holds {members}: "
        f"the best one, {level.names[best]}, holds {int(fits[best])}"
    )
