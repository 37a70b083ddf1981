"""Following objects across what can happen to a watch."""

import asyncio
from pathlib import Path
from typing import Any

from shared.kube.resources import QUEUES_VOLCANO
from tests.api_suite.client import Client
from tutti.api.access import Access, opened
from tutti.api.fetching import Wanted, fetch, follow
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
    async with opened(Access(kubeconfig=str(kubeconfig))) as client:
        wanted = Wanted(resource=QUEUES_VOLCANO, label_selector="team=blue")
        (found,) = await fetch(client, wanted)
    assert name_of(found) == "b"
    assert found["kind"] == "Queue"


async def test_what_happened_behind_a_gap_is_told_as_change_and_as_end(tmp_path: Path) -> None:
    """The history is so short that the watch's version is gone when it comes back."""
    settings = Settings(crds=(CRD,), history_max=4)
    async with EmbeddedCluster(settings) as cluster:
        path = cluster.kubeconfig(tmp_path / "kubeconfig")
        async with opened(Access(kubeconfig=str(path))) as client:
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
            # Nobody reads the watch yet: it begins with the next step, behind a gap.
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
