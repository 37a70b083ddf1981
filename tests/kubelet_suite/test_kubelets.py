"""What kubelets run, refuse, finish and remove."""

import pytest

from tests.controlplane.client import ApiError, Object
from tests.controlplane.nodes import GPU, NodeShape, pod_manifest
from tests.kubelet_suite.conftest import Site
from tests.support.waiting import eventually

HALF = {"cpu": "2", "memory": "4Gi", GPU: "2"}
SHAPE = NodeShape(cpu_milli=4000, memory_bytes=8 * 2**30, extended={GPU: 2})
WHOLE = {"cpu": "2000m"}
SMALL = NodeShape(cpu_milli=2000)


def with_ports(name: str) -> Object:
    port = {"containerPort": 80, "hostPort": 8080}
    return pod_manifest(
        name, spec={"containers": [{"name": "main", "image": "none", "ports": [port]}]}
    )


async def test_a_bound_pod_runs_with_an_address_and_is_ready(site: Site) -> None:
    await site.add_node()
    pod = await site.bind(pod_manifest("solo", requests={"cpu": "1"}))
    status = await site.seen_in(pod, "Running")
    conditions = {condition["type"]: condition["status"] for condition in status["conditions"]}
    assert conditions["Ready"] == conditions["PodScheduled"] == "True"
    assert status["podIP"].startswith("10.")
    (container,) = status["containerStatuses"]
    assert container["ready"]
    assert container["state"]["running"]["startedAt"]


@pytest.mark.simulated
async def test_an_unbound_pod_is_left_alone(site: Site) -> None:
    await site.add_node()
    waiting = await site.create(pod_manifest("waiting", requests={"cpu": "100m"}))
    placed = await site.bind(pod_manifest("placed", requests={"cpu": "100m"}))
    await site.seen_in(placed, "Running")
    await site.seen_in(waiting, "Pending")


@pytest.mark.simulated
async def test_a_pod_that_does_not_fit_fails_and_one_on_another_node_runs(site: Site) -> None:
    await site.add_node("node-0", SMALL)
    await site.add_node("node-1", SMALL)
    await site.seen_in(await site.bind(pod_manifest("first", requests=WHOLE)), "Running")
    status = await site.seen_in(await site.bind(pod_manifest("late", requests=WHOLE)), "Failed")
    assert status["reason"] == "OutOfcpu"
    assert "Node didn't have enough resource: cpu" in status["message"]
    other = await site.bind(pod_manifest("other", requests=WHOLE), "node-1")
    await site.seen_in(other, "Running")


@pytest.mark.parametrize(
    ("requests", "reason", "figures"),
    [
        ({"cpu": "2100m"}, "OutOfcpu", "requested: 2100, used: 2000, capacity: 4000"),
        (
            {"memory": "5Gi"},
            "OutOfmemory",
            "requested: 5368709120, used: 4294967296, capacity: 8589934592",
        ),
        ({GPU: "1"}, f"OutOf{GPU}", "requested: 1, used: 2, capacity: 2"),
        ({"a.b/c": "1"}, "OutOfa.b/c", "requested: 1, used: 0, capacity: 0"),
    ],
)
async def test_a_refusal_names_the_resource_and_its_amounts(
    site: Site, requests: dict[str, str], reason: str, figures: str
) -> None:
    await site.add_node("node-0", SHAPE)
    await site.seen_in(await site.bind(pod_manifest("neighbour", requests=HALF)), "Running")
    refused = await site.bind(pod_manifest("refused", requests=requests))
    status = await site.seen_in(refused, "Failed")
    assert status["reason"] == reason
    assert f"Node didn't have enough resource: {reason[5:]}, {figures}" in status["message"]


async def test_exactly_as_many_pods_run_as_the_node_takes(site: Site) -> None:
    await site.add_node("node-0", NodeShape(pods=3))
    for index in range(5):
        await site.bind(pod_manifest(f"p{index}"))

    async def phases() -> list[str]:
        listed = await site.api.get(f"/api/v1/namespaces/{site.namespace}/pods")
        found = sorted(str(pod["status"]["phase"]) for pod in listed["items"])
        assert "Pending" not in found, found
        return found

    assert await eventually(phases) == ["Failed", "Failed", "Running", "Running", "Running"]


async def test_a_pod_that_selects_another_node_is_refused(site: Site) -> None:
    await site.add_node("node-0", NodeShape(labels={"rack": "r1"}))
    pod = await site.bind(pod_manifest("selecting", spec={"nodeSelector": {"rack": "r2"}}))
    assert (await site.seen_in(pod, "Failed"))["reason"] == "NodeAffinity"


async def test_two_pods_cannot_have_one_port(site: Site) -> None:
    await site.add_node()
    await site.seen_in(await site.bind(with_ports("first")), "Running")
    second = await site.bind(with_ports("second"))
    assert (await site.seen_in(second, "Failed"))["reason"] == "NodePorts"


@pytest.mark.simulated
@pytest.mark.parametrize(("exit_code", "phase"), [(0, "Succeeded"), (3, "Failed")])
async def test_a_pod_that_ends_frees_its_room(site: Site, exit_code: int, phase: str) -> None:
    await site.add_node("node-0", SMALL)
    first = await site.bind(pod_manifest("first", requests=WHOLE))
    await site.seen_in(first, "Running")
    await site.end(first, exit_code)
    await site.seen_in(first, phase)
    second = await site.bind(pod_manifest("second", requests=WHOLE))
    await site.seen_in(second, "Running")


async def test_an_ended_pod_shows_its_exit_code(site: Site) -> None:
    await site.add_node()
    pod = await site.bind(pod_manifest("bad"))
    await site.seen_in(pod, "Running")
    await site.end(pod, 3)
    status = await site.seen_in(pod, "Failed")
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3
    assert "reason" not in status


@pytest.mark.simulated
async def test_a_pod_deleted_with_grace_is_gone_and_its_room_free(site: Site) -> None:
    await site.add_node("node-0", SMALL)
    old = await site.bind(pod_manifest("old", requests=WHOLE))
    await site.seen_in(old, "Running")
    await site.api.delete(site.path("old"))

    async def gone() -> bool:
        try:
            await site.api.get(site.path("old"))
        except ApiError as error:
            return error.status == 404
        return False

    await eventually(gone, because="the kubelet removes what is being deleted")
    new = await site.bind(pod_manifest("new", requests=WHOLE))
    await site.seen_in(new, "Running")


async def test_a_pod_bound_to_a_missing_node_waits_until_the_node_is_there(site: Site) -> None:
    early = await site.bind(pod_manifest("early"), "late-node")
    await site.seen_in(early, "Pending")
    await site.add_node("late-node")
    await site.seen_in(early, "Running")
