"""PodGroups of KAI, and the pods that name them."""

from typing import Any

import pytest

from shared.contracts.verdicts import Condition, GangPhase, Verdict, Why
from shared.dialects.kai import DIALECT, SCOPE
from shared.dialects.protocol import JsonObject, ReadingContext
from shared.kube.resources import PODGROUPS_KAI
from shared.model.objects import NetworkTopology, PodGroup, Requirement
from tests.shared.dialects.reading import group_read, metadata, pod, shape_of

GROUP = "pod-group-name"
SUB_GROUP = "kai.scheduler/subgroup-name"


def context(*served: str) -> ReadingContext:
    names = frozenset({"tutti", "kai-scheduler"})
    return ReadingContext(scheduler_names=names, served=frozenset(served), implied_groups=True)


def group(annotations: Any = None, labels: Any = None, **spec: Any) -> PodGroup:
    meta = metadata(annotations=annotations or {}, labels=labels or {})
    return group_read(DIALECT, {"metadata": meta, "spec": spec})


def test_a_group_is_read() -> None:
    found = group(minMember=3, queue="team", priorityClassName="train", parallelism=7)
    assert (found.min_member, found.queue, found.priority_class) == (3, "team", "train")
    assert (found.scope, found.shared, found.dialect) == (SCOPE, True, "kai")
    assert (found.topology, found.sub_groups, found.errors) == (None, (), ())
    assert group(minMember=None).min_member == 1
    assert group(labels={"kai.scheduler/queue": "team"}).queue == "team"


def test_the_group_needs_at_least_what_its_sub_groups_need() -> None:
    parts = [{"name": "leader", "minMember": 1}, {"name": "workers", "minMember": 4}]
    assert group(minMember=2, subGroups=parts).min_member == 5
    assert group(minMember=8, subGroups=parts).min_member == 8
    assert group(minSubGroup=1, subGroups=[parts[0], {"name": "b", "minMember": 1}]).min_member == 1
    found = group(subGroups=parts)
    assert [(one.name, one.size, one.label) for one in found.sub_groups] == [
        ("leader", 1, SUB_GROUP),
        ("workers", 4, SUB_GROUP),
    ]
    assert [(one.name, one.least) for one in found.sets] == [("PodGroup one", 2)]


def test_sub_groups_may_contain_others_with_numbers_and_domains_of_their_own() -> None:
    rack = {"requiredTopologyLevel": "rack"}
    found = group(
        minSubGroup=1,
        subGroups=[
            {"name": "first", "topologyConstraint": rack},
            {"name": "first-leader", "parent": "first", "minMember": 1},
            {"name": "first-workers", "parent": "first", "minMember": 3},
            {"name": "second", "minMember": 2},
        ],
    )
    assert [(one.name, one.set_name, one.least, one.topology) for one in found.sets] == [
        ("PodGroup one", "", 1, None),
        ("first", "PodGroup one", 2, NetworkTopology(label_key="rack")),
    ]
    assert (found.min_member, found.errors) == (2, ())


@pytest.mark.parametrize(
    ("given", "read"),
    [("preemptible", "true"), ("non-preemptible", "false"), ("", "")],
)
def test_preemptibility_is_read(given: str, read: str) -> None:
    found = group(preemptibility=given)
    assert (found.preemptable, found.protected_from) == (read, 100)


@pytest.mark.parametrize(
    ("levels", "topology"),
    [
        ({"requiredTopologyLevel": "rack"}, NetworkTopology(mode="hard", label_key="rack")),
        ({"preferredTopologyLevel": "rack"}, NetworkTopology(mode="soft", label_key="rack")),
        (
            {"requiredTopologyLevel": "zone", "preferredTopologyLevel": "rack"},
            NetworkTopology(mode="hard", label_key="rack,zone"),
        ),
        ({"topology": "network"}, None),
        (
            {"topology": "network", "requiredTopologyLevel": "rack"},
            NetworkTopology(label_key="rack", levels_of="network"),
        ),
    ],
)
def test_levels_are_keys_of_node_labels(
    levels: dict[str, str], topology: NetworkTopology | None
) -> None:
    assert group(topologyConstraint=levels).topology == topology
    (part,) = group(subGroups=[{"name": "a", "topologyConstraint": levels}]).sub_groups
    assert part.topology == topology


def test_annotations_of_the_group_have_its_topology_where_its_spec_has_none() -> None:
    given = {
        "kai.scheduler/topology": "network",
        "kai.scheduler/topology-required-placement": "zone",
        "kai.scheduler/topology-preferred-placement": "rack",
    }
    assert group(given).topology == NetworkTopology(label_key="rack,zone", levels_of="network")
    levels = {"requiredTopologyLevel": "row"}
    assert group(given, topologyConstraint=levels).topology == NetworkTopology(label_key="row")
    assert group({"tutti.dev/required-topology": "rack"}).topology == NetworkTopology(
        label_key="rack"
    )


def test_a_label_names_the_node_pool_and_none_is_the_default_pool() -> None:
    key = "kai.scheduler/node-pool"
    named, default = group(labels={key: "a"}), group()
    assert named.nodes == (Requirement(key=key, operator="In", values=("a",)),)
    assert default.nodes == (Requirement(key=key, operator="DoesNotExist"),)


def test_bad_input_is_reported() -> None:
    parts = [{"name": "a", "parent": "b"}, {"name": "c", "minMember": -2}]
    found = group(minMember=-1, preemptibility="never", subGroups=parts)
    assert [one.partition(":")[0] for one in found.errors] == [
        "spec.minMember",
        "spec.preemptibility",
        "spec.subGroups[1].minMember",
        "spec.subGroups[0].parent",
    ]
    broken = {"metadata": metadata(), "spec": {"minMember": "x"}}
    undecoded = group_read(DIALECT, broken)
    assert (len(undecoded.errors), undecoded.scope, undecoded.shared) == (1, SCOPE, True)


def test_an_annotation_names_the_group_while_its_crd_is_installed() -> None:
    given: Any = {"annotations": {GROUP: "g"}, "labels": {SUB_GROUP: "workers"}}
    found = pod({"schedulerName": "tutti"}, context=context("kai"), **given)
    assert (found.group_name, found.group_scope, found.role) == ("g", SCOPE, "workers")
    assert shape_of(found).unsupported == ()
    refused = shape_of(pod({"schedulerName": "tutti"}, context=context(), **given)).unsupported
    assert len(refused) == 2
    assert all("install the CRD of scheduling.run.ai" in one for one in refused)


def test_a_sub_group_without_a_group_is_an_error_of_the_pod() -> None:
    found = pod({"schedulerName": "tutti"}, labels={SUB_GROUP: "a"}, context=context("kai"))
    assert found.declared_group is not None
    (error,) = found.declared_group.errors
    assert error.startswith(f"metadata.annotations[{GROUP}]: missing")


def test_a_group_that_is_a_copy_of_a_pod_gang_does_not_count() -> None:
    marks: Any = {"annotations": {GROUP: "pg-g-uid"}, "labels": {"grove.io/podgang": "g"}}
    found = pod({"schedulerName": "kai-scheduler"}, context=context("kai", "grove"), **marks)
    assert found.group_scope != SCOPE


@pytest.mark.parametrize(
    ("scheduler", "served", "waits"),
    [
        ("kai-scheduler", ("kai",), True),
        ("kai-scheduler", (), False),
        ("tutti", ("kai",), False),
    ],
)
def test_a_pod_of_kais_scheduler_waits_for_its_group(
    scheduler: str, served: tuple[str, ...], waits: bool
) -> None:
    found = pod({"schedulerName": scheduler}, context=context(*served))
    assert bool(shape_of(found).unsupported) is waits
    grouped = pod(
        {"schedulerName": scheduler}, annotations={GROUP: "g"}, context=context(*served, "kai")
    )
    assert shape_of(grouped).unsupported == ()


@pytest.mark.parametrize("key", ["gpu-fraction", "gpu-memory"])
def test_a_part_of_a_gpu_is_not_supported_and_named(key: str) -> None:
    given = {GROUP: "g", key: "0.5"}
    found = pod({"schedulerName": "kai-scheduler"}, annotations=given, context=context("kai"))
    assert shape_of(found).unsupported == (f"device:{key} (annotation)",)
    foreign = pod({"schedulerName": "other"}, annotations=given, context=context("kai"))
    assert shape_of(foreign).unsupported == ()
    empty = pod({"schedulerName": "tutti"}, annotations={key: ""}, context=context("kai"))
    assert shape_of(empty).unsupported == ()


def test_no_group_of_volcano_is_made_for_a_pod_of_kais_scheduler() -> None:
    assert pod({"schedulerName": "kai-scheduler"}, context=context()).group_name == ""


def written(phase: GangPhase, **fields: Any) -> JsonObject:
    """The status of a group that needs three."""
    found = DIALECT.status(
        Verdict(
            gang_id="uid-one",
            epoch=9,
            at_ms=1,
            dialect="kai",
            namespace="team",
            name="one",
            uid="uid-one",
            phase=phase,
            min_member=3,
            **fields,
        )
    )
    assert found is not None
    assert (found.resource, found.subresource) == (PODGROUPS_KAI, "status")
    assert found.body["metadata"] == {"uid": "uid-one"}
    status: JsonObject = found.body["status"]
    return status


@pytest.mark.parametrize(
    ("phase", "succeeded", "expected"),
    [
        ("Pending", 0, "Pending"),
        ("Inqueue", 0, "Pending"),
        ("Starting", 0, "Pending"),
        ("Running", 0, "Running"),
        ("Unknown", 0, "Unknown"),
        ("Completed", 3, "Successful"),
        ("Completed", 2, "Failed"),
    ],
)
def test_each_phase_has_a_word(phase: GangPhase, succeeded: int, expected: str) -> None:
    assert written(phase, succeeded=succeeded)["phase"] == expected


def test_a_waiting_gang_is_unschedulable_and_its_reason_is_structured() -> None:
    why = Why(reason="NotEnoughQuota", sentence="queue team is full", since_ms=1772359200123)
    (condition,) = written("Inqueue", why=why)["schedulingConditions"]
    assert condition == {
        "type": "UnschedulableOnNodePool",
        "status": "True",
        "nodePool": "default",
        "reason": "Unschedulable",
        "message": "queue team is full",
        "reasons": [{"reason": "OverLimit", "message": "queue team is full"}],
        "transitionID": "1772359200123",
        "lastTransitionTime": "2026-03-01T10:00:00Z",
    }
    other = Why(reason="NotEnoughPods", sentence="1 of 3 members exist")
    (condition,) = written("Pending", why=other)["schedulingConditions"]
    assert condition["reasons"] == [{"reason": "NotEnoughPods", "message": "1 of 3 members exist"}]
    assert written("Running", why=other)["schedulingConditions"] is None
    assert written("Inqueue")["schedulingConditions"] is None


def test_counts_and_conditions_are_written() -> None:
    held = Condition(type="Scheduled", status="True", reason="tasks in gang are ready")
    found = written("Running", pending=1, running=3, conditions=(held,))
    assert (found["pending"], found["running"], found["failed"]) == (1, 3, None)
    assert [one["type"] for one in found["conditions"]] == ["Scheduled"]
    gone = Verdict(gang_id="g", epoch=1, at_ms=1, dialect="", namespace="t", name="g", phase="Gone")
    assert DIALECT.status(gone) is None
