"""What groups and queues ask for beyond numbers."""

from typing import Any

import pytest

from shared.dialects.discovery import dialect as dialect_named
from shared.model import objects as model
from shared.model.terms import Selector
from tests.shared.dialects.test_groups import group, queue

incubator, volcano = map(dialect_named, ("incubator", "volcano"))

STAGES = {
    "name": "stage",
    "subGroupSize": 2,
    "minSubGroups": 3,
    "labelSelector": {"matchLabels": {"role": "worker"}},
    "matchLabelKeys": ["stage"],
    "networkTopology": {"mode": "soft", "highestTierAllowed": 1},
}


def test_topology_and_parts_of_a_volcano_group_are_read() -> None:
    read = group(
        volcano,
        {
            "networkTopology": {"mode": "hard", "highestTierName": "spine"},
            "subGroupPolicy": [STAGES, {"name": "rest"}],
        },
    )
    assert read.topology == model.NetworkTopology(mode="hard", highest_tier_name="spine")
    worker = model.Requirement(key="role", operator="In", values=("worker",))
    assert read.sub_groups == (
        model.SubGroup(
            name="stage",
            selector=Selector(requirements=(worker,)),
            match_label_keys=("stage",),
            size=2,
            min_sub_groups=3,
            topology=model.NetworkTopology(mode="soft", highest_tier=1),
        ),
        model.SubGroup(name="rest"),
    )
    assert read.errors == ()


def test_a_kube_batch_group_has_the_topology_of_our_annotation_only() -> None:
    read = group(
        incubator,
        {"networkTopology": {"mode": "soft"}, "subGroupPolicy": [STAGES]},
        annotations={"tutti.dev/required-topology": "rack"},
    )
    assert read.topology == model.NetworkTopology(mode="hard", label_key="rack")
    assert read.sub_groups == ()


def test_a_preferred_topology_by_labels_is_soft() -> None:
    read = group(volcano, {}, annotations={"tutti.dev/preferred-topology": "rack"})
    assert read.topology == model.NetworkTopology(mode="soft", label_key="rack")


@pytest.mark.parametrize(
    ("spec", "notes", "error"),
    [
        (
            {"subGroupPolicy": [{"subGroupSize": 0}]},
            {},
            "spec.subGroupPolicy[0].subGroupSize: 0 is less than 1",
        ),
        (
            {"subGroupPolicy": [{"name": "n" * 500}] * 500},
            {},
            "spec.subGroupPolicy: takes more than the 65536 bytes that are supported",
        ),
        (
            {},
            {"tutti.dev/required-topology": "a", "tutti.dev/preferred-topology": "b"},
            "metadata.annotations[tutti.dev/preferred-topology]: "
            "excludes tutti.dev/required-topology",
        ),
        (
            {},
            {"volcano.sh/task-topology-affinity": "a" * 5000},
            "metadata.annotations[volcano.sh/task-topology-affinity]: longer than 4096 characters",
        ),
    ],
)
def test_a_request_that_cannot_be_granted_is_an_error_of_the_group(
    spec: dict[str, Any], notes: dict[str, str], error: str
) -> None:
    assert group(volcano, spec, annotations=notes).errors == (error,)


def test_several_levels_by_labels_are_kept_as_they_stand_and_never_cut_in_silence() -> None:
    keys = ",".join(f"example.com/{'k' * 60}-{i}" for i in range(9))
    read = group(volcano, {}, annotations={"tutti.dev/required-topology": keys})
    assert read.topology == model.NetworkTopology(mode="hard", label_key=keys)
    (error,) = group(volcano, {}, annotations={"tutti.dev/required-topology": keys * 9}).errors
    assert "longer than 4096 characters" in error


def test_annotations_of_policies_are_kept_as_they_stand() -> None:
    read = group(
        volcano,
        {},
        annotations={
            "volcano.sh/task-topology-affinity": "ps,worker",
            "volcano.sh/cooldown-time": "5m",
            "volcano.sh/preemptable": "false",
            "sla-waiting-time": "1h",
            "other": "x",
        },
    )
    assert read.notes == (
        ("volcano.sh/cooldown-time", "5m"),
        ("volcano.sh/task-topology-affinity", "ps,worker"),
    )
    assert (read.preemptable, read.sla_waiting_ms) == ("false", 3_600_000)


@pytest.mark.parametrize(
    ("notes", "expected"),
    [
        ({}, 0),
        ({"volcano.sh/sla-waiting-time": "90s", "sla-waiting-time": "1h"}, 90_000),
        ({"sla-waiting-time": "tomorrow"}, 0),
    ],
)
def test_a_waiting_time_is_a_duration(notes: dict[str, str], expected: int) -> None:
    assert group(volcano, {}, annotations=notes).sla_waiting_ms == expected


def test_a_queue_says_its_groups_of_nodes_and_its_order() -> None:
    read = queue(
        volcano,
        {
            "dequeueStrategy": "fifo",
            "affinity": {
                "nodeGroupAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": ["a", "b"],
                },
                "nodeGroupAntiAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": ["c"],
                },
            },
        },
    )
    assert read.dequeue_strategy == "fifo"
    assert read.node_groups == (("required", ("a", "b")), ("antiPreferred", ("c",)))


def test_a_queue_has_a_place_in_the_hierarchy_of_drf() -> None:
    notes = {"volcano.sh/hierarchy": "root/a", "volcano.sh/hierarchy-weights": "1/2"}
    read = queue(volcano, {}, annotations=notes)
    assert (read.hierarchy, read.hierarchy_weights) == ("root/a", "1/2")


@pytest.mark.parametrize("dialect", [volcano, incubator], ids=lambda dialect: dialect.name)
def test_admission_refuses_two_topologies_at_once(dialect: Any) -> None:
    both = {"tutti.dev/required-topology": "rack", "tutti.dev/preferred-topology": "zone"}
    found = dialect.validate("PodGroup", {"metadata": {"annotations": both}, "spec": {}})
    assert [one.text for one in found] == [
        "metadata.annotations[tutti.dev/preferred-topology]: excludes tutti.dev/required-topology"
    ]
