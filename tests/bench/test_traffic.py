"""Traffic's own controller, on an API server of a few lines."""

import asyncio
from typing import TYPE_CHECKING, Any, cast

import pytest

from bench.load import PODS_PATH
from bench.pod_watch import Sighting
from bench.traffic import Traffic
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from bench.testbed import Bed


class PodBed:
    """Client and watch in one: what is created is seen at once, and bound when the test says."""

    def __init__(self) -> None:
        self.pods: dict[str, Sighting] = {}
        self.made: list[str] = []
        self.client = self.watch = self

    def fresh_prefix(self) -> str:
        return "run1"

    async def create(self, path: str, manifest: dict[str, Any]) -> None:
        if path == PODS_PATH:
            name = manifest["metadata"]["name"]
            self.made.append(name)
            self.pods[name] = Sighting("uid", 0.0)

    async def delete(self, path: str, _: object) -> None:
        self.pods.pop(path.rpartition("/")[2], None)

    def bound_s(self, names: list[str]) -> list[float]:
        pods = (self.pods.get(name) for name in names)
        return sorted(pod.bound_s for pod in pods if pod is not None and pod.bound_s)


@pytest.mark.timeout(10)
async def test_what_a_release_deletes_is_made_again_and_the_gang_is_not_lost() -> None:
    bed = PodBed()
    traffic = Traffic(cast("Bed", bed), "volcano", size=2, per_s=1000.0, life_s=0.0)
    coming = asyncio.create_task(traffic.run(0.0005))
    await eventually(lambda: len(bed.pods) == 2 and traffic.gangs[0].seen)
    gone = bed.made[0]
    del bed.pods[gone]
    await eventually(lambda: gone in bed.pods)
    for pod in bed.pods.values():
        pod.bound_s = 1.0
    await coming
    assert (bed.made.count(gone), traffic.gangs[0].made_again) == (2, 1)
    assert not traffic.lost()
