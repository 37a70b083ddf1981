"""Which nodes a gang may use: each rule on a real API server, with kubelets that refuse mistakes.

Every case has the same form: a gang of two, nodes of which some are wrong for it, and where it must
end, or the words by which its group says that it cannot.
"""

from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from tests.controlplane.client import Object
from tests.controlplane.nodes import pod_manifest
from tests.integration.stage import Stage

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(120)]

ZONE: Final = "topology.kubernetes.io/zone"
POOL: Final = "example.com/pool"
DEDICATED: Final = {"key": "dedicated", "value": "ml", "effect": "NoSchedule"}


def container(**resources: str) -> Object:
    return {
        "name": "main",
        "image": "registry.example/none",
        "resources": {"requests": dict(resources)},
    }


def init(name: str, *, sidecar: bool = False, **resources: str) -> Object:
    made = {**container(**resources), "name": name}
    return {**made, "restartPolicy": "Always"} if sidecar else made


def affinity(*expressions: Object, names: tuple[str, ...] = ()) -> Object:
    term: Object = {"matchExpressions": list(expressions)}
    if names:
        term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": list(names)}]}
    required = {"nodeSelectorTerms": [term]}
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    }


def ports(number: int) -> Object:
    exposed = [{"containerPort": number, "hostPort": number}]
    return {"containers": [{**container(cpu="1"), "ports": exposed}]}


@dataclass(frozen=True)
class Case:
    """A gang of two pods with this spec, on these nodes."""

    spec: Object
    #: By prefix: how many, and what `NodeShape` takes.
    nodes: dict[str, tuple[int, dict[str, Any]]]
    #: Prefixes of the nodes that both members end on; empty: they wait.
    on: tuple[str, ...] = ()
    #: What the condition says of a gang that waits.
    words: str = ""
    requests: dict[str, str] = field(default_factory=lambda: {"cpu": "1"})


PLAIN: Final[tuple[int, dict[str, Any]]] = (2, {})
CASES: Final = {
    "a node selector": Case(
        {"nodeSelector": {POOL: "a"}},
        {"a": (1, {"labels": {POOL: "a"}}), "b": (2, {"labels": {POOL: "b"}})},
        on=("a",),
    ),
    "a node selector that only part of the gang would find room under": Case(
        {"nodeSelector": {POOL: "a"}},
        {"a": (1, {"labels": {POOL: "a"}, "cpu_milli": 1000}), "b": (2, {})},
        words="1 of 2 pods fit",
    ),
    "affinity In": Case(
        affinity({"key": ZONE, "operator": "In", "values": ["z1", "z2"]}),
        {"z1": (1, {"labels": {ZONE: "z1"}}), "z3": (2, {"labels": {ZONE: "z3"}})},
        on=("z1",),
    ),
    "affinity NotIn and DoesNotExist": Case(
        affinity(
            {"key": ZONE, "operator": "NotIn", "values": ["z1"]},
            {"key": POOL, "operator": "DoesNotExist"},
        ),
        {
            "z1": (1, {"labels": {ZONE: "z1"}}),
            "pool": (1, {"labels": {ZONE: "z2", POOL: "a"}}),
            "free": (1, {"labels": {ZONE: "z2"}}),
        },
        on=("free",),
    ),
    "affinity Gt": Case(
        affinity({"key": "example.com/gen", "operator": "Gt", "values": ["3"]}),
        {
            "old": (2, {"labels": {"example.com/gen": "3"}}),
            "new": (1, {"labels": {"example.com/gen": "10"}}),
            "odd": (1, {"labels": {"example.com/gen": "many"}}),
        },
        on=("new",),
    ),
    "affinity to a node by name": Case(
        affinity(names=("here-0",)), {"here-": PLAIN, "other-": PLAIN}, on=("here-0",)
    ),
    "affinity that no node meets": Case(
        affinity({"key": ZONE, "operator": "In", "values": ["nowhere"]}),
        {"n": PLAIN},
        words="0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector",
    ),
    "a taint": Case({}, {"tainted": (2, {"taints": [DEDICATED]}), "clean": (1, {})}, on=("clean",)),
    "a taint that is tolerated": Case(
        {"tolerations": [{"key": "dedicated", "operator": "Exists"}]},
        {"tainted": (1, {"taints": [DEDICATED]})},
        on=("tainted",),
    ),
    "a taint that is tolerated with another value": Case(
        {"tolerations": [{"key": "dedicated", "operator": "Equal", "value": "web"}]},
        {"tainted": (1, {"taints": [DEDICATED]})},
        words="1 node(s) had untolerated taint {dedicated: ml}",
    ),
    "a taint NoExecute": Case(
        {},
        {"tainted": (1, {"taints": [{**DEDICATED, "effect": "NoExecute"}]})},
        words="untolerated taint",
    ),
    "a taint that only prefers": Case(
        {},
        {"soft": (1, {"taints": [{**DEDICATED, "effect": "PreferNoSchedule"}]})},
        on=("soft",),
    ),
    "a host port spreads members": Case(ports(8080), {"n": PLAIN}, on=("n0", "n1")),
    "a host port on one node": Case(ports(8080), {"n": (1, {})}, words="1 of 2 pods fit"),
    "the number of pods": Case(
        {}, {"few": (1, {"pods": 1}), "many": (1, {"pods": 2})}, words="", on=("few", "many")
    ),
    "too few pods": Case({}, {"few": (1, {"pods": 1})}, words="Too many pods"),
    "extended resources": Case(
        {},
        {"plain": PLAIN, "gpu": (1, {"extended": {"example.com/gpu": 2}})},
        on=("gpu",),
        requests={"example.com/gpu": "1"},
    ),
    "extended resources that no node has": Case(
        {},
        {"plain": PLAIN},
        words="2 Insufficient example.com/gpu",
        requests={"example.com/gpu": "1"},
    ),
    "an init container that asks for more": Case(
        {"containers": [container(cpu="1")], "initContainers": [init("load", cpu="3")]},
        {"small": (2, {"cpu_milli": 2000}), "large": (1, {"cpu_milli": 6000})},
        on=("large",),
    ),
    "a sidecar beside the main container": Case(
        {
            "containers": [container(cpu="1")],
            "initContainers": [init("proxy", sidecar=True, cpu="1500m")],
        },
        {"small": (2, {"cpu_milli": 2000}), "large": (1, {"cpu_milli": 5000})},
        on=("large",),
    ),
    "memory in odd units": Case(
        {},
        {"small": (1, {"memory_bytes": 2 * 1536 * 2**20 - 1}), "large": (1, {})},
        on=("small", "large"),
        requests={"memory": "1.5Gi"},
    ),
    "memory that is one byte short": Case(
        {},
        {"small": (1, {"memory_bytes": 2 * 1536 * 2**20 - 1})},
        words="Insufficient memory",
        requests={"memory": "1.5Gi"},
    ),
    "a pod without requests": Case({}, {"n": PLAIN}, on=("n",), requests={}),
}


#: The same fields of an object as in another case: what differs is the planner's judgement, which
#: tests/services/gang_planner/core/constraints compares with a literal reading of every rule.
OF_A_FIELD_THAT_ANOTHER_CASE_HAS: Final = {
    "a node selector that only part of the gang would find room under",
    "affinity NotIn and DoesNotExist",
    "affinity Gt",
    "affinity that no node meets",
    "a taint",
    "a taint that is tolerated with another value",
    "a taint that only prefers",
    "a host port on one node",
    "too few pods",
    "extended resources that no node has",
    "memory that is one byte short",
}


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            case,
            id=title,
            marks=[pytest.mark.certify] if title in OF_A_FIELD_THAT_ANOTHER_CASE_HAS else [],
        )
        for title, case in CASES.items()
    ],
)
async def test_a_gang_is_bound_only_where_it_may_be(stage: Stage, case: Case) -> None:
    for prefix, (count, shape) in case.nodes.items():
        await stage.nodes(count, prefix=prefix, **shape)
    await stage.gang("train", 2, spec=case.spec, requests=case.requests)
    if not case.on:
        await stage.waits("train", "NotEnoughResources", case.words)
        assert not await stage.placed("train")
        return
    placed = await stage.bound("train", 2)
    wrong = {node for node in placed.values() if not node.startswith(case.on)}
    assert not wrong
    assert {prefix for prefix in case.on if any(n.startswith(prefix) for n in placed.values())}


async def test_a_cordoned_node_takes_no_gang_until_it_is_opened_again(stage: Stage) -> None:
    await stage.nodes(1)
    # Too large for one node: whatever the planner sees first, nothing is bound.
    await stage.gang("train", 2, requests={"cpu": "3"})
    cordon = {"spec": {"unschedulable": True}}
    await stage.api.patch("/api/v1/nodes/node-0", cordon)
    await stage.waits("train", "NotEnoughResources", "1 node(s) were unschedulable")
    await stage.nodes(1, prefix="more-")
    await stage.waits("train", "NotEnoughResources", "0/2 nodes are available")
    await stage.api.patch("/api/v1/nodes/node-0", {"spec": {"unschedulable": False}})
    await stage.bound("train", 2)


async def test_overhead_of_a_runtime_class_counts(stage: Stage) -> None:
    runtime = {
        "metadata": {"name": stage.namespace},
        "handler": "vm",
        "overhead": {"podFixed": {"cpu": "1"}},
    }
    await stage.api.create("/apis/node.k8s.io/v1/runtimeclasses", runtime)
    await stage.nodes(1, cpu_milli=3000)
    await stage.gang("train", 2, spec={"runtimeClassName": stage.namespace})
    await stage.waits("train", "NotEnoughResources", "1 of 2 pods fit")
    await stage.nodes(1, prefix="more-", cpu_milli=2000)
    await stage.bound("train", 2)


async def test_room_that_pods_outside_of_any_gang_take_is_not_given_away(stage: Stage) -> None:
    await stage.nodes(1)
    foreign = pod_manifest("foreign", requests={"cpu": "3500m"}, scheduler_name="elsewhere")
    await stage.bare_pods({**foreign, "spec": {**foreign["spec"], "nodeName": "node-0"}})
    await stage.gang("train", 1)
    await stage.waits("train", "NotEnoughResources", "Insufficient cpu")
    await stage.delete_pods(["foreign"])
    await stage.bound("train", 1)
