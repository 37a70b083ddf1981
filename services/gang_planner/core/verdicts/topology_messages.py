"""Messages for waiting gangs with a topology: the tier without a suitable domain, and how many
members its best domain would hold.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, assert_never

import numpy as np

from services.gang_planner.core.placement.attempt import Attempt, Part
from services.gang_planner.core.placement.domains import counts_by_domain
from services.gang_planner.core.placement.session import Session
from services.gang_planner.core.state.needs import Need, Structure, Wanted
from services.gang_planner.core.state.topology.levels import Level, MissingLevels, TopologyProblem
from shared.model.objects import NetworkTopology

#: Domains, and sub-gangs, that a message names.
_DOMAINS_MAX: Final = 2
_NAMED_MAX: Final = 3


def in_words(session: Session, need: Need, attempt: Attempt) -> str:
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
        levels = table.levels(topology)
        if levels.problem is not None:
            said.append(_missing_in_words(levels.problem))
        elif not levels.open:
            said.append(_Whole.of_gang(need).in_words(session, levels.levels[-1]))
        if not topology.label_key and (said or structure.sub_gangs):
            said.extend(table.problems[:1])
    domains = list(_domains_in_words(session, structure)) if structure.sets else []
    said += [words for words, is_certain in domains if is_certain][:_DOMAINS_MAX]
    said += _parts_in_words(attempt.sub_gangs, in_sets=bool(structure.sets))
    # Domains may be large enough for the members of each shape, and too small for all shapes.
    return "; ".join(said or [words for words, _ in domains[:1]])


def _parts_in_words(parts: Sequence[Part], *, in_sets: bool) -> list[str]:
    """Messages how many sub-gangs fit, if not all do."""
    if in_sets:
        unfit = [part.name for part in parts if not part.whole]
        if not unfit:
            return []
        return [f"{len(parts) - len(unfit)} of {len(parts)} groups fit, not {_listed(unfit)}"]
    there = Counter(part.policy for part in parts)
    whole = Counter(part.policy for part in parts if part.whole)
    return [
        f"{whole[policy]} of {count} sub-gangs {policy} fit"
        for policy, count in sorted(there.items())
        if whole[policy] < count
    ]


def _listed(names: list[str]) -> str:
    more = [f"{len(names) - _NAMED_MAX} more"] if len(names) > _NAMED_MAX else []
    return ", ".join([*names[:_NAMED_MAX], *more])


class _Whole(NamedTuple):
    """Members that have to be in one domain."""

    wanted: Sequence[Wanted]
    quorum: int
    near: tuple[str, ...]
    #: The sub-gang or set that they are; "": the gang.
    name: str = ""

    @classmethod
    def of_gang(cls, need: Need) -> "_Whole":
        near = need.structure.near if need.structure is not None else ()
        return cls(need.wanted, need.quorum, near)

    def best(self, session: Session, level: Level) -> tuple[str, int]:
        """The domain that would hold the most members, and their number."""
        by_shape = Counter[int]()
        for _, shape_id, wanted in self.wanted:
            by_shape[shape_id] += wanted
        fits = np.zeros(len(level.names), dtype=np.int64)
        for shape_id, wanted in by_shape.items():
            counts = session.fits.counts(session.shapes.entries[shape_id])
            fits += np.minimum(counts_by_domain(level, counts, None), wanted)
        best = int(np.argmax(fits))
        return level.names[best], int(fits[best])

    def in_words(self, session: Session, level: Level) -> str:
        """A message about that domain, of the widest level allowed."""
        name, fit = self.best(session, level)
        wanted = max(self.quorum, 1)
        members = "1 member" if wanted == 1 else f"{wanted} members"
        if self.name:
            members += f" of {self.name}"
        if self.near:
            return (
                f"{self.name or 'it'} has members in a domain of {level.title} already, and the "
                "other members must be placed there too"
            )
        if fit >= wanted:
            return f"no domain of {level.title} holds {members} of all its shapes together"
        return f"no domain of {level.title} holds {members}: the best one, {name}, holds {fit}"


def _domains_in_words(session: Session, structure: Structure) -> Iterator[tuple[str, bool]]:
    """Messages about incomplete sub-gangs and sets that require a domain, the innermost first, each
    with whether no domain holds it.
    """
    inside: dict[str, list[Wanted]] = {}
    for part in structure.sub_gangs:
        inside.setdefault(part.set_name, []).extend(part.wanted)
        if part.topology is not None and part.quorum:
            whole = _Whole(part.wanted, part.quorum, part.near, part.policy)
            yield from _domain_in_words(session, whole, part.topology)
    for group_set in reversed(structure.sets):
        wanted = inside.get(group_set.name, [])
        inside.setdefault(group_set.set_name, []).extend(wanted)
        if group_set.topology is not None and group_set.missing:
            whole = _Whole(wanted, group_set.quorum, group_set.near, group_set.name)
            yield from _domain_in_words(session, whole, group_set.topology)


def _domain_in_words(
    session: Session, whole: _Whole, topology: NetworkTopology
) -> Iterator[tuple[str, bool]]:
    levels = session.node_capacity.topology.levels(topology)
    if levels.problem is not None:
        yield _missing_in_words(levels.problem), True
    elif not levels.open:
        level = levels.levels[-1]
        yield whole.in_words(session, level), whole.best(session, level)[1] < whole.quorum


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
