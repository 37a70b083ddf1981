"""Kubernetes' own PodGroups, in each version of their API."""

from typing import Any

import pytest

from shared.contracts.verdicts import Condition, GangPhase, Verdict, Why
from shared.dialects.discovery import group_resources, scope_of
from shared.dialects.kubernetes import DIALECT, SCOPE
from shared.dialects.protocol import JsonObject, ReadingContext
from shared.kube.resources import PODGROUPS_KUBERNETES
from shared.model.objects import NetworkTopology, PodGroup
from tests.shared.dialects.reading import group_read, metadata, pod, shape_of

AT_MS = 1772359200123
AT = "2026-03-01T10:00:00Z"
SERVED = ReadingContext(scheduler_names=frozenset({"tutti"}), served=frozenset({"kubernetes"}))


def group(status: Any = None, annotations: Any = None, **spec: Any) -> PodGroup:
    spec = {"schedulingPolicy": {"gang": {"minCount": 3}}, **spec}
    meta = metadata(annotations=annotations or {})
    return group_read(DIALECT, {"metadata": meta, "spec": spec, "status": status or {}})


def verdict(phase: GangPhase, *conditions: Condition, why: Why | None = None) -> Verdict:
    return Verdict(
        gang_id="uid-one",
        epoch=9,
        at_ms=1,
        dialect="kubernetes",
        namespace="team",
        name="one",
        uid="uid-one",
        phase=phase,
        conditions=conditions,
        why=why,
    )


def condition(kind: str, status: Any, message: str = "") -> Condition:
    return Condition(type=kind, status=status, message=message, since_ms=AT_MS)


def written(found: Verdict, version: str = "v1beta1") -> list[JsonObject]:
    """The conditions that are written in a version."""
    patch = DIALECT.status(found)
    assert patch is not None
    assert (patch.resource, patch.subresource) == (PODGROUPS_KUBERNETES, "status")
    assert patch.patch_type == "strategic", "conditions of others stay"
    body = patch.bodies.get(version, patch.body)
    assert body["metadata"] == {"uid": "uid-one"}
    conditions: list[JsonObject] = body["status"]["conditions"]
    return conditions


def test_a_gang_has_its_minimum_and_a_basic_group_has_none() -> None:
    found = group()
    assert (found.min_member, found.uniform, found.scope, found.errors) == (3, True, SCOPE, ())
    assert found.shared
    basic = group(schedulingPolicy={"basic": {}})
    assert (basic.min_member, basic.one_by_one) == (0, True)


def test_priority_and_preemption_policy_are_the_groups_own() -> None:
    found = group(priority=7, priorityClassName="high", preemptionPolicy="Never")
    assert (found.priority, found.priority_class, found.preempts) == (7, "high", False)
    assert (group().priority, group().preempts) == (None, True)


@pytest.mark.parametrize(
    ("mode", "whole"),
    [
        (None, False),
        ("Pod", False),
        ("PodGroup", True),
        ({"single": {}}, False),
        ({"all": {}}, True),
    ],
)
def test_the_disruption_mode_of_every_version(mode: Any, whole: bool) -> None:
    spec = {} if mode is None else {"disruptionMode": mode}
    assert group(**spec).disrupted_whole is whole


def test_a_topology_key_keeps_the_group_in_one_domain() -> None:
    found = group(schedulingConstraints={"topology": [{"key": "rack"}]})
    assert found.topology == NetworkTopology(mode="hard", label_key="rack")
    two = group(schedulingConstraints={"topology": [{"key": "rack"}, {"key": "zone"}]})
    assert "2 keys" in two.errors[0]


def test_the_annotation_names_the_queue() -> None:
    found = group(annotations={"scheduling.volcano.sh/queue-name": "research"})
    assert found.queue == "research"
    assert (group().queue, group().queue_of_namespace) == ("", True)


def test_a_policy_that_is_not_known_here_is_an_error() -> None:
    (error,) = group(schedulingPolicy={"later": {}}).errors
    assert "spec.schedulingPolicy" in error


def test_a_group_names_its_parent_and_the_workload_that_made_it() -> None:
    found = group(
        parentCompositePodGroupName="all",
        workloadRef={"workloadName": "w", "templateName": "t"},
    )
    assert (found.parent, found.parent_scope, found.made_from) == (
        "all",
        "compositepodgroups.scheduling.k8s.io",
        "w",
    )
    assert group().parent_scope == ""


def test_an_object_that_cannot_be_read_is_reported() -> None:
    manifest = {"metadata": metadata(), "spec": {"schedulingPolicy": {"gang": {"minCount": "x"}}}}
    found = group_read(DIALECT, manifest)
    assert (found.scope, len(found.errors)) == (SCOPE, 1)


@pytest.mark.parametrize("kind", ["PodGroupScheduled", "PodGroupInitiallyScheduled"])
def test_the_status_says_whether_it_was_scheduled_once(kind: str) -> None:
    assert group({"conditions": [{"type": kind, "status": "True"}]}).scheduled_once
    assert not group({"conditions": [{"type": kind, "status": "False"}]}).scheduled_once


def test_a_pod_belongs_to_the_group_of_its_field_while_the_api_is_served() -> None:
    spec = {"schedulerName": "tutti", "schedulingGroup": {"podGroupName": "g"}}
    found = pod(spec, context=SERVED)
    assert (found.group_name, found.group_scope) == ("g", SCOPE)
    assert shape_of(found).unsupported == ()
    unserved = ReadingContext(scheduler_names=SERVED.scheduler_names, served=frozenset())
    other = pod(spec, context=unserved)
    (refused,) = shape_of(other).unsupported
    assert "let the API server serve PodGroups of scheduling.k8s.io" in refused


def test_the_field_counts_before_the_annotation_and_a_reference_of_1_35_is_refused() -> None:
    spec = {"schedulerName": "tutti", "schedulingGroup": {"podGroupName": "g"}}
    found = pod(spec, context=SERVED, annotations={"scheduling.k8s.io/group-name": "h"})
    assert found.group_name == "g"
    assert "name two gangs" in shape_of(found).unsupported[0]
    old = pod({"schedulerName": "tutti", "workloadRef": {"name": "w"}}, context=SERVED)
    assert "spec.workloadRef" in shape_of(old).unsupported[0]


def test_its_names_are_its_own() -> None:
    assert scope_of(PODGROUPS_KUBERNETES) == SCOPE == "podgroups.scheduling.k8s.io"
    assert group_resources(SCOPE) == (PODGROUPS_KUBERNETES,)


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("v1", "PodGroupInitiallyScheduled"),
        ("v1beta1", "PodGroupInitiallyScheduled"),
        ("v1alpha3", "PodGroupInitiallyScheduled"),
        ("v1alpha2", "PodGroupScheduled"),
    ],
)
def test_a_waiting_group_is_unschedulable_in_the_words_of_its_version(
    version: str, kind: str
) -> None:
    why = Why(reason="NotEnoughResources", sentence="3 of 4 nodes are full", since_ms=AT_MS)
    assert written(verdict("Inqueue", why=why), version) == [
        {
            "type": kind,
            "status": "False",
            "reason": "Unschedulable",
            "message": "3 of 4 nodes are full",
            "lastTransitionTime": AT,
        }
    ]


@pytest.mark.parametrize("reason", ["InvalidGroup", "MembersDiffer"])
def test_an_error_of_the_group_is_a_scheduler_error(reason: str) -> None:
    why = Why(reason=reason, sentence="no", since_ms=AT_MS)
    (found,) = written(verdict("Inqueue", why=why))
    assert (found["status"], found["reason"]) == ("False", "SchedulerError")


def test_a_group_that_was_scheduled_once_stays_so() -> None:
    (found,) = written(verdict("Running", condition("Scheduled", "True")))
    assert (found["status"], found["reason"], found["lastTransitionTime"]) == (
        "True",
        "Scheduled",
        AT,
    )
    why = Why(reason="NotEnoughResources", sentence="full", since_ms=AT_MS)
    assert written(verdict("Inqueue", condition("Scheduled", "False"), why=why)) == []


def test_nothing_is_claimed_while_its_bindings_are_in_flight_or_it_is_gone() -> None:
    assert written(verdict("Starting")) == []
    assert DIALECT.status(verdict("Gone")) is None


@pytest.mark.parametrize(
    ("phase", "status", "expected"),
    [
        ("Inqueue", "True", "True"),
        ("Unknown", "True", "True"),
        ("Running", "True", "False"),
        ("Inqueue", "False", "False"),
    ],
)
def test_a_preempted_group_is_a_target_of_disruption(
    phase: GangPhase, status: str, expected: str
) -> None:
    (found,) = written(verdict(phase, condition("Evicted", status, "for team/urgent")))
    assert (found["type"], found["status"], found["reason"], found["message"]) == (
        "DisruptionTarget",
        expected,
        "PreemptionByScheduler",
        "for team/urgent",
    )
