"""Scenarios as data: nodes, queues and gangs in; bindings and verdicts out."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from shared.model.objects import (
    HostPort,
    Node,
    Pod,
    PriorityClass,
    Queue,
    Requirement,
    SelectorTerm,
    Taint,
    Toleration,
)
from tests.services.gang_planner.core.scene import (
    GPU,
    Scene,
    amounts,
    make_group,
    make_node,
    make_pods,
    make_shape,
)

CPU = make_shape({"cpu": 1000})
BIG = make_shape({"cpu": 3000})
WORKER = make_shape({GPU: 1, "cpu": 1000})
BEST_EFFORT = make_shape()


VGPU = "device:volcano.sh/vgpu-number"


@dataclass
class Gang:
    name: str
    min_member: int
    shape: bytes = CPU
    count: int | None = None
    group: dict[str, Any] = field(default_factory=dict)
    pods: dict[str, Any] = field(default_factory=dict)

    def objects(self) -> list[Any]:
        count = self.min_member if self.count is None else self.count
        return [
            make_group(self.name, self.min_member, **self.group),
            *make_pods(self.name, count, self.shape, **self.pods),
        ]


@dataclass
class Scenario:
    gangs: list[Any]
    #: Gang -> how many of its members are decided.
    decided: dict[str, int]
    #: Gang -> why it waits.
    waits: dict[str, str] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=lambda: [make_node(f"n{i}") for i in range(4)])
    others: list[Any] = field(default_factory=list)
    #: Pod -> node, where it matters.
    where: dict[str, str] = field(default_factory=dict)
    #: Words that a sentence must have, by gang.
    says: dict[str, str] = field(default_factory=dict)
    conf: str = ""


def volcano_queue(name: str, **fields: Any) -> Queue:
    return Queue(uid=f"queue-{name}", dialect="volcano", name=name, resource_version=1, **fields)


def affinity(*requirements: Requirement) -> bytes:
    return make_shape({"cpu": 1000}, node_affinity=(SelectorTerm(expressions=requirements),))


SCENARIOS = {
    "a gang is placed whole": Scenario([Gang("a", 4)], {"a": 4}),
    "a gang that fits in part is not placed at all": Scenario(
        [Gang("a", 17)], {}, {"a": "NotEnoughResources"}, says={"a": "16 of 17 pods fit"}
    ),
    "a big gang in front does not block a small one behind": Scenario(
        [Gang("big", 5, BIG), Gang("small", 2)], {"small": 2}, {"big": "NotEnoughResources"}
    ),
    "a gang waits until all of its pods exist": Scenario(
        [Gang("a", 4, count=3)],
        {},
        {"a": "NotEnoughPods"},
        says={"a": "3 of 4 members exist that could run"},
    ),
    "a role that lacks a member holds the whole gang back": Scenario(
        [Gang("a", 3, count=3, group={"min_task_member": (("ps", 1), ("worker", 2))})],
        {},
        {"a": "NotEnoughPodsOfTask"},
        says={"a": "0 of 1 members of ps"},
    ),
    "minima of roles above the gang's size do not bind": Scenario(
        [Gang("a", 2, count=2, group={"min_task_member": (("ps", 1), ("worker", 2))})], {"a": 2}
    ),
    "members above the quorum come along as they fit": Scenario(
        [Gang("a", 2, BIG, count=6)], {"a": 4}, {"a": "NotEnoughResources"}
    ),
    "without a gang size every member is placed as it comes": Scenario(
        [Gang("a", 0, BIG, count=6)], {"a": 4}, {"a": "NotEnoughResources"}
    ),
    "a gang of two shapes is placed whole": Scenario(
        [[*Gang("a", 5, WORKER, count=4).objects(), *make_pods("a", 1, BIG, role="ps")]],
        {"a": 5},
    ),
    "of two shapes the one that fits nowhere stops both": Scenario(
        [
            [
                *Gang("a", 5, WORKER, count=4).objects(),
                *make_pods("a", 1, make_shape({"cpu": 5000}), role="ps"),
            ]
        ],
        {},
        {"a": "NotEnoughResources"},
    ),
    "higher priority goes first": Scenario(
        [
            Gang("low", 4, BIG, group={"created_ms": 1}),
            Gang("high", 4, BIG, group={"created_ms": 2, "priority_class": "urgent"}),
        ],
        {"high": 4},
        {"low": "NotEnoughResources"},
        others=[PriorityClass(uid="p", name="urgent", resource_version=1, value=100)],
    ),
    "the highest priority of its pods counts without a class": Scenario(
        [
            Gang("low", 4, BIG, group={"created_ms": 1}),
            Gang("high", 4, BIG, group={"created_ms": 2}, pods={"priority": 7}),
        ],
        {"high": 4},
        {"low": "NotEnoughResources"},
    ),
    "of equals the older one goes first": Scenario(
        [
            Gang("young", 4, BIG, group={"created_ms": 2}),
            Gang("old", 4, BIG, group={"created_ms": 1}),
        ],
        {"old": 4},
        {"young": "NotEnoughResources"},
    ),
    "a queue of higher priority has the first turn": Scenario(
        [
            Gang("a", 4, BIG, group={"queue": "calm", "created_ms": 1}),
            Gang("b", 4, BIG, group={"queue": "hasty", "created_ms": 2}),
        ],
        {"b": 4},
        {"a": "NotEnoughResources"},
        others=[volcano_queue("calm"), volcano_queue("hasty", priority=5)],
    ),
    "queues take turns by weight": Scenario(
        [
            *(Gang(f"a{i}", 1, BIG, group={"queue": "a", "created_ms": i}) for i in range(4)),
            *(Gang(f"b{i}", 1, BIG, group={"queue": "b", "created_ms": 9 + i}) for i in range(4)),
        ],
        {"a0": 1, "b0": 1, "b1": 1, "b2": 1},
        others=[volcano_queue("a", weight=1), volcano_queue("b", weight=3)],
    ),
    "a queue's capability is a hard ceiling": Scenario(
        [
            Gang("a", 2, group={"queue": "small", "created_ms": 1}),
            Gang("b", 2, group={"queue": "small", "created_ms": 2}),
        ],
        {"a": 2},
        {"b": "NotEnoughQuota"},
        others=[volcano_queue("small", capability=amounts(cpu=3000))],
        says={"b": "queue small is at its capability: job needs 1 cpu more"},
    ),
    "extras stop at the queue's capability": Scenario(
        [Gang("a", 2, count=6, group={"queue": "small"})],
        {"a": 3},
        {"a": "NotEnoughQuota"},
        others=[volcano_queue("small", capability=amounts(cpu=3000))],
    ),
    "a queue that does not exist holds the gang back and says so": Scenario(
        [Gang("a", 1, group={"queue": "nowhere"})], {}, {"a": "QueueMissing"}
    ),
    "a closed queue takes no fresh gang": Scenario(
        [Gang("a", 1, group={"queue": "shut"})],
        {},
        {"a": "QueueNotOpen"},
        others=[volcano_queue("shut", state="Closed")],
    ),
    "gated members are waited for": Scenario(
        [Gang("a", 2, pods={"gates": ("example.com/wait",)})], {}, {"a": "Gated"}
    ),
    "members that no filter can judge are never bound by guess": Scenario(
        [Gang("a", 2, make_shape({"cpu": 1}, unsupported=("spec.volumes[0]",)))],
        {},
        {"a": "Unsupported"},
        says={"a": "spec.volumes[0]"},
    ),
    "a part of a device is never placed by count": Scenario(
        [
            Gang("a", 2, make_shape({"volcano.sh/vgpu-number": 1}, unsupported=(VGPU,))),
            Gang("b", 1, make_shape({"cpu": 1})),
        ],
        {"b": 1},
        {"a": "UnsupportedDevice"},
        says={"a": "not placed by count: volcano.sh/vgpu-number"},
    ),
    "a group with errors is never planned": Scenario(
        [Gang("a", 1, group={"errors": ("spec.minMember: must not be negative",)})],
        {},
        {"a": "InvalidGroup"},
        says={"a": "must not be negative"},
    ),
    "a group that is being deleted is not planned": Scenario(
        [Gang("a", 1, group={"deleting": True})], {}, {"a": "GroupDeleting"}
    ),
    "pods of a group that does not exist wait, with a verdict that says so": Scenario(
        [make_pods("ghost", 2, CPU)], {}, {"ghost": "GroupMissing"}
    ),
    "a selector keeps a gang on the nodes it names": Scenario(
        [Gang("a", 2, make_shape({"cpu": 1000}, node_selector=(("disk", "ssd"),)))],
        {"a": 2},
        nodes=[make_node("hdd"), make_node("ssd", labels=(("disk", "ssd"),))],
        where={"a-worker-0": "ssd", "a-worker-1": "ssd"},
    ),
    "required affinity compares numbers": Scenario(
        [Gang("a", 1, affinity(Requirement(key="generation", operator="Gt", values=("9",))))],
        {"a": 1},
        nodes=[
            make_node("n9", labels=(("generation", "9"),)),
            make_node("n10", labels=(("generation", "10"),)),
        ],
        where={"a-worker-0": "n10"},
    ),
    "a node can be named by affinity": Scenario(
        [
            Gang(
                "a",
                1,
                make_shape(
                    {"cpu": 1},
                    node_affinity=(
                        SelectorTerm(
                            fields=(
                                Requirement(key="metadata.name", operator="In", values=("n2",)),
                            )
                        ),
                    ),
                ),
            )
        ],
        {"a": 1},
        where={"a-worker-0": "n2"},
    ),
    "taints keep out pods that do not tolerate them": Scenario(
        [
            Gang("plain", 1),
            Gang(
                "brave",
                1,
                make_shape({"cpu": 1000}, tolerations=(Toleration(key="gpu", operator="Exists"),)),
            ),
        ],
        {"brave": 1},
        {"plain": "NotEnoughResources"},
        nodes=[make_node("n", taints=(Taint(key="gpu", value="yes", effect="NoSchedule"),))],
        says={"plain": "0/1 nodes are available: 1 node(s) had untolerated taint {gpu: yes}"},
    ),
    "a taint that only advises is avoided while there is another node": Scenario(
        [Gang("a", 1)],
        {"a": 1},
        nodes=[
            make_node("advised", taints=(Taint(key="k", effect="PreferNoSchedule"),)),
            make_node("plain"),
        ],
        where={"a-worker-0": "plain"},
    ),
    "cordoned and unready nodes are left alone": Scenario(
        [Gang("a", 1)],
        {},
        {"a": "NotEnoughResources"},
        nodes=[make_node("c", unschedulable=True), make_node("u", ready=False)],
        says={"a": "1 node(s) were unschedulable"},
    ),
    "one host port per node": Scenario(
        [Gang("a", 3, make_shape({"cpu": 1}, host_ports=(HostPort(port=80),)))],
        {},
        {"a": "NotEnoughResources"},
        nodes=[make_node("n0"), make_node("n1")],
        says={"a": "2 node(s) didn't have free ports for the requested pod ports"},
    ),
    "the number of pods is a resource": Scenario(
        [Gang("a", 2, BEST_EFFORT)],
        {},
        {"a": "NotEnoughResources"},
        nodes=[make_node("n", {"cpu": 4000, "pods": 1})],
        says={"a": "1 of 2 pods fit; for the others 0/1 nodes are available: 1 Too many pods"},
    ),
    "best-effort pods are placed by backfill": Scenario([Gang("a", 3, BEST_EFFORT)], {"a": 3}),
    "without backfill best-effort gangs stay": Scenario(
        [Gang("a", 3, BEST_EFFORT), Gang("b", 1)],
        {"b": 1},
        {"a": "ActionMissing"},
        conf="actions: enqueue, allocate",
    ),
    "a best-effort member comes with its gang": Scenario(
        [[*Gang("a", 3, count=2).objects(), *make_pods("a", 1, BEST_EFFORT, role="log")]],
        {"a": 3},
        conf="actions: allocate",
    ),
    "pods of other schedulers take room and are no gang": Scenario(
        [Gang("a", 4, BIG)],
        {},
        {"a": "NotEnoughResources"},
        others=[
            Pod(
                uid="f",
                namespace="x",
                name="f",
                resource_version=1,
                shape=make_shape({"cpu": 2000}),
                node="n0",
                phase="Running",
            )
        ],
    ),
    "there may be no node at all": Scenario(
        [Gang("a", 1)],
        {},
        {"a": "NotEnoughResources"},
        nodes=[],
        says={"a": "0 of 1 pods fit; there are no nodes"},
    ),
}


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=list(SCENARIOS))
def test_scenario(scenario: Scenario) -> None:
    scene = Scene(scenario.nodes, conf=scenario.conf)
    scene.put(*scenario.others)
    for gang in scenario.gangs:
        scene.put(*(gang.objects() if isinstance(gang, Gang) else gang))
    decided = {one.gang.split("/")[1]: one for one in scene.settle()}

    assert {name: len(one.bindings) for name, one in decided.items()} == scenario.decided
    placed = {pod: node for one in decided.values() for pod, node in scene.where(one).items()}
    assert {pod: placed.get(pod) for pod in scenario.where} == scenario.where
    for name, reason in scenario.waits.items():
        why = scene.verdict(name).why
        assert why is not None
        assert why.reason == reason
    for name, words in scenario.says.items():
        why = scene.verdict(name).why
        assert why is not None
        assert words in why.sentence
