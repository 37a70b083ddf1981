"""The gangs that workloads declare before their pods exist."""

from typing import Any

import msgspec
import pytest

from shared.contracts.questions import FIT_PODS_MAX, FitRequest
from shared.dialects.protocol import ReadingContext
from shared.dialects.workloads import declared
from shared.model.objects import Labels, Shape

CONTEXT = ReadingContext(scheduler_names=frozenset({"tutti"}))
CONTAINER = {"name": "c", "resources": {"limits": {"cpu": "2"}}}
QUEUE = "scheduling.volcano.sh/queue-name"
TEMPLATE: dict[str, Any] = {"spec": {"containers": [CONTAINER]}}


def gang(kind: str, api_version: str, annotations: Any = None, **spec: Any) -> FitRequest | None:
    metadata = {"name": "job", "namespace": "team", "annotations": annotations}
    return declared(
        {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec},
        uid="asked",
        context=CONTEXT,
    )


def job(*tasks: Any, **spec: Any) -> FitRequest:
    found = gang("Job", "batch.volcano.sh/v1alpha1", tasks=list(tasks), **spec)
    assert found is not None
    return found


def task(name: str, replicas: int, **fields: Any) -> dict[str, Any]:
    return {"name": name, "replicas": replicas, "template": TEMPLATE, **fields}


def labels(encoded: bytes) -> dict[str, str]:
    return dict(msgspec.msgpack.decode(encoded, type=Labels))


def test_a_volcano_job_declares_what_its_own_group_would() -> None:
    found = job(
        task("ps", 1),
        task("worker", 4, minAvailable=2),
        queue="field",
        priorityClassName="high",
        networkTopology={"mode": "hard", "highestTierAllowed": 2},
    )
    group = found.group
    assert (group.uid, group.namespace, group.name) == ("asked", "team", "job")
    assert group.min_member == 3
    assert group.min_task_member == (("ps", 1), ("worker", 2))
    assert (group.queue, group.priority_class) == ("field", "high")
    assert group.topology is not None
    assert group.topology.highest_tier == 2
    assert [(pod.role, pod.index) for pod in found.pods] == [
        ("ps", 0),
        *(("worker", index) for index in range(4)),
    ]


def test_partitions_of_a_task_are_sub_gangs_and_their_pods_say_which() -> None:
    policy = {"totalPartitions": 2, "partitionSize": 3, "minPartitions": 1}
    found = job(task("stage", 6, partitionPolicy=policy))
    (one,) = found.group.sub_groups
    assert (one.name, one.size, one.min_sub_groups) == ("stage", 3, 1)
    assert found.group.min_member == 3
    reported = [labels(pod.labels)["volcano.sh/partition-id"] for pod in found.pods]
    assert reported == ["0", "0", "0", "1", "1", "1"]


def test_terms_of_a_template_are_read_in_the_namespace_and_limits_are_requests() -> None:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}}
    spec = {
        **TEMPLATE["spec"],
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
    }
    found = job({"name": "w", "template": {"metadata": {"labels": {"app": "x"}}, "spec": spec}})
    (pod,) = found.pods
    shape = msgspec.msgpack.decode(pod.shape, type=Shape)
    assert dict(shape.requests)["cpu"] == 2000
    assert shape.pod_affinity is not None
    assert shape.pod_affinity.anti_affinity[0].namespaces == ("team",)
    assert labels(pod.labels)["app"] == "x"


@pytest.mark.parametrize(
    ("notes", "of_template", "size"),
    [
        (None, None, 4),
        ({"scheduling.volcano.sh/group-min-member": "2"}, None, 2),
        (None, {"scheduling.k8s.io/group-min-member": "3"}, 3),
        ({"scheduling.volcano.sh/group-min-member": "many"}, None, 4),
    ],
    ids=["all", "of the owner", "of the pods", "no number"],
)
def test_all_pods_are_the_gang_unless_an_annotation_says_how_many(
    notes: Any, of_template: Any, size: int
) -> None:
    template = {**TEMPLATE, "metadata": {"annotations": of_template}}
    found = gang("Deployment", "apps/v1", notes, replicas=4, template=template)
    assert found is not None
    assert (found.group.min_member, len(found.pods)) == (size, 4)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"replicas": FIT_PODS_MAX + 1, "template": TEMPLATE}, "at most"),
        ({"replicas": -1, "template": TEMPLATE}, "replicas: must be a number"),
        ({"template": 7}, "template: must be an object"),
        ({}, "have no containers"),
        ({"template": {"spec": {"containers": 7}}}, "Expected `array`"),
    ],
)
def test_what_cannot_be_read_says_why(spec: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        gang("Deployment", "apps/v1", **spec)


@pytest.mark.parametrize(
    ("kind", "api_version", "of_pods", "queue"),
    [
        ("Job", "batch/v1", {}, "objects"),
        ("Job", "batch/v1", {QUEUE: "pods"}, "pods"),
        ("Deployment", "apps/v1", {}, "default"),
        ("Deployment", "apps/v1", {QUEUE: "pods"}, "pods"),
    ],
)
def test_a_queue_is_that_of_the_pods_else_that_of_a_job(
    kind: str, api_version: str, of_pods: dict[str, str], queue: str
) -> None:
    template = {**TEMPLATE, "metadata": {"annotations": of_pods}}
    found = gang(kind, api_version, {QUEUE: "objects"}, template=template)
    assert found is not None
    assert (found.group.queue or "default") == queue


def test_a_kind_that_is_not_known_declares_nothing() -> None:
    assert gang("Service", "v1") is None


def test_limits_are_the_least_that_a_quorum_is_limited_to() -> None:
    def limited(**limits: str) -> dict[str, Any]:
        container = {"name": "c", "resources": {"limits": limits}}
        return {"template": {"spec": {"containers": [container]}}}

    found = job(
        task("ps", 1) | limited(cpu="8", memory="1Gi", **{"nvidia.com/gpu": "1"}),
        task("worker", 4) | limited(cpu="500m"),
        minAvailable=4,
    )
    assert dict(found.limits) == {"limits.cpu": 2000, "limits.memory": 0}
    found = job(task("worker", 4) | limited(cpu="500m"))
    assert dict(found.limits) == {"limits.cpu": 2000}


def test_a_job_without_minima_is_a_gang_as_its_controller_makes_it() -> None:
    policy = {"totalPartitions": 2, "partitionSize": 3, "minPartitions": 1}
    topology = {"highestTierAllowed": 2}
    parts = task("stage", 6, partitionPolicy={**policy, "networkTopology": topology})
    found = job(task("ps", 1), parts)
    assert found.group.min_member == 4
    (stage,) = found.group.sub_groups
    assert stage.topology is not None
    assert stage.topology.highest_tier == 2
    assert dict(found.group.min_resources or ())["pods"] == 4


def test_extended_resources_of_a_template_are_read_whatever_its_scheduler_is() -> None:
    """Otherwise a question about a Job would see the nodes with a device plugin only."""
    container = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    template = {"spec": {"containers": [container], "schedulerName": "default-scheduler"}}
    found = job({"name": "worker", "replicas": 2, "template": template})
    assert [one.extended[0].requests for one in found.pods] == [(("nvidia.com/gpu", 0, 1),)] * 2
