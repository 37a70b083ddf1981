"""The nodes of each HyperNode, and the HyperNodes that the labels of nodes describe. Pure.

The configuration is Volcano's: section networkTopologyDiscovery, source `label`. A topology's
levels go from the highest domain down to the node. The last level is the node itself; the levels
above become tiers, counted from the bottom. A domain is (topology, level's label, value), so two
topologies never share one.

A topology with inconsistent labels (a node lacks a level, or a domain has two parents) is not
written at all: with a part of its tree, gangs would be placed across domains.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from shared.dialects.selectors import read_selector
from shared.kinds.hypernode import (
    TOPOLOGY_SOURCE,
    ExactMatch,
    HyperNode,
    HyperNodeMember,
    HyperNodeSpec,
    MemberSelector,
)
from shared.kinds.metadata import Metadata
from shared.kinds.patterns import Pattern, PatternError
from shared.kube.objects import LabelSelector
from shared.model.terms import Selector, selects

Labels = Mapping[str, str]
#: The only source that is implemented; ufm and roce query the managers of switches.
SOURCE: Final = "label"
#: On discovered HyperNodes: the topology's name.
PROFILE: Final = "volcano.sh/network-topology-profile"
_NAME_MAX: Final = 200


def counted(hypernodes: Iterable[HyperNode], nodes: Mapping[str, Labels]) -> dict[str, int]:
    """The number of nodes of each HyperNode; nodes of members count, each once.

    `nodes` has labels by node name. Cycles of members are allowed. An invalid pattern matches no
    node.
    """
    table = {hypernode.metadata.name: hypernode for hypernode in hypernodes}
    own: dict[str, frozenset[str]] = {}
    below: dict[str, frozenset[str]] = {}
    for name, hypernode in table.items():
        members = hypernode.spec.members
        of_nodes = [_chosen(each, nodes) for each in members if each.type == "Node"]
        of_groups = [_named(each, table) for each in members if each.type == "HyperNode"]
        own[name] = frozenset().union(*of_nodes)
        below[name] = frozenset().union(*of_groups) - {name}
    return {name: len(_reached(name, own, below)) for name in table}


def _reached(
    name: str, own: Mapping[str, frozenset[str]], below: Mapping[str, frozenset[str]]
) -> set[str]:
    reached: set[str] = set()
    seen = {name}
    waiting = [name]
    while waiting:
        here = waiting.pop()
        reached |= own[here]
        fresh = below[here] - seen
        seen |= fresh
        waiting.extend(fresh)
    return reached


def _chosen(member: HyperNodeMember, nodes: Mapping[str, Labels]) -> frozenset[str]:
    selector = member.selector
    if selector is not None and selector.label_match is not None:
        wanted = read_selector(selector.label_match)
        return frozenset(name for name, labels in nodes.items() if selects(wanted, labels))
    return _named(member, nodes)


def _named(member: HyperNodeMember, names: Mapping[str, object]) -> frozenset[str]:
    selector = member.selector
    if selector is None:
        return frozenset()
    if selector.exact_match is not None:
        return frozenset({selector.exact_match.name} & names.keys())
    if selector.regex_match is not None:
        try:
            return Pattern(selector.regex_match.pattern).among(names)
        except PatternError:
            return frozenset()
    return frozenset()


class Level(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A level of a topology; the tier is named after the label unless it has a name."""

    node_label: str
    tier_name: str = ""


class Topology(msgspec.Struct, frozen=True, kw_only=True):
    """Levels from the highest down; nodes are those selected, or all that have the lowest label."""

    name: str
    levels: tuple[Level, ...]
    selector: Selector | None = None


class _Expression(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: tuple[str, ...] = ()


class _Selector(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    match_labels: dict[str, str] = {}
    match_expressions: tuple[_Expression, ...] = ()


class _Profile(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    levels: tuple[Level, ...]
    node_selector: _Selector | None = None


class _LabelConfig(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    network_topology_types: dict[str, tuple[Level, ...] | _Profile] = {}


class _Discovery(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    enabled: bool = False
    config: dict[str, Any] = {}


class _Configuration(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    network_topology_discovery: tuple[_Discovery, ...] = ()


class Discovered(msgspec.Struct, frozen=True, kw_only=True):
    """The described HyperNodes. Topologies in `torn` are inconsistent; their HyperNodes stay as
    they are.
    """

    hypernodes: dict[str, HyperNode]
    torn: frozenset[str] = frozenset()
    problems: tuple[str, ...] = ()


class ConfigurationError(ValueError):
    """The configuration is invalid; the message names the field and the rule."""


def topologies(document: object) -> tuple[Topology, ...] | None:
    """The topologies in the YAML document of `volcano-controller.conf`, ordered by name; None:
    discovery by labels is off.

    Raises:
        ConfigurationError: The document is invalid.
    """
    try:
        return _topologies(msgspec.convert(document or {}, _Configuration))
    except msgspec.ValidationError as error:
        raise ConfigurationError(str(error)) from None
    except UnicodeEncodeError as error:
        raise ConfigurationError(
            f"{error.object!r} holds half of a surrogate pair, which no text in UTF-8 may hold"
        ) from None


def _topologies(configuration: _Configuration) -> tuple[Topology, ...] | None:
    for discovery in configuration.network_topology_discovery:
        if discovery.source == SOURCE and discovery.enabled:
            types = msgspec.convert(discovery.config, _LabelConfig).network_topology_types
            # These names are written to the API server, which accepts only UTF-8.
            msgspec.json.encode(types)
            return tuple(_topology(name, types[name]) for name in sorted(types))
    return None


def _topology(name: str, given: tuple[Level, ...] | _Profile) -> Topology:
    if isinstance(given, _Profile):
        chosen = msgspec.convert(msgspec.to_builtins(given.node_selector), LabelSelector | None)
        topology = Topology(
            name=name,
            levels=given.levels,
            selector=None if chosen is None else read_selector(chosen),
        )
    else:
        topology = Topology(name=name, levels=given)
    if len(topology.levels) < 2:
        raise ConfigurationError(
            f"networkTopologyTypes.{name}: a level above that of the node is needed"
        )
    return topology


def discover(given: Sequence[Topology], nodes: Mapping[str, Labels]) -> Discovered:
    """The HyperNodes of the given topologies that labels describe, which are by node name."""
    explicit = [topology for topology in given if topology.selector is not None]
    problems: list[str] = []
    torn: set[str] = set()
    members: dict[str, dict[str, Labels]] = {topology.name: {} for topology in given}
    for node in sorted(nodes):
        labels = nodes[node]
        chosen = [
            topology
            for topology in explicit
            if topology.selector and selects(topology.selector, labels)
        ]
        if len(chosen) > 1:
            names = ", ".join(topology.name for topology in chosen)
            problems.append(f"node {node} is selected by more than one topology: {names}")
            torn.update(topology.name for topology in chosen)
        if not chosen:
            chosen = [
                topology
                for topology in given
                if topology.selector is None and topology.levels[-2].node_label in labels
            ]
        for topology in chosen:
            members[topology.name][node] = labels
    described: dict[str, HyperNode] = {}
    for topology in given:
        if topology.name in torn:
            continue
        try:
            described.update(_tree(topology, members[topology.name]))
        except _Torn as error:
            problems.append(str(error))
            torn.add(topology.name)
    return Discovered(hypernodes=described, torn=frozenset(torn), problems=tuple(problems))


class _Torn(Exception):
    """A topology whose labels form no tree."""


def _tree(topology: Topology, nodes: Mapping[str, Labels]) -> dict[str, HyperNode]:
    #: By tier from the bottom: domain value -> names of its members.
    domains: list[dict[str, dict[str, None]]] = [{} for _ in topology.levels[:-1]]
    parents: dict[tuple[int, str], str] = {}
    for node, labels in nodes.items():
        path: list[str] = []
        for level in topology.levels[:-1]:
            value = labels.get(level.node_label)
            if not value:
                raise _Torn(f"topology {topology.name}: node {node} lacks {level.node_label}")
            path.append(value)
        inner = node
        for tier, value in enumerate(reversed(path)):
            if tier > 0:
                below = path[len(path) - tier]
                if parents.setdefault((tier, below), value) != value:
                    raise _Torn(
                        f"topology {topology.name}: {below} is part of two others, "
                        f"{parents[tier, below]} and {value}"
                    )
            domains[tier].setdefault(value, {})[inner] = None
            inner = _name(topology, tier + 1, value)
    return {
        _name(topology, tier + 1, value): _hypernode(topology, tier, value, inside)
        for tier, values in enumerate(domains)
        for value, inside in values.items()
    }


def _hypernode(topology: Topology, tier: int, value: str, inside: Mapping[str, None]) -> HyperNode:
    level = topology.levels[-2 - tier]
    kind = "HyperNode" if tier else "Node"
    return HyperNode(
        metadata=Metadata(
            name=_name(topology, tier + 1, value),
            labels={TOPOLOGY_SOURCE: SOURCE, PROFILE: topology.name, level.node_label: value},
        ),
        spec=HyperNodeSpec(
            tier=tier + 1,
            tier_name=level.tier_name or level.node_label,
            members=tuple(
                HyperNodeMember(
                    type=kind, selector=MemberSelector(exact_match=ExactMatch(name=name))
                )
                for name in sorted(inside)
            ),
        ),
    )


def _name(topology: Topology, tier: int, value: str) -> str:
    """The HyperNode's name. It depends only on the domain, so no state is needed to find it."""
    readable = re.sub(r"[^a-z0-9-]+", "-", f"{topology.name}-tier{tier}-{value}".lower()).strip("-")
    exact = hashlib.sha256(f"{topology.name}/{tier}/{value}".encode()).hexdigest()[:8]
    return f"hypernode-{readable[:_NAME_MAX]}-{exact}"
