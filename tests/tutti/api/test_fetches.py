"""Following objects across what can happen to a watch."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from shared.kube.errors import ApiError
from shared.kube.resources import QUEUES_VOLCANO
from tests.api_suite.client import Client
from tests.support.faulty_cluster import ORDERS
from tutti.api.access import Access, open_client
from tutti.api.fetches import Wanted, fetch, follow
from tutti.api.objects import Object, name_of
from tutti.cluster.embedded import EmbeddedCluster, Settings

QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
CRD = Path(__file__).parents[3] / "deploy" / "crds" / "scheduling.volcano.sh_queues.yaml"


def queue(name: str, **labels: str) -> Object:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name, "labels": labels},
        "spec": {"weight": 1},
    }


async def test_a_list_can_be_narrowed_by_labels(kubeconfig: Path, cluster_api: Client) -> None:
    for name, team in [("a", "red"), ("b", "blue")]:
        await cluster_api.create(QUEUES, queue(name, team=team))
    async with open_client(Access(kubeconfig=str(kubeconfig))) as client:
        wanted = Wanted(resource=QUEUES_VOLCANO, label_selector="team=blue")
        (found,) = await fetch(client, wanted)
    assert name_of(found) == "b"
    assert found["kind"] == "Queue"


async def test_changes_behind_a_gap_arrive_as_modified_and_deleted(tmp_path: Path) -> None:
    """The history is so short that the watch's version is gone when it comes back."""
    settings = Settings(crds=(CRD,), history_max=4)
    async with EmbeddedCluster(settings) as cluster:
        path = cluster.kubeconfig(tmp_path / "kubeconfig")
        async with open_client(Access(kubeconfig=str(path))) as client:
            api = cluster.api

            async def put(name: str) -> None:
                await api.create(api.call("queues", group="scheduling.volcano.sh"), queue(name))

            async def weigh(name: str, weight: int) -> None:
                call = api.call("queues", name=name, group="scheduling.volcano.sh")
                await client.patch(QUEUES_VOLCANO, call.name, {"spec": {"weight": weight}})

            await put("stays")
            await put("goes")
            happenings = follow(client, Wanted(resource=QUEUES_VOLCANO))
            first = [await _next(happenings) for _ in range(2)]
            assert {(kind, name_of(obj)) for kind, obj in first} == {
                ("ADDED", "stays"),
                ("ADDED", "goes"),
            }
            # The watch is not read yet: it begins with the next step, behind a gap.
            await client.delete(QUEUES_VOLCANO, "goes")
            for weight in range(2, 9):
                await weigh("stays", weight)
            last = [await _next(happenings) for _ in range(2)]
    assert [(kind, name_of(obj)) for kind, obj in last] == [
        ("DELETED", "goes"),
        ("MODIFIED", "stays"),
    ]
    assert last[1][1]["spec"]["weight"] == 8


async def _next(happenings: Any) -> tuple[str, Object]:
    async with asyncio.timeout(10):
        found: tuple[str, Object] = await anext(happenings)
    return found


async def test_a_watch_goes_on_after_refusals_that_pass_and_a_lost_connection(
    kubeconfig: Path, cluster_api: Client
) -> None:
    async def misbehave(**order: object) -> None:
        assert (await cluster_api.call("POST", ORDERS, order)).status == 200

    async with open_client(Access(kubeconfig=str(kubeconfig))) as client:
        await cluster_api.create(QUEUES, queue("a"))
        happenings = follow(client, Wanted(resource=QUEUES_VOLCANO))
        assert name_of((await _next(happenings))[1]) == "a"
        rules = [{"verb": "watch", "status": status, "times": 1} for status in (503, 429)]
        await misbehave(rules=rules)
        await cluster_api.create(QUEUES, queue("b"))
        assert name_of((await _next(happenings))[1]) == "b"
        await misbehave(dropWatches=True)
        await cluster_api.create(QUEUES, queue("c"))
        assert name_of((await _next(happenings))[1]) == "c"


@pytest.mark.parametrize(("verb", "status"), [("list", 503), ("watch", 403)])
async def test_a_failed_first_list_and_a_permanent_failure_are_raised(
    kubeconfig: Path, cluster_api: Client, verb: str, status: int
) -> None:
    order = {"rules": [{"verb": verb, "status": status}]}
    assert (await cluster_api.call("POST", ORDERS, order)).status == 200
    async with open_client(Access(kubeconfig=str(kubeconfig))) as client:
        with pytest.raises(ApiError, match=str(status)):
            await _next(follow(client, Wanted(resource=QUEUES_VOLCANO)))
