"""The checkers of allocations see what must not be, and accept everything that may be; drivers
publish pools that are complete again after each fault.
"""

from collections.abc import Iterable

import pytest

from shared.kube.resources import NODES, RESOURCE_SLICES
from tests.simulation.allocation_checkers import (
    features_of,
    overdrawn,
    request_named,
    shares_counters,
    wanted_devices,
    why_illegal,
)
from tests.simulation.claims import DEVICE_FEATURES
from tests.simulation.device_features import (
    claim_devices,
    device_named,
    devices_of_node,
    tolerates_broken,
)
from tests.simulation.devices import device_claim
from tests.simulation.kube_server import Obj
from tests.simulation.loop import Dice, SimLoop
from tests.simulation.workload import Shape
from tests.simulation.world import World

NODE = "node-1"  # its GPUs 0 and 1 are at one NUMA node, 2 and 3 at the other


def allocated(kind: str, number: int, *results: str, node: str = NODE) -> Obj:
    """A claim of that kind with devices, each written as "request=device"."""
    claim = device_claim(f"gang-1-{kind}", "work", claim_devices(kind, number))
    claim["metadata"]["uid"] = f"uid-{results}"
    claim["status"] = {"allocation": {"devices": {"results": [*as_results(node, results)]}}}
    return claim


def as_results(node: str, results: Iterable[str]) -> Iterable[Obj]:
    for one in results:
        request, _, name = one.partition("=")
        device = device_named(node, name)
        driver = device.driver if device is not None else "gpu.simulated"
        found = {"request": request, "driver": driver, "pool": node, "device": name}
        yield found | ({"shareID": "s"} if name == "whole" else {})


@pytest.mark.parametrize(
    ("kind", "number", "results"),
    [
        ("gpus", 2, ["gpus=gpu-0", "gpus=gpu-3"]),
        ("parts", 2, ["gpus=whole"]),
        ("matched", 2, ["gpus=gpu-0", "gpus=gpu-1"]),
        ("apart", 1, ["gpus=gpu-0", "gpus=gpu-2"]),
        ("apart", 2, ["first=gpu-0", "second=gpu-2"]),
        ("beside", 1, ["gpu=gpu-0", "nic=nic-2"]),
        ("partition", 2, ["gpus=split-1-half-0"]),
        ("partition", 4, ["gpus=split-1-whole"]),
        ("alternatives", 3, ["gpus/of-4=split-0-whole"]),
        ("alternatives", 3, ["gpus/pair=gpu-2", "gpus/pair=gpu-3"]),
        ("alternatives", 1, ["gpus/of-2=split-0-half-1"]),
    ],
)
def test_a_legal_allocation_is_accepted(kind: str, number: int, results: list[str]) -> None:
    claim = allocated(kind, number, *results)
    assert not why_illegal(claim)
    assert wanted_devices(claim) == len(results)
    assert not list(overdrawn((NODE, one.partition("=")[2]) for one in results))


@pytest.mark.parametrize(
    ("kind", "number", "results", "why"),
    [
        ("gpus", 2, ["gpus=gpu-0"], "has 1 of 2 devices"),
        ("gpus", 2, ["gpus=gpu-0", "gpus=gpu-0"], "has 2 of 2 devices"),
        ("gpus", 1, ["gpus=gpu-9"], "has no device gpu-9"),
        ("gpus", 1, ["gpus=nic-0"], "is not what request gpus selects"),
        ("gpus", 1, ["gpus=gpu-0", "more=gpu-1"], "no request or subrequest is named more"),
        ("matched", 2, ["gpus=gpu-1", "gpus=gpu-2"], "matchAttribute gpu.simulated/numa"),
        ("apart", 1, ["gpus=gpu-0", "gpus=gpu-1"], "distinctAttribute gpu.simulated/numa"),
        ("apart", 2, ["first=gpu-0", "second=gpu-1"], "distinctAttribute"),
        ("beside", 1, ["gpu=gpu-0", "nic=nic-1"], "matchAttribute resource.kubernetes.io"),
        ("partition", 2, ["gpus=split-1-quarter-0"], "is not what request gpus selects"),
        ("alternatives", 3, ["gpus=split-0-whole"], "request gpus/of-4 has 0 of 1 devices"),
        ("alternatives", 3, ["gpus/none=gpu-1"], "has 0 of 1 devices"),
        ("alternatives", 3, ["gpus/of-4=split-0-whole", "gpus/pair=gpu-0"], "is named gpus/pair"),
        ("alternatives", 3, ["gpus/of-4=split-0-half-0"], "is not what request gpus/of-4 selects"),
        ("alternatives", 3, ["gpus/pair=gpu-1", "gpus/pair=gpu-2"], "matchAttribute"),
    ],
)
def test_an_illegal_allocation_is_seen(
    kind: str, number: int, results: list[str], why: str
) -> None:
    assert why in why_illegal(allocated(kind, number, *results))


def test_devices_of_two_nodes_are_no_allocation() -> None:
    claim = allocated("gpus", 2, "gpus=gpu-0", "gpus=gpu-1")
    claim["status"]["allocation"]["devices"]["results"][0]["pool"] = "node-2"
    assert why_illegal(claim) == "its devices are on several nodes"


def test_a_whole_gpu_and_a_partition_of_it_exceed_its_counters() -> None:
    half, whole = (NODE, "split-0-half-0"), (NODE, "split-0-whole")
    assert not list(overdrawn([half, (NODE, "split-0-half-1"), (NODE, "split-1-whole")]))
    assert not list(overdrawn([half, ("node-2", "split-0-whole")]))
    assert list(overdrawn([half, whole])) == [
        f"6 of 4 slices of split-0 on {NODE}",
        f"120 of 80 memory of split-0 on {NODE}",
    ]


def test_the_features_of_an_allocation_are_counted() -> None:
    claim = allocated("alternatives", 3, "gpus/pair=gpu-2", "gpus/pair=gpu-3")
    assert list(features_of(claim)) == ["matchAttribute", "alternative 2"]
    half = allocated("alternatives", 1, "gpus/of-2=split-0-half-1")
    assert list(features_of(half)) == ["alternative 1", "partition of 2"]
    quarter = allocated("partition", 1, "gpus=split-0-quarter-0")
    assert shares_counters(half, [half, quarter])
    assert not shares_counters(half, [half, claim])


def test_only_the_second_of_two_requests_tolerates_a_broken_device() -> None:
    claim = allocated("apart", 2, "first=gpu-0", "second=gpu-2")
    tolerant = [tolerates_broken(request_named(claim, name)) for name in ("first", "second")]
    assert tolerant == [False, True]


class TestDrivers:
    """Faults of drivers, in a world in which no gang arrives."""

    def setup_method(self) -> None:
        loop = SimLoop(Dice(1))
        self.world = World(
            loop,
            Shape(gangs=0),
            on_fault=lambda _: None,
            note=lambda _gang, _what: None,
            claims=DEVICE_FEATURES,
        )
        self.world.begin()
        assert self.world.claims is not None
        self.devices = self.world.claims.devices
        assert self.devices.features is not None
        self.drivers = self.devices.features

    def slices(self) -> list[Obj]:
        every = self.world.etcd.all(RESOURCE_SLICES)
        return [one["spec"] for one in every if one["spec"]["pool"]["name"] == NODE]

    def is_complete(self) -> bool:
        """Whether all pools of the node are complete in their newest generation."""
        return all(
            sum(two["pool"] == one["pool"] and two["driver"] == one["driver"] for two in found)
            == one["pool"]["resourceSliceCount"]
            for found in (self.slices(),)
            for one in found
        )

    def test_every_device_is_published(self) -> None:
        names = {one["name"] for spec in self.slices() for one in spec.get("devices", ())}
        assert names == {one.name for one in devices_of_node(NODE)}
        assert self.is_complete()

    def test_a_broken_device_has_a_taint_until_it_is_mended(self) -> None:
        before = self.slices()
        self.drivers.taint(NODE, "gpu-1", broken=True)
        assert "'broken'" in str(self.slices())
        assert self.is_complete()
        self.drivers.taint(NODE, "gpu-1", broken=False)
        assert "'broken'" not in str(self.slices())
        assert len(self.slices()) == len(before)

    def test_a_pool_without_its_counters_is_incomplete_until_it_is_mended(self) -> None:
        self.drivers.hide_counters(NODE, hidden=True)
        assert not self.is_complete()
        self.devices.restart()
        assert not self.is_complete()
        self.devices.heal()
        assert self.is_complete()

    def test_drivers_publish_again_what_a_restore_of_etcd_has_brought_back(self) -> None:
        self.drivers.taint(NODE, "gpu-1", broken=True)
        backup = self.world.etcd.backup()
        self.drivers.taint(NODE, "gpu-1", broken=False)
        self.world.etcd.restore(backup)
        assert "'broken'" not in str(self.slices())
        assert self.is_complete()

    def test_withdrawn_devices_stay_away_while_they_break(self) -> None:
        self.devices.withdraw(NODE)
        self.drivers.taint(NODE, "gpu-1", broken=True)
        assert not any("gpu-1" in str(spec) for spec in self.slices())
        self.devices.offer(NODE)
        assert "'broken'" in str(self.slices())
        node = self.world.etcd.get(NODES, "", NODE)
        assert node is not None
        self.world.etcd.remove(NODES, node, by="test")
        assert not self.slices()
