"""The nodes of a HyperNode, including those of its member HyperNodes. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

from shared.kinds.hypernode import HyperNode, HyperNodeMember
from shared.kinds.patterns import Pattern, PatternError
from shared.model.label_selectors import holds
from shared.model.terms import Requirement

Labels = Mapping[str, str]


def counted(hypernodes: Iterable[HyperNode], nodes: Mapping[str, Labels]) -> dict[str, int]:
    """The number of nodes of each HyperNode; nodes of members count, each once.

    Cycles of members are allowed. An invalid pattern matches no node.

    Args:
        hypernodes: All HyperNodes.
        nodes: Labels by node name.
    """
    table = {one.metadata.name: one for one in hypernodes}
    own: dict[str, frozenset[str]] = {}
    below: dict[str, frozenset[str]] = {}
    for name, one in table.items():
        members = one.spec.members
        of_nodes = [_chosen(each, nodes) for each in members if each.type == "Node"]
        of_groups = [_named(each, table) for each in members if each.type == "HyperNode"]
        own[name] = frozenset().union(*of_nodes)
        below[name] = frozenset().union(*of_groups) - {name}
    return {name: len(_reached(name, own, below)) for name in table}


def _reached(
    name: str, own: Mapping[str, frozenset[str]], below: Mapping[str, frozenset[str]]
) -> set[str]:
    found: set[str] = set()
    seen = {name}
    waiting = [name]
    while waiting:
        here = waiting.pop()
        found |= own[here]
        fresh = below[here] - seen
        seen |= fresh
        waiting.extend(fresh)
    return found


def _chosen(member: HyperNodeMember, nodes: Mapping[str, Labels]) -> frozenset[str]:
    selector = member.selector
    if selector is not None and selector.label_match is not None:
        wanted = selector.label_match
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


def selects(selector: Mapping[str, Any], labels: Labels) -> bool:
    """Whether a metav1.LabelSelector selects these labels. An unknown operator selects none."""
    equal: Mapping[str, str] = selector.get("matchLabels") or {}
    if any(labels.get(key) != value for key, value in equal.items()):
        return False
    return all(holds(_requirement(one), labels) for one in selector.get("matchExpressions") or ())


def _requirement(raw: Mapping[str, Any]) -> Requirement:
    return Requirement(
        key=raw.get("key", ""),
        operator=raw.get("operator", ""),
        values=tuple(raw.get("values") or ()),
    )
