"""Whether new nodes would help a gang for which the nodes have too little free capacity.

Autoscalers act on the members' condition. They count free capacity that Tutti does not use for the
gang (outside a topology domain, or reserved for another gang), and they take a gang's pods for
independent ones. So they could add nodes that do not help, or none.

Questions are answered on copies of the node capacity: no attempt of the planner depends on whether
a verdict was written.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from services.gang_planner.core.placement import gang_placement
from services.gang_planner.core.placement.attempt import Attempt, Group, PlacementRequest
from services.gang_planner.core.placement.domains import counts_by_domain, domain_around
from services.gang_planner.core.placement.gang_placement import Refusal
from services.gang_planner.core.placement.session import Session
from services.gang_planner.core.queueing import min_resources
from services.gang_planner.core.state.columns import Bools
from services.gang_planner.core.state.gangs import Bucket, Gang
from services.gang_planner.core.state.needs import Need, Outlook, ProvisioningStage, Structure
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from services.gang_planner.core.state.queues import QueueEntry
from shared.contracts.pod_reasons import NewNodes
from shared.contracts.verdicts import Verdict, Why
from shared.model.bounded_text import joined
from shared.model.objects import NetworkTopology, Resources, SelectorTerm, Shape

_HOSTNAME: Final = "kubernetes.io/hostname"
#: A label and a field that differ on each node.
_NAMES: Final = frozenset({_HOSTNAME, "metadata.name"})
_WORDS: Final = {
    NewNodes.DOMAIN_FULL: "new nodes would not help: capacity outside its domain is free",
    NewNodes.NO_DOMAIN: "new nodes would not help: they would be in no HyperNode",
    NewNodes.NAMED_NODES: "new nodes would not help: members or their volumes name their nodes",
    NewNodes.CLAIMS: "new nodes would not help: claims of its pods cannot be used on any node",
    NewNodes.MIN_RESOURCES_OUT_OF_REACH: "no nodes are requested: an autoscaler counts only pods "
    "that exist, and new nodes for these would not hold the rest of its minResources",
    NewNodes.PROVISIONED: "its ProvisioningRequest is provisioned, so no more nodes are requested",
    NewNodes.RESERVED: "it would fit without the reservations for other gangs",
}


def in_words(outlook: Outlook) -> str:
    """A message for the verdict; "" if new nodes would help, or if the gang waits only for a
    moment.
    """
    if outlook.new_nodes is NewNodes.OTHER_KIND:
        roles = sorted({role for role, _ in outlook.too_large})
        named = f" of role {joined(roles, ', ')}" if all(roles) else ""
        return f"no node that its pods{named} may use would hold one of them, even when empty"
    return _WORDS.get(outlook.new_nodes, "")


def of_gang(gang: Gang, bucket: Bucket, outlook: Outlook) -> Outlook:
    """The outlook of a gang of a bucket: while it is not known whether an eviction would make room
    for it, no node is bought, and none beside those of a ProvisioningRequest, or if nodes were
    added for it before that did not hold the rest of its `minResources`.
    """
    if bucket.need.provisioning is ProvisioningStage.PROVISIONED:
        return Outlook(NewNodes.PROVISIONED)
    if outlook.new_nodes not in {NewNodes.HELP, NewNodes.OTHER_KIND}:
        return outlook
    if bucket.searches_due:
        return Outlook(NewNodes.MAY_PREEMPT)
    if bucket.need.reserved and is_out_of_reach(gang):
        return Outlook(NewNodes.MIN_RESOURCES_OUT_OF_REACH)
    return outlook


def is_out_of_reach(gang: Gang) -> bool:
    """Whether nodes that were added for the gang's pods did not hold its present `minResources`."""
    return gang.out_of_reach is not None and gang.out_of_reach == _declared(gang)


def recall_reach(gang: Gang, last: Verdict | None) -> None:
    """Read `out_of_reach` from a verdict that an earlier planner published."""
    if last is not None and last.out_of_reach and gang.out_of_reach is None:
        gang.out_of_reach = _declared(gang)


def note_reach(gang: Gang, why: Why | None, marked: int, nodes: int) -> None:
    """Note whether nodes that were added for a gang's pods did not hold its `minResources`.

    Args:
        gang: The gang.
        why: Why it waits now; None: it does not.
        marked: How many of its members are Unschedulable now.
        nodes: How many nodes exist.
    """
    if gang.have():
        gang.out_of_reach = gang.nodes_when_marked = None
    elif marked:
        if gang.nodes_when_marked is None:
            gang.nodes_when_marked = nodes
    elif why is not None and why.pod_reason == NewNodes.MIN_RESOURCES.value:
        # If no node has joined, capacity was freed for its pods: it may be marked again.
        if gang.nodes_when_marked is not None and nodes > gang.nodes_when_marked:
            gang.out_of_reach = _declared(gang)
        gang.nodes_when_marked = None


def _declared(gang: Gang) -> Resources | None:
    return gang.group.min_resources if gang.group is not None else None


class Forecast:
    """Answers for one state of the nodes, which must not change in its lifetime."""

    def __init__(self, state: State, session: Session) -> None:
        self._state = state
        self._session = session
        self._empty: Session | None = None
        self._unreserved: Session | None = None

    def outlook(
        self, need: Need, queue: QueueEntry, attempt: Attempt, *, fragments: bool
    ) -> Outlook:
        """Whether new nodes would help the gangs with a need.

        Args:
            need: A refused need, without reserved units.
            queue: Its queue.
            attempt: A placement of as many of its members as fit, discarded.
            fragments: Whether further members of its sub-gangs would have fitted beside these.
        """
        base = self._session.allowed_nodes(queue, need.structure)
        wanted = need.quorum or need.members
        if attempt.placed >= wanted and need.structure is None:
            return Outlook(NewNodes.FITS)
        short = [group for group in attempt.groups if group.fit < group.wanted]
        for word, refuses in (
            (NewNodes.CLAIMS, self._has_unusable_claim),
            (NewNodes.NAMED_NODES, self._is_of_named_nodes),
        ):
            refused = {
                (group.role, each.id) for group in short for each in group.shapes if refuses(each)
            }
            if refused and not _spares(need, refused):
                return Outlook(word)
        too_large = self._too_large(attempt.groups, base)
        if too_large and not _spares(need, too_large):
            return Outlook(NewNodes.OTHER_KIND, _largest(too_large))
        if self._fits_unreserved(need, queue):
            return Outlook(NewNodes.RESERVED)
        if need.structure is None:
            return Outlook()
        return self._in_domains(need, need.structure, attempt, base, fragments=fragments)

    def reaches_min_resources(
        self, need: Need, queue: QueueEntry, groups: Sequence[Group], missing: int
    ) -> bool:
        """Whether new nodes for the pods that do not fit would also hold the rest of the gang's
        `minResources`, by the sums of free amounts.

        A new node is one like a node of the cluster. If no node would hold one of these pods even
        when empty, it is not known: True.

        Args:
            need: A refused need with reserved units.
            queue: Its queue.
            groups: The pods, placed as far as they fit, and discarded.
            missing: How many pods of the quorum do not fit.
        """
        nodes = self._state.nodes
        base = self._session.allowed_nodes(queue, need.structure)
        kinds = np.ones(nodes.size, dtype=np.bool_) if base is None else base[: nodes.size].copy()
        added = np.zeros(nodes.size, dtype=np.int64)
        for group in groups:
            left = min(group.left, missing)
            missing -= left
            if left:
                counts = self._on_empty_nodes().fits.counts(group.shape)
                kinds &= counts > 0
                added += -(-left // np.maximum(counts, 1))
        if not kinds.any():
            return True
        nodes.allocatable.ensure(*self._session.node_capacity.free.cells.shape)
        for requirement in min_resources.requirements(self._session, need):
            row = self._state.resources.row(requirement.resource)
            kinds &= (
                requirement.free + added * nodes.allocatable.cells[row, : nodes.size]
                >= requirement.needed
            )
        return bool(kinds.any())

    def _has_unusable_claim(self, entry: ShapeEntry) -> bool:
        """Whether no node serves the shape's claims, whatever it has."""
        nodes = self._session.node_capacity
        volumes = nodes.storage.demand(entry) if entry.shape.claims else None
        if volumes is not None and (volumes.refusal or volumes.astray):
            return True
        return bool(entry.shape.device_claims and nodes.devices.demand(entry).refusal)

    def _is_of_named_nodes(self, entry: ShapeEntry) -> bool:
        """Whether only named nodes may hold the shape."""
        return _names_nodes(entry.shape) or any(map(_are_named, self._volume_terms(entry.shape)))

    def _volume_terms(self, shape: Shape) -> Iterator[tuple[SelectorTerm, ...]]:
        """The node affinities of the volumes to which the claims of a shape are bound."""
        known = self._state.reference_objects
        for name in shape.claims:
            claim = known.claims.by_name.get((shape.namespace, name))
            volume = known.volumes.by_name.get(("", claim.volume_name)) if claim else None
            if volume is not None and volume.node_affinity is not None:
                yield volume.node_affinity

    def _too_large(
        self, groups: Sequence[Group], base: Bools | None
    ) -> dict[tuple[str, int], ShapeEntry]:
        """The roles and shapes of which no node would hold a member, even when empty."""
        too_large: dict[tuple[str, int], ShapeEntry] = {}
        for group in groups:
            if group.fit:
                continue
            counts = self._on_empty_nodes().fits.counts(group.shape)
            if not bool((counts if base is None else counts * base).any()):
                too_large |= {(group.role, shape.id): shape for shape in group.shapes}
        return too_large

    def exceeds_nodes(self, need: Need, queue: QueueEntry) -> bool:
        """Whether all nodes would not hold a need, even if they were empty and in service: then it
        does not wait for what other gangs hold.
        """
        queue = queue.scratch({}, keep_used=False)
        session = self._on_empty_nodes()
        request = PlacementRequest(queue=queue, need=need, members_max=need.quorum or 1)
        placement = gang_placement.place(session, request)
        if isinstance(placement, Refusal):
            return not placement.budget_exceeded
        placement.statement.discard()
        return False

    def _on_empty_nodes(self) -> Session:
        if self._empty is None:
            self._empty = self._session.on_empty_nodes()
        return self._empty

    def _fits_unreserved(self, need: Need, queue: QueueEntry) -> bool:
        """Whether it would fit without reservations for lost pods, for `minResources`, and for
        gangs that evict pods.
        """
        rows = self._state.reservations
        kept = [*rows.replacements.values(), *rows.promised.values()]
        if not kept:
            return False
        if self._unreserved is None:
            unreserved = self._state.node_capacity.copy()
            for row in kept:
                unreserved.give(row.slot, row.shape)
            session = self._session
            self._unreserved = Session(
                unreserved, session.shapes, session.fits.masks, session.policies
            )
        request = PlacementRequest(queue=queue, need=need, members_max=need.quorum or 1)
        return gang_placement.fits(self._unreserved, request)

    def _in_domains(
        self,
        need: Need,
        structure: Structure,
        attempt: Attempt,
        base: Bools | None,
        *,
        fragments: bool,
    ) -> Outlook:
        """The outlook of a gang whose members may have to be close together.

        An autoscaler adds nodes for the members that fit nowhere. They help only if all members
        that fit somewhere fit in the domain that the new nodes join.
        """
        table = self._session.node_capacity.topology
        confining = [
            topology for topology in _topologies(structure) if not table.levels(topology).open
        ]
        fits = attempt.placed >= (need.quorum or need.members)
        if not confining:
            return Outlook(NewNodes.FITS) if fits else Outlook()
        if not all(table.grows(topology) for topology in confining):
            return Outlook(NewNodes.NO_DOMAIN)
        if fits or fragments or self._fits_outside(structure, attempt.groups, base):
            return Outlook(NewNodes.DOMAIN_FULL)
        return Outlook()

    def _fits_outside(
        self, structure: Structure, groups: Sequence[Group], base: Bools | None
    ) -> bool:
        """Whether more members fit on all nodes than in one domain of the gang's topology."""
        if structure.topology is None:
            return False
        levels = self._session.node_capacity.topology.levels(structure.topology)
        if levels.open or not levels.levels:
            return not levels.open
        around = domain_around(levels, self._session.node_capacity.nodes.slots_of(structure.near))
        widest = levels.levels[-1]
        anywhere = 0
        inside = np.zeros(len(widest.names), dtype=np.int64)
        for group in groups:
            counts = self._session.fits.counts(group.shape)
            usable = counts if base is None else counts * base
            anywhere += min(int(usable.sum()), group.wanted)
            inside += np.minimum(counts_by_domain(widest, usable, around), group.wanted)
        return anywhere > int(inside.max(initial=0))


def _names_nodes(shape: Shape) -> bool:
    """Whether a pod selects nodes by their names."""
    by_label = any(key == _HOSTNAME for key, _ in shape.node_selector)
    return by_label or _are_named(shape.node_affinity or ())


def _are_named(terms: Sequence[SelectorTerm]) -> bool:
    """Whether each of the terms matches only nodes that it names."""
    return bool(terms) and all(
        any(
            rule.key in _NAMES and rule.operator == "In"
            for rule in (*term.expressions, *term.fields)
        )
        for term in terms
    )


def _largest(too_large: Mapping[tuple[str, int], ShapeEntry]) -> frozenset[tuple[str, int]]:
    """Those that are not smaller than another one.

    Nodes for the smaller ones would be of no use if no kind of node holds the largest; and a node
    that is added for the largest may hold them, too.
    """
    shapes = too_large.values()
    return frozenset(
        key
        for key, shape in too_large.items()
        if not any(_is_smaller(shape, other) for other in shapes)
    )


def _is_smaller(shape: ShapeEntry, other: ShapeEntry) -> bool:
    """Whether it requests less of some resource than another one, and more of none."""
    if shape.attached or shape.by_row == other.by_row:
        return False
    return all(amount <= other.by_row.get(row, 0) for row, amount in shape.by_row.items())


def _spares(need: Need, too_large: Collection[tuple[str, int]]) -> bool:
    """Whether the gang needs none of these members for its minima."""
    if need.structure is not None and need.structure.sub_gangs:
        return False
    left: Counter[str] = Counter()
    for role, shape_id, count in need.wanted:
        if (role, shape_id) not in too_large:
            left[role] += count
    enough = left.total() >= max(need.quorum, 1)
    return enough and all(left[role] >= least for role, least in need.minima)


def _topologies(structure: Structure) -> list[NetworkTopology]:
    topologies = [structure.topology]
    topologies += [part.topology for part in structure.sub_gangs]
    topologies += [part.topology for part in structure.sets]
    return [topology for topology in topologies if topology is not None]
