"""How large a gang the pods of a workload are."""

import msgspec
import pytest

from shared.dialects.workload_sizes import Workload, gang_size, is_asked_by_default
from shared.kube.objects import ObjectMeta

MIN = "scheduling.volcano.sh/group-min-member"
POD_MIN = "scheduling.k8s.io/group-min-member"
GANG = "tutti.dev/gang"


def a_workload(notes: dict[str, str] | None = None, **spec: object) -> Workload:
    return msgspec.convert({"metadata": {"annotations": notes or {}}, "spec": spec}, Workload)


@pytest.mark.parametrize(
    ("kind", "workload", "asked", "size"),
    [
        pytest.param("ReplicaSet", None, False, 1, id="no owner"),
        pytest.param("ReplicaSet", a_workload(replicas=3), False, 1, id="nothing declared"),
        pytest.param("ReplicaSet", a_workload({MIN: "2"}, replicas=3), False, 2, id="declared"),
        pytest.param(
            "ReplicaSet", a_workload({MIN: "3"}, replicas=1), False, 1, id="a rolling update begins"
        ),
        pytest.param(
            "DaemonSet", a_workload({MIN: "3"}), False, 3, id="a DaemonSet has no replicas"
        ),
        pytest.param(
            "StatefulSet", a_workload({MIN: "3"}, replicas=3), False, 1, id="pods one by one"
        ),
        pytest.param(
            "StatefulSet",
            a_workload({MIN: "3"}, replicas=3, podManagementPolicy="Parallel"),
            False,
            3,
            id="pods at once",
        ),
        pytest.param("Job", a_workload(parallelism=4), False, 1, id="a Job as in Volcano"),
        pytest.param("Job", a_workload({MIN: "2"}, parallelism=4), False, 2, id="a Job's minimum"),
        pytest.param("Job", a_workload({GANG: "all"}, parallelism=4), False, 4, id="a whole Job"),
        pytest.param(
            "Job",
            a_workload({GANG: "all"}, parallelism=4, completions=3),
            False,
            3,
            id="a short one",
        ),
        pytest.param("Job", a_workload({GANG: "all"}), False, 1, id="a Job of one"),
        pytest.param("Job", a_workload(parallelism=4), True, 4, id="its queue says so"),
        pytest.param("Job", a_workload({GANG: "none"}, parallelism=4), True, 1, id="it says no"),
        pytest.param("ReplicaSet", a_workload(replicas=4), True, 1, id="a queue speaks of Jobs"),
    ],
)
def test_the_gang_of(kind: str, workload: Workload | None, asked: bool, size: int) -> None:
    assert gang_size(kind, workload, asked, {}) == size


@pytest.mark.parametrize(
    ("queue", "namespace", "asked"),
    [
        ({GANG: "all"}, {}, True),
        ({}, {GANG: "all"}, True),
        ({GANG: "none"}, {GANG: "all"}, True),
        ({}, {GANG: "none"}, False),
        ({}, {}, False),
    ],
)
def test_a_queue_asks_by_an_annotation_and_a_namespace_by_a_label(
    queue: dict[str, str], namespace: dict[str, str], asked: bool
) -> None:
    found = ObjectMeta(annotations=queue), ObjectMeta(labels=namespace)
    assert is_asked_by_default(*found) == asked
    turned = ObjectMeta(labels=queue), ObjectMeta(annotations=namespace)
    assert not is_asked_by_default(*turned)


@pytest.mark.parametrize(
    ("kind", "workload", "size"),
    [
        pytest.param("Job", a_workload(parallelism=4), 4, id="a Job whose pods declare a minimum"),
        pytest.param(
            "Job", a_workload({MIN: "2"}, parallelism=4), 2, id="its own annotation counts"
        ),
        pytest.param("ReplicaSet", a_workload(replicas=3), 3, id="not more than it makes"),
        pytest.param("StatefulSet", a_workload(replicas=4), 1, id="pods one by one"),
        pytest.param("TFJob", None, 4, id="an owner whose kind is not read"),
        pytest.param("", None, 1, id="a pod alone stands for itself"),
    ],
)
def test_pods_that_declare_a_minimum_themselves_are_a_gang_of_their_owner(
    kind: str, workload: Workload | None, size: int
) -> None:
    """kube-batch's users annotate the pods, not the Job that makes them."""
    assert gang_size(kind, workload, False, {POD_MIN: "4"}) == size
