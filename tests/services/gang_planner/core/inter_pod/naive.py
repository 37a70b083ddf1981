"""kube-scheduler's rules between pods read literally, pod by pod: what arrays are compared with."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from services.gang_planner.core.constraints.inter_pod.rules import (
    AFFINITY,
    ANTI_AFFINITY,
    EXISTING_ANTI_AFFINITY,
    SPREAD,
    SPREAD_LABEL,
)
from shared.model.objects import Node, Shape
from shared.model.terms import PodAffinity, PodTerm, Requirement, Selector, SpreadConstraint


@dataclass
class NaivePod:
    """A pod as the rules see it."""

    shape: Shape
    namespace: str
    labels: Mapping[str, str]
    node: str = ""
    deleting: bool = False


@dataclass
class NaiveCluster:
    """Nodes, pods on them and namespaces."""

    nodes: dict[str, Node] = field(default_factory=dict)
    pods: dict[str, NaivePod] = field(default_factory=dict)
    namespaces: dict[str, Mapping[str, str]] = field(default_factory=dict)

    def refusal(self, pod: NaivePod, node: Node) -> str:
        """The first rule that keeps the pod off the node; "": none."""
        return self._spread(pod, node) or self._affinity(pod, node)

    # ------------------------------------------------------------- inter-pod affinity

    def _affinity(self, pod: NaivePod, node: Node) -> str:
        terms = pod.shape.pod_affinity or PodAffinity()
        labels = dict(node.labels)
        if not self._near(pod, terms.affinity, labels):
            return AFFINITY
        for term in terms.anti_affinity:
            if term.topology_key in labels and any(
                self.labels_of(other).get(term.topology_key) == labels[term.topology_key]
                and self.means(term, other)
                for other in self.placed()
            ):
                return ANTI_AFFINITY
        for other in self.placed():
            theirs = other.shape.pod_affinity or PodAffinity()
            for term in theirs.anti_affinity:
                key = term.topology_key
                if (
                    self.means(term, pod)
                    and key in labels
                    and self.labels_of(other).get(key) == labels[key]
                ):
                    return EXISTING_ANTI_AFFINITY
        return ""

    def _near(self, pod: NaivePod, terms: Iterable[PodTerm], labels: Mapping[str, str]) -> bool:
        listed = list(terms)
        if any(one.topology_key not in labels for one in listed):
            return False
        meant = [
            other for other in self.placed() if listed and all(self.means(t, other) for t in listed)
        ]
        counted = [
            other
            for other in meant
            if any(one.topology_key in self.labels_of(other) for one in listed)
        ]
        if all(
            any(
                self.labels_of(other).get(one.topology_key) == labels[one.topology_key]
                for other in meant
            )
            for one in listed
        ):
            return True
        return not counted and all(self.means(one, pod) for one in listed)

    # ------------------------------------------------------------------------- spread

    def _spread(self, pod: NaivePod, node: Node) -> str:
        hard = [one for one in pod.shape.spread if one.when_unsatisfiable == "DoNotSchedule"]
        labels = dict(node.labels)
        for one in hard:
            if one.topology_key not in labels:
                return SPREAD_LABEL
            counts = self.counts(pod, one, hard)
            least = min(counts.values(), default=2**31 - 1)
            if len(counts) < one.min_domains:
                least = 0
            own = one.selector is not None and selects(one.selector, pod.labels)
            here = counts.get(labels[one.topology_key], 0)
            if here + own - least > one.max_skew:
                return SPREAD
        return ""

    def counts(
        self, pod: NaivePod, one: SpreadConstraint, hard: list[SpreadConstraint]
    ) -> dict[str, int]:
        counts: dict[str, int] = {}
        for node in self.nodes.values():
            labels = dict(node.labels)
            if any(other.topology_key not in labels for other in hard):
                continue
            selected = all(labels.get(key) == value for key, value in pod.shape.node_selector)
            if one.node_affinity_policy == "Honor" and not selected:
                continue
            tainted = any(taint.effect == "NoSchedule" for taint in node.taints)
            if one.node_taints_policy == "Honor" and tainted:
                continue
            value = labels[one.topology_key]
            counts.setdefault(value, 0)
            if one.selector is None or not one.selector.requirements:
                continue
            counts[value] += sum(
                1
                for other in self.placed()
                if other.node == node.name
                and other.namespace == pod.namespace
                and not other.deleting
                and selects(one.selector, other.labels)
            )
        return counts

    # ------------------------------------------------------------------------- pieces

    def placed(self) -> list[NaivePod]:
        """Pods on nodes that exist."""
        return [one for one in self.pods.values() if one.node in self.nodes]

    def labels_of(self, pod: NaivePod) -> Mapping[str, str]:
        """Labels of the node that a pod is on."""
        return dict(self.nodes[pod.node].labels)

    def means(self, term: PodTerm, pod: NaivePod) -> bool:
        """Whether a term is about a pod."""
        if term.selector is None:
            return False
        inside = pod.namespace in term.namespaces
        if not inside and term.namespace_selector is not None:
            inside = selects(term.namespace_selector, self.namespaces.get(pod.namespace, {}))
        return inside and selects(term.selector, pod.labels)


def selects(selector: Selector, labels: Mapping[str, str]) -> bool:
    """A label selector, literally."""
    return all(_one(requirement, labels) for requirement in selector.requirements)


def _one(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    key = requirement.key
    if requirement.operator == "In":
        return key in labels and labels[key] in requirement.values
    if requirement.operator == "NotIn":
        return key not in labels or labels[key] not in requirement.values
    return (key in labels) == (requirement.operator == "Exists")
