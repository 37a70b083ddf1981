"""How a v1 Pod becomes a member of a gang with a shape."""

import re
import tracemalloc
from typing import Any

import msgspec
import pytest

from shared.dialects.pods import read_undecodable_pod
from shared.dialects.protocol import ReadingContext
from shared.kube import objects as kube
from shared.model import objects as model
from shared.model.bounds import SHAPE_BYTES_MAX
from tests.shared.dialects.reading import (
    CONTEXT,
    controlled_by,
    metadata,
    pod,
    shape_of,
    undecodable,
)

REPLICA_SET = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "name": "web",
    "uid": "uid-web",
    "controller": True,
}


def test_a_pod_belongs_to_the_group_that_its_annotation_names() -> None:
    read = pod(annotations={"scheduling.k8s.io/group-name": "gang"})
    assert (read.group_name, read.group_implied) == ("gang", False)


@pytest.mark.parametrize(
    ("scheduler", "owners", "implied_groups", "expected"),
    [
        pytest.param("volcano", [], True, ("podgroup-uid-one", True), id="alone"),
        pytest.param("tutti", [REPLICA_SET], True, ("podgroup-uid-web", True), id="of a workload"),
        pytest.param(
            "tutti", controlled_by(), True, ("podgroup-uid-one", True), id="of an unknown owner"
        ),
        pytest.param("kube-batch", controlled_by(), True, ("", False), id="shadowed"),
        pytest.param("volcano", controlled_by(), False, ("", False), id="no group controller"),
        pytest.param("default-scheduler", controlled_by(), True, ("", False), id="foreign"),
    ],
)
def test_a_bare_pod_gets_an_implied_group_only_where_one_will_be_made(
    scheduler: str, owners: list[dict[str, Any]], implied_groups: bool, expected: tuple[str, bool]
) -> None:
    context = ReadingContext(scheduler_names=CONTEXT.scheduler_names, implied_groups=implied_groups)
    read = pod({"schedulerName": scheduler}, ownerReferences=owners, context=context)
    assert (read.group_name, read.group_implied) == expected
    assert read.ours == (scheduler != "default-scheduler")


@pytest.mark.parametrize("owner", ["Workflow", "PyTorchJob"])
def test_pods_of_an_unknown_owner_are_one_group_only_if_they_declare_its_minimum(
    owner: str,
) -> None:
    context = ReadingContext(scheduler_names=CONTEXT.scheduler_names, implied_groups=True)
    owners = [{**REPLICA_SET, "apiVersion": "example.com/v1", "kind": owner}]
    declared = {"scheduling.k8s.io/group-min-member": "2"}
    names = [
        pod(
            {"schedulerName": "volcano"}, annotations=notes, ownerReferences=owners, context=context
        )
        for notes in ({}, declared)
    ]
    assert [one.group_name for one in names] == ["podgroup-uid-one", "podgroup-uid-web"]


@pytest.mark.parametrize(
    ("scheduler", "notes", "alone"),
    [
        ("kube-batch", {}, True),
        ("kube-batch", {"scheduling.k8s.io/group-min-member": "2"}, False),
        ("kube-batch", {"scheduling.k8s.io/group-name": "gang"}, False),
        ("default-scheduler", {}, False),
    ],
)
def test_a_pod_without_a_declaration_is_in_no_gang_where_no_group_is_made(
    scheduler: str, notes: dict[str, str], alone: bool
) -> None:
    read = pod({"schedulerName": scheduler}, annotations=notes, ownerReferences=[REPLICA_SET])
    assert read.one_by_one is alone


def test_a_pod_is_misdirected_that_declares_a_gang_and_names_a_scheduler_that_ignores_it() -> None:
    group = {"scheduling.k8s.io/group-name": "gang"}
    default = {"schedulerName": "default-scheduler"}
    assert pod(default, annotations=group).misdirected
    assert not pod(default).misdirected
    assert not pod({"schedulerName": "elsewhere"}, annotations=group).misdirected
    assert not pod({"schedulerName": "tutti"}, annotations=group).misdirected
    native = {**default, "schedulingGroup": {"podGroupName": "g"}}
    assert not pod(native).misdirected


def test_only_the_controller_counts_as_owner() -> None:
    read = pod(ownerReferences=controlled_by("PyTorchJob"))
    assert read.owner == model.Owner(
        api_version="kubeflow.org/v1", kind="PyTorchJob", name="job", uid="uid-job"
    )


@pytest.mark.parametrize(
    ("meta", "role", "index"),
    [
        pytest.param(
            {"annotations": {"volcano.sh/task-spec": "ps", "volcano.sh/task-index": "3"}},
            "ps",
            3,
            id="volcano annotations",
        ),
        pytest.param(
            {
                "annotations": {"volcano.sh/task-spec": "ps"},
                "labels": {"volcano.sh/task-spec": "worker"},
            },
            "ps",
            -1,
            id="annotation before label",
        ),
        pytest.param(
            {"labels": {"tf-replica-type": "worker", "tf-replica-index": "0"}},
            "worker",
            0,
            id="tf-operator of the seeds",
        ),
        pytest.param(
            {
                "labels": {
                    "training.kubeflow.org/replica-type": "master",
                    "training.kubeflow.org/replica-index": "12",
                }
            },
            "master",
            12,
            id="training-operator",
        ),
        pytest.param({"labels": {"app": "web"}}, "", -1, id="none"),
        pytest.param({"labels": {"replica-index": "-1"}}, "", -1, id="no number"),
        pytest.param({"labels": {"replica-index": "٣"}}, "", -1, id="digit of another script"),
    ],
)
def test_role_and_index_come_from_the_pods_controller(
    meta: dict[str, Any], role: str, index: int
) -> None:
    read = pod(**meta)
    assert (read.role, read.index) == (role, index)


def test_the_model_carries_what_the_cluster_says_about_the_pod() -> None:
    read = pod(
        {
            "priority": 7,
            "nodeName": "n1",
            "schedulingGates": [{"name": "quota"}],
        },
        status={
            "phase": "Pending",
            "containerStatuses": [
                {"name": "main", "state": {"waiting": {"reason": "ContainerCreating"}}},
                {
                    "name": "side",
                    "state": {
                        "waiting": {"reason": "ImagePullBackOff", "message": "no such image"}
                    },
                },
            ],
        },
        deletionTimestamp="2026-03-01T11:00:00Z",
        annotations={
            "scheduling.k8s.io/group-min-member": "4",
            "scheduling.volcano.sh/queue-name": "research",
            "tutti.dev/decision": "c0ffee/42",
            "tutti.dev/traceparent": f"00-{'a' * 32}-{'b' * 16}-01",
        },
    )
    assert read.resource_version == 7
    assert read.created_ms == 1772359200000
    assert (read.priority, read.node, read.gates) == (7, "n1", ("quota",))
    assert read.waiting == "ImagePullBackOff: no such image"
    assert read.deleting
    assert (read.group_min_member, read.queue, read.decision_seq) == (4, "research", 42)
    assert read.traceparent.startswith("00-aaaa")


@pytest.mark.parametrize("value", ["", "00-zz-1-01", "x" * 200_000])
def test_a_traceparent_that_is_none_is_left_out(value: str) -> None:
    assert pod(annotations={"tutti.dev/traceparent": value}).traceparent == ""


def test_pods_of_one_template_share_one_shape() -> None:
    def member(number: int) -> model.Pod:
        token = {"name": f"kube-api-access-{number}", "projected": {"sources": []}}
        container = {
            "name": "main",
            "resources": {"requests": {"cpu": "1"}},
            "env": [{"name": "I"}],
        }
        return pod(
            {"containers": [container], "volumes": [token], "nodeName": f"n{number}"},
            name=f"w-{number}",
        )

    assert member(1).shape is member(2).shape


def test_extended_resources_are_read_of_our_pods_and_shared_by_those_of_a_template() -> None:
    spec = {"containers": [{"name": "train", "resources": {"requests": {"nvidia.com/gpu": 2}}}]}
    one, other = pod(spec, name="a"), pod(spec, name="b")
    requests = (("nvidia.com/gpu", 0, 2),)
    assert one.extended == (model.ContainerDevices(container="train", index=0, requests=requests),)
    assert one.extended is other.extended
    assert pod({**spec, "schedulerName": "default-scheduler"}).extended == ()


def test_equal_labels_are_one_object() -> None:
    one, other = (pod(labels={"app": "web", "tier": f"{1}"}).labels for _ in range(2))
    assert one is other


def test_pods_that_come_and_go_leave_little_behind() -> None:
    def come_and_go(first: int, count: int) -> int:
        for number in range(first, first + count):
            name = f"job-{number}"
            owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": name}
            owners = [{**owner, "controller": True}]
            pod(labels={"job-name": name, "replica-index": str(number)}, ownerReferences=owners)
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        early = come_and_go(0, 1500)
        late = come_and_go(1500, 1500)
    finally:
        tracemalloc.stop()
    assert late - early < 100_000, "as much as 100 pods at most; every pod had its own labels"


def test_a_pod_with_absurd_constraints_cannot_outgrow_a_message() -> None:
    many = [{"key": f"k{i}", "value": "v" * 60, "effect": "NoSchedule"} for i in range(5000)]
    read = pod(
        {"tolerations": many, "schedulingGates": [{"name": f"gate-{i}"} for i in range(9000)]},
        annotations={"scheduling.k8s.io/group-name": "g" * 200_000},
        ownerReferences=controlled_by("K" * 500_000),
    )
    assert len(msgspec.msgpack.encode(read)) < SHAPE_BYTES_MAX
    (why,) = shape_of(read).unsupported
    rule = r"takes \d+ bytes, and Tutti judges objects of at most 65536"
    assert re.fullmatch(rf"TooLarge: spec\.tolerations {rule}", why)


@pytest.mark.parametrize(
    ("spec", "labels"),
    [
        ({"tolerations": [{"key": f"k{i}", "value": "v" * 60} for i in range(5000)]}, {}),
        ({}, {f"k{i}": "v" * 60 for i in range(1000)}),
    ],
    ids=["constraints", "labels"],
)
def test_a_pod_that_is_not_judged_still_takes_its_amounts_on_its_node(
    spec: dict[str, Any], labels: dict[str, str]
) -> None:
    asked = {"requests": {"cpu": "3", "memory": "1Gi", "nvidia.com/gpu": "2"}}
    ports = [{"containerPort": 80, "hostPort": 80}]
    spec = {**spec, "containers": [{"name": "main", "resources": asked, "ports": ports}]}
    here = shape_of(pod({**spec, "nodeName": "n"}, labels=labels))
    assert here.requests == (("cpu", 3000), ("memory", 1 << 30), ("nvidia.com/gpu", 2), ("pods", 1))
    assert here.host_ports == (model.HostPort(port=80),)
    assert here.unsupported[0].startswith("TooLarge: ")
    assert here.tolerations == ()
    assert shape_of(pod(spec, labels=labels)).requests == (("pods", 1),)


def test_a_disk_with_many_monitors_makes_no_name_that_is_longer_than_its_pod() -> None:
    rbd = {"monitors": [f"m{i}" for i in range(50_000)], "image": "i" * 500_000}
    read = pod({"volumes": [{"name": "data", "rbd": rbd}]})
    assert len(read.shape) < SHAPE_BYTES_MAX
    assert shape_of(read).unsupported[0].startswith("TooLarge: spec.volumes has ")


def test_an_unreadable_member_of_a_group_is_kept_and_says_why() -> None:
    manifest = {
        "metadata": metadata(annotations={"scheduling.k8s.io/group-name": "gang"}),
        "spec": {"priority": "high"},
    }
    read = read_undecodable_pod(undecodable(kube.Pod, manifest), CONTEXT)
    assert read is not None
    assert (read.ours, read.group_name, read.uid) == (True, "gang", "uid-one")
    assert "$.spec.priority" in shape_of(read).unsupported[0]


def test_an_unreadable_pod_that_names_no_group_is_nobodys_business() -> None:
    found = undecodable(kube.Pod, {"metadata": metadata(), "spec": {"priority": "high"}})
    assert read_undecodable_pod(found, CONTEXT) is None


@pytest.mark.parametrize(
    ("phase", "expected"), [("", "Pending"), ("Running", "Running"), ("Dreaming", "Unknown")]
)
def test_an_unknown_phase_is_unknown(phase: str, expected: str) -> None:
    assert pod(status={"phase": phase}).phase == expected


@pytest.mark.parametrize(
    ("conditions", "disrupted"),
    [
        ([], False),
        ([{"type": "Ready", "status": "True"}], False),
        ([{"type": "DisruptionTarget", "status": "False"}], False),
        ([{"type": "Ready"}, {"type": "DisruptionTarget", "status": "True"}], True),
    ],
)
def test_a_pod_is_disrupted_when_its_condition_says_so(
    conditions: list[dict[str, str]], disrupted: bool
) -> None:
    assert pod(status={"conditions": conditions}).disrupted == disrupted


@pytest.mark.parametrize(
    ("reason", "released"), [("GangReleased", True), ("PreemptionByScheduler", False)]
)
def test_a_pod_is_released_when_its_disruption_has_the_reason_of_a_release(
    reason: str, released: bool
) -> None:
    condition = {"type": "DisruptionTarget", "status": "True", "reason": reason}
    assert pod(status={"conditions": [condition]}).released == released


@pytest.mark.parametrize(
    ("condition", "scheduled_ms"),
    [
        ({"status": "True", "lastTransitionTime": "1970-01-01T00:00:07Z"}, 7_000),
        ({"status": "True", "lastTransitionTime": None}, 0),
        ({"status": "False", "lastTransitionTime": "1970-01-01T00:00:07Z"}, 0),
    ],
)
def test_the_time_of_a_binding_is_that_of_the_condition_pod_scheduled(
    condition: dict[str, Any], scheduled_ms: int
) -> None:
    given = {"type": "PodScheduled", **condition}
    assert pod(status={"conditions": [given]}).scheduled_ms == scheduled_ms


def test_what_selectors_and_policies_look_at_is_read() -> None:
    read = pod(
        {"preemptionPolicy": "Never", "priorityClassName": "high"},
        status={
            "nominatedNodeName": "n1",
            "startTime": "2026-03-01T10:00:00Z",
            "containerStatuses": [{"name": "a", "restartCount": 2}],
            "initContainerStatuses": [{"name": "b", "restartCount": 1}],
        },
        labels={"z": "1", "app": "web"},
        annotations={"volcano.sh/task-priority": "-5", "volcano.sh/cooldown-time": "10m"},
    )
    assert msgspec.msgpack.decode(read.labels) == [["app", "web"], ["z", "1"]]
    assert (read.preempts, read.priority_class, read.nominated_node) == (False, "high", "n1")
    assert (read.started_ms, read.restarts) == (1772359200000, 3)
    assert (read.task_priority, read.cooldown_ms) == (-5, 600_000)


def test_a_plain_pod_has_none_of_it() -> None:
    read = pod()
    assert (read.labels, read.preempts, read.priority_class, read.nominated_node) == (
        b"",
        True,
        "",
        "",
    )
    assert (read.preemptable, read.task_priority, read.cooldown_ms, read.restarts) == (
        "",
        None,
        0,
        0,
    )


@pytest.mark.parametrize("text", ["x", "", "99999999999", "2147483648", "1.5"])
def test_a_task_priority_that_is_no_int32_is_none(text: str) -> None:
    assert pod(annotations={"volcano.sh/task-priority": text}).task_priority is None


@pytest.mark.parametrize(
    ("annotations", "labels", "expected"),
    [
        ({}, {}, ""),
        ({"volcano.sh/preemptable": "true"}, {"volcano.sh/preemptable": "false"}, "true"),
        ({}, {"volcano.sh/preemptable": "T"}, "true"),
        ({"volcano.sh/preemptable": "no"}, {}, "false"),
    ],
)
def test_preemptable_is_the_annotation_else_the_label(
    annotations: dict[str, str], labels: dict[str, str], expected: str
) -> None:
    assert pod(annotations=annotations, labels=labels).preemptable == expected


def test_labels_beyond_all_measure_make_a_pod_fit_nowhere() -> None:
    read = pod(labels={f"key-{i}": "v" * 63 for i in range(1000)})
    assert read.labels == b""
    assert "metadata.labels" in shape_of(read).unsupported[0]


@pytest.mark.parametrize(
    ("labels", "role"),
    [
        pytest.param(
            {
                "training.kubeflow.org/operator-name": "mpi-operator",
                "training.kubeflow.org/job-name": "mpi",
                "training.kubeflow.org/job-role": "launcher",
            },
            "launcher",
            id="MPI operator v2",
        ),
        pytest.param(
            {
                "training.kubeflow.org/replica-type": "worker",
                "training.kubeflow.org/job-role": "master",
            },
            "worker",
            id="training-operator marks the worker that acts as master",
        ),
        pytest.param({"spark-role": "driver"}, "driver", id="Spark"),
        pytest.param(
            {"ray.io/node-type": "head", "ray.io/group": "headgroup"}, "head", id="KubeRay"
        ),
        pytest.param({"jobset.sigs.k8s.io/replicatedjob-name": "node"}, "node", id="JobSet"),
        pytest.param({"leaderworkerset.sigs.k8s.io/worker-index": "0"}, "leader", id="LWS leader"),
        pytest.param({"leaderworkerset.sigs.k8s.io/worker-index": "3"}, "worker", id="LWS worker"),
        pytest.param(
            {"volcano.sh/task-spec": "ps", "spark-role": "driver"}, "ps", id="Volcano's goes first"
        ),
        pytest.param({"app": "web"}, "", id="none"),
    ],
)
def test_a_pods_role_is_read_as_its_operator_labels_it(labels: dict[str, str], role: str) -> None:
    assert pod(labels=labels).role == role
