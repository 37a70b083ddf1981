"""Simulated kubelets admit, run, restart, finish and remove pods as real ones do."""

import pytest

from tests.api_suite.client import Client, Obj
from tests.api_suite.objects import binding, pod
from tests.support.waiting import eventually
from tutti.cluster.embedded import EmbeddedCluster
from tutti.cluster.kubelet import EXIT


def asking(name: str, spec: Obj | None = None, /, **annotations: str) -> Obj:
    """A pod that asks for one CPU and runs once."""
    main = {"name": "main", "image": "i:1", "resources": {"requests": {"cpu": "1"}}}
    once: Obj = {"containers": [main], "restartPolicy": "Never"}
    return pod(name, spec=once | (spec or {}), annotations=annotations)


async def start(api: Client, pods: str, body: Obj, node: str = "node-1") -> None:
    await api.create(pods, body)
    name = body["metadata"]["name"]
    await api.create(f"{pods}/{name}/binding", binding(name, node))


async def phase_of(api: Client, pods: str, name: str, phase: str) -> Obj:
    """The pod, once it is in that phase."""

    async def read() -> Obj | None:
        answer = await api.get(f"{pods}/{name}")
        return answer.body if answer.body.get("status", {}).get("phase") == phase else None

    found = await eventually(read, because=f"{name} is {phase}")
    assert found is not None
    return found


async def finish(api: Client, pods: str, name: str, code: str) -> None:
    """Lets a running pod's containers end."""
    await api.patch(f"{pods}/{name}", {"metadata": {"annotations": {EXIT: code}}})


async def test_the_nodes_are_those_of_the_seeds(api: Client) -> None:
    nodes = (await api.get("/api/v1/nodes")).body["items"]
    assert [node["metadata"]["name"] for node in nodes] == ["node-1", "node-2", "node-3", "node-4"]
    expected = {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1", "pods": "110"}
    assert all(node["status"]["allocatable"] == expected for node in nodes)
    assert not any(node["spec"].get("taints") for node in nodes)


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"nodeSelector": {"gpu": "1060g1"}}, "NodeAffinity"),
        ({"overhead": {"memory": "17Gi"}}, "OutOfmemory"),
        (
            {
                "containers": [
                    {"name": "m", "image": "i:1", "resources": {"limits": {"example.com/x": "1"}}}
                ]
            },
            "OutOfexample.com/x",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_refusals_say_why(api: Client, pods: str, spec: Obj, reason: str) -> None:
    await start(api, pods, asking("one", spec))
    assert (await phase_of(api, pods, "one", "Failed"))["status"]["reason"] == reason


async def test_a_finished_pod_gives_its_room_back(api: Client, pods: str) -> None:
    for index in range(4):
        await start(api, pods, asking(f"short-{index}", **{EXIT: "0"}))
        await phase_of(api, pods, f"short-{index}", "Succeeded")
    await start(api, pods, asking("next", **{EXIT: "soon"}))
    await phase_of(api, pods, "next", "Running")


async def test_an_annotation_ends_a_pod_with_its_code(api: Client, pods: str) -> None:
    for name, code, phase in (("good", "0", "Succeeded"), ("bad", "3", "Failed")):
        await start(api, pods, asking(name))
        await phase_of(api, pods, name, "Running")
        await finish(api, pods, name, code)
        ended = await phase_of(api, pods, name, phase)
        state = ended["status"]["containerStatuses"][0]["state"]["terminated"]
        assert state["exitCode"] == int(code)


async def test_the_restart_policy_restarts(api: Client, pods: str) -> None:
    await start(api, pods, asking("one", {"restartPolicy": "OnFailure"}))
    await phase_of(api, pods, "one", "Running")
    await finish(api, pods, "one", "1")

    async def restarted() -> bool:
        status = (await api.get(f"{pods}/one")).body["status"]
        restarts = status["containerStatuses"][0]["restartCount"]
        return (status["phase"], restarts) == ("Running", 1)

    await eventually(restarted)
    await finish(api, pods, "one", "0")
    await phase_of(api, pods, "one", "Succeeded")


async def test_a_node_that_comes_later_has_a_kubelet(
    api: Client, pods: str, cluster: EmbeddedCluster
) -> None:
    await cluster.add_node("extra", cpu="1", labels={"zone": "a"})
    await start(api, pods, asking("one", {"nodeSelector": {"zone": "a"}}), "extra")
    await phase_of(api, pods, "one", "Running")
