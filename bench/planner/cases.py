"""The cases of the table: each returns figures with the bar that they are held to."""

import math
import resource
from collections.abc import Callable, Iterator
from typing import Final

from bench.bars import Figure
from bench.planner.evicting import evicting
from bench.planner.world import (
    HOSTNAME,
    RACK,
    ZONE,
    World,
    make_devices,
    make_gang,
    make_nodes,
    make_storage,
    shape_of,
)
from bench.planner_core import yardstick
from shared.contracts.cluster import Gone, PodChanges
from shared.model.objects import NetworkTopology
from shared.model.terms import PodAffinity, PodTerm, Requirement, Selector, SpreadConstraint

NODES: Final = 5_000
LOADS: Final = ((1000, 3), (3000, 3), (3, 1000), (9, 1000))
CLAIMS: Final = 1_000
DEVICE_NODES: Final = 1_000
DEVICES_PER_NODE: Final = 8
_RUNS: Final = 3
_SIZES: Final = (1_000, 2_000, 5_000, 10_000, 20_000, 50_000)
_APP: Final = Selector(requirements=(Requirement(key="app", operator="In", values=("x",)),))
#: msgpack of the labels that `_APP` matches.
_LABELS: Final = b"\x91\x92\xa3app\xa1x"


__all__ = ["CASES", "Figure"]


def drain(
    nodes: int,
    gangs: int,
    size: int,
    *,
    shapes: int = 1,
    topology: NetworkTopology | None = None,
) -> tuple[float, World]:
    """CPU seconds of the cycles that place a load whole; the best of several runs."""
    kinds = [shape_of(500 + 100 * index) for index in range(shapes)]
    best: tuple[float, World] | None = None
    for _ in range(_RUNS):
        world = World(make_nodes(nodes))
        world.put_gangs(
            make_gang(f"job-{index:05d}", size, kinds, created_ms=index, topology=topology)
            for index in range(gangs)
        )
        binds, _ = world.decide()
        placed = sum(len(one.bindings) for one in binds)
        assert placed == gangs * size, f"{placed} of {gangs * size} pods were placed"
        if best is None or world.cpu_s < best[0]:
            best = (world.cpu_s, world)
    assert best is not None
    return best


def placement() -> Iterator[Figure]:
    """Uniform gangs, one to three shapes."""
    for gangs, size in LOADS:
        for shapes in (1, 2, 3):
            cpu_s, _ = drain(NODES, gangs, size, shapes=shapes)
            name = f"{gangs} gangs of {size}, {shapes} shape{'s' * (shapes > 1)}"
            yield _rate("placement", name, gangs * size / cpu_s, 100_000)
            plain_us = min(yardstick(NODES, gangs, size) for _ in range(_RUNS))
            ratio = cpu_s * 1e6 / (gangs * size) / plain_us
            yield Figure(group="placement", name=f"{name}, over numpy", value=ratio, unit="x")


def topology() -> Iterator[Figure]:
    """The same, each gang within one rack."""
    within = NetworkTopology(mode="hard", label_key=RACK, highest_tier=1)
    for gangs, size in LOADS:
        for shapes in (1, 3):
            cpu_s, _ = drain(NODES, gangs, size, shapes=shapes, topology=within)
            name = f"{gangs} gangs of {size} in one rack each, {shapes} shape{'s' * (shapes > 1)}"
            yield _rate("topology", name, gangs * size / cpu_s, 30_000)


def claims() -> Iterator[Figure]:
    """A gang with a volume to be made for each member, where racks say what they have left."""
    best = math.inf
    for _ in range(_RUNS):
        world = World(make_nodes(NODES))
        make_storage(world, CLAIMS)
        shapes = [shape_of(500, namespace="team", claims=(f"data-{at}",)) for at in range(CLAIMS)]
        world.put_gangs([make_gang("job", CLAIMS, shapes)])
        binds, _ = world.decide()
        assert [len(one.volumes) for one in binds] == [CLAIMS]
        best = min(best, world.cycle_s)
    name = f"a gang of {CLAIMS}, a claim each"
    yield Figure(group="claims", name=name, value=best * 1e3, unit="ms")


def devices() -> Iterator[Figure]:
    """Gangs of 64 with a ResourceClaim for one device each, beside the same gangs without."""
    gangs, size = 100, 64
    name = f"{gangs} gangs of {size}, a ResourceClaim each"
    ratios: list[float] = []
    rate, first_s = 0.0, math.inf
    for _ in range(_RUNS):
        reading_s, claimed_s = _drain_devices(gangs, size, claims=True)
        _, plain_s = _drain_devices(gangs, size, claims=False)
        rate = max(rate, gangs * size / claimed_s)
        first_s = min(first_s, reading_s)
        ratios.append(claimed_s / plain_s)
    yield _rate("devices", name, rate, 20_000)
    yield Figure(group="devices", name=f"{name}, over none", value=min(ratios), unit="x")
    count = f"{DEVICE_NODES * DEVICES_PER_NODE:,} devices"
    name = f"the first gang after {count} appeared"
    yield Figure(group="devices", name=name, value=first_s * 1e3, unit="ms")


def _drain_devices(gangs: int, size: int, *, claims: bool) -> tuple[float, float]:
    """CPU seconds of the cycles that place a first gang, and `gangs` more. Their members are alike
    but for the claims.
    """
    world = World(make_nodes(DEVICE_NODES))
    names = [[f"gpu-{at:03d}-{member:02d}" for member in range(size)] for at in range(gangs + 1)]
    if claims:
        make_devices(world, DEVICES_PER_NODE, (name for one in names for name in one))
    loads = [
        make_gang(
            f"job-{at:03d}",
            size,
            [
                shape_of(500, namespace="team", device_claims=(name,) if claims else ())
                for name in one
            ],
            created_ms=at,
            roles=1,
        )
        for at, one in enumerate(names)
    ]
    spent: list[float] = []
    for load in (loads[:1], loads[1:]):
        world.put_gangs(load)
        binds, _ = world.decide()
        placed = sum(len(one.bindings) for one in binds)
        assert placed == len(load) * size, f"{placed} of {len(load) * size} pods were placed"
        assert sum(len(one.devices) for one in binds) == (placed if claims else 0)
        spent.append(world.cpu_s)
    return spent[0], spent[1]


def terms() -> Iterator[Figure]:
    """Anti-affinity, affinity, spread: 5,000 pods that all match one selector."""
    host, zone = (
        PodTerm(selector=_APP, namespaces=("team",), topology_key=key) for key in (HOSTNAME, ZONE)
    )
    for name, others, fields in (
        ("anti-affinity per node", 180, {"pod_affinity": PodAffinity(anti_affinity=(host,))}),
        ("affinity per zone", 70, {"pod_affinity": PodAffinity(affinity=(zone,))}),
        (
            "spread over zones",
            460,
            {"spread": (SpreadConstraint(max_skew=1, topology_key=ZONE, selector=_APP),)},
        ),
    ):
        best = 0.0
        for _ in range(_RUNS):
            world = World(make_nodes(NODES))
            shape = shape_of(500, namespace="team", **fields)
            world.put_gangs(
                make_gang(f"job-{index:03d}", 50, [shape], created_ms=index, labels=_LABELS)
                for index in range(100)
            )
            binds, _ = world.decide()
            placed = sum(len(one.bindings) for one in binds)
            assert placed == 5_000, f"{name}: {placed} of 5000 pods were placed"
            best = max(best, placed / world.cpu_s)
        yield _rate("terms", f"{name} (kube-scheduler's bar {others}/s)", best, 3_000)


def full_cluster() -> Iterator[Figure]:
    """10,000 gangs that do not fit, then a pod of one node goes."""
    for kinds in (1, 1_000):
        world = World(make_nodes(NODES, cpu_milli=1_000, pods=10))
        filler = [
            make_gang(f"old-{index}", 1, [shape_of(1_000)], nodes=[f"node-{index:05d}"])
            for index in range(NODES)
        ]
        world.put_gangs(filler)
        shapes = [shape_of(600 + index % kinds) for index in range(10_000)]
        world.put_gangs(
            make_gang(f"new-{index:05d}", 8, [shapes[index]], created_ms=index)
            for index in range(10_000)
        )
        assert world.decide() == ([], [])
        worst = 0.0
        for index in range(5):
            uid = f"old-{index}-0"
            gone = Gone(uid=uid, resource_version=101)
            world.apply(PodChanges(epoch=1, at_ms=10_000, removed=(gone,)))
            world.decide()
            worst = max(worst, world.cpu_s)
        name = f"10,000 gangs of {kinds} shape{'s' * (kinds > 1)} wait, one node freed"
        yield _time("full cluster", name, worst, 20)


def large() -> Iterator[Figure]:
    """50,000 nodes with 500,000 pods; one gang of 500 comes."""
    world = World(make_nodes(50_000))
    for start in range(0, 500_000, 10_000):
        names = [f"node-{(start + index) % 50_000:05d}" for index in range(10_000)]
        world.put_gangs(
            make_gang(f"old-{start + at}", 100, [shape_of(4_000)], nodes=names[at : at + 100])
            for at in range(0, 10_000, 100)
        )
    world.decide()
    worst = 0.0
    for index in range(3):
        world.put_gangs([make_gang(f"new-{index}", 500, [shape_of(1_000 + index)])])
        binds, _ = world.decide()
        assert [len(one.bindings) for one in binds] == [500]
        worst = max(worst, world.cycle_s)
    group = "50,000 nodes, 500,000 pods"
    yield _time(group, "cycle with a gang of 500", worst, 100)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    yield Figure(group=group, name="peak memory", value=peak, unit="MiB", bar=4096)


def growth() -> Iterator[Figure]:
    """CPU of one pod by number of nodes, 30 gangs of 100 equal pods."""
    found: list[float] = []
    for nodes in _SIZES:
        cpu_s, _ = drain(nodes, 30, 100)
        found.append(cpu_s * 1e6 / 3_000)
        yield Figure(group="growth", name=f"{nodes} nodes", value=found[-1], unit="us/pod")
    ratio = max(found) / min(found)
    yield Figure(group="growth", name="slowest over fastest", value=ratio, unit="x", bar=4)


CASES: Final[dict[str, Callable[[], Iterator[Figure]]]] = {
    "placement": placement,
    "topology": topology,
    "claims": claims,
    "devices": devices,
    "terms": terms,
    "evictions": evicting,
    "full": full_cluster,
    "growth": growth,
    "large": large,
}
"""In the order of the table; what needs most memory is last, so that the peak is its own."""


def _rate(group: str, name: str, value: float, bar: float) -> Figure:
    return Figure(group=group, name=name, value=value, unit="pods/s", bar=bar, at_least=True)


def _time(group: str, name: str, seconds: float, bar_ms: float) -> Figure:
    return Figure(group=group, name=name, value=seconds * 1e3, unit="ms", bar=bar_ms)
