"""HyperNode of topology.volcano.sh/v1alpha1: nodes, or other HyperNodes, that are close to each
other.
"""

from datetime import datetime
from typing import Annotated, Final

from shared.kinds.fields import (
    SUBDOMAIN_PATTERN,
    Column,
    Description,
    Selector,
    Tier,
    always,
    rules,
)
from shared.kinds.metadata import KindObject
from shared.kube.objects import Int64, KubeStruct
from shared.kube.resources import HYPERNODES

#: Label of a discovered HyperNode: the source that discovered it.
TOPOLOGY_SOURCE: Final = "volcano.sh/network-topology-source"


class ExactMatch(KubeStruct, frozen=True, kw_only=True):
    """Selects a member by name."""

    name: Annotated[str, rules(min_length=1, pattern=SUBDOMAIN_PATTERN)] = ""


class RegexMatch(KubeStruct, frozen=True, kw_only=True):
    """Selects the members whose names match."""

    pattern: Annotated[str, rules(min_length=1)] = ""


class MemberSelector(KubeStruct, frozen=True, kw_only=True):
    """Selects members, in exactly one of these ways."""

    exact_match: ExactMatch | None = None
    regex_match: RegexMatch | None = None
    label_match: Annotated[Selector | None, rules("Nodes whose labels match.")] = None


class HyperNodeMember(KubeStruct, frozen=True, kw_only=True):
    """The nodes or HyperNodes that are members of a HyperNode."""

    type: Annotated[str, rules(enum=["Node", "HyperNode"], required=True)] = ""
    selector: Annotated[
        MemberSelector | None,
        rules(
            cel=(
                (
                    "has(self.exactMatch) || has(self.regexMatch) || has(self.labelMatch)",
                    "Either ExactMatch or RegexMatch or LabelMatch must be specified",
                ),
                (
                    "(has(self.exactMatch) ? 1 : 0) + (has(self.regexMatch) ? 1 : 0) + "
                    "(has(self.labelMatch) ? 1 : 0) <= 1",
                    "Only one of ExactMatch, RegexMatch, or LabelMatch can be specified",
                ),
            )
        ),
    ] = None


class HyperNodeSpec(KubeStruct, frozen=True, kw_only=True):
    """The tier and the members of a HyperNode."""

    tier: Annotated[
        Tier,
        rules(
            "The tier; nodes in a HyperNode of a lower tier are closer to each other.",
            minimum=0,
            required=True,
        ),
    ] = 0
    tier_name: Annotated[str, rules("A name for the HyperNodes of this tier.")] = ""
    members: Annotated[
        tuple[HyperNodeMember, ...], rules("The members of the HyperNode.", min_items=1)
    ] = ()


class HyperNodeCondition(KubeStruct, frozen=True, kw_only=True):
    """metav1.Condition."""

    type: Annotated[str, rules(required=True)] = ""
    status: Annotated[str, rules(enum=["True", "False", "Unknown"], required=True)] = ""
    observed_generation: Int64 = 0
    last_transition_time: Annotated[datetime | None, rules(required=True)] = None
    reason: Annotated[str, rules(required=True)] = ""
    message: Annotated[str, rules(required=True)] = ""


class HyperNodeStatus(KubeStruct, frozen=True, kw_only=True):
    """The current state of a HyperNode."""

    conditions: tuple[HyperNodeCondition, ...] = ()
    node_count: Annotated[
        Int64 | None,
        rules(
            "The number of nodes in the HyperNode, including those of its member HyperNodes.",
            minimum=0,
        ),
    ] = None


class HyperNode(KindObject, frozen=True, kw_only=True):
    """HyperNode is a domain of the network topology: nodes, or HyperNodes of a lower tier."""

    api_version: str = always("topology.volcano.sh/v1alpha1")
    kind: str = always("HyperNode")
    spec: HyperNodeSpec = HyperNodeSpec()
    status: HyperNodeStatus = HyperNodeStatus()


HYPER_NODE: Final = Description(
    struct=HyperNode,
    resource=HYPERNODES,
    short_names=("hn",),
    columns=(
        Column("Tier", "string", ".spec.tier"),
        Column("TierName", "string", ".spec.tierName"),
        Column("NodeCount", "integer", ".status.nodeCount"),
        Column("Age", "date", ".metadata.creationTimestamp"),
    ),
)
