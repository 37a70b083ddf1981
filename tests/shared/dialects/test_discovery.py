"""Every file that is a dialect is found, fits the contract, and brings exactly its rights."""

import pytest

from shared.dialects import native, volcano
from shared.dialects.discovery import (
    dialect,
    dialect_of,
    dialects,
    group_resources,
    kinds,
    preferred_dialects,
    readers,
    resources_read_before_pods,
    scheduler_names,
)
from shared.dialects.protocol import Dialect
from shared.dialects.rights import Right, rights
from shared.kube.decoding import Undecodable
from shared.kube.objects import ObjectMeta
from shared.kube.resources import (
    DISRUPTION_BUDGETS,
    NAMESPACES,
    POD_GANGS,
    PODGROUPS_COSCHEDULING,
    PODGROUPS_INCUBATOR,
    PODGROUPS_KAI,
    PODGROUPS_KUBERNETES,
    PODGROUPS_SIGS,
    PODGROUPS_VOLCANO,
    QUEUES_SIGS,
    Resource,
)
from shared.model.objects import GROUP_NAME_SCOPE, KINDS, PodGroup
from tests.shared.dialects.reading import CONTEXT

NAMELESS = Undecodable(metadata=ObjectMeta(), error="unreadable")
UNKNOWN_PODS = Resource("example.com", "v1", "pods", "Pod")


def test_the_scan_finds_the_dialects_in_order_of_their_names() -> None:
    names = [found.name for found in dialects()]
    assert names == sorted(names)
    assert {"group_name", "incubator", "native", "sigs", "volcano"} <= set(names)
    assert dialect("volcano") is volcano.DIALECT
    assert dialect_of(QUEUES_SIGS) is dialect("sigs")
    assert dialect_of(NAMESPACES) is native.DIALECT
    assert dialect_of(UNKNOWN_PODS) is None


@pytest.mark.parametrize("found", dialects(), ids=lambda found: found.name)
def test_a_dialect_fits_the_contract(found: Dialect) -> None:
    for kind in found.kinds:
        assert kind.neutral in KINDS
        assert kind.status is None or kind.neutral == "podgroup"
        if kind.neutral == "podgroup" and not kind.claims_by_owner:
            unreadable = kind.neutral_object(NAMELESS, CONTEXT)
            assert isinstance(unreadable, PodGroup)
            assert unreadable.shared == kind.shared
    assert found.validate("NoSuchKind", {}) == []


def test_the_dialects_bring_the_scheduler_names_and_their_preferences() -> None:
    assert scheduler_names() == ("tutti", "kube-batch", "volcano")
    assert preferred_dialects() == {"kube-batch": {"incubator", "sigs"}}


def test_only_a_budget_is_read_into_two_kinds_and_decoded_once() -> None:
    twice = {resource: found for resource, found in readers().items() if len(found) > 1}
    assert list(twice) == [DISRUPTION_BUDGETS]
    first, second = twice[DISRUPTION_BUDGETS]
    assert {first.neutral, second.neutral} == {"podgroup", "budget"}
    assert first.decoded is second.decoded


def test_pods_name_the_groups_of_seven_apis_and_no_budget_or_group_of_groups() -> None:
    shared = PODGROUPS_VOLCANO, PODGROUPS_INCUBATOR, PODGROUPS_SIGS, PODGROUPS_COSCHEDULING
    assert group_resources() == (PODGROUPS_KUBERNETES, *shared, POD_GANGS, PODGROUPS_KAI)
    assert group_resources(GROUP_NAME_SCOPE) == shared


def test_pods_are_read_after_the_kinds_that_give_their_references_a_meaning() -> None:
    assert resources_read_before_pods() == {
        POD_GANGS,
        PODGROUPS_COSCHEDULING,
        PODGROUPS_KAI,
        PODGROUPS_KUBERNETES,
    }


def test_every_kind_of_the_model_is_read() -> None:
    assert {kind.neutral for kind in kinds()} == set(KINDS)


def test_the_watcher_may_only_read_and_the_controller_only_patch_groups() -> None:
    table = rights()
    assert (
        Right(
            service="controller",
            group="scheduling.incubator.k8s.io",
            resource="podgroups/status",
            verbs=("patch",),
        )
        in table
    )
    assert Right(service="watcher", group="", resource="pods", verbs=("list", "watch")) in table
    assert {right.verbs for right in table if right.service == "watcher"} == {("list", "watch")}
    assert {(right.resource, right.verbs) for right in table if "webhook" in right.service} == {
        ("podgangs", ("get", "list")),
        ("podgroups", ("get", "list")),
    }
    assert {right.resource for right in table if right.service == "controller"} == {
        "compositepodgroups",
        "compositepodgroups/status",
        "podgangs",
        "podgangs/status",
        "podgroups",
        "podgroups/status",
        "poddisruptionbudgets",
    }
