"""PodGroups, queues and budgets of every dialect, read into the one neutral model."""

from typing import Any

import msgspec
import pytest

from shared.contracts.identity import gang_trace_id, traceparent_of
from shared.dialects.discovery import dialect as dialect_named
from shared.dialects.native import read_node, read_priority_class, read_undecodable_node
from shared.dialects.protocol import Dialect, Kind
from shared.kinds.podgroup import PodGroup
from shared.kinds.queue import Queue
from shared.kube import objects as kube
from shared.model import objects as model
from tests.shared.dialects.reading import CONTEXT, controlled_by, decoded, metadata, undecodable

disruption_budget, incubator, sigs, volcano = map(
    dialect_named, ("disruption_budget", "incubator", "sigs", "volcano")
)

FULL_SPEC = {
    "minMember": 4,
    "minTaskMember": {"worker": 3, "ps": 1},
    "minResources": {"cpu": "2500m", "memory": "1Gi", "requests.cpu": 1, "count/pods": "4"},
    "queue": "research",
    "priorityClassName": "high",
}


def kind_of(dialect: Dialect, plural: str) -> Kind:
    (kind,) = (kind for kind in dialect.kinds if kind.resource.plural == plural)
    return kind


def group(dialect: Dialect, spec: dict[str, Any], **meta: Any) -> model.PodGroup:
    manifest = {"metadata": metadata(**meta), "spec": spec, "status": {"phase": "Inqueue"}}
    read = kind_of(dialect, "podgroups").neutral_object(decoded(PodGroup, manifest), CONTEXT)
    assert isinstance(read, model.PodGroup)
    return read


def queue(
    dialect: Any, spec: dict[str, Any], annotations: dict[str, str] | None = None, **status: Any
) -> model.Queue:
    about = {**metadata(annotations=annotations or {}), "namespace": ""}
    manifest = {"metadata": about, "spec": spec, "status": status}
    read = kind_of(dialect, "queues").neutral_object(decoded(Queue, manifest), CONTEXT)
    assert isinstance(read, model.Queue)
    return read


def made_for(kind: str, *, suffix: str = "", **meta: Any) -> dict[str, Any]:
    """Metadata of a group that Tutti or Volcano's controller made for the pods of an owner."""
    versions = {"JobSet": "jobset.x-k8s.io/v1alpha2", "Pod": "v1", "Job": "batch/v1"}
    owner = {"kind": kind, "name": "w", "uid": "some", "controller": True}
    owner["apiVersion"] = versions.get(kind, "apps/v1")
    return {"name": f"podgroup-some{suffix}", "ownerReferences": [owner], **meta}


@pytest.mark.parametrize(
    "kind", ["Pod", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "Workers"]
)
def test_a_generated_group_without_a_declared_minimum_is_no_gang(kind: str) -> None:
    spec = {**FULL_SPEC, "minMember": 1, "minTaskMember": {}}
    read = group(volcano, spec, **made_for(kind))
    assert read.made_for_pods
    assert read.one_by_one
    assert (read.min_resources, read.priority_class, read.queue) == (None, "", "research")


def test_the_amounts_of_a_generated_gang_are_those_of_its_pods() -> None:
    read = group(volcano, FULL_SPEC, **made_for("Job"))
    assert (read.made_for_pods, read.one_by_one, read.min_member) == (True, False, 4)
    assert (read.min_resources, read.priority_class) == (None, "")


def test_an_object_that_asks_for_one_gang_of_all_its_pods_declares_their_amounts() -> None:
    asks: dict[str, Any] = {"annotations": {"tutti.dev/gang": "all"}}
    for suffix in ("", "-0"):
        spec = {**FULL_SPEC, "minMember": 1}
        read = group(volcano, spec, **made_for("JobSet", suffix=suffix, **asks))
        assert (read.made_for_pods, read.one_by_one) == (True, False)
        assert dict(read.min_resources or ())["cpu"] == 2500
    assert group(volcano, FULL_SPEC, **made_for("JobSet")).min_resources is None
    # A queue asked for it: all pods of a Job exist, and count themselves.
    assert group(volcano, FULL_SPEC, **made_for("Job", **asks)).min_resources is None


@pytest.mark.parametrize(
    "meta",
    [
        {"name": "mine", "ownerReferences": made_for("ReplicaSet")["ownerReferences"]},
        {"name": "podgroup-other", "ownerReferences": made_for("Job")["ownerReferences"]},
        {"name": "podgroup-some"},
    ],
)
def test_a_users_group_declares_what_it_says(meta: dict[str, Any]) -> None:
    read = group(volcano, {**FULL_SPEC, "minMember": 1}, **meta)
    assert (read.made_for_pods, read.one_by_one) == (False, False)
    assert read.min_resources
    assert read.priority_class == "high"


def test_a_volcano_group_is_read_whole_and_waits_for_inqueue() -> None:
    read = group(
        volcano,
        FULL_SPEC,
        ownerReferences=controlled_by("Job"),
        annotations={"tutti.dev/hold-seconds": "30"},
    )
    assert read == model.PodGroup(
        uid="uid-one",
        dialect="volcano",
        namespace="team",
        name="one",
        resource_version=7,
        created_ms=1772359200000,
        owner=model.Owner(api_version="kubeflow.org/v1", kind="Job", name="job", uid="uid-job"),
        min_member=4,
        min_task_member=(("ps", 1), ("worker", 3)),
        min_resources=(("cpu", 2500), ("memory", 1 << 30)),
        queue="research",
        priority_class="high",
        phase="Inqueue",
        waits_for_inqueue=True,
        settings=(("tutti.dev/hold-seconds", "30"),),
    )


@pytest.mark.parametrize("dialect", [incubator, sigs], ids=lambda dialect: dialect.name)
def test_a_kube_batch_group_has_neither_roles_nor_an_admission_gate(dialect: Any) -> None:
    read = group(dialect, FULL_SPEC)
    assert (read.dialect, read.min_member, read.queue) == (dialect.name, 4, "research")
    assert (read.min_task_member, read.min_resources, read.waits_for_inqueue) == ((), None, False)


@pytest.mark.parametrize(
    ("spec", "notes", "error"),
    [
        ({"minMember": -1}, {}, "spec.minMember: -1 is negative"),
        ({"minTaskMember": {"ps": -2}}, {}, "spec.minTaskMember.ps: -2 is negative"),
        (
            {"minResources": {"cpu": "-1"}},
            {},
            "spec.minResources.cpu: '-1' is negative: an amount must be 0 or more",
        ),
        (
            {},
            {"tutti.dev/hold-seconds": "soon"},
            'metadata.annotations[tutti.dev/hold-seconds]: "soon" is not a whole number of seconds',
        ),
        (
            {},
            {"tutti.dev/late-roles": "launcher=0"},
            'metadata.annotations[tutti.dev/late-roles]: "launcher=0" is not a list of roles, '
            'as in "launcher,driver=2"',
        ),
        (
            {"minTaskMember": {f"role-{i}": 1 for i in range(1001)}},
            {},
            "spec.minTaskMember: 1001 roles, more than are supported",
        ),
        (
            {"minTaskMember": {"r" * 900_000: 1}},
            {},
            "spec.minTaskMember: 1 roles, more than are supported",
        ),
        (
            {"minResources": {"r" * 900_000: 1}},
            {},
            "spec.minResources: 1 resources, more than are supported",
        ),
    ],
)
def test_a_group_that_cannot_be_meant_says_why(
    spec: dict[str, Any], notes: dict[str, str], error: str
) -> None:
    read = group(volcano, spec, annotations=notes)
    assert read.errors == (error,)
    assert read.min_member >= 0
    assert read.settings == ()
    assert len(msgspec.msgpack.encode(read)) < 5000


@pytest.mark.parametrize("dialect", [volcano, incubator, sigs], ids=lambda dialect: dialect.name)
def test_a_group_of_the_wrong_type_is_kept_and_names_the_field(dialect: Any) -> None:
    found = undecodable(PodGroup, {"metadata": metadata(), "spec": {"minMember": "four"}})
    read = kind_of(dialect, "podgroups").neutral_object(found, CONTEXT)
    assert isinstance(read, model.PodGroup)
    assert (read.uid, read.dialect) == ("uid-one", dialect.name)
    assert read.waits_for_inqueue == (dialect is volcano)
    assert "$.spec.minMember" in read.errors[0]


JOB = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "name": "job",
    "uid": "uid-job",
    "controller": True,
}
LINK = f"00-{'a' * 32}-{'b' * 16}-01"
FIRST = traceparent_of(gang_trace_id("team/uid-job", 1))


@pytest.mark.parametrize(
    ("notes", "owner", "root", "link"),
    [
        pytest.param(
            {"tutti.dev/trace-root": "uid-job"}, JOB, "team/uid-job", "", id="first of a job"
        ),
        pytest.param({}, JOB, "", FIRST, id="a later one, or made by Volcano's controllers"),
        pytest.param(
            {"tutti.dev/traceparent": LINK}, JOB, "", LINK, id="what the submitter says counts more"
        ),
        pytest.param(
            {"tutti.dev/trace-root": "uid-another"}, JOB, "", FIRST, id="another user's job"
        ),
        pytest.param(
            {"tutti.dev/trace-root": "uid-job"},
            {**JOB, "apiVersion": "kubeflow.org/v1"},
            "",
            "",
            id="another api's job",
        ),
        pytest.param({"tutti.dev/trace-root": "uid-job"}, None, "", "", id="nobody's"),
    ],
)
def test_only_a_jobs_first_group_continues_the_jobs_trace(
    notes: dict[str, str], owner: dict[str, Any] | None, root: str, link: str
) -> None:
    owners = [owner] if owner is not None else []
    read = group(volcano, FULL_SPEC, annotations=notes, ownerReferences=owners)
    assert (read.trace_root, read.traceparent) == (root, link)


def test_a_queue_is_read_with_its_amounts_and_state() -> None:
    read = queue(
        volcano,
        {
            "weight": 3,
            "capability": {"cpu": "4", "nvidia.com/gpu": 8},
            "deserved": {"cpu": 2},
            "guarantee": {"resource": {"cpu": 1}},
            "reclaimable": False,
            "parent": "root",
            "priority": 5,
        },
        state="Closed",
    )
    assert read == model.Queue(
        uid="uid-one",
        dialect="volcano",
        name="one",
        resource_version=7,
        created_ms=1772359200000,
        weight=3,
        capability=(("cpu", 4000), ("nvidia.com/gpu", 8)),
        deserved=(("cpu", 2000),),
        guarantee=(("cpu", 1000),),
        reclaimable=False,
        parent="root",
        priority=5,
        state="Closed",
    )


@pytest.mark.parametrize("dialect", [incubator, sigs], ids=lambda dialect: dialect.name)
def test_an_old_queue_without_state_is_usable(dialect: Any) -> None:
    read = queue(dialect, {"weight": 2})
    assert (read.dialect, read.weight, read.state, read.settings) == (dialect.name, 2, "", ())


def test_a_queue_whose_ceiling_cannot_be_read_is_closed_instead_of_boundless() -> None:
    read = queue(incubator, {"capability": {"cpu": "lots"}}, state="Open")
    assert read.state == "Unknown"
    assert read.settings[0][0] == "errors"
    assert read.settings[0][1].startswith("spec.capability.cpu: 'lots'")


def test_a_queue_of_the_wrong_type_takes_nothing() -> None:
    found = undecodable(Queue, {"metadata": metadata(), "spec": {"weight": "much"}})
    read = kind_of(sigs, "queues").neutral_object(found, CONTEXT)
    assert isinstance(read, model.Queue)
    assert (read.state, "$.spec.weight" in read.settings[0][1]) == ("Unknown", True)


def budget(spec: dict[str, Any], **meta: Any) -> model.ClusterObject | None:
    manifest = {"metadata": metadata(**meta), "spec": spec}
    return kind_of(disruption_budget, "poddisruptionbudgets").neutral_object(
        decoded(kube.DisruptionBudget, manifest), CONTEXT
    )


def test_a_controlled_budget_with_an_integer_is_a_gang_of_its_owners_pods() -> None:
    read = budget({"minAvailable": 4, "selector": {}}, ownerReferences=controlled_by())
    assert isinstance(read, model.PodGroup)
    assert (read.by_owner, read.min_member, read.queue) == (True, 4, "")
    assert read.owner is not None
    assert read.owner.uid == "uid-job"


@pytest.mark.parametrize(
    ("spec", "owners"),
    [
        pytest.param({"minAvailable": 4}, [], id="no controller owns it"),
        pytest.param({"minAvailable": "50%"}, controlled_by(), id="percentage"),
        pytest.param({"maxUnavailable": 1}, controlled_by(), id="maxUnavailable"),
        pytest.param({"minAvailable": 0}, controlled_by(), id="zero"),
    ],
)
def test_any_other_budget_declares_no_gang(
    spec: dict[str, Any], owners: list[dict[str, Any]]
) -> None:
    assert budget(spec, ownerReferences=owners) is None


def node(status: dict[str, Any], spec: dict[str, Any] | None = None) -> model.Node:
    manifest = {
        "metadata": {**metadata("n1", labels={"z": "1", "a": "2"}), "namespace": ""},
        "spec": spec or {},
        "status": status,
    }
    return read_node(decoded(kube.Node, manifest))


def test_a_node_is_read_with_what_decides_placement() -> None:
    read = node(
        {
            "allocatable": {"pods": "110", "cpu": "4", "broken": "lots", "memory": "16Gi"},
            "conditions": [
                {"type": "MemoryPressure", "status": "False"},
                {"type": "Ready", "status": "Unknown"},
            ],
        },
        {"unschedulable": True, "taints": [{"key": "gpu", "effect": "NoSchedule"}]},
    )
    assert read == model.Node(
        uid="uid-n1",
        name="n1",
        resource_version=7,
        labels=(("a", "2"), ("z", "1")),
        allocatable=(("cpu", 4000), ("memory", 16 << 30), ("pods", 110)),
        taints=(model.Taint(key="gpu", effect="NoSchedule"),),
        unschedulable=True,
        ready=False,
    )


def test_a_node_has_its_images_under_all_of_their_names() -> None:
    images = [
        {"names": ["b@sha256:1", "b:1"], "sizeBytes": 5},
        {"names": ["a:1"], "sizeBytes": 3},
        {"sizeBytes": 9},
    ]
    assert node({"images": images}).images == (("a:1", 3), ("b:1", 5), ("b@sha256:1", 5))


def test_a_node_without_conditions_counts_as_its_taints_say() -> None:
    assert node({}).ready


def test_a_node_that_cannot_be_read_exists_but_takes_nothing() -> None:
    found = undecodable(kube.Node, {"metadata": metadata("n1"), "status": {"allocatable": [1]}})
    read = read_undecodable_node(found)
    assert (read.name, read.ready, read.unschedulable, read.allocatable) == ("n1", False, True, ())


def test_a_priority_class_that_never_preempts() -> None:
    manifest = {
        "metadata": {**metadata("high"), "namespace": ""},
        "value": 1000,
        "globalDefault": True,
        "preemptionPolicy": "Never",
    }
    read = read_priority_class(decoded(kube.PriorityClass, manifest))
    assert (read.value, read.global_default, read.preempts) == (1000, True, False)


def test_a_queue_carries_the_defaults_of_its_groups_and_takes_none_while_one_is_malformed() -> None:
    notes = {"tutti.dev/hold-seconds": "5", "tutti.dev/preflight": "always", "other": "x"}
    read = kind_of(volcano, "queues").neutral_object(
        decoded(Queue, {"metadata": metadata(annotations=notes), "spec": {}}), CONTEXT
    )
    assert isinstance(read, model.Queue)
    assert read.settings == (
        ("tutti.dev/hold-seconds", "5"),
        ("tutti.dev/preflight", "always"),
    )
    notes["tutti.dev/hold-seconds"] = "-1"
    read = kind_of(volcano, "queues").neutral_object(
        decoded(Queue, {"metadata": metadata(annotations=notes), "spec": {}}), CONTEXT
    )
    assert isinstance(read, model.Queue)
    assert read.state == "Unknown"
    assert "tutti.dev/hold-seconds" in read.settings[0][1]
