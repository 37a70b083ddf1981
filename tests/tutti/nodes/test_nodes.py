"""What pods ask of their nodes."""

from typing import Any, Final

import msgspec

from shared.kube.objects import Node, Pod
from tutti.nodes_command import by_share, uses

GPUS: Final[Any] = {"nvidia.com/gpu": "2"}


def node(
    name: str, cpu: str, *, ready: str = "True", cordoned: bool = False, **allocatable: str
) -> Node:
    return msgspec.convert(
        {
            "metadata": {"name": name},
            "spec": {"unschedulable": cordoned},
            "status": {
                "allocatable": {"pods": "110", "cpu": cpu, **allocatable},
                "conditions": [{"type": "Ready", "status": ready}],
            },
        },
        Node,
    )


def pod(name: str, where: str, *, gang: str = "", phase: str = "Running", cpu: str = "1") -> Pod:
    found: dict[str, Any] = {
        "metadata": {
            "name": name,
            "namespace": "team",
            "annotations": {"scheduling.k8s.io/group-name": gang} if gang else {},
        },
        "spec": {
            "nodeName": where,
            "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}],
        },
        "status": {"phase": phase},
    }
    return msgspec.convert(found, Pod)


def test_a_node_is_used_by_the_pods_on_it_that_have_not_ended() -> None:
    (found,) = uses(
        [node("n1", "4", memory="8Gi")],
        [
            pod("a", "n1", gang="large"),
            pod("b", "n1", gang="large"),
            pod("c", "n1", gang="small"),
            pod("d", "n1", cpu="500m"),
            pod("done", "n1", phase="Succeeded", cpu="100"),
            pod("elsewhere", "n2", cpu="100"),
            pod("waits", "", cpu="100"),
            pod("unreadable", "n1", cpu="many"),
        ],
    )
    reported = {one.resource: (one.used, one.allocatable) for one in found.resources}
    assert reported == {"cpu": (3_500, 4_000), "memory": (0, 8 << 30), "pods": (4, 110)}
    assert [one.resource for one in found.resources] == ["cpu", "memory", "pods"]
    assert found.gangs == ("team/large", "team/small")
    assert found.state == "Ready"


def test_the_fullest_come_first_and_those_without_the_resource_last() -> None:
    found = uses(
        [
            node("full", "1", ready="False", cordoned=True),
            node("half", "2", **GPUS),
            node("empty", "2"),
        ],
        [pod("a", "full"), pod("b", "half")],
    )
    assert [one.name for one in by_share(found, "cpu")] == ["full", "half", "empty"]
    assert [one.name for one in by_share(found, "nvidia.com/gpu")] == ["half", "empty", "full"]
    assert [one.state for one in found if one.name == "full"] == ["NotReady,cordoned"]


def test_gangs_have_their_names_for_users() -> None:
    name = "second-a843473f-2a42-4665-8d18-7da12094861f"
    nodes, pods = [node("n1", "4")], [pod("a", "n1", gang=name)]
    assert uses(nodes, pods)[0].gangs == ("team/second",), "without Tutti's API"
    titles = {("team", name): "job/second"}
    assert uses(nodes, pods, titles)[0].gangs == ("team/job/second",)
