"""PodGangs of Grove, and the pods that name them."""

from typing import Any

import pytest

from shared.contracts.verdicts import Condition, GangPhase, Verdict, Why
from shared.dialects.grove import DIALECT, SCOPE
from shared.dialects.protocol import JsonObject, ReadingContext, StatusPatch
from shared.kube.resources import POD_GANGS
from shared.model.objects import NetworkTopology, PodGroup
from tests.shared.dialects.reading import group_read, metadata, pod, shape_of
from tests.support.golden import Golden

LABEL = {"grove.io/podgang": "g"}
RACK = NetworkTopology(label_key="rack")
IN_RACK: JsonObject = {"packConstraint": {"required": "rack"}}


def pods(name: str, *pods: str, least: int = 1, **more: Any) -> JsonObject:
    """A pod group that references these pods."""
    references = [{"namespace": "team", "name": one} for one in pods]
    return {"name": name, "minReplicas": least, "podReferences": references, **more}


def gang(*groups: JsonObject, meta: Any = None, **spec: Any) -> PodGroup:
    manifest = {
        "metadata": {**metadata(), **(meta or {})},
        "spec": {"podgroups": list(groups), **spec},
    }
    return group_read(DIALECT, manifest)


def context(*served: str) -> ReadingContext:
    return ReadingContext(scheduler_names=frozenset({"tutti"}), served=frozenset(served))


def test_each_pod_group_needs_its_minimum_of_the_pods_that_it_references() -> None:
    found = gang(
        pods("prefill", "p-0"), pods("decode", "d-1", "d-0", least=2), priorityClassName="high"
    )
    assert [(one.name, one.pods, one.size) for one in found.sub_groups] == [
        ("decode", ("d-0", "d-1"), 2),
        ("prefill", ("p-0",), 1),
    ]
    assert [(one.name, one.least) for one in found.sets] == [("PodGang one", 2)]
    assert (found.min_member, found.priority_class, found.errors) == (3, "high", ())
    assert (found.scope, found.shared, found.dialect) == (SCOPE, True, "grove")
    assert gang().min_member == 1


@pytest.mark.parametrize(
    ("meta", "queue"),
    [
        ({"annotations": {"scheduling.volcano.sh/queue-name": "a"}}, "a"),
        ({"labels": {"kai.scheduler/queue": "b"}}, "b"),
        ({}, ""),
    ],
)
def test_an_annotation_or_a_label_names_the_queue(meta: JsonObject, queue: str) -> None:
    assert gang(meta=meta).queue == queue


def test_kais_label_names_the_node_pool() -> None:
    (required,) = gang(meta={"labels": {"kai.scheduler/node-pool": "a"}}).nodes
    assert (required.operator, required.values) == ("In", ("a",))
    (absent,) = gang().nodes
    assert absent.operator == "DoesNotExist"


def test_constraints_of_the_gang_and_of_its_pod_groups_are_read() -> None:
    both = {"packConstraint": {"required": "zone", "preferred": "rack"}}
    found = gang(pods("a", topologyConstraint=IN_RACK), pods("b"), topologyConstraint=both)
    assert found.topology == NetworkTopology(label_key="rack,zone")
    assert [one.topology for one in found.sub_groups] == [RACK, None]
    assert gang(pods("a", topologyConstraint={})).sub_groups[0].topology is None
    named = {"annotations": {"grove.io/topology-name": "network"}}
    (part,) = gang(pods("a", topologyConstraint=IN_RACK), meta=named).sub_groups
    assert part.topology == NetworkTopology(label_key="rack", levels_of="network")


def test_pod_groups_may_have_a_constraint_together() -> None:
    def of(*names: str) -> PodGroup:
        config = {"name": "pair", "podGroupNames": names, "topologyConstraint": IN_RACK}
        return gang(pods("a"), pods("b"), pods("c"), topologyConstraintGroupConfigs=[config])

    found = of("a", "b")
    assert [(one.name, one.set_name, one.least, one.topology) for one in found.sets] == [
        ("PodGang one", "", 2, None),
        ("set pair", "PodGang one", 2, RACK),
    ]
    assert [(one.name, one.set_name) for one in found.sub_groups] == [
        ("a", "set pair"),
        ("b", "set pair"),
        ("c", "PodGang one"),
    ]
    assert (found.min_member, found.errors) == (3, ())
    assert [one.name for one in of().sets] == ["PodGang one"]


def test_bad_input_is_reported(golden: Golden) -> None:
    elsewhere = pods("c", least=0)
    elsewhere["podReferences"] = [{"namespace": "other", "name": "z"}]
    configs = [
        {"name": "x", "podGroupNames": ["a", "none"]},
        {"name": "y", "podGroupNames": ["a"]},
    ]
    found = gang(pods("a", "p"), pods("b", "p"), elsewhere, topologyConstraintGroupConfigs=configs)
    golden(*found.errors)
    twice = gang(pods("a", "p"), pods("a", "q"))
    golden(*twice.errors)
    broken = {"metadata": metadata(), "spec": {"podgroups": [{"minReplicas": "x"}]}}
    undecoded = group_read(DIALECT, broken)
    assert (len(undecoded.errors), undecoded.scope, undecoded.shared) == (1, SCOPE, True)


def test_thousands_of_references_are_read_and_more_are_an_error() -> None:
    def of(count: int) -> PodGroup:
        return gang(pods("a", *(f"{number:0>45}" for number in range(count))))

    assert (len(of(5000).sub_groups), of(5000).errors) == (1, ())
    (error,) = of(10_000).errors
    assert error.startswith("spec.podgroups: takes more than")


def test_a_label_names_the_gang_while_its_crd_is_installed() -> None:
    labels = {**LABEL, "grove.io/podclique": "workers"}
    found = pod({"schedulerName": "tutti"}, labels=labels, context=context("grove"))
    assert (found.group_name, found.group_scope, found.role) == ("g", SCOPE, "workers")
    assert shape_of(found).unsupported == ()
    other = pod({"schedulerName": "tutti"}, labels=labels, context=context())
    (refused,) = shape_of(other).unsupported
    assert "install the CRD of scheduler.grove.io" in refused


def test_a_copy_that_kais_pod_grouper_made_is_no_second_gang() -> None:
    found = pod(
        {"schedulerName": "tutti"},
        labels={**LABEL, "kai.scheduler/subgroup-name": "workers"},
        annotations={"pod-group-name": "pg-g-uid"},
        context=context("grove", "kai"),
    )
    assert (found.group_name, found.group_scope) == ("g", SCOPE)
    assert shape_of(found).unsupported == ()


def patch(phase: GangPhase, **fields: Any) -> StatusPatch:
    """The patch of a PodGang that needs three."""
    found = DIALECT.status(
        Verdict(
            gang_id="uid-one",
            epoch=9,
            at_ms=1772359200123,
            dialect="grove",
            namespace="team",
            name="one",
            uid="uid-one",
            phase=phase,
            min_member=3,
            **fields,
        )
    )
    assert found is not None
    assert (found.resource, found.subresource) == (POD_GANGS, "status")
    assert found.body["metadata"] == {"uid": "uid-one"}
    assert found.keeps_conditions
    return found


@pytest.mark.parametrize(
    ("phase", "running", "expected"),
    [
        ("Pending", 0, "Pending"),
        ("Inqueue", 0, "Pending"),
        ("Starting", 0, "Starting"),
        ("Running", 2, "Starting"),
        ("Running", 3, "Running"),
        ("Unknown", 2, "Starting"),
    ],
)
def test_each_phase_has_groves_word(phase: GangPhase, running: int, expected: str) -> None:
    assert patch(phase, running=running).body["status"]["phase"] == expected


def conditions(phase: GangPhase, **fields: Any) -> dict[str, JsonObject]:
    found = patch(phase, **fields).body["status"]["conditions"]
    return {one["type"]: one for one in found}


def test_the_condition_scheduled_follows_the_verdict_and_always_has_a_time() -> None:
    why = Why(reason="NotEnoughPods", sentence="1 of 3 members exist")
    waits = conditions("Inqueue", why=why)["Scheduled"]
    assert waits == {
        "type": "Scheduled",
        "status": "False",
        "reason": "NotEnoughPods",
        "message": "1 of 3 members exist",
        "lastTransitionTime": "2026-03-01T10:00:00Z",
    }
    assert conditions("Starting")["Scheduled"]["reason"] == "Scheduling"
    placed = Condition(type="Scheduled", status="True", reason="r", message="m", since_ms=1000)
    found = conditions("Running", conditions=(placed,))["Scheduled"]
    assert (found["status"], found["reason"]) == ("True", "MinReplicasScheduled")
    assert found["lastTransitionTime"] == "1970-01-01T00:00:01Z"
    lost = Condition(type="Scheduled", status="False", reason="r", message="m", since_ms=1000)
    assert conditions("Unknown", conditions=(lost,))["Scheduled"]["status"] == "False"


def test_a_gang_whose_pods_were_evicted_is_a_target_of_disruption() -> None:
    evicted = Condition(
        type="Evicted", status="True", reason="r", message="for high", since_ms=1000
    )
    found = conditions("Pending", conditions=(evicted,))["DisruptionTarget"]
    assert (found["status"], found["message"]) == ("True", "for high")
    assert conditions("Running", conditions=(evicted,))["DisruptionTarget"]["status"] == "False"
    assert "DisruptionTarget" not in conditions("Pending")


def test_a_pod_gang_that_is_gone_gets_no_status() -> None:
    gone = Verdict(gang_id="g", epoch=1, at_ms=1, dialect="", namespace="t", name="g", phase="Gone")
    assert DIALECT.status(gone) is None
