"""Namespaces, quotas, budgets and HyperNodes, read."""

from typing import Any

from shared.dialects.discovery import readers
from shared.kube.resources import (
    DISRUPTION_BUDGETS,
    HYPERNODES,
    NAMESPACES,
    RESOURCE_QUOTAS,
    Resource,
)
from shared.model import reference_objects
from shared.model.objects import Requirement
from shared.model.terms import Selector
from tests.shared.dialects.reading import CONTEXT, decoded, metadata, undecodable

WEB = Selector(requirements=(Requirement(key="app", operator="In", values=("web",)),))


def read(resource: Resource, body: dict[str, Any], **meta: Any) -> Any:
    """An object as the planner's kind of that resource has it."""
    kind = next(kind for kind in readers()[resource] if kind.lookup)
    about = metadata(**meta)
    if not resource.namespaced:
        del about["namespace"]
    return kind.neutral_object(decoded(kind.decoded, {"metadata": about, **body}), CONTEXT)


def test_a_namespace_is_its_labels() -> None:
    assert read(NAMESPACES, {}, labels={"b": "2", "a": "1"}) == reference_objects.Namespace(
        uid="uid-one", name="one", resource_version=7, labels=(("a", "1"), ("b", "2"))
    )


def test_a_quota_is_what_is_enforced_in_its_own_names_and_our_units() -> None:
    found = read(
        RESOURCE_QUOTAS,
        {
            "spec": {
                "hard": {"requests.cpu": "9"},
                "scopes": ["NotTerminating"],
                "scopeSelector": {
                    "matchExpressions": [
                        {"scopeName": "PriorityClass", "operator": "In", "values": ["a", "b"]},
                        {"scopeName": "BestEffort", "operator": "Exists"},
                    ]
                },
            },
            "status": {
                "hard": {"requests.cpu": "1500m", "count/pods": "3", "limits.memory": "1Gi"},
                "used": {"requests.cpu": "1"},
            },
        },
    )
    assert found == reference_objects.ResourceQuota(
        uid="uid-one",
        namespace="team",
        name="one",
        resource_version=7,
        hard=(("count/pods", 3), ("limits.memory", 1 << 30), ("requests.cpu", 1500)),
        used=(("requests.cpu", 1000),),
        scopes=("BestEffort Exists", "NotTerminating", "PriorityClass In a,b"),
    )


def test_a_quota_that_its_controller_has_not_seen_is_what_it_asks_for() -> None:
    assert read(RESOURCE_QUOTAS, {"spec": {"hard": {"pods": "3"}}}).hard == (("pods", 3),)


def test_a_budget_without_owner_is_a_budget_all_the_same() -> None:
    found = read(
        DISRUPTION_BUDGETS,
        {
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}},
            "status": {"disruptionsAllowed": 2},
        },
    )
    assert found == reference_objects.Budget(
        uid="uid-one",
        namespace="team",
        name="one",
        resource_version=7,
        selector=WEB,
        disruptions_allowed=2,
    )


def test_a_budget_without_selector_is_about_no_pod() -> None:
    assert read(DISRUPTION_BUDGETS, {"spec": {}}).selector is None


def test_a_hypernode_names_its_members_in_three_ways() -> None:
    found = read(
        HYPERNODES,
        {
            "spec": {
                "tier": 2,
                "tierName": "spine",
                "members": [
                    {"type": "HyperNode", "selector": {"exactMatch": {"name": "rack-1"}}},
                    {"type": "Node", "selector": {"regexMatch": {"pattern": "n-.*"}}},
                    {"type": "Node", "selector": {"labelMatch": {"matchLabels": {"app": "web"}}}},
                    {"type": "Node"},
                ],
            }
        },
    )
    member = reference_objects.HyperNodeMember
    assert found == reference_objects.HyperNode(
        uid="uid-one",
        name="one",
        resource_version=7,
        tier=2,
        tier_name="spine",
        members=(
            member(kind="HyperNode", exact="rack-1"),
            member(kind="Node", regex="n-.*"),
            member(kind="Node", labels=WEB),
        ),
    )


def test_what_cannot_be_read_is_left_out() -> None:
    kind = readers()[NAMESPACES][0]
    broken = undecodable(kind.decoded, {"metadata": {"name": "x", "labels": 5}})
    assert kind.neutral_object(broken, CONTEXT) is None
