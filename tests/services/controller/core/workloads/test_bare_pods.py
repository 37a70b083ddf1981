import msgspec
import pytest

from services.controller.core.workloads import join_patch, owner_resource, pod_group_for
from shared.dialects.workload_sizes import Workload
from shared.kube.objects import Container, Pod

CONTAINER = {
    "name": "c",
    "resources": {
        "requests": {"cpu": "500m", "memory": "1Gi", "nvidia.com/gpu": "1"},
        "limits": {"cpu": "1", "nvidia.com/gpu": "1"},
    },
}
OWNER = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "name": "rs",
    "uid": "rs-uid",
    "controller": True,
}


def a_workload(replicas: int, notes: dict[str, str]) -> Workload:
    raw = {"metadata": {"uid": "rs-uid", "annotations": notes}, "spec": {"replicas": replicas}}
    return msgspec.convert(raw, Workload)


def make_pod(**metadata: object) -> Pod:
    raw = {
        "metadata": {"name": "p", "namespace": "team", "uid": "p-uid", **metadata},
        "spec": {"priorityClassName": "high", "containers": [CONTAINER]},
    }
    return msgspec.convert(raw, Pod)


def test_a_pod_of_a_replica_set_gets_the_group_that_its_owner_asks_for() -> None:
    pod = make_pod(
        ownerReferences=[OWNER],
        annotations={"scheduling.volcano.sh/queue-name": "q", "volcano.sh/preemptable": "false"},
        labels={"volcano.sh/cooldown-time": "60s", "app": "a"},
    )
    owner = a_workload(
        4,
        {
            "scheduling.volcano.sh/group-min-member": "3",
            "volcano.sh/note": "kept",
            "other": "left",
        },
    )
    assert pod_group_for(pod, owner, "podgroup-rs-uid", queue="q") == {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {
            "name": "podgroup-rs-uid",
            "namespace": "team",
            "annotations": {
                "volcano.sh/note": "kept",
                "volcano.sh/preemptable": "false",
                "tutti.dev/inherited": "scheduling.volcano.sh/queue-name,volcano.sh/preemptable",
            },
            "labels": {"volcano.sh/cooldown-time": "60s"},
            "ownerReferences": [{**OWNER, "blockOwnerDeletion": True}],
        },
        "spec": {
            "minMember": 3,
            "queue": "q",
            "priorityClassName": "high",
            "minResources": {
                "count/pods": "3",
                "cpu": "1500m",
                "limits.cpu": "3",
                "memory": "3Gi",
                "nvidia.com/gpu": "3",
                "pods": "3",
                "requests.cpu": "1500m",
                "requests.memory": "3Gi",
                "requests.nvidia.com/gpu": "3",
            },
        },
        "status": {"phase": "Pending"},
    }


def test_a_pod_without_controller_owns_its_group() -> None:
    group = pod_group_for(make_pod(), None, "podgroup-p-uid")
    assert group["metadata"]["ownerReferences"][0]["kind"] == "Pod"
    assert group["metadata"]["ownerReferences"][0]["uid"] == "p-uid"
    assert (group["spec"]["minMember"], group["spec"]["queue"]) == (1, "default")


@pytest.mark.parametrize("text", ["", "0", "-1", "many", "99999999999", "1.5", "٣"])
def test_a_gang_size_that_is_none_counts_as_one(text: str) -> None:
    owner = a_workload(4, {"scheduling.volcano.sh/group-min-member": text})
    pod = make_pod(ownerReferences=[OWNER])
    assert pod_group_for(pod, owner, "g")["spec"]["minMember"] == 1


def test_only_the_four_kinds_that_volcano_reads_are_asked_for_annotations() -> None:
    assert owner_resource(make_pod()) is None
    assert owner_resource(make_pod(ownerReferences=[{**OWNER, "kind": "TFJob"}])) is None
    found = owner_resource(make_pod(ownerReferences=[OWNER]))
    assert found is not None
    assert (found[0].plural, found[1].uid) == ("replicasets", "rs-uid")


def test_amounts_that_cannot_be_read_leave_min_resources_out() -> None:
    pod = make_pod()
    odd = msgspec.structs.replace(pod.spec.containers[0].resources, requests={"cpu": "-1"})
    container = msgspec.structs.replace(pod.spec.containers[0], resources=odd)
    spec = msgspec.structs.replace(pod.spec, containers=(container,))
    group = pod_group_for(msgspec.structs.replace(pod, spec=spec), None, "g")
    assert "minResources" not in group["spec"]


def test_limits_of_init_containers_count_in_min_resources_as_in_a_quota() -> None:
    pod = make_pod()
    large = msgspec.convert({"name": "i", "resources": {"limits": {"cpu": "4"}}}, Container)
    spec = msgspec.structs.replace(pod.spec, init_containers=(large,))
    group = pod_group_for(msgspec.structs.replace(pod, spec=spec), None, "g")
    assert group["spec"]["minResources"]["limits.cpu"] == "4"


def test_topology_annotations_become_fields() -> None:
    pod = make_pod(
        annotations={
            "volcano.sh/network-topology-mode": "hard",
            "volcano.sh/network-topology-highest-tier": "2",
        }
    )
    assert pod_group_for(pod, None, "g")["spec"]["networkTopology"] == {
        "mode": "hard",
        "highestTierAllowed": 2,
    }


def test_joining_names_the_group_for_one_uid_only() -> None:
    assert join_patch("u", "g") == {
        "metadata": {"uid": "u", "annotations": {"scheduling.k8s.io/group-name": "g"}}
    }
